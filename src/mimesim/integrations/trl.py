"""TRL: a gym with our user as an environment of its GRPO trainer.

Tested with trl 1.16. `environment_factory` there makes one object for each rollout; the agent acts
through its one tool, and the object owns the reward. The module needs no TRL itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mimesim import jsonio
from mimesim.errors import CallerError, EpisodeError
from mimesim.integrations.sessions import SyncGym, open_gym

_OVER = "The conversation is over."


class GymToolEnv:
    """One rollout at a time in a gym of ours; see `environment`.

    TRL puts what a tool raises before the model, as it does with any tool. So a failure of user,
    judge or network is kept and raised when the reward is asked for: the step is lost, and no
    reward is made up.
    """

    def __init__(self, gym: SyncGym) -> None:
        self._gym = gym
        self._total = 0.0
        self._over = True
        self._failure: EpisodeError | None = None

    def reset(self, task: int = 0, trial: int = 0, **row: Any) -> str:
        """Start an episode and return what the agent is told; the trainer passes a row's columns.

        Equal tasks and trials have equal worlds, so a group of rollouts shares one.

        Raises:
            EpisodeError: the user did not open.
        """
        number = int(task) % len(self._gym.gym.tasks)
        self._total, self._over, self._failure = 0.0, False, None
        opened = self._gym.reset(number, int(trial))
        return f"{opened.system}\n\n{opened.text}".strip()

    def interact_with_env(self, choice: str, content: str) -> str:
        """Act in the environment: speak to the user, look something up, or give an answer.

        Args:
            choice: What kind of action this is, for example action, search or answer.
            content: The words of the action.

        Returns:
            What comes back.
        """
        if self._over:
            return _OVER
        try:
            heard = self._gym.step(jsonio.dumps({"choice": choice, "content": content}))
        except EpisodeError as error:
            self._over, self._failure = True, error
            return _OVER
        self._total += heard.reward
        self._over = heard.done
        return heard.text or _OVER

    def get_reward(self) -> float:
        """Return the return of the episode so far.

        Raises:
            EpisodeError: user, judge, environment or network failed: this rollout has no reward.
        """
        if self._failure is not None:
            raise self._failure
        return self._total


def environment(gym: str, **settings: Any) -> Callable[[], GymToolEnv]:
    """Return an `environment_factory` for `trl.GRPOTrainer`.

    Rows of the dataset may have a column `task`, the number of the task, and `trial`.

    Args:
        gym: door name.
        settings: see `sessions.open_gym`.

    Raises:
        UsageError: a name or setting is wrong; told here, before anything is trained.
    """
    tasks = open_gym(gym, "trl", settings).tasks
    if not tasks:
        raise CallerError(f"gym {gym!r} made no task")

    def factory() -> GymToolEnv:
        return GymToolEnv(SyncGym(open_gym(gym, "trl", settings)))

    return factory
