"""OpenEnv: a gym as an environment server, one session per connection.

Tested with openenv 0.4.1 and 0.10.0. `make_app` returns the server's application; the client is
OpenEnv's own, e.g. `openenv.GenericEnvClient`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from mimesim.errors import MissingExtraError
from mimesim.integrations.sessions import SyncGym, open_gym
from mimesim.seeds import derive

try:
    from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
except ModuleNotFoundError as error:
    raise MissingExtraError.for_extra("OpenEnv", "openenv") from error

_SESSIONS = 64


class TextAction(Action):
    """What the agent writes."""

    text: str


class TextObservation(Observation):
    """What the agent reads; `metadata` names the task, and at the end success and reason."""

    text: str
    system: str = ""


class TextEnvironment(Environment[TextAction, TextObservation, State]):
    """A gym of ours behind OpenEnv's server.

    `reset` takes a seed, or `task`, the number of a task. An episode whose user, judge or network
    failed is raised as `EpisodeError`, which the server tells as an error, never as a reward.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, gym: str, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self._gym = SyncGym(open_gym(gym, "openenv", settings))
        self._played = 0
        self._state = State()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task: int | None = None,
        **kwargs: Any,
    ) -> TextObservation:
        """Start an episode; equal seeds give equal ones, without a seed the tasks go round."""
        tasks = len(self._gym.gym.tasks)
        drawn = self._played if seed is None else derive(seed, "openenv")
        self._played += 1
        number = drawn % tasks if task is None else task
        opened = self._gym.reset(number, drawn // tasks)
        self._state = State(episode_id=episode_id or opened.task_id, step_count=0)
        return TextObservation(
            text=opened.text, system=opened.system, metadata={"task": opened.task_id}
        )

    def step(
        self, action: TextAction, timeout_s: float | None = None, **kwargs: Any
    ) -> TextObservation:
        """Carry out what the agent wrote."""
        heard = self._gym.step(action.text)
        self._state = State(
            episode_id=self._state.episode_id, step_count=self._state.step_count + 1
        )
        told: dict[str, Any] = {"valid": heard.valid}
        if heard.done:
            told |= {
                "success": heard.success,
                "reason": heard.reason,
                "truncated": heard.truncated,
            }
        return TextObservation(text=heard.text, done=heard.done, reward=heard.reward, metadata=told)

    @property
    def state(self) -> State:
        """How far the episode is; nothing hidden."""
        return self._state

    def close(self) -> None:
        """Close user and judge."""
        self._gym.close()


def make_app(gym: str, *, sessions: int = _SESSIONS, **settings: Any) -> Any:
    """Return the server of a gym, an application for uvicorn.

    Args:
        gym: door name.
        sessions: how many may be open at once.
        settings: see `sessions.open_gym`.
    """
    return create_fastapi_app(
        partial(TextEnvironment, gym, settings),
        TextAction,
        TextObservation,
        max_concurrent_envs=sessions,
    )
