"""A corpus at a glance: terms, counts, and samples that passed the text filter."""

from __future__ import annotations

from typing import Any

from mimesim.corpora import filters
from mimesim.corpora.base import Corpus, HumanDialogue

UNMODERATED = "Human chats that nobody moderated; a word filter is no guarantee."


def summary(corpus: Corpus, *, samples: int, turns: int) -> dict[str, Any]:
    """Return what `mimesim data inspect` shows, as JSON values.

    Samples are the first conversations in hash order in which `filters.problem` finds nothing;
    how many were passed over is counted in `samples_withheld`.
    """
    shown: list[HumanDialogue] = []
    withheld = 0
    for dialogue in corpus.dialogues:
        if len(shown) == samples:
            break
        if any(filters.problem(turn.text) for turn in dialogue.turns):
            withheld += 1
        else:
            shown.append(dialogue)
    return {
        "name": corpus.info.name,
        "terms": corpus.info.as_dict(),
        "counts": dict(corpus.counts),
        "label": "" if corpus.info.moderated else UNMODERATED,
        "samples_withheld": withheld,
        "samples": [
            {
                "id": dialogue.id,
                "topic": dialogue.topic,
                "turns": [
                    {"role": turn.role, "text": turn.text} for turn in dialogue.turns[:turns]
                ],
            }
            for dialogue in shown
        ],
    }
