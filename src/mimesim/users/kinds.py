"""What a gym asks a model-backed user: a part for one question, in place of a scenario's person.

The kind of the question names the template `user/kinds/<kind>`, which tells the part from what the
question brings: `public` and `private`. Some kinds are answered by one of a few words; these are
read from the start of what the model says, and the bare word is delivered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from mimesim import prompts
from mimesim.dialogue.types import PublicMessage, Role, Thought
from mimesim.errors import UserError
from mimesim.users.base import UserRequest
from mimesim.users.guards import Situation
from mimesim.users.settings import Settings

FRAME = "user/kind"
"""Template around every part: what a message is, and how to think and end."""
LABELS: Mapping[str, tuple[str, ...]] = {
    "telepathy.oracle": ("Yes", "No", "Maybe"),
    "turtle.oracle": ("Yes", "No", "Maybe"),
}
"""Kinds that are answered by one word, and these words."""
_UNTYPED = ("tau.customer",)
"""Kinds that the originals take as plain words, so that nothing can fail in reading them."""
_FOLDER = "user/kinds/"


@dataclass(frozen=True, slots=True)
class Part:
    """Whom a model plays for one reply, and how that reply is read.

    Attributes:
        system: the private prompt.
        scene: what the guards check the reply against.
        labels: words of which one is the answer; empty = the answer is free.
        may_end: whether an end marker is heard; elsewhere it is taken off and nothing more.
        as_is: read as the originals of the gyms do: no guard, no label, one try, and a private
            block in the text is a failure.
    """

    system: str
    scene: Situation
    labels: tuple[str, ...] = ()
    may_end: bool = True
    as_is: bool = False


def part_of(request: UserRequest, settings: Settings) -> Part | None:
    """Return the part that a question gives its user; None = the scenario says who that is.

    Raises:
        UserError: the question is a gym's, and no template tells its part.
        CallerError: the template needs what the question does not bring.
    """
    kind = request.kind
    if _FOLDER + kind not in templates():
        if request.script is None:
            return None
        raise UserError(f"no template {_FOLDER}{kind} tells a model-backed user what to answer")
    labels = LABELS.get(kind, ())
    told = prompts.render(_FOLDER + kind, public=request.public, private=request.private)
    system = prompts.render(
        FRAME,
        part=told,
        labels=labels,
        thinking=bool(settings.thinking),
        end_marker=settings.end_marker if request.may_end else "",
    )
    known = tuple(_texts([request.public, request.private]))
    scene = Situation(prompt=system, citable=known, max_chars=settings.max_chars)
    as_is = request.as_is and kind not in _UNTYPED
    return Part(system, scene, () if as_is else labels, request.may_end, as_is)


@cache
def templates() -> frozenset[str]:
    """Return the names of the templates of parts."""
    return frozenset(name for name in prompts.names() if name.startswith(_FOLDER))


def read_label(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that opens `text`, whatever its case and the signs around it."""
    found = re.match(r"[\W_]*([^\W_]+)", text)
    said = found.group(1).casefold() if found else ""
    return next((label for label in labels if label.casefold() == said), None)


def recalled(
    said: Sequence[tuple[str, Thought | None]], history: Sequence[PublicMessage]
) -> list[Thought | None]:
    """Return the thought behind each user message of `history`, found by its words.

    A gym may show its user a part of the transcript only, and lines that others wrote for it; so
    the messages are matched from the last one on.
    """
    left = list(said)
    found: list[Thought | None] = []
    for message in reversed(history):
        if message.role is not Role.USER:
            continue
        places = [i for i, (words, _) in enumerate(left) if words == message.content]
        found.append(left[places[-1]][1] if places else None)
        if places:
            del left[places[-1] :]
    return found[::-1]


def _texts(value: Any) -> Iterator[str]:
    """Yield every text inside JSON values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
