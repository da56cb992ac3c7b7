"""NeMo-Gym: a gym with our user as a resources server.

Written for NVIDIA-NeMo/Gym at 07d6b0d, which needs Python 3.13; its contract is tested on a stand-in,
no whole run was. Its own simulated customer can also be ours without this: let `simulator_model` point
at `mimesim serve`.

    # app.py of the server's folder
    from mimesim.integrations.nemo_gym import MimesimResourcesServer

    if __name__ == "__main__":
        MimesimResourcesServer.run_webserver()
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel, Field, PrivateAttr

from mimesim import jsonio
from mimesim.errors import CallerError, EpisodeError
from mimesim.integrations.sessions import TextGym, TextSession, open_gym
from mimesim.integrations.visits import not_on_a_registry

try:
    from fastapi import HTTPException, Request
    from nemo_gym.base_resources_server import (
        BaseResourcesServerConfig,
        BaseSeedSessionRequest,
        BaseSeedSessionResponse,
        BaseVerifyRequest,
        BaseVerifyResponse,
        SimpleResourcesServer,
    )
    from nemo_gym.server_utils import SESSION_ID_KEY
except ModuleNotFoundError as error:
    raise not_on_a_registry(
        "NeMo-Gym", "an installed checkout of NVIDIA-NeMo/Gym (written for 07d6b0d)"
    ) from error


class MimesimConfig(BaseResourcesServerConfig):
    """Which gym, and with whom; `settings` as in `sessions.open_gym`."""

    gym: str = "telepathy"
    settings: dict[str, Any] = Field(default_factory=dict)


class SeedRequest(BaseSeedSessionRequest):
    """Which task of the gym is played."""

    task: int = 0
    trial: int = 0


class SeedResponse(BaseSeedSessionResponse):
    """What the agent is told, and what is said to it first."""

    system: str
    message: str


class ActRequest(BaseModel):
    """One action."""

    choice: str
    content: str


class ActResponse(BaseModel):
    """What came of it."""

    output: str
    should_continue: bool


class VerifyResponse(BaseVerifyResponse):
    """The return of the episode, and how it ended."""

    success: bool | None = None
    stop: str = ""


class _Played:
    """One episode of one session."""

    def __init__(self, session: TextSession) -> None:
        self.session = session
        self.total = 0.0
        self.success: bool | None = None
        self.stop = ""
        self.failure: EpisodeError | None = None


class MimesimResourcesServer(SimpleResourcesServer):
    """The tool `interact_with_env` acts in the gym, `verify` gives its return.

    What user, judge or network failed is answered with 503, from then on and at `verify`, too: such
    a rollout has no reward.
    """

    config: MimesimConfig
    _gym: TextGym | None = PrivateAttr(default=None)
    _played: dict[str, _Played] = PrivateAttr(default_factory=dict)

    def setup_webserver(self) -> Any:
        """Add the tool's route."""
        app = super().setup_webserver()
        app.post("/interact_with_env")(self.interact_with_env)
        return app

    async def seed_session(self, request: Request, body: SeedRequest) -> SeedResponse:
        """Start the episode of a session; the one before it is given up."""
        if self._gym is None:
            self._gym = open_gym(self.config.gym, "nemo-gym", self.config.settings)
        key = request.session[SESSION_ID_KEY]
        before = self._played.pop(key, None)
        if before is not None:
            await before.session.aclose()
        with_number = body.task % len(self._gym.tasks)
        try:
            session = await self._gym.open(with_number, body.trial)
        except EpisodeError as error:
            raise HTTPException(status_code=503, detail=error.detail) from error
        assert session.opened is not None
        self._played[key] = _Played(session)
        return SeedResponse(system=session.opened.system, message=session.opened.text)

    async def interact_with_env(self, request: Request, body: ActRequest) -> ActResponse:
        """Carry out an action."""
        played = self._of(request)
        if played.stop:
            return ActResponse(output="The conversation is over.", should_continue=False)
        async with _told(played):
            text = jsonio.dumps({"choice": body.choice, "content": body.content})
            heard = await played.session.step(text)
        played.total += heard.reward
        if heard.done:
            played.success, played.stop = heard.success, heard.reason
        return ActResponse(output=heard.text, should_continue=not heard.done)

    async def verify(self, request: Request, body: BaseVerifyRequest) -> VerifyResponse:
        """Return the reward of the session's episode."""
        played = self._of(request)
        async with _told(played):
            await played.session.aclose()
        return VerifyResponse(
            **body.model_dump(), reward=played.total, success=played.success, stop=played.stop
        )

    def _of(self, request: Request) -> _Played:
        key = request.session[SESSION_ID_KEY]
        if key not in self._played:
            raise CallerError("the session was not seeded")
        return self._played[key]


@asynccontextmanager
async def _told(played: _Played) -> AsyncIterator[None]:
    """Answer 503 where the episode failed, now or before."""
    try:
        if played.failure is not None:
            raise played.failure
        yield
    except EpisodeError as error:
        played.failure = error
        raise HTTPException(status_code=503, detail=error.detail) from error
