"""Rows, replies and judges for the tests of tasks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.dialogue.episode import Episode
from mimesim.envs.base import AgentAction, AgentSource, Choice, StepResult, Task
from mimesim.envs.tasks.base import PLAIN, PREFIX
from mimesim.envs.tasks.env import TaskEnv, TaskOptions
from mimesim.envs.tasks.load import load_task, make_env
from mimesim.envs.tasks.partner import Partner, RulePartner
from mimesim.judges.base import Judge
from mimesim.judges.rubric import RubricJudge
from mimesim.judges.rule import RuleJudge
from mimesim.models.base import ChatMessage, Sampling
from mimesim.models.scripted import Scripted
from mimesim.rollout.engine import Cast, EngineConfig, Job, run
from mimesim.rollout.limits import Limits

LIMITS = Limits(detect_loops=False, step_retries=0)


def task_from(name: str, extra: Mapping[str, Any]) -> Task:
    """Read the fields of one row as a task."""
    row = load_task(name).read(extra)
    return Task(PREFIX + name, f"{name}-1", "test", ("g",), row.public, row.hidden)


def say(text: str) -> AgentAction:
    """Return the action of a message."""
    return AgentAction(Choice.ACTION, text)


def play(task: Task, *said: str, judge: Judge | None = None, mode: str = "") -> StepResult:
    """Say the messages one after the other and return the last result."""
    env = make_env(
        task, judge=judge or RuleJudge(), partner=RulePartner(), options=TaskOptions(mode)
    )

    async def run_() -> StepResult:
        await env.reset(task, seed=1)
        for text in said:
            result = await env.step(say(text))
        return result

    return asyncio.run(run_())


def reward(name: str, extra: Mapping[str, Any], said: str, **more: Any) -> float:
    """Return the reward of one reply to one row."""
    result = play(task_from(name, extra), said, **more)
    assert result.done
    return result.reward


def episodes(
    tasks: Sequence[Task],
    players: AgentSource,
    *,
    judge: Judge | None = None,
    partner: Partner | None = None,
    limits: Limits = LIMITS,
) -> tuple[Episode, ...]:
    """Run tasks in the one driver."""

    def env(task: Task, user: object) -> TaskEnv:
        return make_env(task, judge=judge or RuleJudge(), partner=partner or RulePartner())

    cast = Cast(players, env, PLAIN)
    jobs = [Job(task) for task in tasks]
    return run(jobs, cast, EngineConfig(limits=limits, retries=0)).episodes


def extreme_judge(*, best: bool) -> RubricJudge:
    """Return a judge model that gives the best or the worst value of every schema."""

    def reply(messages: Sequence[ChatMessage], sampling: Sampling) -> str:
        schema = json.loads(messages[0].content.rpartition("\n")[2])
        value = _extreme(schema, schema.get("$defs", {}), best)
        if "results" in value:
            value["results"] = [
                {"name": name, "classification": "Match" if best else "No Match"}
                for name in _feature_names(messages[1].content)
            ]
        return json.dumps(value)

    return RubricJudge(Scripted(reply))


def _feature_names(prompt: str) -> list[str]:
    lines = [line[2:] for line in prompt.splitlines() if line.startswith('- "')]
    return [json.JSONDecoder().raw_decode(line)[0] for line in lines]


def _extreme(shape: Mapping[str, Any], defs: Mapping[str, Any], best: bool) -> Any:
    if "$ref" in shape:
        return _extreme(defs[shape["$ref"].rpartition("/")[2]], defs, best)
    kind = shape.get("type")
    if kind == "object":
        return {key: _extreme(inner, defs, best) for key, inner in shape["properties"].items()}
    if kind in ("integer", "number"):
        return shape["maximum"] if best else shape["minimum"]
    if "enum" in shape:
        return (
            {"AI": "HUMAN", "REFUSED": "REFUSED", "none": "none"}[shape["enum"][0]]
            if best
            else ("ACCEPTED" if "ACCEPTED" in shape["enum"] else shape["enum"][0])
        )
    if kind == "boolean":  # whether something was announced
        return not best
    return [] if kind == "array" else ""
