"""The command itself: help, version, mistyped verbs, exit codes, light imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mimesim
from mimesim.cli import output
from mimesim.cli.main import VERBS, invoke
from mimesim.errors import DataError
from mimesim.rollout.prepare import RunConfig

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "transformers", "numpy", "scipy", "openai", "httpx", "jinja2", "pydantic")


def modules_after(code: str) -> set[str]:
    """Return the names of the modules that a fresh process holds after `code`."""
    script = f"{code}\nimport sys; sys.stdout.write('\\n' + ' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.rpartition("\n")[2].split())


@pytest.mark.parametrize(
    "code",
    [
        "import mimesim",
        "from mimesim.cli.main import invoke; invoke(['--help'])",
    ],
)
def test_the_door_is_light(code: str) -> None:
    assert modules_after(code) & set(HEAVY) == set()


def test_a_scripted_run_needs_no_torch_and_no_network_client(tmp_path: Path) -> None:
    arguments = ["run", "-n", "2", "--profile", "compact", "--quiet", "--out", str(tmp_path / "a")]
    loaded = modules_after(f"from mimesim.cli.main import invoke; assert invoke({arguments}) == 0")
    assert loaded & {"torch", "transformers", "openai", "httpx", "scipy"} == set()


def test_help_lists_every_verb_that_has_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--help"]) == 0
    out = capsys.readouterr().out
    for name, verb in VERBS.items():
        there = (ROOT / "src" / "mimesim" / "cli" / f"{verb.module}.py").exists()
        assert (f"│ {name} " in out) == there


def test_every_verb_loads_and_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name, verb in VERBS.items():
        if (ROOT / "src" / "mimesim" / "cli" / f"{verb.module}.py").exists():
            assert invoke([name, "--help"]) == 0, name
            assert f"mimesim {name}" in capsys.readouterr().out


def test_bare_command_introduces_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([]) == 0
    assert "mimesim --help" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--version"]) == 0
    assert capsys.readouterr().out == f"mimesim {mimesim.__version__}\n"


@pytest.mark.parametrize(("typed", "near"), [("rum", "run"), ("docter", "doctor")])
def test_a_mistyped_verb_names_the_nearest(
    typed: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([typed]) == 2
    err = capsys.readouterr().err
    assert f"did you mean '{near}'" in err
    assert err.count("\n") == 1


def test_an_error_is_one_line_without_markup(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_error(DataError("odd [red]text[/red]\nhere", where="a.jsonl:3", mend="mend it"))
    err = capsys.readouterr().err
    assert err == "error: a.jsonl:3: odd [red]text[/red] here; to mend: mend it\n"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "unknown"),
        (True, "yes"),
        (0.40499999999999997, "0.405"),
        (1.0, "1"),
        (("zip_code", "phone"), "zip_code, phone"),
        ({"patience": 2, "fields": ["zip"]}, "patience 2, fields zip"),
    ],
)
def test_values_are_shown_in_words(value: object, words: str) -> None:
    assert output.in_words(value) == words


def test_paths_are_shown_as_one_would_type_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert output.near("recipes/../out/user") == "out/user"
    assert output.near(tmp_path.parent / "elsewhere") == str(tmp_path.parent / "elsewhere")


def test_help_names_the_defaults_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    invoke(["run", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    plain = RunConfig()
    for name, value in (("agent", plain.agent), ("user", plain.user), ("gym", plain.gym)):
        assert f"--{name} {value}" in told
    assert f"--episodes {plain.episodes} --seed {plain.seed}." in told


def test_no_help_text_is_taken_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    for name in VERBS:
        invoke([name, "--help"])
    for words in (["train", "user"], ["eval", "agents"], ["data", "inspect"]):
        invoke([*words, "--help"])
    told = capsys.readouterr().out
    assert re.findall(r"\w \.(?: |$)", told, re.MULTILINE) == []
    assert "completion" not in told


def test_json_is_one_line_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit_json({"text": "a\u2028b\nc", "bad": float("nan")})
    assert capsys.readouterr().out == '{"text": "a\\u2028b\\nc", "bad": null}\n'
