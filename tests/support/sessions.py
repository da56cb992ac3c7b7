"""Conversations for benchmarks of users, as few words as possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mimesim.bench.suites.sessions import Session, SessionSet
from mimesim.dialogue.types import Role
from mimesim.jsonio import Appender


def session(name: str, *said: str, task: str = "", person: str = "", **more: Any) -> Session:
    """Return a conversation: the user speaks first, then both take turns."""
    roles = (Role.USER, Role.AGENT)
    turns = tuple((roles[i % 2], text) for i, text in enumerate(said))
    return Session(id=name, turns=turns, task=task, person=person, **more)


def set_of(*sessions: Session, name: str = "some", **more: Any) -> SessionSet:
    """Return a set of conversations."""
    return SessionSet(name, sessions, **more)


def chats(path: Path, *dialogues: tuple[str, ...], ids: list[str] | None = None) -> Path:
    """Write a file of own logs, user and agent in turn, and return it."""
    with Appender(path) as file:
        for number, said in enumerate(dialogues):
            turns = [
                {"role": ("user", "agent")[i % 2], "text": text} for i, text in enumerate(said)
            ]
            file.append({"id": ids[number] if ids else f"d{number}", "turns": turns})
    return path
