"""`mimesim users list` and `show`."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from mimesim.cli.users import app

run = CliRunner().invoke


def test_list_as_json_is_one_line() -> None:
    result = run(app, ["list", "--json"])
    assert result.exit_code == 0
    rows = json.loads(result.stdout.strip().splitlines()[-1])
    assert {"name": "scripted:neutral", "family": "scripted"}.items() <= next(
        row for row in rows if row["name"] == "scripted:neutral"
    ).items()


def test_list_for_people_names_every_family() -> None:
    text = run(app, ["list"]).stdout
    for name in ("scripted:realistic", "roleplay:<model>", "trained:<path>", "http:<url>"):
        assert name in text


def test_show_prints_the_prompt_as_it_is() -> None:
    text = run(app, ["show", "roleplay:embedded"]).stdout
    assert "Play a person" in text
    assert '- "order id": "7301188264"' in text
