"""Private reasoning in a model's text: the one splitter and its inverse.

Every raw text of either side passes `split` before anything else reads it. Closed blocks are
private, nesting counted; a close tag without an opener makes everything before it private; an
opener without a close makes everything after it private and the text incomplete. Raw text is never
a fall-back: what cannot be told apart is private. `split` reads the shapes that models are trained
to write; `has_trace` also knows what they make up, which nothing can take apart for sure.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from mimesim.dialogue.types import Thought

_NAME = r"(?:seed\s*:\s*)?[\w:.-]{0,40}think[\w:.-]{0,40}"
_TAG = re.compile(
    rf"[<\u25c1]\s*(?:(?P<close>/)\s*)?{_NAME}\s*(?:(?P<empty>/)\s*)?[>\u25b7]"
    # Channels of gpt-oss, whose marks many servers leave out: only the words of their names remain.
    r"|(?P<answer>assistantfinal|<\|channel\|>\s?final\s?<\|message\|>)"
    r"|\A\s*(?:analysis|commentary)(?=[^\W\d_])"
    r"|<\|channel\|>\s?(?:analysis|commentary)\b[^<>]{0,200}<\|message\|>",
    re.IGNORECASE,
)  # no two neighboring unbounded runs: they would make it quadratic
_TRACE = re.compile(
    r"<\s{0,9}/?\s{0,9}[\w:.-]{0,40}think"  # with attributes, or cut short
    r"|[\[{]\s{0,9}/?\s{0,9}think(?:ing)?\s{0,9}[\]}]"
    r"|```\s{0,9}think"
    r"|^[\s*_#>]{0,9}thinking(?: process| aloud| out loud)?[\s*_]{0,9}:",
    re.IGNORECASE | re.MULTILINE,
)
_LOOKALIKES = str.maketrans(
    "\u2039\u27e8\u2329\u3008\u300a\u00ab\u25c1\u203a\u27e9\u232a\u3009\u300b\u00bb\u25b7"
    "\u0442\u0422\u03c4\u04bb\u043d\u041d\u0456\u0406\u0131\u03b9\u043f\u0578\u03b7\u043a\u041a\u03ba",
    "<" * 7 + ">" * 7 + "ttthhhiiiinnnkkk",
)
"""Brackets, and Cyrillic, Greek and other letters, that pass for the ones of a tag."""
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


def has_trace(text: str) -> bool:
    """Tell whether anything in `text` looks like reasoning: a tag, even in disguise, or a heading."""
    plain = undisguised(text).translate(_LOOKALIKES)
    return any(has_tag(form) or _TRACE.search(form) for form in (text, plain))


def undisguised(text: str) -> str:
    """Return `text` as it looks: escapes read, wide forms narrowed, invisible characters out."""
    narrow = unicodedata.normalize("NFKC", html.unescape(text))
    return "".join(c for c in narrow if unicodedata.category(c) != "Cf")


def is_blank(text: str) -> bool:
    """Tell whether `text` shows nothing: white space, control, zero-width or filler characters."""
    return all(c in _FILLERS or unicodedata.category(c)[0] in "ZC" for c in text)


def _opens_first(text: str) -> bool:
    first = _TAG.search(text)
    return first is not None and not (first["close"] or first["answer"])


def _parts(text: str, depth: int) -> _Parts:
    pieces: list[tuple[bool, str]] = []  # (private, words) in order
    position = tags = 0
    all_private = 0  # pieces before this one are private, whatever they were taken for
    closed = False
    for tag in _TAG.finditer(text):
        tags += 1
        pieces.append((depth > 0, text[position : tag.start()]))
        position = tag.end()
        if tag["answer"]:  # channels do not nest: the answer ends whatever came before it
            all_private, closed, depth = len(pieces), True, 0
        elif tag["empty"]:
            closed = True
        elif not tag["close"]:
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
