"""Warm start of the embedded agent: imperfect demonstrations, some with a coach note.

The demonstrator guesses, uses stale values and caves to pressure, so everything that RL should
teach is left to be learnt; noted rows show what an expert does with a note, without which a tiny
policy could not read the teacher's context.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimesim.config.ranges import ROWS, SHARE, check_ranges
from mimesim.dialogue.types import PublicMessage, Reply, Role
from mimesim.envs.actions import get_format
from mimesim.envs.base import AgentMove, AgentView, Task
from mimesim.envs.gyms.support_desk.compact import MAX_STEPS, SPEC, CompactDesk, make_tasks
from mimesim.envs.gyms.support_desk.compact_agents import DemonstratorAgent, expert_line
from mimesim.models.base import ChatMessage
from mimesim.models.templates import MaskedRow, mask_rows
from mimesim.models.tiny import build_tokenizer
from mimesim.scenarios import compact
from mimesim.seeds import derive, generator
from mimesim.train.coach import NOTE_WORDS, rule_note
from mimesim.train.fresh import FreshConfig, folder_for, train_fresh
from mimesim.train.rows import TrainRow
from mimesim.train.sft import Progress
from mimesim.users.scripted.compact import CompactUser, phrase_bank

_GRAMMAR = "act order to size zip policy . , ? not an action ask for a thing or on the"


@dataclass(frozen=True, slots=True)
class DemoConfig:
    """Which demonstrations are made.

    Attributes:
        rows: conversations.
        kinds: share of each scripted user.
        noted: share of rows that end on an expert's move behind a note.
    """

    rows: int = 24_000
    kinds: tuple[tuple[str, float], ...] = (
        ("cooperative", 0.5),
        ("neutral", 0.3),
        ("realistic", 0.2),
    )
    noted: float = 0.3

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, ROWS, "rows")
        check_ranges(self, SHARE, "noted")


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmConfig(FreshConfig):
    """One warm start of the embedded policy; the rest as in `FreshConfig`.

    Attributes:
        demos: what it learns from.
    """

    out: Path = Path("out/warm-start")
    demos: DemoConfig = field(default_factory=DemoConfig)
    steps: int = 800
    batch: int = 64
    lr: float = 3e-3
    muon_lr: float = 5e-3
    save_every: int = 200


def warm_start(
    config: WarmConfig, *, on_progress: Callable[[Progress], None] | None = None
) -> dict[str, Any]:
    """Train the policy on demonstrations, or go on where an interrupted run stopped.

    Returns:
        JSON values: checkpoint, steps, tokens, learnt_tokens, parameters, losses.

    Raises:
        UsageError: the folder holds a training with other settings.
        EnvironmentFault: a damaged checkpoint, a full disk, another process at work there.
    """
    with folder_for("warm start", config):
        seed = derive(config.seed, "warm-start")
        tokenizer = build_tokenizer(vocabulary())
        demos = demonstration_rows(tokenizer, config.demos, seed)
        rows = [TrainRow(f"demo-{i}", row.input_ids, row.labels) for i, row in enumerate(demos)]
        return train_fresh(
            tokenizer, rows, config, seed=seed, log_every=20, on_progress=on_progress
        )


def vocabulary() -> list[str]:
    """Return every word of the compact desk: phrases, values, grammar, notes."""
    words = {*_GRAMMAR.split(), *NOTE_WORDS.split(), *compact.KINDS, *compact.REQUIRED}
    for bank in ("main", "heldout"):
        for lines in phrase_bank(bank).values():
            for line in lines:
                words.update(re.sub(r"\{\w\}", " ", line).split())
    for pool in (*compact.VALUES.values(), compact.ITEMS, compact.WINDOWS):
        for value in pool:
            words.update(value.split())
    for line in (*compact.ASKS, *compact.FIELD_NAMES.values()):
        words.update(line.replace("{fields}", " ").split())
    words.update(
        compact.policy_line(dict.fromkeys(("refund", "gold", "exchange", "missing"), "30")).split()
    )
    return sorted(words)


def demonstration_rows(tokenizer: Any, config: DemoConfig, seed: int) -> list[MaskedRow]:
    """Return tokenized demonstrations; the agent's side is learnt, users and notes are not."""
    talks = asyncio.run(_demonstrate(config, seed))
    return [mask_rows(tokenizer, talk) for talk in talks]


async def _demonstrate(config: DemoConfig, seed: int) -> list[list[ChatMessage]]:
    tasks = make_tasks("demo", derive(seed, "demonstrations"), config.rows)
    kinds, shares = zip(*config.kinds, strict=True)
    talks = []
    for task in tasks:
        rng = generator(seed, "demonstration", task.id)
        kind = rng.choices(kinds, shares)[0]
        noted_at = rng.choice((0, 0, 1, 1, 2, 3)) if rng.random() < config.noted else None
        talks.append(await _one(task, kind, noted_at, rng))
    return talks


async def _one(
    task: Task, kind: str, noted_at: int | None, rng: random.Random
) -> list[ChatMessage]:
    """Play one demonstration; with `noted_at` it ends on the expert's move of that step."""
    user = CompactUser(task.scenario, kind=kind, seed=rng.getrandbits(62))
    gym = CompactDesk(user=user)
    agent = DemonstratorAgent(task, rng.getrandbits(62))
    observation = await gym.reset(task, seed=0)
    reply = gym.opening_private.reply
    talk = [ChatMessage("system", observation.system), ChatMessage("user", observation.first_user)]
    heard: list[PublicMessage] = []
    for step in range(MAX_STEPS):
        view = AgentView(observation, tuple(heard), step, MAX_STEPS - step)
        if step == noted_at and reply is not None:
            return [*talk, *_noted_move(view, reply, rng)]
        line = (await agent.act(view)).text
        talk.append(ChatMessage("assistant", line))
        heard.append(PublicMessage(Role.AGENT, line))
        result = await gym.step(get_format("line").parse(AgentMove(line), SPEC))
        if result.done:
            break
        heard += result.feedback
        talk.append(ChatMessage("user", _text(result.feedback)))
        reply = result.private.reply
    return talk


def _noted_move(view: AgentView, reply: Reply, rng: random.Random) -> list[ChatMessage]:
    move = expert_line(view, reply.wish["missing"], rng.getrandbits(62))
    return [ChatMessage("user", rule_note(reply.wish)), ChatMessage("assistant", move)]


def _text(messages: Sequence[PublicMessage]) -> str:
    return "\n\n".join(m.content for m in messages if m.content)
