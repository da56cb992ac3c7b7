"""What tests of coaches and notes share: one turn with marked private parts, a coach of one answer."""

from __future__ import annotations

from typing import Any

from mimesim.dialogue.types import CoachNote, PublicMessage, Role, Thought
from mimesim.train.coach import CoachTurn


def turn(**changed: Any) -> CoachTurn:
    given: dict[str, Any] = {
        "history": (
            PublicMessage(Role.USER, "Hello, I want a refund for the clock."),
            PublicMessage(Role.AGENT, "What is the order number?"),
            PublicMessage(Role.USER, "You have that already."),
        ),
        "reply": "Could you give me the number once more?",
        "thought_before": Thought("BEFORE-7 they should look up order 4172 from Selby"),
        "thought_after": Thought("AFTER-8 i will give in now and say it to Ida"),
        "next_utterance": "NEXT-9 fine, it is 4172.",
    }
    return CoachTurn(**{**given, **changed})


class Says:
    """A coach with one answer."""

    name = "says"

    def __init__(self, answer: str | Exception | None) -> None:
        self.answer = answer

    async def note(self, turn: CoachTurn, *, seed: int) -> CoachNote | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return None if self.answer is None else CoachNote(self.answer, self.name)

    async def aclose(self) -> None:
        """Release nothing."""
