"""Who takes part in the training of an agent, and what of them a checkpoint keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.envs.load import gym_spec
from mimesim.errors import ConfigError
from mimesim.judges.load import make_judge
from mimesim.seeds import derive
from mimesim.train import launch
from mimesim.train.coach import Coach, make_coach, read_coach, same_model
from mimesim.train.collect import GymCollector, World
from mimesim.users.base import UserSource
from mimesim.users.load import make_user
from mimesim.users.mixture import Mixture, make_mixture


def make_world(config: Any) -> World:
    """Return the world of a run: its gym, its frozen users, a judge where the gym needs one.

    Raises:
        UsageError: a name that nobody has, or an option that is not known.
    """
    judged = gym_spec(config.gym, config.profile).needs_judge
    judge = make_judge(config.judge) if judged else None
    user: UserSource | Mixture
    if config.users:
        user = make_mixture(config.users, derive(config.seed, "users"))
    else:
        user = make_user(config.user)
    return World(config.gym, config.profile, user, judge=judge, options=config.gym_options)


def coach_of(config: Any, met: UserSource | Mixture) -> Coach | None:
    """Return the coach of a run; None where none is asked.

    Raises:
        ConfigError: the coach is not one that the run may have.
    """
    asking = read_coach(config.coach)
    if config.csd.alpha == 0 or asking is None:
        return None  # alpha = 0 asks no coach and draws no random number
    users = met.sources if isinstance(met, Mixture) else (met,)
    if asking.name == "user" and len(users) > 1:
        raise ConfigError(
            f"coach 'user' asks the model behind the user, and 'users' has {len(users)}",
            where="coach",
            mend="take coach = 'rule' or 'model:<model>'",
        )
    coach = make_coach(asking, users[0])
    for user in users:
        if config.arm == "csd-othercoach" and same_model(coach, user):
            raise ConfigError(
                f"the coach is the model of the user, {user.identity.name!r}",
                where="coach",
                expected="another model in the arm 'csd-othercoach'",
            )
    return coach


class Kept:
    """The placebo ring, and the numbers of the last batch that no trainer knows."""

    def __init__(self, collector: GymCollector) -> None:
        self._collector = collector

    def numbers(self) -> dict[str, float]:
        """Return what became of the notes of the last batch, and what it cost in all processes."""
        collector = self._collector
        own = collector.counts.numbers() if collector.coach else {}
        return launch.summed({**own, **collector.spent.numbers()})

    def state(self) -> dict[str, Any]:
        """Return the ring."""
        return {"ring": self._collector.ring.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a ring."""
        self._collector.ring.restore(state["ring"])


def spent_in(curve: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return calls, tokens and dollars of user, judge and coach over a whole run."""
    found: dict[str, float] = {}
    for row in curve:
        for key, value in row.items():
            if key.startswith("usage/"):
                name = key.removeprefix("usage/")
                found[name] = found.get(name, 0) + value
    return dict(sorted(found.items()))
