"""`mimesim tasks`."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from mimesim.cli.tasks import app


def last_line(*arguments: str) -> object:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


def test_list_names_every_task() -> None:
    facts = last_line("list", "--json")
    assert isinstance(facts, list)
    assert len(facts) == 25
    shown = CliRunner().invoke(app, ["list"]).output
    assert all(entry["name"] in shown for entry in facts)


def test_show_gives_a_row_and_nothing_hidden() -> None:
    shown = last_line("show", "turing", "--json")
    assert isinstance(shown, dict)
    assert shown["row"]["first"].startswith("The person now answers")
    assert "hidden" not in json.dumps(shown)
    assert "Their turn" not in CliRunner().invoke(app, ["show", "sotopia"]).output


def test_show_counts_what_cannot_be_used(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    good = {"prompt_text": "p", "answer_letter": "A"}
    rows.write_text(f"{json.dumps(good)}\n{json.dumps({'prompt_text': 'q'})}\n", "utf-8")
    result = CliRunner().invoke(app, ["show", "social_r1", "--rows", str(rows)])
    assert result.exit_code == 0
    assert f"left out: {rows}:2: bad_row" in result.output
    assert "rows 2, tasks 1, bad_row 1" in result.output


def test_wrong_use_is_one_line() -> None:
    for arguments in (
        ["show", "fantum"],
        ["show", "fantom", "--index", "99"],
        ["show", "fantom", "--rows", "no.jsonl"],
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2, arguments
