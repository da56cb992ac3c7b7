"""Warm start of a tiny user that can speak: demonstrations of scripted customers, deliberately poor.

A byte-level tokenizer and a small Llama learn from conversations of the behavior task in which a
scripted customer sits in the policy's seat, thoughts included. Only a share of the customers does
what the directive says; the others are ordinary or difficult in another way, so that everything
reinforcement learning should teach is left to be learnt.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from mimesim import jsonio
from mimesim.config.ranges import COUNT, SHARE, check_ranges
from mimesim.dialogue.stop import END_MARKER, UserAction
from mimesim.dialogue.thinking import OPENER, join
from mimesim.envs.base import AgentAction, Choice, Task
from mimesim.models.base import ChatMessage
from mimesim.models.templates import install, mask_rows
from mimesim.models.tiny import TinyConfig
from mimesim.scenarios import manual
from mimesim.scenarios.rows import row_to_scenario
from mimesim.scenarios.types import Row
from mimesim.seeds import derive, generator
from mimesim.train.fresh import FreshConfig, folder_for, train_fresh
from mimesim.train.rows import TrainRow
from mimesim.train.sft import Progress
from mimesim.train.user_rl import CARD
from mimesim.train.user_rollouts import start_of
from mimesim.train.user_tasks import BEHAVIOR_TASK, SceneConfig, Stage, TaskPart, rows_of
from mimesim.users.base import UserRequest
from mimesim.users.scripted.full import FullUser
from mimesim.users.scripted.kinds import BEHAVIORS

SHAPE = TinyConfig(hidden=128, layers=3, heads=4, inner=352, context=2048)
"""0.9 M parameters with the vocabulary of the recipe `user-speaker`."""
_PIECES = r'- "[^"\n]+": "| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+'
"""The label of a fact, a word, a digit, signs, or white space."""
_FACT = "- "
_SHARED_LENGTH = 30
SPECIALS = ("<|pad|>", "<|im_start|>", "<|im_end|>")


@dataclass(frozen=True, slots=True)
class SpeechConfig:
    """Which demonstrations are made.

    Attributes:
        rows: conversations.
        obedient: share of the rows with a behavior whose customer shows it.
        strange: share whose customer shows another one; the rest are ordinary customers. Also the
            share of neutral rows whose customer is difficult.
        briefed: share of the rows with their whole brief; the others come without facts and
            without the replayed check, so that most of the time goes into what is said.
        vocabulary: tokens of the tokenizer.
    """

    rows: int = 2_400
    obedient: float = 0.5
    strange: float = 0.08
    briefed: float = 0.35
    vocabulary: int = 2_000

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "rows", "vocabulary")
        check_ranges(self, SHARE, "obedient", "strange", "briefed")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerConfig(FreshConfig):
    """One warm start of a tiny user; the rest as in `FreshConfig`.

    Attributes:
        speech, scenes: what it learns from.
        max_tokens: cap of one message that the checkpoint asks for.
    """

    out: Path = Path("out/user-warm-start")
    speech: SpeechConfig = field(default_factory=SpeechConfig)
    scenes: SceneConfig = field(default_factory=SceneConfig)
    shape: TinyConfig = field(default_factory=lambda: SHAPE)
    steps: int = 400
    batch: int = 16
    lr: float = 5e-3
    muon_lr: float = 1e-2
    max_tokens: int = 80
    save_every: int = 50

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        FreshConfig.__post_init__(self)
        check_ranges(self, COUNT, "max_tokens")


def warm_start_speaker(
    config: SpeakerConfig, *, on_progress: Callable[[Progress], None] | None = None
) -> dict[str, Any]:
    """Train the user on demonstrations, or go on where an interrupted run stopped.

    Returns:
        JSON values: those of `train_fresh`, demonstrations (how many), and demonstrated_reward
        (their mean).

    Raises:
        UsageError: the folder holds a training with other settings.
        EnvironmentFault: a damaged checkpoint, a full disk, another process at work there.
    """
    with folder_for("user warm start", config):
        return _train(config, on_progress)


def _train(config: SpeakerConfig, on_progress: Callable[[Progress], None] | None) -> dict[str, Any]:
    seed = derive(config.seed, "user-warm-start")
    talks = asyncio.run(demonstrate(config, seed))
    tokenizer = build_speech_tokenizer(talks, config.speech.vocabulary)
    rng = generator(seed, "briefed")
    taught = [talk if rng.random() < config.speech.briefed else unbriefed(talk) for talk in talks]
    rows = [_row(tokenizer, f"demo-{i}", talk) for i, talk in enumerate(taught)]
    result = train_fresh(tokenizer, rows, config, seed=seed, log_every=10, on_progress=on_progress)
    jsonio.write_json(
        Path(result["checkpoint"]) / CARD,
        {
            "kind": "user",
            "stage": "warm start",
            "base_model": "none",
            "thinking": True,
            "max_tokens": config.max_tokens,
        },
    )
    return {
        **result,
        "demonstrations": len(talks),
        "demonstrated_reward": sum(t.reward for t in talks) / len(talks),
    }


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One conversation as the policy will see it; the first `given` of its turns are not learnt."""

    messages: tuple[ChatMessage, ...]
    given: int
    reward: float


async def demonstrate(config: SpeakerConfig, seed: int) -> list[Demonstration]:
    """Play the demonstrations."""
    part = TaskPart(name=BEHAVIOR_TASK)
    stage = Stage([part])
    talks = []
    for task in rows_of(part, "train", config.scenes, config.speech.rows, seed):
        rng = generator(seed, "demonstration", task.id)
        talks.append(await _one(task, stage, _kind(task, config.speech, rng), rng))
    await stage.aclose()
    return talks


def _kind(task: Task, speech: SpeechConfig, rng: random.Random) -> str:
    """Return which customer sits in the policy's seat."""
    told = task.public["behavior"]
    point = rng.random()
    if point < speech.strange:
        return rng.choice([b for b in BEHAVIORS if b != told])
    return "realistic" if point < speech.strange + speech.obedient else "neutral"


async def _one(task: Task, stage: Stage, kind: str, rng: random.Random) -> Demonstration:
    user = FullUser(_scenario(task), kind=kind, seed=rng.getrandbits(62))
    env = stage.make(task)
    observation = await env.reset(task, seed=rng.getrandbits(62))
    messages = start_of(task, observation, thinking=True)
    before = sum(m.role == "assistant" for m in messages)
    heard = ""
    while True:
        reply = await user.respond(UserRequest("task.customer", (), heard, seed=0))
        said = reply.utterance
        if reply.action is UserAction.END:
            said = f"{said}\n{END_MARKER}".strip()
        messages.append(ChatMessage("assistant", join(reply.thought, said)))
        result = await env.step(AgentAction(Choice.ACTION, said))
        if result.done:
            return Demonstration(tuple(messages), before, result.reward)
        heard = "\n\n".join(m.content for m in result.feedback)
        messages.append(ChatMessage("user", heard))


def unbriefed(talk: Demonstration) -> Demonstration:
    """Return a demonstration without the list of facts and without what was said before."""
    system = talk.messages[0].content.splitlines()
    short = "\n".join(line for line in system if not line.startswith(_FACT))
    kept = talk.messages[2 + 2 * talk.given :]
    return replace(talk, messages=(ChatMessage("system", short), talk.messages[1], *kept), given=0)


def _scenario(task: Task) -> dict[str, Any]:
    """Return the private scenario of a row, as scripted customers take it."""
    row = Row.from_json(task.hidden["row"], f"task {task.id}")
    return row_to_scenario(row, manual.load(task.hidden["manual"])).to_json()


def _row(tokenizer: Any, name: str, talk: Demonstration) -> TrainRow:
    """Tokenize a demonstration; what was given to the policy is context, not learnt."""
    own = sum(m.role == "assistant" for m in talk.messages)
    learn = [place >= talk.given for place in range(own)]
    masked = mask_rows(tokenizer, talk.messages, learn)
    return TrainRow(name, list(masked.input_ids), list(masked.labels))


def build_speech_tokenizer(talks: Sequence[Demonstration], size: int) -> PreTrainedTokenizerFast:
    """Build a byte-level tokenizer over demonstrations with the ChatML template inside.

    Nothing is unknown to it; digits stand alone, so that numbers can be copied. Lines that many
    briefs share are one token each, and so are the labels of facts: a small model reads its
    brief for a third of the price.
    """
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIALS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    said = (f"{m.role}\n{m.content}" for talk in talks for m in talk.messages)
    core.train_from_iterator(said, trainer)
    whole = [OPENER, join(None, "").removeprefix(OPENER), *_shared_lines(talks)]
    core.add_tokens([AddedToken(line, normalized=False) for line in whole])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=SPECIALS[0],
        eos_token=SPECIALS[2],
        additional_special_tokens=[SPECIALS[1]],
        clean_up_tokenization_spaces=False,
    )
    install(tokenizer)
    return tokenizer


def _shared_lines(talks: Sequence[Demonstration]) -> list[str]:
    """Return the longer lines that at least one conversation in fifty shows the policy."""
    counts = Counter(line for talk in talks for line in _shown(talk) if len(line) >= _SHARED_LENGTH)
    return sorted(line for line, count in counts.items() if count * 50 >= len(talks))


def _shown(talk: Demonstration) -> set[str]:
    texts = (m.content for m in talk.messages if m.role != "assistant")
    return {line for text in texts for line in text.splitlines()}
