"""A scripted person in a gym whose questions bring their own script.

What a person of such a gym knows and says, the gym knows; this user only is there, of some kind.
`realistic` draws its kind once per conversation: a third neutral, else one of the 13 behaviors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.dialogue.types import Reply
from mimesim.errors import EnvError, EpisodeError, UserError
from mimesim.seeds import generator
from mimesim.users.base import UserRequest
from mimesim.users.scripted.kinds import BEHAVIORS, NEUTRAL_SHARE


class AskedUser:
    """One scripted person; it keeps nothing between two questions.

    Args:
        scenario: not read.
        kind: one of `kinds.KINDS`.
        seed: of the draw behind `realistic`.
    """

    def __init__(self, scenario: Mapping[str, Any], *, kind: str, seed: int) -> None:
        del scenario
        self._kind = kind
        if kind == "realistic":
            rng = generator(seed, "kind")
            self._kind = "neutral" if rng.random() < NEUTRAL_SHARE else rng.choice(BEHAVIORS)

    async def respond(self, request: UserRequest) -> Reply:
        """Answer by the script of the question.

        Raises:
            UserError: there is none.
            EnvError: it broke, a bug of the gym or of its task.
        """
        if request.script is None:
            raise UserError(f"nothing is written for a scripted person to answer {request.kind}")
        try:
            return request.script(self._kind)
        except EpisodeError:
            raise
        except Exception as error:  # of any kind; its text may be private
            what = f"the script of {request.kind} broke: {type(error).__name__}"
            raise EnvError(what) from error

    def snapshot(self) -> dict[str, Any]:
        """Return nothing: there is no state."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take nothing over."""
