"""Human dialogues to training rows: roles reversed, one row per conversation, human turns learnt.

The human side becomes `assistant`, the side that the model writes; the other side becomes `user`.
An opening by the human is learnt too, for a simulator must be able to open. What does not fit is
dropped from the oldest turn on; the system text always stays. Paper: mid-training, stage one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from mimesim import prompts
from mimesim.corpora.base import HumanDialogue
from mimesim.errors import DataError
from mimesim.models import templates
from mimesim.models.base import ChatMessage

SYSTEM_TEMPLATE = "user/midtrain"
"""The system text of training rows; serve a mid-trained user with the same template."""

EARLIER_TEMPLATE = "user/earlier"

_REVERSED = {"user": "assistant", "agent": "user"}


@dataclass(frozen=True, slots=True)
class TrainRow:
    """One tokenized conversation; `labels` is -100 where nothing is learnt, same length.

    `source` is the corpus it comes from, where that is known.
    """

    id: str
    input_ids: list[int]
    labels: list[int]
    source: str = ""

    @property
    def learnt(self) -> int:
        """Return how many tokens carry loss."""
        return sum(label != templates.IGNORED for label in self.labels)

    @property
    def turn_lengths(self) -> list[int]:
        """Return how many tokens each learnt turn has."""
        runs = groupby(self.labels, lambda label: label != templates.IGNORED)
        return [len(list(run)) for learnt, run in runs if learnt]

    @property
    def ends(self) -> list[bool]:
        """Return for every learnt token whether it is the end of a turn rather than content."""
        return [is_last for length in self.turn_lengths for is_last in _last_of(length)]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one corpus, and counts of what was cut or left out."""

    rows: list[TrainRow]
    counts: Mapping[str, int]


def _last_of(length: int) -> list[bool]:
    return [False] * (length - 1) + [True]


def reverse(dialogue: HumanDialogue) -> list[ChatMessage]:
    """Return the conversation as the user's own model sees it, system text first.

    What the other side says last is left out: nothing learnt follows it. The folded older part of
    a long conversation is a message of its own, so that no turn changes sides (method.md 4).
    """
    talk = [ChatMessage(_REVERSED[turn.role], turn.text) for turn in dialogue.turns]
    while talk and talk[-1].role != "assistant":
        talk.pop()
    if talk and dialogue.earlier:
        told = prompts.render(EARLIER_TEMPLATE, text=dialogue.earlier)
        talk.insert(0, ChatMessage("user", told))
    return [ChatMessage("system", system_text(dialogue)), *talk]


def system_text(dialogue: HumanDialogue) -> str:
    """Return what the user's own model is told before the conversation.

    Thoughts and hidden fields have no place here: goal, topic and context only.
    """
    return prompts.render(
        SYSTEM_TEMPLATE, topic=dialogue.topic, wanted=dialogue.goal, context=dialogue.context
    )


def midtrain_rows(tokenizer: Any, dialogues: Iterable[HumanDialogue], max_length: int) -> Rows:
    """Tokenize dialogues, one row each, at most `max_length` tokens.

    Raises:
        EnvironmentFault: the tokenizer's template is not fit for training.
        DataError: not one dialogue has a token to learn.
    """

    def lay(dialogue: HumanDialogue) -> Laid:
        system, *talk = reverse(dialogue)
        return Laid([system], talk)

    return make_rows(tokenizer, dialogues, max_length, lay)


class Laid(NamedTuple):
    """A conversation as messages: those that always stay, and the turns."""

    head: Sequence[ChatMessage]
    talk: Sequence[ChatMessage]


def make_rows(
    tokenizer: Any,
    dialogues: Iterable[HumanDialogue],
    max_length: int,
    lay: Callable[[HumanDialogue], Laid | str],
    *,
    stride: int = 1,
    tell: Callable[[HumanDialogue, int], Mapping[str, int]] | None = None,
) -> Rows:
    """Tokenize dialogues, one row each, their oldest turns left out until they fit.

    Args:
        tokenizer: with a template that is fit for training.
        dialogues: what is learnt from.
        max_length: tokens that a row may have.
        lay: gives the messages of a dialogue, or the reason for which it is left out.
        stride: turns that are dropped together (see `cut`).
        tell: gives further counts of a row, from its dialogue and the turns left out.

    Raises:
        EnvironmentFault: the tokenizer's template is not fit for training.
        DataError: not one dialogue has a token to learn.
    """
    facts = templates.check_template(tokenizer)
    counts: Counter[str] = Counter()
    rows = []
    for dialogue in dialogues:
        counts["dialogues"] += 1
        laid = lay(dialogue)
        if isinstance(laid, str):
            counts[laid] += 1
            continue
        low, masked = cut(tokenizer, facts, laid, max_length, counts, stride=stride)
        counts["turns_dropped"] += low
        if masked is None:
            continue
        counts.update(tell(dialogue, low) if tell else {})
        rows.append(TrainRow(dialogue.id, masked.input_ids, masked.labels, dialogue.source))
    if not rows:
        raise DataError(
            f"no token is learnt in any of {counts['dialogues']} dialogues",
            expected="a turn of the learnt side that fits into "
            f"{max_length} tokens behind the system text",
            mend="check the corpus, or raise max_length",
        )
    return Rows(rows, dict(+counts))


def trained_text(tokenizer: Any, row: TrainRow) -> list[str]:
    """Return the stretches of a row that carry loss, as text, for looking at."""
    runs = groupby(row.labels, lambda label: label != templates.IGNORED)
    return [str(tokenizer.decode(list(run))) for learnt, run in runs if learnt]


def cut(
    tokenizer: Any,
    facts: templates.TemplateFacts,
    laid: Laid,
    max_length: int,
    counts: Counter[str],
    *,
    stride: int = 1,
) -> tuple[int, templates.MaskedRow | None]:
    """Tokenize a conversation, its oldest turns left out until it fits.

    Args:
        tokenizer: with a template that is fit for training.
        facts: of that template; they give the shape that it takes.
        laid: the conversation.
        max_length: tokens that a row may have.
        counts: `fully_masked` counts what does not fit at all or holds nothing to learn,
            `unfit_text` what this template would change or the tokenizer cannot spell.
        stride: turns that are dropped together, so that the sides keep their places.

    Returns:
        How many turns were left out, and the row; None = there is none.
    """
    head, talk = laid

    def shaped(low: int) -> list[ChatMessage]:
        return facts.shape([*head, *talk[low:]])

    low = 0
    if talk and len(templates.render_ids(tokenizer, shaped(0))) > max_length:
        # Token counts only grow with the turns kept, so halving finds the first turn that fits.
        small, large = 1, -(-len(talk) // stride)
        while small < large:
            middle = (small + large) // 2
            fits = len(templates.render_ids(tokenizer, shaped(middle * stride))) <= max_length
            small, large = (small, middle) if fits else (middle + 1, large)
        low = min(small * stride, len(talk))
    if low >= len(talk):
        counts["fully_masked"] += 1
        return low, None
    try:
        masked = templates.mask_rows(tokenizer, shaped(low))
    except DataError:
        learnt = any(message.role == "assistant" for message in talk[low:])
        counts["unfit_text" if learnt else "fully_masked"] += 1
        return low, None
    if templates.untold(tokenizer, masked):
        counts["unfit_text"] += 1
        return low, None
    return low, masked
