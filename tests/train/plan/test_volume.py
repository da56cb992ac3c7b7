"""Tokens of a conversation: the table of the cost model from its formulas, and the formulas by hand."""

from __future__ import annotations

import pytest

from mimesim.train.plan.volume import WRAPPER, Conversation

# P, T, n, u, h -> S, R, R/S, extra share of an update without and with checkpointing
TABLE = [
    ((300, 4, 150, 60, 80), (1_080, 3_400, 3.1, 1.05, 0.79)),
    ((600, 8, 120, 80, 100), (2_120, 12_200, 5.8, 1.92, 1.44)),
    ((1_152, 8, 256, 256, 150), (4_992, 26_840, 5.4, 1.79, 1.34)),
    ((1_152, 16, 256, 256, 150), (9_088, 86_448, 9.5, 3.17, 2.38)),
]


def talk(prompt: float, turns: float, reply: float, message: float, note: float) -> Conversation:
    return Conversation(prompt=prompt, turns=turns, reply=reply, message=message, note=note)


@pytest.mark.parametrize(("sizes", "expected"), TABLE)
def test_the_table_follows_from_the_formulas(
    sizes: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    case = talk(*sizes)
    student, rows = case.student, case.teacher_rows()
    assert (student, rows) == expected[:2]
    assert round(rows / student, 1) == expected[2]
    assert round(rows / (3 * student), 2) == expected[3]  # a forward against three
    assert round(rows / (4 * student), 2) == expected[4]  # with activations computed twice
    branches = sizes[1] * (sizes[4] + WRAPPER + sizes[2])
    assert case.teacher_packed() == student + branches


@pytest.mark.parametrize("sizes", [sizes for sizes, _ in TABLE])
def test_rows_are_what_one_would_add_up(sizes: tuple[int, ...]) -> None:
    prompt, turns, reply, message, note = sizes
    before = [prompt + t * (reply + message) for t in range(turns)]
    assert talk(*sizes).teacher_rows() == sum(b + note + WRAPPER + reply for b in before)
    assert talk(*sizes).student == before[-1] + reply


def test_fewer_notes_are_less_work() -> None:
    case = talk(300, 8, 100, 50, 20)
    assert case.teacher_rows(0) == 0
    assert case.teacher_rows(4) == case.teacher_rows() / 2
    assert case.teacher_rows(99) == case.teacher_rows()
    assert case.teacher_packed(4) == case.student + 4 * (20 + WRAPPER + 100)
