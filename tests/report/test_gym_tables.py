"""Scores by gym and averages: on the page, in Markdown, with what forbids comparing them."""

from __future__ import annotations

from dataclasses import replace

from mimesim.report.gym_tables import Scored, gym_tables
from mimesim.report.html import render
from mimesim.report.tables import markdown
from mimesim.results import Counting, Estimate, Floor, GymAverages, MatrixRow, RunRecord


def row(arm: str, gym: str, user: str, score: float, **more: object) -> MatrixRow:
    success = Estimate(score / 2, 0.1, 0.9, 10)
    cell = MatrixRow(arm, user, success, gym=gym, n=10, reward=Estimate(score, 0.0, 1.0, 10))
    return replace(cell, **more)  # type: ignore[arg-type]


LOSSY = Counting(10, 9, 0.5, 0.45, 0.1, {"agent": 0.0, "user": 0.1}, reportable=False)
RECORD = RunRecord(
    title="Agents in gyms",
    verdict="v",
    kind="eval",
    rows=(
        row("a", "function", "none", 1.0),
        row("b", "function", "none", 0.25),
        row("a", "tau", "u1", 0.8, floor=Floor(0.158, 0.7625, 139)),
        row("b", "tau", "u1", 0.5, counting=LOSSY, invalid_rate=0.1, note="not reportable"),
        row("a", "tau", "u2", 0.125),
    ),
    gym_averages=(
        GymAverages("a", "x", "u1", "rule", Estimate(0.9, 0.8, 1.0), Estimate(0.91), 0.9),
        GymAverages(
            *("b", "y", "u1", "rule", Estimate(0.4), Estimate(0.375), 0.3),
            missing=("travel",),
            not_reportable=("tau",),
            search="offline",
        ),
        GymAverages("a", "x", "u2", "rule", Estimate(0.33), Estimate(0.3)),
    ),
)


def test_one_table_per_user_with_what_has_none_in_each() -> None:
    first, second = gym_tables(RECORD)
    assert (first.user, first.arms, second.user, second.arms) == ("u1", ("a", "b"), "u2", ("a",))
    assert [line.name for line in first.lines[:3]] == ["function", "tau", "average, weighted"]
    assert [line.average for line in first.lines[:3]] == [False, False, True]
    assert first.lines[0].cells[1] == Scored("0.250", "12 % success")
    assert second.lines[0].cells[0].value == "1.000"
    assert second.lines[1].cells[0].value == "0.125"
    assert first.lines[2].cells[0] == Scored("0.900", "0.800 to 1.000")
    assert first.lines[5].cells[0] == Scored("–"), "an average that is unknown is no 0"


def test_floors_and_losses_stand_in_the_cell() -> None:
    tau = gym_tables(RECORD)[0].lines[1]
    assert tau.cells[0].note == "40 % success; null agent 0.158, above it 0.762"
    assert "not counted 10.0 % (user 10.0 %); as 0: 0.450; not reportable" in tau.cells[1].note


def test_warnings_are_told_once() -> None:
    first, second = gym_tables(RECORD)
    assert first.warnings == ("partial: without travel", "not reportable: tau")
    assert second.warnings == ()
    assert RECORD.gym_averages[1].label == (
        "user=u1; judge=rule; search=offline; partial: without travel; not reportable: tau"
    )


def test_page_and_markdown_show_them_instead_of_a_matrix() -> None:
    page, text = render(RECORD), markdown(RECORD)
    assert '<section id="gyms">' in page
    assert '<section id="matrix">' not in page
    assert "Partial: without travel; not reportable: tau." in page
    assert "## Scores, user u1, judge rule" in text
    assert "| average, weighted | 0.900 (0.800 to 1.000) | 0.400 |" in text
    assert "- partial: without travel" in text
    assert "Success, percent" not in text


def test_other_records_have_none_of_it() -> None:
    bare = RunRecord("t", "v", rows=(row("a", "support-desk", "u", 1.0),))
    assert gym_tables(bare) == ()
    assert '<section id="matrix">' in render(bare)


def test_the_averages_survive_the_disk() -> None:
    again = RunRecord.from_json(RECORD.to_json())
    assert again == RECORD
