"""Scores side by side: what may share a table, and what a table tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim.errors import DataError, UnknownNameError, UsageError
from mimesim.report.board import board_text
from mimesim.results.leaderboard import Leaderboard, leaderboard
from mimesim.results.suite import FloorRow, Metric, ReferenceRow, SuiteScore
from mimesim.results.values import Estimate

EVIL = "<script>alert(1)</script>|x"
PUBLISHED = ReferenceRow("Osim-8B", {"m": 71.0}, "arXiv 1", "judge GPT, 880 turns")


def score(value: float, suite: str = "usi-own", **more: object) -> SuiteScore:
    fields = {"roles": {"user": "u", "agent": "a", "judge": "rule"}, **more}
    metrics = (
        Metric("m", Estimate(value, value - 1, value + 1, 9), "%", "higher"),
        Metric("only_here" if value > 2 else "only_there", Estimate(None)),
    )
    return SuiteScore(suite, metrics, floors=(FloorRow("m", "people", Estimate(9.0)),), **fields)


def test_the_best_stands_first_and_nothing_is_made_up() -> None:
    board = leaderboard({"x/scores/usi.json": score(1.0), "y/scores/usi.json": score(3.0)})
    (table,) = board.tables
    assert [row.name for row in table.rows] == ["y", "x"]
    assert [column.name for column in table.columns] == ["m", "only_there", "only_here"]
    assert table.rows[0].metric("only_there") is None
    assert "–" in board_text(board, "md")


def test_suites_of_other_lists_never_share_a_table() -> None:
    board = leaderboard({"a": score(1.0), "b": score(2.0, "tau-usi")})
    assert [table.suite for table in board.tables] == ["usi-own", "tau-usi"]
    text = board_text(board, "md")
    assert text.index("## usi-own") < text.index("## tau-usi")


@pytest.mark.parametrize(
    ("other", "word"),
    [({"mode": "compat"}, "mode"), ({"roles": {"agent": "a", "judge": "model:x"}}, "judge")],
)
def test_unlike_scores_are_refused_unless_asked_for_and_then_labeled(
    other: dict, word: str
) -> None:
    records = {"a": score(1.0), "b": score(2.0, **other)}
    with pytest.raises(UsageError, match=f"{word} differs between these usi-own scores"):
        leaderboard(records)
    (table,) = leaderboard(records, mixed=True).tables
    assert table.mixed == (word,)
    assert "mixed: the rows differ" in board_text(Leaderboard((table,)), "md")


def test_published_rows_come_with_a_warning() -> None:
    records = {"a": score(1.0, references=(PUBLISHED,))}
    assert "Osim" not in board_text(leaderboard(records), "csv")
    board = leaderboard(records, references=True)
    text = board_text(board, "html")
    for told in ("Osim-8B", "compat only", "judge GPT, 880 turns", "our judge is rule"):
        assert told in text
    assert "Osim-8B,,published" in board_text(board, "csv")


def test_a_table_says_what_it_lacks_and_how_it_is_ordered() -> None:
    board = leaderboard({"a": score(1.0), "b": score(2.0)}, references=True)
    (table,) = board.tables
    assert any("no published rows" in text for text in table.warnings)
    assert any("ordered by" in text for text in table.warnings)


def test_the_page_is_one_file_and_escapes_everything() -> None:
    evil = score(1.0, EVIL, roles={"user": EVIL, "agent": EVIL}, warnings=(EVIL,))
    board = leaderboard({EVIL: evil})
    page = board_text(board, "html")
    assert "<script>alert" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert page == board_text(board, "html")
    assert "<script>" not in board_text(board, "md")


def test_the_file_reads_back(tmp_path: Path) -> None:
    board = leaderboard({"a": score(1.0, excluded={"x": 2}, seeds=(0, 1))})
    board.write(tmp_path / "b.json")
    assert Leaderboard.read(tmp_path / "b.json") == board
    assert (tmp_path / "b.json").read_text() == board_text(board, "json")
    (tmp_path / "c.json").write_text('{"schema": "mimesim.leaderboard/1", "tables": [1]}')
    with pytest.raises(DataError, match="tables"):
        Leaderboard.read(tmp_path / "c.json")
    with pytest.raises(UnknownNameError):
        board_text(board, "pdf")
