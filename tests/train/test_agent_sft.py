"""The supervised warm start of an agent: what is kept, what a row holds, and a whole training."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.cli.main import invoke
from mimesim.dialogue.episode import Episode, Outcome, Step, TaskRef, Turn
from mimesim.dialogue.stop import Party, Status, Stop, StopReason
from mimesim.dialogue.types import Identity, PublicMessage, Role
from mimesim.envs.base import AgentView, Observation
from mimesim.errors import ConfigError, DataError, UsageError
from mimesim.models import templates
from mimesim.models.base import Continuation, Sampling
from mimesim.models.codec import TemplateCodec
from mimesim.rollout.policy import PolicyAgent, PolicyConfig, opening
from mimesim.train.agent_sft import AgentSftConfig, train_agent_sft
from mimesim.train.rows import trained_text
from mimesim.train.sft_rows import KeepConfig, Reader, replayed
from tests import tiny

TOKENIZER = tiny.tokenizer()
SECRET = "nobody may read this thought"


def episode(name: str, *, task: str = "t", reward: float | None = 1.0, **changes: Any) -> Episode:
    """Return an episode: user, agent, tool and user, agent, and a last word that came too late."""
    success = None if reward is None else reward > 0
    talk = (
        Turn(0, Role.USER, "where is my order?"),
        Turn(1, Role.AGENT, "do you have the number?", finish_reason="stop"),
        Turn(2, Role.TOOL, "looked it up"),
        Turn(3, Role.USER, "four seven two"),
        Turn(4, Role.AGENT, "", finish_reason="stop"),
        Turn(5, Role.USER, "too late", delivered=False),
    )
    steps = (
        Step(0, 1, "action", "do you have the number?", "do you have the number?", True, 0.0),
        Step(1, 4, "answer", "back to me", "send it back to me", True, reward or 0.0),
    )
    made = Episode(
        id=name,
        run_id="run",
        trial=0,
        seed=1,
        task=TaskRef("toy", task, split="train"),
        agent=Identity("scripted", "a"),
        user=Identity("scripted", "u"),
        turns=talk,
        steps=steps,
        stop=Stop(StopReason.CASE_CLOSED, Party.ENV),
        outcome=Outcome(Status.COMPLETED, success, reward),
        system="be kind",
        private={"thoughts": [{"turn": 0, "text": SECRET, "source": "generated"}]},
    )
    return replace(made, **changes)


def write(path: Path, *episodes: Episode) -> Path:
    """Write an episode file."""
    path.write_text("".join(jsonio.dumps(e.to_json()) + "\n" for e in episodes), "utf-8")
    return path


class Saying:
    """A token model that says given replies and remembers all ids."""

    def __init__(self, replies: Sequence[str]) -> None:
        self.codec = TemplateCodec(TOKENIZER)
        self.identity = Identity("policy", "saying")
        self.ids: list[int] = []
        self._replies = iter(replies)

    def session(self, key: str) -> Saying:
        return self

    async def extend(self, new_ids: Sequence[int], sampling: Sampling) -> Continuation:
        reply = (*templates.encode(TOKENIZER, next(self._replies)), self.codec.end_id)
        self.ids += [*new_ids, *reply]
        return Continuation(reply, tuple(0.0 for _ in reply), "stop")

    def close(self) -> None:
        return


def test_a_row_is_what_the_policy_sees() -> None:
    told = replayed(episode("e"))
    assert not isinstance(told, str)
    row = templates.mask_rows(TOKENIZER, told.messages, told.learn)

    async def play() -> list[int]:
        model = Saying(["do you have the number?", "send it back to me"])
        agent = PolicyAgent(model, PolicyConfig(max_tokens=99), 0, "k", opening)
        seen = Observation("be kind", "where is my order?")
        await agent.act(AgentView(seen, (), 0, 2))
        heard = (
            PublicMessage(Role.AGENT, "do you have the number?"),
            PublicMessage(Role.TOOL, "looked it up"),
            PublicMessage(Role.USER, "four seven two"),
        )
        await agent.act(AgentView(seen, heard, 1, 1))
        return model.ids

    seen = asyncio.run(play())
    assert row.input_ids[: len(seen)] == seen
    assert TOKENIZER.decode(row.input_ids[len(seen) :]).strip() == ""


def test_only_replies_are_learnt_and_nothing_private_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "e.jsonl", episode("e"))
    assert SECRET in path.read_text("utf-8")
    [part] = Reader(TOKENIZER, KeepConfig(), 2048).episodes([path])
    [row] = part.rows
    assert trained_text(TOKENIZER, row) == [
        "do you have the number?<|im_end|>",
        "send it back to me<|im_end|>",
    ]
    whole = TOKENIZER.decode(row.input_ids)
    assert "looked it up\n\nfour seven two" in whole
    assert SECRET not in whole
    assert "too late" not in whole


def test_a_cut_or_unreadable_reply_is_context_only() -> None:
    whole = episode("e")
    cut = (*whole.turns[:4], replace(whole.turns[4], finish_reason="length"), whole.turns[5])
    unread = (replace(whole.steps[0], valid=False, problem="no call"), whole.steps[1])
    assert replayed(replace(whole, turns=cut)).learn == [True, False]  # type: ignore[union-attr]
    assert replayed(replace(whole, steps=unread)).learn == [False, True]  # type: ignore[union-attr]
    assert replayed(replace(whole, turns=cut, steps=unread)) == "no_reply_to_learn"


def test_replies_may_be_written_anew() -> None:
    silent = episode("e")
    silent = replace(silent, steps=tuple(replace(s, text="") for s in silent.steps))
    assert replayed(silent) == "reply_without_text"
    for name in ("line", "tool-call"):
        told = replayed(silent, name)
        assert not isinstance(told, str)
        said = [m.content for m in told.messages if m.role == "assistant"]
        assert "do you have the number?" in said[0]
        assert "back to me" in said[1]
        assert ('"answer"' in said[1]) == (name == "tool-call")


def test_the_best_of_each_task_are_kept_and_the_rest_is_counted(tmp_path: Path) -> None:
    test_split = TaskRef("toy", "x", split="test")
    broken = Outcome(Status.INFRA_FAILURE, None, None)
    first = write(
        tmp_path / "a.jsonl",
        episode("low", reward=0.6),
        episode("high", reward=0.9),
        episode("lost", reward=0.0),
        episode("broken", outcome=broken),
        replace(episode("test"), task=test_split),
    )
    second = write(
        tmp_path / "b.jsonl",
        episode("best", reward=1.0),
        episode("other", task="u", reward=0.6),
        episode("poor", task="u", reward=0.1),
        episode("high", reward=0.9),
    )
    keep = KeepConfig(min_reward=0.5, per_task=2)
    one, two = Reader(TOKENIZER, keep, 2048).episodes([first, second])
    assert [row.id for row in one.rows] == ["high"]
    assert [row.id for row in two.rows] == ["best", "other"]
    assert one.dropped == {"over_per_task": 1, "no_success": 1, "not_counted": 1, "other_split": 1}
    assert two.dropped == {"low_reward": 1, "repeated": 1}
    assert (one.read, two.read) == (5, 4)


def test_what_is_too_long_leaves_its_place_to_the_next(tmp_path: Path) -> None:
    longest = episode("long", reward=1.0, system="be kind " * 300)
    path = write(tmp_path / "e.jsonl", longest, episode("short", reward=0.5))
    [part] = Reader(TOKENIZER, KeepConfig(per_task=1), 200).episodes([path])
    assert [row.id for row in part.rows] == ["short"]
    assert part.dropped == {"too_long": 1}


def test_sharegpt_files_are_read_as_they_come(tmp_path: Path) -> None:
    rows = [
        {
            "id": "tools",
            "system": "be kind",
            "conversations": [
                {"from": "human", "value": "where is my order?"},
                {"from": "function_call", "value": '{"name": "find"}'},
                {"from": "observation", "value": "by the river"},
                {"from": "gpt", "value": "it is by the river"},
            ],
        },
        {"id": "mute", "conversations": [{"from": "human", "value": "hello there"}]},
        {
            "id": "measured",
            "split": "test",
            "conversations": [
                {"from": "human", "value": "hello there"},
                {"from": "gpt", "value": "i am fine"},
            ],
        },
        {"id": "odd", "conversations": [{"from": "nobody", "value": "hello"}]},
        7,
    ]
    path = tmp_path / "s.json"
    path.write_text(jsonio.dumps(rows), "utf-8")
    lines = tmp_path / "s.jsonl"
    lines.write_text("".join(jsonio.dumps(row) + "\n" for row in rows) + "{broken\n", "utf-8")
    reader = Reader(TOKENIZER, KeepConfig(), 2048)
    for part, broken in ((reader.sharegpt(path), 0), (reader.sharegpt(lines), 1)):
        [row] = part.rows
        assert trained_text(TOKENIZER, row) == [
            '{"name": "find"}<|im_end|>',
            "it is by the river<|im_end|>",
        ]
        assert TOKENIZER.decode(row.input_ids).startswith("<|im_start|>system\nbe kind")
        assert part.read == 5 + broken
        assert part.dropped["other_split"] == 1
        assert part.dropped["no_reply"] == 1
        assert part.dropped["unknown_role"] == 1
        assert sum(part.dropped.values()) == 4 + broken


def small(tmp_path: Path, **changes: Any) -> AgentSftConfig:
    """Return a training of seconds."""
    settings: dict[str, Any] = {
        "model": str(tiny.save(tmp_path / "base")),
        "episodes": (write(tmp_path / "e.jsonl", episode("a"), episode("b", task="u")),),
        "out": tmp_path / "out",
        "batch_size": 2,
        "accumulation": 1,
        "epochs": 8,
        "lr": 1e-2,
        "max_length": 512,
    }
    return AgentSftConfig(**{**settings, **changes})


def test_a_training_lowers_the_loss_and_is_done_once(tmp_path: Path) -> None:
    config = small(tmp_path)
    result = train_agent_sft(config)
    losses = [loss for _, loss in result["losses"]]
    assert losses[-1] < losses[0]
    assert (result["steps"], result["rows"]) == (8, 2)
    assert result["tokens_trained"] == 8 * result["tokens"]
    assert result["sources"][0]["kept"] == 2
    again = train_agent_sft(replace(config, epochs=8))
    assert again["losses"] == [list(pair) for pair in result["losses"]]
    with pytest.raises(UsageError, match="other settings"):
        train_agent_sft(replace(config, lr=1e-3))


def test_nothing_kept_is_one_clear_error(tmp_path: Path) -> None:
    config = small(tmp_path, keep=KeepConfig(min_reward=2.0))
    with pytest.raises(DataError, match=r"no conversation is kept of 2: 2 low_reward"):
        train_agent_sft(config)
    assert not config.out.exists()
    with pytest.raises(ConfigError, match="nothing to learn from"):
        train_agent_sft(replace(config, episodes=()))


def test_the_verb_tells_what_was_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = small(tmp_path)
    lines = [
        f"model = {str(config.model)!r}",
        f"episodes = [{str(config.episodes[0])!r}]",
        "max_length = 512",
        "epochs = 1",
        "lora_rank = 2",
        "keep.per_task = 1",
    ]
    recipe = tmp_path / "mine.toml"
    recipe.write_text("\n".join(lines), "utf-8")
    arguments = ["train", "agent-sft", "--recipe", str(recipe), f"--out={tmp_path / 'lora'}"]
    assert invoke([*arguments, "--quiet"]) == 0
    told = capsys.readouterr().out
    assert "e.jsonl: 2 of 2 conversations kept" in told
    assert "1 updates on n = 2 conversations" in told
    assert (tmp_path / "lora" / "model.safetensors").is_file()
