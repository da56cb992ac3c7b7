"""`mimesim scenarios` and `mimesim behaviors` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mimesim import jsonio
from mimesim.cli import behaviors as behaviors_verb
from mimesim.cli import scenarios as scenarios_verb
from mimesim.envs.conversation import read_scenarios
from mimesim.envs.packs import read_tasks
from mimesim.errors import DataError
from mimesim.scenarios.types import Row
from mimesim.scenarios.views import from_view
from tests.support import abcd

RUNNER = CliRunner()


def last_line(text: str) -> object:
    return jsonio.loads(text.rstrip("\n").split("\n")[-1])


def test_compose_writes_rows_and_prints_one_object(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "rows.jsonl"
    arguments = ["compose", "--out", str(out), "--seed", "7", "--count", "40", "--json"]
    result = RUNNER.invoke(scenarios_verb.app, arguments)
    assert result.exit_code == 0
    summary = last_line(result.stdout)
    assert isinstance(summary, dict)
    assert {k: summary[k] for k in ("rows", "dropped", "out")} == {
        "rows": 40,
        "dropped": {},
        "out": str(out),
    }
    assert sum(summary["behaviors"].values()) == sum(summary["verdicts"].values()) == 40
    assert (summary["manual"], summary["without_limits"], summary["skipped"]) == ("company", 0, {})
    first = out.read_bytes()
    rows = [Row.from_json(line.value, "x") for line in jsonio.read_jsonl(out)]
    keys = {"record", "env", "flow", "subflow", "behavior", "params", "directive", "seed"}
    assert len(rows) == 40
    assert keys <= set(rows[0].to_json())
    assert RUNNER.invoke(scenarios_verb.app, arguments).exit_code == 0
    assert out.read_bytes() == first


def test_without_an_out_rows_go_to_the_out_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = RUNNER.invoke(scenarios_verb.app, ["compose", "--n", "7", "--seed", "3"])
    assert result.exit_code == 0
    assert len(list(jsonio.read_jsonl(tmp_path / "out" / "composed.jsonl"))) == 7
    assert "7 rows, 0 dropped" in result.stdout


def test_a_manual_of_ones_own_copy_is_composed_with_counts(tmp_path: Path) -> None:
    folder = abcd.write_folder(tmp_path / "abcd")
    out = tmp_path / "rows.jsonl"
    for place, source in ((folder, "composed"), (folder / "abcd_v1.1.json.gz", "abcd")):
        arguments = ["compose", "--manual", f"abcd:{place}", "--n", "30", "--out", str(out)]
        result = RUNNER.invoke(scenarios_verb.app, [*arguments, "--replay", "identity", "--json"])
        assert result.exit_code == 0, result.stderr
        summary = last_line(result.stdout)
        assert isinstance(summary, dict)
        assert summary["skipped"]["subflow without guideline or procedure"] == 44
        rows = [Row.from_json(line.value, "x") for line in jsonio.read_jsonl(out)]
        assert {row.source for row in rows} == {source}
        assert len(rows) + sum(summary["dropped"].values()) == 30
    assert summary["skipped"]["record lacks email"] == 1
    assert "not used, record lacks email: 1" in result.stderr
    show = ["show", str(out), "--index", str(rows[0].index), "--manual", f"abcd:{folder}"]
    shown = RUNNER.invoke(scenarios_verb.app, show)
    assert shown.exit_code == 0
    assert "said before, user: Hi, I am writing about this: return due to stain." in shown.stdout


def test_a_manual_without_limits_says_so(tmp_path: Path) -> None:
    text = jsonio.dumps(abcd.GUIDELINES).replace("cannot", "can").replace("less than", "within")
    folder = abcd.write_folder(tmp_path / "abcd", guidelines=jsonio.loads(text))
    arguments = ["compose", "--manual", f"abcd:{folder}", "--n", "9", "--behaviors", "B4"]
    result = RUNNER.invoke(scenarios_verb.app, [*arguments, "--dry-run"])
    assert result.exit_code == 2
    assert "no behavior applies 6; expected behaviors that occur with this manual" in result.stderr
    result = RUNNER.invoke(scenarios_verb.app, [*arguments[:-2], "--dry-run"])
    assert result.exit_code == 0
    assert "this manual has no limits" in result.stdout


def test_rows_can_be_written_as_the_behavior_task_has_them(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    for view, kind in (("task", dict), ("compat", str)):
        arguments = ["compose", "--out", str(out), "--n", "5", "--view", view]
        assert RUNNER.invoke(scenarios_verb.app, arguments).exit_code == 0
        lines = [line.value for line in jsonio.read_jsonl(out)]
        assert {type(line["scenario"]) for line in lines} == {kind}
        assert [from_view(line, "x").index for line in lines] == list(range(5))


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    result = RUNNER.invoke(
        scenarios_verb.app, ["compose", "--out", str(out), "--count", "3", "--dry-run"]
    )
    assert result.exit_code == 0
    assert "3 rows, 0 dropped -> nothing written (dry run)" in result.stdout
    assert not out.exists()


def test_what_is_replaced_or_missing_is_said(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    compose = ["compose", "--out", str(out), "--n", "9"]
    assert "(replaced)" not in RUNNER.invoke(scenarios_verb.app, compose).stdout
    more = [*compose, "--behaviors", "B3", "--replay", "identity"]
    result = RUNNER.invoke(scenarios_verb.app, more)
    assert f"-> {out} (replaced)" in result.stdout
    left = len(out.read_text("utf-8").splitlines())
    assert left < 9
    assert f"warning: only {left} of 9 rows could be composed" in result.stderr
    assert RUNNER.invoke(scenarios_verb.app, [*compose[:-1], "0"]).exit_code == 2
    assert len(out.read_text("utf-8").splitlines()) == left


def test_composed_people_can_be_played_and_rows_say_how(tmp_path: Path) -> None:
    out = tmp_path / "people.jsonl"
    arguments = ["compose", "--out", str(out), "--n", "4"]
    assert RUNNER.invoke(scenarios_verb.app, [*arguments, "--view", "scenario"]).exit_code == 0
    assert len(read_scenarios(out)) == 4
    assert RUNNER.invoke(scenarios_verb.app, arguments).exit_code == 0
    for read in (read_scenarios, read_tasks):
        with pytest.raises(DataError, match="--view scenario"):
            read(out)


def test_wrong_use_is_one_line_and_exit_2(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "r.jsonl"), "--count", "2"]
    wrongs = (
        *(["--pack", "compny"], ["--behaviors", "B77"], ["--split", "dev"], ["--view", "xml"]),
        *(["--manual", "abcd:nowhere"], ["--replay", "all"]),
    )
    for wrong in wrongs:
        result = RUNNER.invoke(scenarios_verb.app, ["compose", *out, *wrong])
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
    result = RUNNER.invoke(scenarios_verb.app, ["show", str(tmp_path / "no.jsonl")])
    assert result.exit_code == 2
    assert "file not found" in result.stderr


def test_a_damaged_row_is_named_with_its_line(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    RUNNER.invoke(scenarios_verb.app, ["compose", "--out", str(out), "--count", "2"])
    out.write_text(out.read_text().replace('"params"', '"parmas"'), encoding="utf-8")
    result = RUNNER.invoke(scenarios_verb.app, ["show", str(out)])
    assert result.exit_code == 2
    assert f"{out}:1" in result.stderr
    assert "'params'" in result.stderr


def test_show_tells_who_the_customer_is(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    RUNNER.invoke(scenarios_verb.app, ["compose", "--out", str(out), "--count", "5"])
    result = RUNNER.invoke(scenarios_verb.app, ["show", str(out), "--index", "3", "--json"])
    assert result.exit_code == 0
    row = last_line(result.stdout)
    assert isinstance(row, dict)
    assert row["index"] == 3
    assert "customer_name" in result.stderr
    assert "verify-identity" in result.stderr
    assert RUNNER.invoke(scenarios_verb.app, ["show", str(out), "--index", "9"]).exit_code == 2


def test_behaviors_are_listed_and_shown() -> None:
    listed = last_line(RUNNER.invoke(behaviors_verb.app, ["list", "--json"]).stdout)
    assert isinstance(listed, list)
    assert len(listed) == 13
    assert listed[2]["name"] == "clarification_noncooperation"
    assert listed[2]["id"] == "B3"
    shown = RUNNER.invoke(behaviors_verb.app, ["show", "self_contradiction", "--json"])
    facts = last_line(shown.stdout)
    assert isinstance(facts, dict)
    assert facts["id"] == "B11"
    assert facts["example"]["behavior"] == "B11"
    assert RUNNER.invoke(behaviors_verb.app, ["show", "B99"]).exit_code == 2


def test_show_tells_all_that_belongs_to_a_behavior() -> None:
    result = RUNNER.invoke(behaviors_verb.app, ["show", "B8", "--json"])
    facts = last_line(result.stdout)
    assert isinstance(facts, dict)
    assert facts["min_turns"] == 1
    assert facts["rule_check"]
    assert set(facts["all_params"]) == {"field", "false_value", "true_value"}
    assert [n["name"] for n in facts["judge"]["not"]] == [
        "self_contradiction",
        "artificial_constraint_stacking",
    ]
    for part in (
        "applies: ",
        "user turns needed: 1",
        "parameters:",
        "a judge is told",
        "such a user",
    ):
        assert part in result.stderr
    assert facts["example"]["directive"].splitlines()[0] in result.stderr


def test_check_and_docs(tmp_path: Path, repository: Path) -> None:
    result = RUNNER.invoke(behaviors_verb.app, ["check", "B3", "--json"])
    assert result.exit_code == 0
    findings = last_line(result.stdout)
    assert isinstance(findings, list)
    assert all(finding["ok"] for finding in findings)
    page = tmp_path / "page.md"
    assert RUNNER.invoke(behaviors_verb.app, ["docs", "--out", str(page)]).exit_code == 0
    assert page.read_bytes() == (repository / "docs" / "behaviors.md").read_bytes()
