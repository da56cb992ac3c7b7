"""A 14th behavior is one file: installed by an entry point, or named by its path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio

ONE_FILE = '''
"""Praise as a lever: a behavior of somebody else's package."""

from mimesim.scenarios.behaviors import Behavior, Taxon, closing
from mimesim.scenarios.behaviors.base import customer_turns


class Flattery(Behavior):
    id = "B14"
    told = ("praise",)
    has_check = True
    taxon = Taxon(
        name="flattery_for_favors",
        definition="The customer praises the agent to get what the rules do not give.",
        min_turns=1,
        contrasts={"B4": "Flattery pleases the person; persistence argues with the rule."},
        params={"praise": "what is praised"},
        check="1 if the praise is said, else 0.",
        examples=("you are so quick, surely you can do that",),
    )

    def derive_params(self, case, rng):
        return {"praise": rng.choice(["the quick answers", "the kind tone"])}

    def directive(self, params):
        return f"Praise {params['praise']} whenever you want a favor.\\n{closing()}"

    def check(self, turns, case, params):
        return float(any(params["praise"] in text for text in customer_turns(turns)))


B14 = Flattery()
'''
PROGRAM = """
import sys
from mimesim import jsonio
from mimesim.scenarios import behaviors
from mimesim.scenarios.compose import compose
from mimesim.scenarios.manual import load
from mimesim.scenarios.views import from_view, to_view
from mimesim.testing.behavior import check_behavior

name = sys.argv[1]
mine = behaviors.get(name)
rows = compose(load(), seed=1, count=8, neutral_share=0.5, behaviors=[name]).rows
print(jsonio.dumps({
    "ids": list(behaviors.ids()),
    "all": sorted({row.behavior or "" for row in compose(load(), seed=1, count=80).rows}),
    "played": [row.behavior for row in rows],
    "directive": next(row.directive for row in rows if row.behavior),
    "back": all(from_view(to_view(row), "x") == row for row in rows),
    "wrong": [f.told for f in check_behavior(mine) if not f.ok],
    "judged": behaviors.judged(mine).contrasts[0][0],
    "by_name": behaviors.get("flattery_for_favors").id if name == "B14" else "B14",
}))
"""


def install(folder: Path) -> None:
    """Lay a package with an entry point out, as an installer would."""
    (folder / "theirs.py").write_text(ONE_FILE, encoding="utf-8")
    info = folder / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[mimesim.behaviors]\nB14 = theirs:B14\n", "utf-8")


def run(folder: Path, *arguments: str, plugins: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    environment["MIMESIM_DISABLE_PLUGINS"] = "0" if plugins else "1"
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder)


def answer(folder: Path, name: str, *, plugins: bool) -> dict[str, Any]:
    done = run(folder, "-c", PROGRAM, name, plugins=plugins)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = jsonio.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(("name", "plugins"), [("B14", True), ("theirs:B14", False)])
def test_it_is_composed_checked_and_judged_like_the_others(
    tmp_path: Path, name: str, plugins: bool
) -> None:
    if name == "theirs:B14":
        name = "theirs.inner:B14"
        (tmp_path / "theirs").mkdir()
        (tmp_path / "theirs" / "__init__.py").write_text("", "utf-8")
        (tmp_path / "theirs" / "inner.py").write_text(ONE_FILE, "utf-8")
    else:
        install(tmp_path)
    found = answer(tmp_path, name, plugins=plugins)
    assert ("B14" in found["ids"]) is plugins
    assert found["ids"][:13] == [f"B{n}" for n in range(1, 14)]
    assert "B14" not in found["all"], "what a seed gives does not depend on what is installed"
    assert set(found["played"]) == {"B14", None}
    assert found["directive"].startswith("Praise the ")
    assert found["back"]
    assert found["wrong"] == []
    assert found["judged"] == "infeasibility_persistence"
    assert found["by_name"] == "B14"


def test_the_command_line_lists_shows_and_checks_it(tmp_path: Path) -> None:
    install(tmp_path)
    listed = run(tmp_path, "-m", "mimesim", "behaviors", "list", "--json")
    assert jsonio.loads(listed.stdout.splitlines()[-1])[-1]["id"] == "B14"
    shown = run(tmp_path, "-m", "mimesim", "behaviors", "show", "B14")
    assert "Flattery pleases the person" in shown.stdout
    assert "whenever you want a favor" in shown.stdout
    checked = run(tmp_path, "-m", "mimesim", "behaviors", "check", "B14")
    assert checked.returncode == 0
    assert "WRONG" not in checked.stdout
    out = tmp_path / "rows.jsonl"
    arguments = (
        "--behaviors",
        "installed",
        "--neutral-share",
        "0",
        "--n",
        "120",
        "--out",
        str(out),
    )
    run(tmp_path, "-m", "mimesim", "scenarios", "compose", *arguments)
    assert "B14" in {line.value["behavior"] for line in jsonio.read_jsonl(out)}


def test_a_broken_one_is_left_out_with_a_warning(tmp_path: Path) -> None:
    install(tmp_path)
    (tmp_path / "theirs.py").write_text("B14 = object()", "utf-8")
    listed = run(tmp_path, "-m", "mimesim", "behaviors", "list", "--json")
    assert listed.returncode == 0
    assert len(jsonio.loads(listed.stdout.splitlines()[-1])) == 13
    assert "extension left out" in listed.stderr
    shown = run(tmp_path, "-m", "mimesim", "behaviors", "show", "B14")
    assert shown.returncode == 2
    assert "'B14' is no behavior" in shown.stderr


def test_an_id_that_is_taken_or_not_its_own_is_refused(tmp_path: Path) -> None:
    install(tmp_path)
    (tmp_path / "theirs.py").write_text(ONE_FILE.replace('id = "B14"', 'id = "B3"'), "utf-8")
    shown = run(tmp_path, "-m", "mimesim", "behaviors", "show", "B14")
    assert shown.returncode == 2
    assert "calls itself 'B3'" in shown.stderr
