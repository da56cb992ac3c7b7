"""Private reasoning in a model's text: the one splitter and its inverse.

Every raw text of either side passes `split` before anything else reads it. Closed blocks are
private, nesting counted; a close tag without an opener makes everything before it private; an
opener without a close makes everything after it private and the text incomplete. Raw text is never
a fall-back: what cannot be told apart is private.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from mimesim.dialogue.types import Thought

_TAG = re.compile(
    r"<\s*(?:(/)\s*)?(?:seed\s*:\s*)?think(?:ing)?\s*(?:(/)\s*)?>", re.IGNORECASE
)  # no two neighboring runs of white space: they would make it quadratic
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
OPENER = "<think>\n"
"""What a template writes when it pre-fills the opening of a private block."""


@dataclass(frozen=True, slots=True)
class Split:
    """A raw text taken apart.

    Attributes:
        thought: all private parts in order, joined by a blank line; None = no block was there.
        text: the public part; unchanged when the raw text held no tag.
        complete: whether `text` may be handed on; False = draw again with more tokens.
    """

    thought: Thought | None
    text: str
    complete: bool


class AgentText(NamedTuple):
    """An agent's raw text taken apart: public words, its own reasoning, and whether it is whole."""

    text: str
    reasoning: str
    complete: bool


class _Parts(NamedTuple):
    private: list[str]
    public: str
    tags: int
    closed: bool
    open_depth: int


def split(
    text: str,
    *,
    thinking: bool | None = None,
    finish_reason: str = "stop",
    reasoning: Thought | None = None,
    prefilled: bool = False,
) -> Split:
    """Separate what a model thought from what it says.

    Args:
        text: raw visible text of the model.
        thinking: whether the model was asked to think first; None = not known, taken as off.
        finish_reason: `length` in thinking mode without a close tag means a cut thought.
        reasoning: reasoning that came in a field of its own; goes before the tagged parts.
        prefilled: the chat template wrote the opener, so the text begins inside a thought.
    """
    parts = _parts(text, depth=1 if prefilled and not _opens_first(text) else 0)
    told = [reasoning.reveal()] if reasoning is not None else []
    cut = bool(thinking) and finish_reason == "length" and not parts.closed and reasoning is None
    if cut and not parts.tags:
        return Split(Thought(text.strip()), "", complete=False)
    private = [piece.strip() for piece in [*told, *parts.private]]
    seen = bool(parts.tags or parts.private or reasoning is not None)
    thought = Thought("\n\n".join(p for p in private if p)) if seen else None
    public = parts.public.strip() if parts.tags else parts.public
    if has_tag(public):  # two halves of a tag met when a block between them was taken out
        return Split(thought, "", complete=False)
    only_reasoning = thought is not None and is_blank(public)
    return Split(thought, public, complete=not (parts.open_depth or cut or only_reasoning))


def join(thought: Thought | None, utterance: str) -> str:
    """Return the exact training and history format; no thought gives an empty block."""
    return f"{OPENER}{thought.reveal() if thought is not None else ''}\n</think>\n\n{utterance}"


def split_agent(
    text: str,
    *,
    thinking: bool | None = None,
    finish_reason: str = "stop",
    reasoning: Thought | None = None,
) -> AgentText:
    """Separate an agent's reasoning from its public text, by the same rules as a user's."""
    parts = split(text, thinking=thinking, finish_reason=finish_reason, reasoning=reasoning)
    return AgentText(parts.text, parts.thought.reveal() if parts.thought else "", parts.complete)


def has_tag(text: str) -> bool:
    """Tell whether a reasoning tag, opening or closing, stands in `text`."""
    return _TAG.search(text) is not None


def is_blank(text: str) -> bool:
    """Tell whether `text` shows nothing: white space, control, zero-width or filler characters."""
    return all(c in _FILLERS or unicodedata.category(c)[0] in "ZC" for c in text)


def _opens_first(text: str) -> bool:
    first = _TAG.search(text)
    return first is not None and not first.group(1)


def _parts(text: str, depth: int) -> _Parts:
    pieces: list[tuple[bool, str]] = []  # (private, words) in order
    position = tags = 0
    all_private = 0  # pieces before this one are private, whatever they were taken for
    closed = False
    for tag in _TAG.finditer(text):
        tags += 1
        pieces.append((depth > 0, text[position : tag.start()]))
        position = tag.end()
        closing, empty = bool(tag.group(1)), bool(tag.group(2))
        if empty:
            closed = True
        elif not closing:
            depth += 1
        elif depth:
            depth, closed = depth - 1, True
        else:  # a close tag without opener: all that came before it was private
            all_private, closed = len(pieces), True
    pieces.append((depth > 0, text[position:]))
    hidden = [private or i < all_private for i, (private, _) in enumerate(pieces)]
    private = [words for (_, words), kept in zip(pieces, hidden, strict=True) if kept]
    public = "".join(words for (_, words), kept in zip(pieces, hidden, strict=True) if not kept)
    return _Parts(private, public, tags, closed, depth)
