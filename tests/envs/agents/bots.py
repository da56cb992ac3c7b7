"""Bots for the tests of `python:` agents."""

from __future__ import annotations

from typing import Any

AUDIO = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}


def echo(text: str) -> str:
    return f"you said {text}"


def history_bot(messages: list[dict[str, Any]], turn: int, conversation_id: str) -> str:
    messages.clear()  # what a bot does to its arguments changes nothing
    return f"{conversation_id}/{turn}"


async def slow(messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": f"{len(messages)} {sorted(more)}"}


def angry(text: str) -> str:
    raise KeyError("x")


class Counting:
    """One instance per conversation."""

    def __init__(self) -> None:
        self.count = 0

    def reply(self, message: str) -> str:
        self.count += 1
        return f"answer {self.count}"


class Callable_:
    def __call__(self, *, input: str) -> str:
        return input.upper()


INSTANCE = Counting()
NO_BOT = 7


def both(messages: list[Any], input: str) -> str:
    return ""


def neither(turn: int) -> str:
    return ""


def unknown(messages: list[Any], database: Any) -> str:
    return ""


def two_texts(text: str, message: str) -> str:
    return ""


def positional(text: str, /) -> str:
    return ""
