"""Small parts that tasks with a partner share: whose words are whose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mimesim.envs.tasks.base import POLICY, Line
from mimesim.models.base import ChatMessage

Shown = list[dict[str, str]]
"""A transcript as templates take it: objects with `role` and `text`."""


def as_partner(lines: Iterable[Line], *, start: str = "") -> list[ChatMessage]:
    """Return the conversation as the partner sees it; neighbors of one side are joined.

    Args:
        lines: what was said.
        start: put first where the partner itself spoke first, since chats begin with the other.
    """
    messages: list[ChatMessage] = []
    for by, text in lines:
        role = "user" if by == POLICY else "assistant"
        if not messages and role == "assistant" and start:
            messages.append(ChatMessage("user", start))
        if messages and messages[-1].role == role:
            text = f"{messages.pop().content}\n\n{text}"
        messages.append(ChatMessage(role, text))
    return messages or [ChatMessage("user", start)]


def shown(lines: Iterable[Line], policy: str, other: str) -> Shown:
    """Return a transcript for a template, with names for the two sides."""
    return [{"role": policy if line.by == POLICY else other, "text": line.text} for line in lines]


def joined(texts: Sequence[str]) -> str:
    """Return messages as one text."""
    return "\n".join(texts)
