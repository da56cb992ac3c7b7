"""tau-bench: our user in its environments.

Tested with a checkout of sierra-research/tau-bench at 59a200c. It reads the end from the marker in an
observation and gives the agent no further turn, so a user that leaves with words says the words
first and the bare marker when it is asked next.

    with install("trained:out/user", seed=3):
        env = get_env("retail", user_strategy="human", user_model="", task_split="test", task_index=0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mimesim.errors import UsageError
from mimesim.integrations.visits import Person, Visit, Visits, not_on_a_registry, person_of
from mimesim.users.base import UserSource

try:
    from tau_bench.envs import base as _base
    from tau_bench.envs.user import BaseUserSimulationEnv
except ModuleNotFoundError as error:
    raise not_on_a_registry(
        "tau-bench", "a checkout of sierra-research/tau-bench (tested with 59a200c) on PYTHONPATH"
    ) from error

DIALECT = "tau"


class MimesimUser(BaseUserSimulationEnv):
    """The user of an environment; each `reset` is a conversation of its own.

    Args:
        visits: the kind of user.
        people: task's instruction -> whole scenario; None = the instruction is the goal.
    """

    def __init__(self, visits: Visits, *, people: Callable[[str], Person] | None = None) -> None:
        self.visit: Visit | None = None
        self._visits = visits
        self._people = people or person_of
        self._spent = 0.0

    def reset(self, instruction: str | None = None) -> str:
        """Begin a conversation and return the user's first words.

        Raises:
            UsageError: there is no instruction.
            EpisodeError: the user failed.
        """
        if not instruction:
            raise UsageError("the user has no instruction", expected="the instruction of a task")
        self._spent += self._cost()
        self.visit = self._visits.visit(self._people(instruction), dialect=DIALECT)
        return self.visit.turn(None).worded(DIALECT)

    def step(self, content: str) -> str:
        """Answer the agent; a bare marker once the user has left and was answered.

        Raises:
            EpisodeError: the user failed.
        """
        if self.visit is None:
            raise UsageError("the conversation was not started", expected="reset first")
        return self.visit.turn(content).worded(DIALECT)

    def get_total_cost(self) -> float:
        """Return what all conversations cost so far, as far as prices are known."""
        return self._spent + self._cost()

    @property
    def thoughts(self) -> list[str]:
        """The private thoughts of this conversation, by turn."""
        if self.visit is None:
            return []
        return [thought["text"] for thought in self.visit.session.private()["thoughts"]]

    def _cost(self) -> float:
        return 0.0 if self.visit is None else self.visit.session.usage.cost or 0.0


@contextmanager
def install(
    user: str | UserSource | Visits = "scripted:neutral",
    *,
    people: Callable[[str], Person] | None = None,
    **settings: Any,
) -> Iterator[Visits]:
    """Give every environment that is made inside our user, whatever strategy it names.

    Args:
        user: door name or source, or `Visits`.
        people: see `MimesimUser`.
        settings: see `visits.Visits`.

    Raises:
        UsageError: the user cannot be made.
    """
    visits = user if isinstance(user, Visits) else Visits(user, **settings)
    stock = _base.load_user

    def load_user(*given: Any, **named: Any) -> MimesimUser:
        return MimesimUser(visits, people=people)

    _base.load_user = load_user
    try:
        yield visits
    finally:
        _base.load_user = stock
        if visits is not user:
            visits.close()
