"""Warm start of a tiny agent for any gym with a line grammar: demonstrations of the gym's own agents.

Which agents, and how often they slip, is the recipe's: what reinforcement should teach must be left
to be learnt. The tokenizer is made of the words that were said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimesim.config.ranges import POSITIVE, ROWS, SHARE, check_ranges
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.envs.actions import get_format
from mimesim.envs.base import AgentAction, AgentMove, AgentView, GymEnv, GymSpec, Task
from mimesim.envs.load import load_gym, load_tasks, make_gym
from mimesim.errors import ConfigError
from mimesim.judges.load import make_judge
from mimesim.models.base import ChatMessage
from mimesim.models.templates import mask_rows
from mimesim.models.tiny import TinyConfig, build_tokenizer
from mimesim.seeds import derive, generator
from mimesim.train.fresh import FreshConfig, folder_for, train_fresh
from mimesim.train.rows import TrainRow
from mimesim.train.sft import Progress
from mimesim.users.load import make_user

_LINE = get_format("line")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownConfig:
    """Which demonstrations are made.

    Attributes:
        gym, profile: where they are made; `profile` "" = the gym's default.
        user: whom the agents meet. judge: where the gym needs one.
        rows: conversations.
        agents: kinds of the gym's own agents with their shares.
        slips: probability that a move is a random one instead.
        gym_options: settings of the gym.
    """

    gym: str = "function"
    profile: str = ""
    user: str = "scripted:neutral"
    judge: str = "rule"
    rows: int = 8_000
    agents: tuple[tuple[str, float], ...] = (("patient", 0.4), ("eager", 0.6))
    slips: float = 0.0
    gym_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, ROWS, "rows")
        check_ranges(self, SHARE, "slips")
        if not self.agents or any(share <= 0 for _, share in self.agents):
            raise ConfigError("'agents' must name kinds with shares above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class GymStartConfig(FreshConfig):
    """One warm start of a tiny agent; the rest as in `FreshConfig`.

    Attributes:
        shown: what it learns from.
        further: in other gyms, beside it, for a start that knows several.
    """

    out: Path = Path("out/gym-start")
    shown: ShownConfig = field(default_factory=ShownConfig)
    further: tuple[ShownConfig, ...] = ()
    shape: TinyConfig = field(default_factory=TinyConfig)
    steps: int = 600
    batch: int = 64
    lr: float = 3e-3
    muon_lr: float = 5e-3
    save_every: int = 200

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        FreshConfig.__post_init__(self)
        check_ranges(self, POSITIVE, "muon_lr")


@dataclass(frozen=True, slots=True)
class Shown:
    """One demonstration: the conversation as a policy will see it, and what it earned."""

    messages: tuple[ChatMessage, ...]
    reward: float


def gym_start(
    config: GymStartConfig, *, on_progress: Callable[[Progress], None] | None = None
) -> dict[str, Any]:
    """Train the policy on demonstrations, or go on where an interrupted run stopped.

    Returns:
        JSON values: those of `train_fresh`, demonstrations (how many), and demonstrated_reward
        (their mean).

    Raises:
        UsageError: an unknown gym, profile or agent, or the folder holds another training.
        EnvironmentFault: a damaged checkpoint, a full disk, another process at work there.
    """
    with folder_for("gym start", config):
        seed = derive(config.seed, "gym-start")
        talks = asyncio.run(demonstrate(config.shown, seed))
        for number, shown in enumerate(config.further):
            talks += asyncio.run(demonstrate(shown, derive(seed, "further", number)))
        words = {word for talk in talks for m in talk.messages for word in m.content.split()}
        tokenizer = build_tokenizer(words)
        rows = []
        for number, talk in enumerate(talks):
            masked = mask_rows(tokenizer, talk.messages)
            rows.append(TrainRow(f"shown-{number}", masked.input_ids, masked.labels))
        result = train_fresh(
            tokenizer, rows, config, seed=seed, log_every=20, on_progress=on_progress
        )
        return {
            **result,
            "demonstrations": len(talks),
            "demonstrated_reward": sum(talk.reward for talk in talks) / len(talks),
        }


async def demonstrate(shown: ShownConfig, seed: int) -> list[Shown]:
    """Play the demonstrations on training tasks.

    Raises:
        UsageError: an unknown gym, profile, user, judge or agent.
    """
    profile = shown.profile or load_gym(shown.gym).profiles[0]
    made = derive(seed, "tasks")
    tasks = load_tasks(shown.gym, profile=profile, split="train", seed=made, count=shown.rows)
    users, judge = make_user(shown.user), make_judge(shown.judge)
    kinds, shares = zip(*shown.agents, strict=True)
    talks = []
    for task in tasks:
        rng = generator(seed, "shown", task.id)
        user = users.start(task.scenario, seed=rng.getrandbits(62))
        env = make_gym(
            shown.gym, profile=profile, user=user, judge=judge, options=shown.gym_options or None
        )
        kind = rng.choices(kinds, shares)[0]
        talks.append(await _play(env, task, kind, shown.slips, rng.getrandbits(62)))
    await users.aclose()
    await judge.aclose()
    return talks


async def _play(env: GymEnv, task: Task, kind: str, slips: float, seed: int) -> Shown:
    gym, rng = load_gym(task.gym), generator(seed, "play")
    agent = gym.agent(kind, task, rng.getrandbits(62))
    other = gym.agent("random", task, rng.getrandbits(62)) if slips else agent
    observation = await env.reset(task, seed=rng.getrandbits(62))
    talk = [ChatMessage("system", observation.system), ChatMessage("user", observation.first_user)]
    heard: tuple[PublicMessage, ...] = ()
    total = 0.0
    for step in range(env.spec.max_steps):
        view = AgentView(observation, heard, step, env.spec.max_steps - step)
        move = await (other if rng.random() < slips else agent).act(view)
        line = _line(move, env.spec)
        talk.append(ChatMessage("assistant", line))
        result = await env.step(_LINE.parse(AgentMove(line), env.spec))
        total += result.reward
        if result.done:
            break
        heard = (*heard, PublicMessage(Role.AGENT, line), *result.feedback)
        talk.append(ChatMessage("user", _text(result.feedback)))
    await env.aclose()
    return Shown(tuple(talk), total)


def _line(move: AgentMove, spec: GymSpec) -> str:
    """Return a move in the line grammar, words apart by blanks."""
    action: AgentAction = move.action or _LINE.parse(move, spec)
    return " ".join(_LINE.render(action).split())


def _text(messages: Sequence[PublicMessage]) -> str:
    return "\n\n".join(m.content for m in messages if m.content)
