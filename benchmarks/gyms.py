"""Speed of the gyms, with the machine named -> benchmarks/gyms.json.

    python -m benchmarks.gyms [EPISODES]

1,000 scripted episodes of every profile whose tasks can be made here, half by the oracle and half by
the random agent, against a neutral scripted person and the rule judge. Each is played twice: through
the engine, with its records, and in a bare loop of agent and gym; the difference of CPU time per
step is what the engine costs a turn. Seconds depend on the machine and are never asserted.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mimesim
from benchmarks.run import Cost, machine, measured
from mimesim import jsonio
from mimesim.dialogue.types import PublicMessage
from mimesim.envs.actions import as_message, get_format
from mimesim.envs.agents.load import make_agent
from mimesim.envs.base import AgentSource, AgentView, GymEnv, Task
from mimesim.envs.load import REGISTRY, load_gym, load_tasks, make_gym
from mimesim.errors import EnvironmentFault
from mimesim.judges.rule import RuleJudge
from mimesim.rollout.engine import Cast, EngineConfig, Job, run
from mimesim.seeds import derive
from mimesim.users.base import User, UserSource
from mimesim.users.load import make_user

OUT = Path(__file__).with_name("gyms.json")
EPISODES = 1000
AGENTS = ("oracle", "scripted:random")
USER = "scripted:neutral"


def gym_of(name: str, profile: str, person: Any) -> GymEnv:
    """Make the gym of one episode, with a rule judge where one is needed."""
    judge = RuleJudge() if load_gym(name).spec(profile).needs_judge else None
    return make_gym(name, profile=profile, user=person, judge=judge)


async def bare(
    name: str, profile: str, jobs: Sequence[Job], agents: AgentSource, people: UserSource
) -> int:
    """Play the episodes without the engine; return the number of steps."""
    steps = 0
    for job in jobs:
        seed = derive(0, job.task.id, job.trial)
        person: User = people.start(job.task.scenario, seed=seed)
        env = gym_of(name, profile, person)
        agent = agents.start(task=job.task, seed=seed, key="")
        seen = await env.reset(job.task, seed=seed)
        heard: tuple[PublicMessage, ...] = ()
        for step in range(env.spec.max_steps):
            move = await agent.act(AgentView(seen, heard, step, env.spec.max_steps - step))
            assert move.action is not None
            result = await env.step(move.action)
            heard = (*heard, as_message(move.action), *result.feedback)
            steps += 1
            if result.done:
                break
    return steps


def compared(
    name: str, profile: str, tasks: Sequence[Task], agent: str, count: int
) -> dict[str, Any]:
    """Play `count` episodes both ways and return the figures."""
    jobs = [Job(tasks[i % len(tasks)], i // len(tasks)) for i in range(count)]
    agents, people = make_agent(agent), make_user(USER)
    crew = Cast(
        agents,
        lambda task, person: gym_of(name, profile, person),
        get_format("tool-call"),
        people,
    )
    steps: list[int] = []
    played: list[int] = []

    def with_engine() -> None:
        found = run(jobs, crew, EngineConfig(seed=7, run_id="bench"))
        played.append(sum(len(episode.steps) for episode in found.episodes))

    engine = measured(with_engine)
    plain = measured(lambda: steps.append(asyncio.run(bare(name, profile, jobs, agents, people))))
    overhead = _per_step(engine, played[0]) - _per_step(plain, steps[0])
    return {
        "gym": name,
        "profile": profile,
        "agent": agent,
        "episodes": count,
        "steps": played[0],
        "wall_s": round(engine.wall, 2),
        "cpu_s": round(engine.cpu, 3),
        "bare_cpu_s": round(plain.cpu, 3),
        "engine_ms_per_step": round(1000 * overhead, 3),
    }


def _per_step(cost: Cost, steps: int) -> float:
    return cost.cpu / max(1, steps)


def main(episodes: int = EPISODES) -> None:
    """Measure every gym and write the figures."""
    figures = []
    for name in REGISTRY.names():
        for profile in load_gym(name).profiles:
            try:
                tasks = load_tasks(name, profile=profile, seed=7, count=min(64, episodes))
            except EnvironmentFault:  # a user's copy of foreign data
                continue
            for agent in AGENTS:
                figures.append(compared(name, profile, tasks, agent, episodes // len(AGENTS)))
                print(figures[-1], flush=True)
    result = {
        "schema": "mimesim.benchmark/1",
        "machine": machine(),
        "versions": {"mimesim": mimesim.__version__},
        "episodes": episodes,
        "user": USER,
        "judge": "rule",
        "figures": figures,
    }
    jsonio.write_json(OUT, result)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
