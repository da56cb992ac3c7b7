"""Markdown tables: complete, and with nothing in them that would be rendered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mimesim.report.load import EpisodeFile
from mimesim.report.tables import escape, markdown, table
from mimesim.results import RunRecord
from tests.report import samples


def test_a_record_has_its_matrix_and_differences() -> None:
    text = markdown(samples.record())
    assert "| realistic user | 35 (29 to 42) | 57 (52 to 62) |" in text
    assert "| realistic + CSD against realistic user | held-out success | +0.8 |" in text
    assert "| not resolved | 2800 |" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_cells_cannot_break_out() -> None:
    assert escape("a|b\n| <img src=x> ![x](y) `c`") == (r"a\|b \| \<img src=x\> \!\[x\](y) \`c\`")
    assert table(["h", "k"], [("x\ny", "|")]) == "| h | k |\n| --- | ---: |\n| x y | \\| |"
    assert table(["h"], []) == ""


def test_episodes_show_both_denominators() -> None:
    text = markdown(EpisodeFile(Path("x.jsonl"), tuple(samples.episodes(24))))
    assert "| Success, counted episodes | 60 % |" in text
    assert "| Success, all episodes | 50 % |" in text
    assert "| case closed | 16 | 67 |" in text


def test_a_bare_record_is_short() -> None:
    text = markdown(replace(RunRecord("t", "v"), limits=("one", "two")))
    assert text.startswith("# t\n\nv\n\n## Limits\n\n- one\n- two\n")
