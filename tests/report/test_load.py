"""Finding what to report, and refusing what is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim.errors import DataError
from mimesim.jsonio import Appender, write_json
from mimesim.report.load import EpisodeFile, default_out, load
from mimesim.results import RunRecord
from tests.report import samples


def _episodes(path: Path, count: int = 3) -> Path:
    with Appender(path) as out:
        for number in range(count):
            out.append(samples.episode(number).to_json())
    return path


def test_a_file_a_folder_and_a_record_are_found(tmp_path: Path) -> None:
    _episodes(tmp_path / "run" / "episodes.jsonl")
    write_json(tmp_path / "run" / "run.json", {"seed": 7})
    found = load(tmp_path / "run")
    assert isinstance(found, EpisodeFile)
    assert (len(found.episodes), found.manifest) == (3, {"seed": 7})
    samples.record().write(tmp_path / "run" / "record.json")
    assert isinstance(load(tmp_path / "run"), RunRecord)
    _episodes(tmp_path / "x.jsonl")
    write_json(tmp_path / "x.run" / "run.json", {"seed": 8})
    beside = load(tmp_path / "x.jsonl")
    assert isinstance(beside, EpisodeFile)
    assert beside.manifest == {"seed": 8}


def test_a_run_that_is_still_writing_can_be_shown(tmp_path: Path) -> None:
    path = _episodes(tmp_path / "x.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:200])
    found = load(path)
    assert isinstance(found, EpisodeFile)
    assert len(found.episodes) == 3


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = _episodes(tmp_path / "x.jsonl")
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1][:50]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(DataError, match=r"x\.jsonl:2: not valid JSON"):
        load(path)
    path.write_bytes(b"\n".join([lines[0], b'{"schema": "other/1"}', b""]))
    with pytest.raises(DataError, match=r"x\.jsonl:2: unknown schema 'other/1'"):
        load(path)


def test_nothing_to_report_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    for path, message in (
        (tmp_path, "record.json or episodes.jsonl"),
        (tmp_path / "none.jsonl", "file not found"),
        (tmp_path / "empty.jsonl", "at least one line"),
    ):
        with pytest.raises(DataError, match=message):
            load(path)


def test_reports_go_beside_their_input(tmp_path: Path) -> None:
    assert default_out(tmp_path) == tmp_path / "report.html"
    assert default_out(Path("a/x.jsonl.gz")) == Path("a/x.html")
    assert default_out(Path("a/record.json")) == Path("a/record.html")
