"""Human dialogues to training rows: roles reversed, one row per conversation, human turns learnt.

The human side becomes `assistant`, the side that the model writes; the other side becomes `user`.
An opening by the human is learnt too, for a simulator must be able to open. What does not fit is
dropped from the oldest turn on; the system text always stays. Paper: mid-training, stage one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from mimesim import prompts
from mimesim.corpora.base import HumanDialogue
from mimesim.errors import DataError
from mimesim.models import templates
from mimesim.models.base import ChatMessage

SYSTEM_TEMPLATE = "user/midtrain"
"""The system text of training rows; serve a mid-trained user with the same template."""

_REVERSED = {"user": "assistant", "agent": "user"}


@dataclass(frozen=True, slots=True)
class TrainRow:
    """One tokenized conversation; `labels` is -100 where nothing is learnt, same length."""

    id: str
    input_ids: list[int]
    labels: list[int]

    @property
    def learnt(self) -> int:
        """Return how many tokens carry loss."""
        return sum(label != templates.IGNORED for label in self.labels)

    @property
    def turn_lengths(self) -> list[int]:
        """Return how many tokens each learnt turn has."""
        runs = groupby(self.labels, lambda label: label != templates.IGNORED)
        return [len(list(run)) for learnt, run in runs if learnt]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one corpus, and counts of what was cut or left out."""

    rows: list[TrainRow]
    counts: Mapping[str, int]


def reverse(dialogue: HumanDialogue) -> list[ChatMessage]:
    """Return the conversation as the user's own model sees it, system text first.

    What the other side says last is left out: nothing learnt follows it.
    """
    talk = [ChatMessage(_REVERSED[turn.role], turn.text) for turn in dialogue.turns]
    while talk and talk[-1].role != "assistant":
        talk.pop()
    system = prompts.render(SYSTEM_TEMPLATE, topic=dialogue.topic)
    return [ChatMessage("system", system), *talk]


def midtrain_rows(tokenizer: Any, dialogues: Iterable[HumanDialogue], max_length: int) -> Rows:
    """Tokenize dialogues, one row each, at most `max_length` tokens.

    Raises:
        EnvironmentFault: the tokenizer's template is not fit for training.
        DataError: not one dialogue has a token to learn.
    """
    templates.check_template(tokenizer)
    counts: Counter[str] = Counter()
    rows = []
    for dialogue in dialogues:
        counts["dialogues"] += 1
        row = _row(tokenizer, dialogue, max_length, counts)
        if row is None:
            counts["fully_masked"] += 1
        else:
            rows.append(row)
    if not rows:
        raise DataError(
            f"no token is learnt in any of {counts['dialogues']} dialogues",
            expected=f"human turns that fit into {max_length} tokens with the system text",
            mend="check the corpus, or raise max_length",
        )
    return Rows(rows, dict(counts))


def trained_text(tokenizer: Any, row: TrainRow) -> list[str]:
    """Return the stretches of a row that carry loss, as text, for looking at."""
    stretches: list[list[int]] = []
    previous = templates.IGNORED
    for label in row.labels:
        if label != templates.IGNORED:
            if previous == templates.IGNORED:
                stretches.append([])
            stretches[-1].append(label)
        previous = label
    return [str(tokenizer.decode(ids)) for ids in stretches]


def _row(
    tokenizer: Any, dialogue: HumanDialogue, max_length: int, counts: Counter[str]
) -> TrainRow | None:
    system, *talk = reverse(dialogue)
    # Whole token counts only grow with the turns kept, so halving finds the first turn that fits.
    low, high = 0, len(talk)
    while low < high:
        middle = (low + high) // 2
        if len(templates.render_ids(tokenizer, [system, *talk[middle:]])) <= max_length:
            high = middle
        else:
            low = middle + 1
    kept = talk[low:]
    counts["turns_dropped"] += low
    if not kept:
        return None
    masked = templates.mask_rows(tokenizer, [system, *kept])
    return TrainRow(dialogue.id, masked.input_ids, masked.labels)
