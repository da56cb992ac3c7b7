"""Hygiene, filtering and splits of human dialogues."""

from __future__ import annotations

from collections import Counter

from mimesim.corpora import base
from mimesim.corpora.base import HumanTurn


def test_tidy_drops_empty_turns_then_merges_neighbours() -> None:
    counts: Counter[str] = Counter()
    turns = [
        HumanTurn("user", " hi "),
        HumanTurn("agent", "\u2028 \n"),
        HumanTurn("user", "anyone\u2028there?"),
        HumanTurn("agent", "yes \ud800"),
    ]
    assert base.tidy(turns, counts) == (
        HumanTurn("user", "hi\nanyone\u2028there?"),
        HumanTurn("agent", "yes \ufffd"),
    )
    assert counts == {"empty_turns": 1, "merged_turns": 1, "surrogates_replaced": 1}


def test_a_conversation_ends_before_its_first_problem() -> None:
    counts: Counter[str] = Counter()
    turns = tuple(HumanTurn("user", text) for text in ("a", "bad", "c"))
    kept = base.cut_at_problem(turns, lambda text: "rude" if text == "bad" else "", counts)
    assert kept == turns[:1]
    assert counts == {"filtered_rude": 1, "filtered_turns": 2}


def test_sides_and_splits_depend_on_the_id_alone() -> None:
    names = [f"chat/{i}" for i in range(2000)]
    held = [name for name in names if base.is_held_out(name, 0.1)]
    assert 150 < len(held) < 250
    assert set(held) < {name for name in names if base.is_held_out(name, 0.2)}
    assert 900 < sum(base.learnt_side(name) for name in names) < 1100
    assert [base.learnt_side(n) for n in names[:5]] == [base.learnt_side(n) for n in names[:5]]
    assert not any(base.is_held_out(name, 0.0) for name in names)
    assert all(base.is_held_out(name, 1.0) for name in names)
