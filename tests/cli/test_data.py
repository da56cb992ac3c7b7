"""`mimesim data inspect` on a small file of own logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mimesim import jsonio
from mimesim.cli.data import app


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    path = tmp_path / "logs.jsonl"
    with jsonio.Appender(path) as out:
        out.append({"id": "a", "turns": [{"role": "user", "text": "[bold]hi[/bold]"}]})
    return path


def test_inspect_for_people(logs: Path) -> None:
    shown = CliRunner().invoke(app, ["inspect", str(logs)])
    assert shown.exit_code == 0
    for text in ("license: own data", "kept: 1", "user: [bold]hi[/bold]", "nobody moderated"):
        assert text in shown.stdout


def test_inspect_for_programs(logs: Path) -> None:
    shown = CliRunner().invoke(app, ["inspect", str(logs), "--json", "--samples", "0"])
    found = jsonio.loads(shown.stdout.splitlines()[-1])
    assert (found["counts"]["kept"], found["samples"]) == (1, [])
