"""From a door name such as `scripted:eager` or `model:openai:gpt@http://host/v1` to an agent source.

A family's factory takes the words after the first colon, the action format and the options.
Policies under training live above this room: `policy:<path>` resolves to `rollout.policy` by its
registry string when it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mimesim.dialogue.types import Identity
from mimesim.envs.actions import ActionFormat, get_format
from mimesim.envs.base import Agent, AgentMove, AgentSource, AgentView, Task
from mimesim.envs.load import load_gym
from mimesim.errors import ConfigError, EnvError, EpisodeError, UnknownNameError, UsageError
from mimesim.registry import Registry, unknown_name

REGISTRY = Registry(
    "agent",
    {
        "oracle": "mimesim.envs.agents.load:make_oracle",
        "null": "mimesim.envs.agents.load:make_null",
        "scripted": "mimesim.envs.agents.load:make_scripted",
        "model": "mimesim.envs.agents.chat:make_model",
        "policy": "mimesim.rollout.policy:make_policy",
        "http": "mimesim.envs.agents.chat:make_http",
        "python": "mimesim.envs.agents.callables:make_python",
    },
)
"""Families of agents."""

SCRIPTED = ("eager", "patient", "random")
"""Names of scripted agents; which of them a gym has, the gym says."""

_NEEDS = ("identity", "start", "aclose")
_DOORS = {
    "oracle": "oracle",
    "null": "null",
    **{kind: f"scripted:{kind}" for kind in SCRIPTED},
}
"""What a gym calls its own agent -> the name at the door."""
_SHAPES = {
    "scripted": "scripted:<name>, e.g. scripted:eager",
    "model": "model:<model>, e.g. model:openai:qwen3@http://127.0.0.1:8000/v1",
    "policy": "policy:<path>, e.g. policy:out/agent",
    "http": "http:<url>, e.g. http://127.0.0.1:8000/v1",
    "python": "python:<module:callable>, e.g. python:mybot:reply",
}


def make_agent(
    name: str, *, action_format: str = "tool-call", options: Mapping[str, Any] | None = None
) -> AgentSource:
    """Make the kind of agent that `name` says.

    Args:
        name: `oracle`, `null`, `scripted:<name>`, `model:<model>`, `policy:<path>`, `http:<url>`,
            `python:<module:callable>` or the name of an extension.
        action_format: how a text agent writes its actions: `tool-call` or `line`.
        options: settings of that family (`envs.agents.chat.Settings` for models).

    Raises:
        UnknownNameError: no such family, agent, model or action format.
        ConfigError: an unknown or unusable option.
    """
    written = get_format(action_format)
    if name.startswith(("http://", "https://")):
        family, rest = "http", name
    else:
        family, _, rest = name.partition(":")
    if "." in family:  # an outside object, package.module:attribute
        return cast(AgentSource, REGISTRY.make(name, "", written, options, needs=_NEEDS))
    if family not in REGISTRY.names():
        others = [_SHAPES.get(n, n) for n in REGISTRY.names() if n not in _DOORS.values()]
        others.remove(_SHAPES["scripted"])
        raise unknown_name("agent", name, [*_DOORS.values(), *others])
    if not rest and family in _SHAPES:
        raise UsageError(f"agent {name!r} is incomplete", expected=_SHAPES[family])
    return cast(AgentSource, REGISTRY.make(family, rest, written, options, needs=_NEEDS))


def agents_of(task: Task) -> list[str]:
    """Return the agents that the gym of a task has itself, by their names at the door."""
    gym, found = load_gym(task.gym), []
    for kind, door in _DOORS.items():
        try:
            gym.agent(kind, task, 0)
        except UnknownNameError:
            continue
        found.append(door)
    return found


@dataclass(frozen=True)
class GymAgents:
    """One of the agents that a gym ships; which gym, the task says."""

    kind: str
    identity: Identity

    def start(self, *, task: Task, seed: int, key: str) -> Agent:
        """Make the agent of one episode."""
        return _Owned(self._of(task, seed))

    def check(self, task: Task) -> None:
        """Refuse a gym without this agent, before anything runs.

        Raises:
            UnknownNameError: the gym has none of this kind.
        """
        try:
            self._of(task, 0)
        except UnknownNameError as error:
            raise UnknownNameError(
                f"gym {task.gym!r} has no agent {self.identity.name!r}",
                expected="one of " + ", ".join(agents_of(task)),
                mend="name another with --agent, e.g. scripted:random or model:<model>",
            ) from error

    def _of(self, task: Task, seed: int) -> Agent:
        return load_gym(task.gym).agent(self.kind, task, seed)

    async def aclose(self) -> None:
        """Release nothing."""


class _Owned:
    """A gym's own agent: what goes wrong inside it is the gym's failure and scores nothing."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def act(self, view: AgentView) -> AgentMove:
        """Let the agent choose.

        Raises:
            EnvError: it broke, e.g. on a damaged task.
        """
        try:
            return await self._agent.act(view)
        except (EpisodeError, UsageError):
            raise
        except Exception as error:
            detail = f"the gym's own agent broke: {type(error).__name__}: {error}"
            raise EnvError(detail, reason="internal_error") from error

    async def aclose(self) -> None:
        """Release what the agent holds."""
        await self._agent.aclose()


def make_oracle(
    rest: str, action_format: ActionFormat, options: Mapping[str, Any] | None
) -> AgentSource:
    """Make the agent that reads the hidden side: the upper end of every scale."""
    return _gym_agents("oracle", rest, options)


def make_null(
    rest: str, action_format: ActionFormat, options: Mapping[str, Any] | None
) -> AgentSource:
    """Make the agent that gives up at once: the lower end of every scale."""
    return _gym_agents("null", rest, options)


def make_scripted(
    rest: str, action_format: ActionFormat, options: Mapping[str, Any] | None
) -> AgentSource:
    """Make a scripted agent that reads public text only.

    Raises:
        UnknownNameError: neither `eager` nor `patient` nor `random`.
    """
    if rest not in SCRIPTED:
        known = [_DOORS[kind] for kind in SCRIPTED]
        raise unknown_name("agent", f"scripted:{rest}", known)
    _no_options(f"scripted:{rest}", options)
    return GymAgents(rest, Identity("scripted", f"scripted:{rest}"))


def _gym_agents(kind: str, rest: str, options: Mapping[str, Any] | None) -> GymAgents:
    if rest:
        raise UsageError(f"agent {kind}:{rest!r} takes nothing after its name", expected=kind)
    _no_options(kind, options)
    return GymAgents(kind, Identity("scripted", kind))


def _no_options(name: str, options: Mapping[str, Any] | None) -> None:
    if options:
        raise ConfigError(
            f"agent {name!r} has no option {next(iter(options))!r}", expected="no options"
        )
