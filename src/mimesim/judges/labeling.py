"""Labeling many conversations: people's or simulated ones, with counts, and agreement of annotators."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.corpora.load import open_corpus
from mimesim.dialogue.episode import SCHEMA as EPISODE
from mimesim.dialogue.episode import read_file
from mimesim.dialogue.types import Role
from mimesim.errors import DataError
from mimesim.judges.agreement import Comparison, compare
from mimesim.judges.annotate import ANNOTATE, Dialogue, Labels, annotate
from mimesim.judges.base import Judge
from mimesim.judges.episodes import dialogue_of
from mimesim.judges.stored import SCORED, SKIPPED, Stored, Work
from mimesim.scenarios import behaviors
from mimesim.stats import Interval, wilson


@dataclass(frozen=True, slots=True)
class Count:
    """How often a behavior occurs, by one annotator.

    Attributes:
        dialogues: conversations that show it, of those with a verdict: `share`.
        turns: messages of the customer that show it.
        confidence: mean confidence of its labels; None without any.
    """

    behavior: str
    dialogues: int
    turns: int
    share: Interval
    confidence: float | None

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        one = self.share
        return {
            "behavior": self.behavior,
            "dialogues": self.dialogues,
            "turns": self.turns,
            "share": one.value,
            "ci95": None if one.low is None else [one.low, one.high],
            "n": one.n,
            "confidence": self.confidence,
        }


def read_dialogues(source: str, *, limit: int | None = None) -> list[Dialogue]:
    """Return the conversations of an episode file, a run folder, or a corpus source.

    Args:
        source: a path, or a source as `data build` takes it.
        limit: at most so many.

    Raises:
        UsageError: no such source, or a damaged file.
    """
    path = Path(source)
    inside = path / "episodes.jsonl"
    file = inside if inside.is_file() else path
    if file.is_file() and holds_episodes(file):
        found = (dialogue_of(episode) for episode in itertools.islice(read_file(file), limit))
        return list(found)
    corpus = open_corpus(source, limit=limit, strict=False)
    return [
        Dialogue(
            d.id,
            tuple((Role.USER if t.role == "user" else Role.AGENT, t.text) for t in d.turns),
        )
        for d in corpus.dialogues
    ]


def holds_episodes(file: Path) -> bool:
    """Tell whether a file holds native episodes, by its first line."""
    if ".jsonl" not in file.suffixes:
        return False
    try:
        first = next(iter(jsonio.read_jsonl(file, growing=True)), None)
    except DataError:
        return False  # the corpus reader tells what is wrong, by its own rules
    return first is not None and isinstance(first.value, dict) and _is_episode(first.value)


def _is_episode(value: Mapping[str, Any]) -> bool:
    return str(value.get("schema", "")).partition("/")[0] == EPISODE.partition("/")[0]


def work_on(dialogues: Iterable[Dialogue], judge: Judge, *, seed: int) -> list[Work]:
    """Return what there is to ask `judge` about conversations."""

    def one(dialogue: Dialogue) -> Work:
        return Work(
            dialogue.id,
            ANNOTATE,
            dialogue.key,
            lambda: annotate(judge, dialogue, seed=seed),
            schema=Labels,
        )

    return [one(dialogue) for dialogue in dialogues]


def counts(stored: Sequence[Stored]) -> list[Count]:
    """Return how often every behavior occurs; the most frequent first.

    Conversations without a verdict are left out of the shares.
    """
    decided = [one for one in stored if one.state == SCORED]
    out = []
    for behavior in behaviors.ids():
        labels = [
            label for one in decided for label in _labels(one) if label["behavior"] == behavior
        ]
        sure = [float(label["confidence"]) for label in labels]
        out.append(
            Count(
                behavior,
                len(labels),
                sum(len(label["turns"]) for label in labels),
                wilson(len(labels), len(decided)),
                sum(sure) / len(sure) if sure else None,
            )
        )
    return sorted(out, key=lambda count: -count.dialogues)


def agreements(
    first: Sequence[Stored], second: Sequence[Stored], *, seed: int = 0
) -> dict[str, Comparison]:
    """Compare two annotators, per behavior: does it occur in a conversation?

    Behaviors that neither saw anywhere are left out.
    """
    left, right = ({one.item: one for one in side} for side in (first, second))
    items = [i for i in left if i in right and SKIPPED not in (left[i].state, right[i].state)]
    out = {}
    for behavior in behaviors.ids():
        pair = [[_shows(side[item], behavior) for item in items] for side in (left, right)]
        if any(one for side in pair for one in side):
            out[behavior] = compare(*pair, seed=seed)
    return out


def labels_of(one: Stored) -> frozenset[str] | None:
    """Return the behaviors that show in a conversation; None without a verdict."""
    return None if one.value is None else frozenset(x["behavior"] for x in _labels(one))


def _labels(one: Stored) -> list[Mapping[str, Any]]:
    return [] if one.value is None else list(one.value["labels"])


def _shows(one: Stored, behavior: str) -> float | None:
    if one.value is None:
        return None
    return float(any(label["behavior"] == behavior for label in _labels(one)))
