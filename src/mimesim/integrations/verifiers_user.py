"""verifiers v1, the user's side: our user talks to the agent of any taskset.

Tested with verifiers 0.4.0. It stands where verifiers' own `user-sim` stands, and reads a task the same
way: the prompt is the user's knowledge, and the agent plays the task without it, so rewards must
not read the prompt. The end is a field here, no marker; a user that failed fails the episode, which
then has no reward.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from mimesim.errors import MissingExtraError
from mimesim.integrations.visits import Person, Visits, person_of
from mimesim.seeds import derive

try:
    import verifiers.v1 as vf
except ModuleNotFoundError as error:
    raise MissingExtraError.for_extra("verifiers", "verifiers") from error

__all__ = ["UserEnvironment", "UserEnvironmentConfig"]


class UserEnvironmentConfig(vf.EnvConfig):
    """The agent's seat, and who the user is."""

    assistant: vf.AgentConfig = vf.AgentConfig(
        harness={"id": "null"}, runtime=vf.SubprocessConfig()
    )
    user: str = "scripted:neutral"
    """Door name, e.g. `trained:out/user`; it is no seat, so no model of verifiers plays it."""
    user_options: dict[str, Any] = Field(default_factory=dict)
    user_seed: int = 0
    max_turns: int = Field(8, ge=1)
    """Messages of the user; a scenario may name fewer."""


class UserEnvironment(vf.Env[UserEnvironmentConfig]):
    """Our user opens and both take turns, until it leaves or its messages are used up.

    A task may have a field `scenario` with JSON values of a scenario; else its prompt is the goal.
    """

    _visits: Visits | None = None

    async def stop(self) -> None:
        """Close the user."""
        visits, self._visits = self._visits, None
        if visits is not None:
            visits.close()

    async def run(self, task: Any, agents: Any) -> None:
        """Play one conversation; words said with a leave are answered before the end."""
        config = self.config
        if self._visits is None:
            options = config.user_options or None
            self._visits = Visits(config.user, options=options, seed=config.user_seed)
        visit = self._visits.visit(
            _person(task), seed=None if task.key is None else self._seed(task)
        )
        silent = type(task)(task.data.model_copy(update={"prompt": None}), task.config)
        async with agents.assistant.interaction(silent) as assistant:
            said = await visit.aturn(None)
            while not said.over:
                answer = await assistant.turn(said.text)
                if answer.terminated or visit.session.turns >= config.max_turns:
                    break
                said = await visit.aturn(answer.last_reply)
        trace = assistant.trace
        trace.record_metric("user_turns", float(visit.session.turns))
        trace.info["user_end"] = visit.stop or "max_turns"

    def _seed(self, task: Any) -> int:
        return derive(self.config.user_seed, "verifiers", str(task.key))


def _person(task: Any) -> Person:
    known = (task.data.model_extra or {}).get("scenario") or vars(task.data).get("scenario")
    if known:
        return dict(known)
    return person_of(task.data.prompt_text, name=str(task.data.idx))
