"""Where a gym's scale begins and ends: mean return of its null, random and oracle agents.

They speak typed actions to a scripted user, and a rule judge decides where one is needed, so
nothing is parsed, limited or recorded here; conversations that count as results go through
`rollout`. The bounds for our own packs: null at most 0.02, oracle at least 0.95 of what can be
attained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.types import PublicMessage
from mimesim.envs.actions import as_message
from mimesim.envs.base import Agent, AgentView, GymEnv, Task, profile_of
from mimesim.envs.load import load_gym, make_gym
from mimesim.errors import AgentError, UnknownNameError
from mimesim.judges.rule import RuleJudge
from mimesim.seeds import derive
from mimesim.users.base import UserSource

NULL_AT_MOST = 0.02
ORACLE_AT_LEAST = 0.95
STORED = Path(__file__).with_name("floors.json")
"""Floors of our own packs, made by `python -m benchmarks.floors`: `TASKS` test tasks, seed 0."""
USER, TASKS = "scripted:neutral", 20


@dataclass(frozen=True, slots=True)
class Floors:
    """Ends of the scale over `tasks` tasks.

    Attributes:
        random: None = the gym has no random agent.
        attainable: mean upper bound of the return.
    """

    null: float
    random: float | None
    oracle: float
    attainable: float
    tasks: int

    @property
    def sound(self) -> bool:
        """Whether the pack keeps the bounds."""
        return self.null <= NULL_AT_MOST and self.oracle >= ORACLE_AT_LEAST * self.attainable

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "null": self.null,
            "random": self.random,
            "oracle": self.oracle,
            "attainable": self.attainable,
            "tasks": self.tasks,
        }


def stored(gym: str, profile: str) -> Mapping[str, Any] | None:
    """Return the floors that our own packs come with; None for gyms and profiles of others."""
    found: Mapping[str, Any] | None = jsonio.read_object(STORED)["gyms"].get(f"{gym}/{profile}")
    return found


async def floors(tasks: Sequence[Task], users: UserSource, *, seed: int = 0) -> Floors:
    """Play every task with the null, the random and the oracle agent of its gym.

    Raises:
        EpisodeError: a scripted party failed, which is a bug.
    """
    returns: dict[str, list[float]] = {"null": [], "random": [], "oracle": []}
    for task in tasks:
        for kind, values in returns.items():
            try:
                agent = load_gym(task.gym).agent(kind, task, derive(seed, task.id, kind, "agent"))
            except UnknownNameError:
                if kind != "random":  # the other two every gym has
                    raise
                continue
            values.append(await _return(task, agent, users, derive(seed, task.id, kind)))
    bounds = [load_gym(task.gym).attainable(task) for task in tasks]
    count = max(1, len(tasks))
    return Floors(
        null=sum(returns["null"]) / count,
        random=sum(returns["random"]) / count if returns["random"] else None,
        oracle=sum(returns["oracle"]) / count,
        attainable=sum(bounds) / count,
        tasks=len(tasks),
    )


async def _return(task: Task, agent: Agent, users: UserSource, episode: int) -> float:
    profile = profile_of(task)
    spec = load_gym(task.gym).spec(profile)
    user = users.start(task.scenario, seed=derive(episode, "user"))
    judge = RuleJudge() if spec.needs_judge else None
    env = make_gym(task.gym, profile=profile, user=user, judge=judge)
    return await _play(env, agent, task, episode)


async def _play(env: GymEnv, agent: Agent, task: Task, seed: int) -> float:
    observation = await env.reset(task, seed=seed)
    heard: tuple[PublicMessage, ...] = ()
    total = 0.0
    for step in range(env.spec.max_steps):
        move = await agent.act(AgentView(observation, heard, step, env.spec.max_steps - step))
        if move.action is None:
            raise AgentError("the gym's own agents speak typed actions")
        result = await env.step(move.action)
        heard = (*heard, as_message(move.action), *result.feedback)
        total += result.reward
        if result.done:
            break
    await env.aclose()
    return total
