"""UserRL: our user behind its gyms, each episode at an address of its own.

Written for SalesforceAIResearch/UserRL at cf55a30. A gym there asks a chat model for every reply and
turns any failure into a canned sentence with reward 0. Here the model is `mimesim serve`, reached as
`/ep/<episode>/v1`, so that the private thoughts of an episode can be read there; and a failure
is raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from mimesim.errors import InfraError, UsageError

_FIELDS = ("base_url", "model_name", "api_key", "timeout")
_SECONDS = 120


def address(server: str, episode: str) -> str:
    """Return the base URL of one episode.

    Args:
        server: base URL of `mimesim serve`, with or without /v1.
        episode: its name; letters, digits, dot, dash and underscore.
    """
    return f"{server.rstrip('/').removesuffix('/v1')}/ep/{quote(episode, safe='')}/v1"


class ServedGym:
    """A gym of UserRL whose replies come from our server; `reset`, `step` and `step_async` as there.

    It tells whether the reply was had (`judge_success`: telepathy, turtle, persuade); a gym that
    does not is refused at its first step, since its failures could not be told from replies.

    Args:
        env: the gym.
        server: base URL of `mimesim serve`.
        name: episodes are called `<name>-0`, `<name>-1`, ...
        model: name of the served user.
        token: of the server.

    Raises:
        UsageError: the gym's configuration names no endpoint.
    """

    def __init__(
        self, env: Any, server: str, *, name: str, model: str = "user", token: str = "none"
    ) -> None:
        missing = [field for field in _FIELDS if field not in vars(env.config)]
        if missing:
            raise UsageError(
                f"the gym's config has no {missing[0]!r}", expected="a gym that asks an endpoint"
            )
        self.env = env
        self.episode = ""
        self._server = server
        self._name = name
        self._count = 0
        env.config.model_name, env.config.api_key = model, token
        env.config.timeout = max(env.config.timeout, _SECONDS)

    def reset(self, **settings: Any) -> Any:
        """Begin the next episode at its own address."""
        self.episode = f"{self._name}-{self._count}"
        self._count += 1
        self.env.config.base_url = address(self._server, self.episode)
        return self.env.reset(**settings)

    def step(self, action: str) -> Any:
        """Act.

        Raises:
            InfraError: the reply could not be had; the canned sentence is not passed on.
        """
        return self._checked(self.env.step(action))

    async def step_async(self, action: str) -> Any:
        """Act; see `step`."""
        return self._checked(await self.env.step_async(action))

    def _checked(self, result: Any) -> Any:
        info: Mapping[str, Any] = result[-1]
        if "judge_success" not in info:
            raise UsageError("the gym does not tell whether its user answered")
        if not info["judge_success"]:
            raise InfraError(f"the user of episode {self.episode} gave no reply the gym can read")
        return result
