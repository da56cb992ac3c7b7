"""What every corpus gives: dialogues of two people, its terms of use, and what was left out.

`user` is the side that a simulator learns, `agent` the other one. Order, sides and splits come
from the id of a conversation alone, so they are the same in every run. Text hygiene has its one
home here.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from mimesim import seeds

Side = Literal["user", "agent"]

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class HumanTurn:
    """All that one side says before the other answers; `text` is stripped and not empty."""

    role: Side
    text: str


@dataclass(frozen=True, slots=True)
class HumanDialogue:
    """One conversation: sides alternate, whoever opens.

    Attributes:
        topic: what the people were given to talk about; empty = nothing known.
    """

    id: str
    turns: tuple[HumanTurn, ...]
    topic: str = ""


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """Terms of a corpus, stamped into everything that is made from it.

    Attributes:
        moderated: whether people went through the texts; if not, what is trained on them bears
            a label.
    """

    name: str
    license: str
    redistributable: Literal["yes", "no", "share-alike"]
    training_allowed: Literal["yes", "no", "unknown"]
    citation: str
    moderated: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the terms as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Loaded dialogues in the order of their ids' hashes, and counts of what was changed."""

    info: CorpusInfo
    dialogues: tuple[HumanDialogue, ...]
    counts: Mapping[str, int] = field(default_factory=dict)


def tidy(turns: Iterable[HumanTurn], counts: Counter[str]) -> tuple[HumanTurn, ...]:
    """Replace lone surrogates, strip, drop empty turns, then merge neighbours of one side.

    What was done is added to `counts`: `surrogates_replaced`, `empty_turns`, `merged_turns`.
    """
    kept = []
    for turn in turns:
        text, bad = _SURROGATE.subn("\ufffd", turn.text)
        counts["surrogates_replaced"] += bad
        if text.strip():
            kept.append(HumanTurn(turn.role, text.strip()))
        else:
            counts["empty_turns"] += 1
    merged = [
        HumanTurn(role, "\n".join(turn.text for turn in group))
        for role, group in itertools.groupby(kept, key=lambda turn: turn.role)
    ]
    counts["merged_turns"] += len(kept) - len(merged)
    return tuple(merged)


def cut_at_problem(
    turns: tuple[HumanTurn, ...], problem: Callable[[str], str], counts: Counter[str]
) -> tuple[HumanTurn, ...]:
    """Keep the turns before the first one that `problem` names a reason against.

    A turn in the middle cannot be left out alone: what follows would answer nothing.
    """
    for position, turn in enumerate(turns):
        reason = problem(turn.text)
        if reason:
            counts[f"filtered_{reason}"] += 1
            counts["filtered_turns"] += len(turns) - position
            return turns[:position]
    return turns


def order_key(dialogue_id: str) -> int:
    """Return the place of a conversation in the fixed order, by hash of its id."""
    return seeds.derive(0, "order", dialogue_id)


def learnt_side(dialogue_id: str) -> int:
    """Return 0 or 1: which of two people is the learnt side, by hash of the id."""
    return seeds.derive(0, "learnt-side", dialogue_id) % 2


def is_held_out(dialogue_id: str, share: float) -> bool:
    """Tell whether a conversation belongs to the held-out `share` (in [0, 1]), by hash of its id."""
    return seeds.derive(0, "held-out", dialogue_id) % 10_000 < round(share * 10_000)
