"""Hygiene, filtering and splits of human dialogues."""

from __future__ import annotations

from collections import Counter

from mimesim.corpora import base
from mimesim.corpora.base import HumanDialogue, HumanTurn
from mimesim.dialogue.types import Thought


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


def test_what_shows_nothing_is_empty() -> None:
    counts: Counter[str] = Counter()
    turns = [
        HumanTurn("user", text) for text in ("\u200b", "\x00\x16", "\ufeff \u2060", "\u200bhi")
    ]
    assert base.tidy(turns, counts) == (HumanTurn("user", "\u200bhi"),)
    assert counts["empty_turns"] == 3


def test_lone_surrogates_are_replaced_everywhere() -> None:
    counts: Counter[str] = Counter()
    turn = HumanTurn("user", "a\ud800", thought=Thought("t\udfff"))
    (made,) = base.tidy([turn], counts)
    assert (made.text, made.thought) == ("a\ufffd", Thought("t\ufffd"))
    assert counts["surrogates_replaced"] == 2
    names = ("topic", "goal", "context", "earlier", "user_key", "language")
    told = {name: f"{name}\udc00" for name in names}
    dialogue = HumanDialogue("i\ud83d", (), group_keys=("g\ud83d",), flags=("f\ud83d",), **told)
    whole = base.tidy_texts(dialogue)
    texts = [getattr(whole, name) for name in names]
    assert texts == [f"{name}\ufffd" for name in names]
    assert (whole.id, whole.group_keys, whole.flags) == ("i\ufffd", ("g\ufffd",), ("f\ufffd",))
    assert whole.left_out == {"surrogates_replaced": 9}
    assert base.tidy_texts(whole) == whole
