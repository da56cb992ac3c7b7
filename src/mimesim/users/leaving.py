"""What a user's reply means for a conversation: does it go on, and who is still to speak?

Whoever holds a loop (the gym without a gym, a session, the server) asks here, so that a user leaves
everywhere in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from mimesim.dialogue.loops import loop_detected
from mimesim.dialogue.stop import LEAVING, StopReason, UserAction
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import PublicMessage, Reply
from mimesim.errors import UserError


class Presence(Enum):
    """Whether the user is still there after a reply."""

    STAYS = "stays"
    """It will answer what the agent says next."""
    ONE_TURN = "one turn"
    """It has left; its words are delivered, and the agent still answers them."""
    GONE = "gone"
    """It has left, and nobody speaks any more."""


def presence(action: UserAction, words: str, grace: str) -> Presence:
    """Return what a reply leaves behind.

    Args:
        action: what the user does.
        words: what it says with it; a bare end is always the end.
        grace: of the scenario's `end`.
    """
    if action not in LEAVING:
        return Presence.STAYS
    if not words or grace == "none":
        return Presence.GONE
    return Presence.STAYS if grace == "ask_user" else Presence.ONE_TURN


def check_reply(reply: Reply, words: str) -> None:
    """Refuse a reply that nobody could answer.

    Args:
        reply: of the user.
        words: of it, as they would be delivered.

    Raises:
        UserError: it calls a tool, or says nothing and stays.
    """
    if reply.action is UserAction.TOOL:
        raise UserError("the user has no tools here")
    if reply.action is UserAction.SAY and is_blank(words):
        raise UserError("the user said nothing")


def nobodys_end(
    talk: Sequence[PublicMessage], turns: int, most: int | None, *, loops: bool = True
) -> StopReason | None:
    """Return the end that no participant decides, after the agent's last words; None = none.

    Args:
        talk: what both said, the agent's last words too.
        turns: messages of the user so far.
        most: how many it may write.
        loops: end exchanges of empty courtesies and repetitions.
    """
    if most is not None and turns >= most:
        return StopReason.MAX_TURNS
    return StopReason.LOOP_DETECTED if loops and loop_detected(talk) else None
