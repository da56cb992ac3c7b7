"""The gym `travel`."""

from __future__ import annotations

from mimesim.envs.base import Task
from mimesim.envs.gyms.travel.agents import Chooser, moves
from mimesim.envs.gyms.travel.gym import ASKED, MAX_STEPS, TravelGym
from mimesim.envs.gyms.travel.tasks import make_tasks
from mimesim.envs.gyms.travel.trip import read_trip
from mimesim.envs.turns.kind import TurnKind

__all__ = ["GYM"]


def _check(task: Task) -> list[str]:
    """Return what `public` must not hold: all wishes and how they are hinted at."""
    wishes = read_trip(task).preferences
    return [text for wish in wishes for text in (wish.text, wish.implicit)]


def _best(task: Task) -> float:
    """Return the return of asking for as many wishes as there are turns, then choosing best."""
    trip = read_trip(task)
    answers = len(trip.aspects)
    return ASKED * min(len(trip.preferences), MAX_STEPS - answers) + answers


GYM = TurnKind(
    name="travel",
    episode=TravelGym,
    make_tasks=make_tasks,
    check=_check,
    best=_best,
    moves=moves,
    agents={
        "eager": lambda task, seed: Chooser(task, asks=False),
        "patient": lambda task, seed: Chooser(task, asks=True),
    },
)
"""The registry's entry."""
