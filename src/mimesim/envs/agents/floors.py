"""Where a gym's scale begins and ends: mean return of its null and its oracle agent.

Both speak typed actions to a scripted user, so nothing is parsed, limited or recorded here;
conversations that count as results go through `rollout`. The bounds for our own
packs: null at most 0.02, oracle at least 0.95 of what can be attained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mimesim.envs.base import Agent, AgentView, GymEnv, Task, profile_of
from mimesim.envs.load import load_gym, make_gym
from mimesim.errors import AgentError
from mimesim.seeds import derive
from mimesim.users.base import UserSource

NULL_AT_MOST = 0.02
ORACLE_AT_LEAST = 0.95


@dataclass(frozen=True, slots=True)
class Floors:
    """Ends of the scale over `tasks` tasks. `attainable` is the mean upper bound of the return."""

    null: float
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
            "oracle": self.oracle,
            "attainable": self.attainable,
            "tasks": self.tasks,
        }


async def floors(tasks: Sequence[Task], users: UserSource, *, seed: int = 0) -> Floors:
    """Play every task with the null and the oracle agent of its gym.

    Raises:
        EpisodeError: a scripted party failed, which is a bug.
    """
    returns: dict[str, list[float]] = {"null": [], "oracle": []}
    for task in tasks:
        gym = load_gym(task.gym)
        for kind, values in returns.items():
            episode = derive(seed, task.id, kind)
            user = users.start(task.scenario, seed=derive(episode, "user"))
            env = make_gym(task.gym, profile=profile_of(task), user=user)
            agent = gym.agent(kind, task, derive(episode, "agent"))
            values.append(await _play(env, agent, task, episode))
    bounds = [load_gym(task.gym).attainable(task) for task in tasks]
    count = max(1, len(tasks))
    return Floors(
        null=sum(returns["null"]) / count,
        oracle=sum(returns["oracle"]) / count,
        attainable=sum(bounds) / count,
        tasks=len(tasks),
    )


async def _play(env: GymEnv, agent: Agent, task: Task, seed: int) -> float:
    observation = await env.reset(task, seed=seed)
    heard: tuple[Any, ...] = ()
    total = 0.0
    for step in range(env.spec.max_steps):
        move = await agent.act(AgentView(observation, heard, step, env.spec.max_steps - step))
        if move.action is None:
            raise AgentError("the gym's own agents speak typed actions")
        result = await env.step(move.action)
        heard = (*heard, *result.feedback)
        total += result.reward
        if result.done:
            break
    await env.aclose()
    return total
