"""`mimesim report`: files beside the input, Markdown on request, one line on error."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim.cli.main import invoke
from mimesim.jsonio import Appender, loads
from tests.report import samples


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "x.jsonl"
    with Appender(path) as out:
        for episode in samples.episodes(6):
            out.append(episode.to_json())
    return path


def test_a_page_goes_beside_the_episodes(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["report", str(stored), "--json"]) == 0
    result = loads(capsys.readouterr().out.splitlines()[-1])
    assert result["out"] == str(stored.with_suffix(".html"))
    assert (result["episodes"], result["counted"]) == (6, 5)
    assert result["success"]["mean"] == 0.6
    assert stored.with_suffix(".html").read_text("utf-8").startswith("<!doctype html>")


def test_a_record_folder_gets_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples.record().write(tmp_path / "record.json")
    assert invoke(["report", str(tmp_path)]) == 0
    assert "report.html" in capsys.readouterr().out
    assert samples.record().verdict in (tmp_path / "report.html").read_text("utf-8")


def test_markdown_is_printed_or_written(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["report", str(stored), "--md"]) == 0
    assert capsys.readouterr().out.startswith("# x.jsonl\n")
    assert not stored.with_suffix(".md").exists()
    assert invoke(["report", str(stored), "--md", "--out", str(tmp_path / "s.md")]) == 0
    assert (tmp_path / "s.md").read_text("utf-8").startswith("# x.jsonl\n")


@pytest.mark.parametrize("name", ["none.jsonl", "bad.jsonl", "other.json"])
def test_what_cannot_be_read_is_one_line_and_exit_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.jsonl").write_text('{"schema": 1}\n', encoding="utf-8")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    assert invoke(["report", str(tmp_path / name)]) == 2
    told = capsys.readouterr().err.strip()
    assert len(told.splitlines()) == 1
    assert name in told


def test_the_input_is_never_replaced(stored: Path) -> None:
    before = stored.read_bytes()
    assert invoke(["report", str(stored), "--out", str(stored)]) == 2
    assert stored.read_bytes() == before
