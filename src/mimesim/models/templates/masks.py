"""Loss masks for any chat template: what people said and the end of their turn, nothing else.

A template is rendered once with a placeholder in place of each content, which shows what it puts
around the contents: headers, supplied empty thoughts, ends of turn, separators. A second rendering,
of the real messages, must be these pieces with the contents between them; a template that rewrites,
moves or drops anything is found out here. Then one tokenization with offsets tells which tokens are
content. Two template calls per conversation, cost linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mimesim.errors import DataError, EnvironmentFault
from mimesim.models.templates.rendering import (
    Message,
    call_template,
    name,
    plain,
    special_tokens,
)

IGNORED = -100
"""Label of a token that carries no loss."""

_PLACE = re.compile("\ue000(\\d+)\ue001")  # private use: no template writes these characters


class MaskedRow(NamedTuple):
    """One tokenized conversation.

    Attributes:
        input_ids: the whole conversation.
        labels: the id again where it is learnt, else IGNORED; same length.
        ends: positions of the learnt end-of-turn tokens, the last token of each learnt turn.
    """

    input_ids: list[int]
    labels: list[int]
    ends: list[int]


class Turn(NamedTuple):
    """Where one message stands in the rendered text; characters, half-open.

    `closed` is where its end-of-turn token ends; equal to `end` where there is none.
    """

    role: str
    start: int
    end: int
    closed: int


class Laid(NamedTuple):
    """A rendered conversation, and where its messages stand in it."""

    text: str
    turns: list[Turn]


def mask_rows(
    tokenizer: Any, messages: Sequence[Message], learn: Sequence[bool] | None = None
) -> MaskedRow:
    """Tokenize a conversation once and label what is learnt: content and end of turn only.

    Args:
        tokenizer: a fast tokenizer with any chat template.
        messages: the conversation, the learnt side as `assistant`.
        learn: one flag per assistant message, in order; None = all of them. A history that was
            given, not produced, has False.

    Raises:
        EnvironmentFault: the template drops or moves messages, refuses them, or closes turns with
            no special token.
        DataError: the template rewrites one of these contents, a token straddles the border of
            one, or nothing here is learnt.
    """
    laid = lay_out(tokenizer, messages)
    spoken = [turn for turn in laid.turns if turn.role == "assistant"]
    flags = [True] * len(spoken) if learn is None else learn
    kept = [turn for turn, flag in zip(spoken, flags, strict=True) if flag]
    if not kept:
        raise DataError(
            "no token of this conversation is learnt",
            expected="at least one message of the learnt side",
            mend="drop the conversation or choose the other side",
        )
    if any(turn.closed == turn.end for turn in kept):
        raise EnvironmentFault(
            "the chat template closes the assistant's turns with no special token",
            where=name(tokenizer),
            expected="an end-of-turn token right behind the content",
            mend="take a model whose template has one",
        )
    return _label(tokenizer, laid.text, kept)


def untold(tokenizer: Any, row: MaskedRow) -> bool:
    """Tell whether a learnt content holds what the tokenizer has no token for.

    It stands there as the token for the unknown, which for some models is the end of the text. A
    closed vocabulary lives with that; a model that learns free text must not learn it.
    """
    special, ends = set(tokenizer.all_special_ids), set(row.ends)
    return any(
        label in special and place not in ends
        for place, label in enumerate(row.labels)
        if label != IGNORED
    )


def end_of_turn_id(tokenizer: Any) -> int:
    """Return the id that closes an assistant turn, the token a sampler stops at.

    Raises:
        EnvironmentFault: the template has none.
    """
    row = mask_rows(
        tokenizer, [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    )
    return row.input_ids[row.ends[-1]]


def lay_out(tokenizer: Any, messages: Sequence[Message]) -> Laid:
    """Render a conversation and find its contents in the text, by two template calls.

    Raises:
        EnvironmentFault: the template drops, repeats or moves a message, or refuses them all.
        DataError: it rewrites one of these contents; outer white space may be trimmed.
    """
    ready = plain(tokenizer, messages)
    pieces = _pieces(tokenizer, ready)
    try:
        text = call_template(tokenizer, ready)
    except EnvironmentFault as fault:  # the placeholders were taken: it is about what is said
        raise DataError(fault.what, where=fault.where, expected=fault.expected) from fault
    if not text.startswith(pieces[0]):
        raise _rewritten(tokenizer, 0, ready[0]["role"])
    special = sorted(special_tokens(tokenizer), key=len, reverse=True)
    turns = []
    place = len(pieces[0])
    for k, (message, following) in enumerate(zip(ready, pieces[1:], strict=True)):
        content = _as_rendered(text, place, message["content"], following)
        if content is None:
            raise _rewritten(tokenizer, k, message["role"])
        end = place + len(content)
        close = next((token for token in special if following.startswith(token)), "")
        turns.append(Turn(message["role"], place, end, end + len(close)))
        place = end + len(following)
    if place != len(text):
        raise _rewritten(tokenizer, len(ready) - 1, ready[-1]["role"])
    return Laid(text, turns)


def _pieces(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> list[str]:
    """Return what the template puts before, between and after the contents."""
    places = [
        {"role": message["role"], "content": f"\ue000{k}\ue001"}
        for k, message in enumerate(messages)
    ]
    parts = _PLACE.split(call_template(tokenizer, places))
    found = [int(number) for number in parts[1::2]]
    if found != list(range(len(messages))):
        missing = sorted(set(range(len(messages))) - set(found))
        fate = f"drops message {missing[0] + 1}" if missing else "repeats or moves messages"
        roles = " ".join(message["role"] for message in messages[:6])
        raise EnvironmentFault(
            f"the chat template {fate} of a conversation that begins: {roles}",
            where=name(tokenizer),
            expected="every message once, in order",
            mend="give it the shape it takes: TemplateFacts.shape",
        )
    return parts[0::2]


def _as_rendered(text: str, place: int, content: str, following: str) -> str | None:
    """Return the content as it stands in the text: itself, or trimmed; None = neither."""
    for form in (content, content.strip()):
        if text.startswith(form, place) and text.startswith(following, place + len(form)):
            return form
    return None


def _rewritten(tokenizer: Any, position: int, role: str) -> DataError:
    return DataError(
        f"the chat template rewrites the content of message {position + 1} ({role})",
        where=name(tokenizer),
        expected="contents that stand in the text as they were given",
        mend="leave the conversation out, or install the project's own template",
    )


def _label(tokenizer: Any, text: str, turns: Sequence[Turn]) -> MaskedRow:
    """Tokenize and label content and end of `turns`; the tokens are walked through once."""
    coded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    ids: list[int] = coded["input_ids"]
    offsets: list[tuple[int, int]] = coded["offset_mapping"]
    labels = [IGNORED] * len(ids)
    ends: list[int] = []
    position = 0
    for turn in turns:
        while position < len(ids) and offsets[position][1] <= turn.start:
            position += 1
        while position < len(ids) and offsets[position][0] < turn.closed:
            first, last = offsets[position]
            closing = first >= turn.end
            if first < turn.start or last > (turn.closed if closing else turn.end):
                raise DataError(
                    "a token straddles the border of a turn, so training would not match serving",
                    where=name(tokenizer),
                    expected="contents without outer white space",
                    mend="strip the messages before rows are made",
                )
            labels[position] = ids[position]
            if closing:
                ends.append(position)
            position += 1
    return MaskedRow(ids, labels, ends)
