"""What every drop-in is tried with: a person, a user that thinks, a scripted agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mimesim.dialogue.types import Identity
from mimesim.errors import InfraError
from mimesim.models.base import ChatMessage, Completion, Sampling
from mimesim.models.scripted import Replay, Scripted
from mimesim.users.settings import TRAINED, Settings
from mimesim.users.sources import SimulatorSource

PERSON: dict[str, Any] = {
    "id": "teapot",
    "goal": "send the cracked teapot of last week back for the whole price",
    "facts": {"order_id": "7301188264"},
    "withhold": ["order_id"],
}
SECRET = "SECRET"
"""Stands in every thought of the user."""
TURNS = (
    f"<think>{SECRET} one: say little</think>hello, my teapot came broken",
    f"<think>{SECRET} two: ###STOP### would be early</think>it is 7301188264",
    f"<think>{SECRET} three: all done</think>great, that was all I needed ###STOP###",
)
"""What the user's model writes; the end comes with words, and one thought holds the marker."""
WORDS = ("hello, my teapot came broken", "it is 7301188264", "great, that was all I needed")
"""What an agent may hear of it."""
ANSWERS = (
    "Sorry to hear that. What is the order number? ###STOP###",
    "The money is on its way to you.",
    "You are welcome, come back soon.",
)
"""What the scripted agent says; it prints the marker at once, and has a turn after the leave."""


def thinker(turns: Sequence[str] = TURNS, **settings: Any) -> SimulatorSource:
    """Make a kind of user whose model writes `turns`, thoughts included."""
    return SimulatorSource(
        Identity("llm", "scripted:thinker"),
        Replay(turns),
        TRAINED,
        Settings(thinking=True, **settings),
    )


def breaking(after: int = 1) -> SimulatorSource:
    """Make a kind of user whose endpoint is gone after some turns."""

    def answer(messages: Sequence[ChatMessage], sampling: Sampling) -> str | Completion:
        spoken = sum(message.role == "assistant" for message in messages)
        if spoken >= after:
            raise InfraError("the endpoint of the user is gone")
        return TURNS[spoken]

    return SimulatorSource(
        Identity("llm", "scripted:breaking"), Scripted(answer), TRAINED, Settings(thinking=True)
    )


def answer(heard: Sequence[str]) -> str:
    """Return what the scripted agent says to the user's messages so far."""
    return ANSWERS[len(heard) - 1]
