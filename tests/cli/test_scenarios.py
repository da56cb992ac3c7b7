"""`mimesim scenarios` and `mimesim behaviors` on the command line."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from mimesim import jsonio
from mimesim.cli import behaviors as behaviors_verb
from mimesim.cli import scenarios as scenarios_verb
from mimesim.scenarios.types import Row

RUNNER = CliRunner()


def last_line(text: str) -> object:
    return jsonio.loads(text.rstrip("\n").split("\n")[-1])


def test_compose_writes_rows_and_prints_one_object(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "rows.jsonl"
    arguments = ["compose", "--out", str(out), "--seed", "7", "--count", "40", "--json"]
    result = RUNNER.invoke(scenarios_verb.app, arguments)
    assert result.exit_code == 0
    assert last_line(result.stdout) == {"rows": 40, "dropped": {}, "out": str(out)}
    first = out.read_bytes()
    rows = [Row.from_json(line.value, "x") for line in jsonio.read_jsonl(out)]
    keys = {"record", "env", "flow", "subflow", "behavior", "params", "directive", "seed"}
    assert len(rows) == 40
    assert keys <= set(rows[0].to_json())
    assert RUNNER.invoke(scenarios_verb.app, arguments).exit_code == 0
    assert out.read_bytes() == first


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    result = RUNNER.invoke(
        scenarios_verb.app, ["compose", "--out", str(out), "--count", "3", "--dry-run"]
    )
    assert result.exit_code == 0
    assert not out.exists()


def test_wrong_use_is_one_line_and_exit_2(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "r.jsonl"), "--count", "2"]
    for wrong in (["--pack", "compny"], ["--behaviors", "B77"], ["--split", "dev"]):
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
