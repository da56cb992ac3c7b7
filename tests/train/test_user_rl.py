"""User RL end to end on a tiny policy: rewards, gate, failures, resumption, the record, the door."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch

from mimesim import jsonio
from mimesim.dialogue.thinking import OPENER, join
from mimesim.dialogue.types import Identity
from mimesim.envs.base import Observation, Task
from mimesim.errors import (
    ConfigError,
    EnvironmentFault,
    InfraError,
    UnknownNameError,
    UsageError,
)
from mimesim.judges.base import Failed, JudgeRequest, JudgeResult
from mimesim.judges.load import REGISTRY
from mimesim.judges.rule import RuleJudge
from mimesim.models.tiny import TinyConfig, load_policy
from mimesim.rollout.policy import PolicyConfig
from mimesim.train.alarms import AlarmConfig
from mimesim.train.credit import CreditConfig
from mimesim.train.rl import BatchLog
from mimesim.train.user_measure import (
    MeasureConfig,
    Scored,
    difference,
    summary,
    without_a_score,
)
from mimesim.train.user_rl import CARD, RESULT, UserRlConfig, train_user_rl
from mimesim.train.user_rollouts import Speaker, TaskCollector, start_of
from mimesim.train.user_tasks import SceneConfig, Stage, TaskPart, composed
from mimesim.train.user_warmstart import (
    SpeakerConfig,
    SpeechConfig,
    build_speech_tokenizer,
    demonstrate,
    warm_start_speaker,
)
from tests.support.rl_runs import curve, moved, parameters, save_start

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=2048)
SCENES = SceneConfig(turn_budget=2)
BEHAVIOR = TaskPart(name="behavior", held_out_judge="rule-heldout", weight=2)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random policy that leans towards ending its messages."""
    folder = tmp_path_factory.mktemp("start")
    made = SpeakerConfig(speech=SpeechConfig(rows=12, vocabulary=500), scenes=SCENES)
    words = build_speech_tokenizer(asyncio.run(demonstrate(made, 3)), 500)
    save_start(folder, words, SMALL)
    jsonio.write_json(folder / CARD, {"kind": "user", "thinking": False, "label": "of nobody"})
    return folder


def config(start: Path, out: Path, **changed: Any) -> UserRlConfig:
    given: dict[str, Any] = {
        "init": str(start),
        "out": out,
        "tasks": (BEHAVIOR, TaskPart(name="fantom")),
        "scenes": SCENES,
        "batches": 3,
        "prompts": 3,
        "group": 4,
        "minibatches": 2,
        "lr": 1e-3,
        "warmup": 1,
        "policy": PolicyConfig(1.0, 6),
        "measure": MeasureConfig(rows=4, at_once=8),
        "save_every": 1,
        "trackers": (),
    }
    return UserRlConfig(**{**given, **changed})


@pytest.fixture(scope="module")
def trained(start: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("trained")
    return out, train_user_rl(config(start, out))


def test_the_record_of_a_run(start: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    out, result = trained
    assert result["steps"] == 3
    assert result["thinking"] is False
    assert [row["batch"] for row in result["curve"]] == [1, 2, 3]
    for row in result["curve"]:
        assert row["episode/failed_judge"] == row["episode/failed_other"] == 0
        assert 0 <= row["episode/gated"] <= 1
        assert 0 <= row["episode/behavior/reward"] <= 1
        assert row["episode/fantom/reward"] == 0
        assert {f"episode/behavior/hack_{c}" for c in ("copying", "length")} <= set(row)
    for when in ("before", "after"):
        found = result[when]["behavior"]
        assert found["judge"] == "rule-heldout"
        assert (found["rows"], found["failed"]) == (4, {})
        assert {"reward", "exhibit", "announced", "hack_copying"} <= set(found["parts"]["behaving"])
        assert "cooperative" in found["parts"]["neutral"]
        assert result[when]["fantom"]["judge"] == ""
        assert sum(1 for _ in jsonio.read_jsonl(out / f"{when}-episodes.jsonl")) == 8
    assert set(result["gain"]) == {"behavior/behaving", "behavior/neutral", "fantom"}
    assert result["gain"]["behavior/neutral"]["cooperative"]["n"] == 1
    assert result == jsonio.read_json(out / RESULT)
    assert moved(start, out) > 1e-4


def test_the_checkpoint_is_a_user(trained: tuple[Path, dict[str, Any]]) -> None:
    from mimesim.users.load import make_user

    card = jsonio.read_object(trained[0] / "policy" / CARD)
    assert card["thinking"] is False
    assert card["label"] == "of nobody"
    assert card["tasks"] == ["behavior", "fantom"]
    user = make_user(f"trained:{trained[0] / 'policy'}")
    assert user.identity.sampling["max_tokens"] == 6
    asyncio.run(user.aclose())


def test_a_finished_run_is_not_run_again(start: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    heard: list[BatchLog] = []
    out, result = trained
    assert train_user_rl(config(start, out), on_batch=heard.append) == result
    assert heard == []
    with pytest.raises(UsageError, match=r"lr was 0\.001"):
        train_user_rl(config(start, out, lr=2e-3))


def test_an_interrupted_run_ends_as_if_nothing_had_happened(
    start: Path, tmp_path: Path, trained: tuple[Path, dict[str, Any]]
) -> None:
    def interrupt(log: BatchLog) -> None:
        if log.batch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_user_rl(config(start, tmp_path), on_batch=interrupt)
    assert not (tmp_path / RESULT).exists()
    heard: list[int] = []
    result = train_user_rl(config(start, tmp_path), on_batch=lambda log: heard.append(log.batch))
    assert heard == [2, 3]
    whole, straight = trained
    for name, value in parameters(whole).items():
        assert torch.equal(value, parameters(tmp_path)[name]), name
    assert curve(result) == curve(straight)
    assert (result["before"], result["after"]) == (straight["before"], straight["after"])


def test_killed_while_the_score_after_was_taken(
    start: Path, tmp_path: Path, trained: tuple[Path, dict[str, Any]]
) -> None:
    """The weights stand there: nothing is trained again."""
    _, straight = trained
    train_user_rl(config(start, tmp_path))
    for name in (RESULT, "after.json"):
        (tmp_path / name).unlink()
    heard: list[BatchLog] = []
    result = train_user_rl(config(start, tmp_path), on_batch=heard.append)
    assert heard == []
    assert result["after"] == straight["after"]
    assert curve(result) == curve(straight)


def test_a_lora_trains_and_is_merged(start: Path, tmp_path: Path) -> None:
    changed = {"lora_rank": 2, "accumulation": 2, "batches": 1, "tasks": (BEHAVIOR,)}
    changed |= {"measure": MeasureConfig(rows=0)}
    result = train_user_rl(config(start, tmp_path, lr=1e-2, **changed))
    assert result["before"] == result["after"] == result["gain"] == {}
    before, _ = load_policy(start)
    after = parameters(tmp_path)
    assert set(after) == {name for name, _ in before.named_parameters()}
    changed_ones = {n for n, p in before.named_parameters() if not torch.equal(p, after[n])}
    assert changed_ones
    assert all("proj" in name for name in changed_ones)


def test_accumulation_changes_memory_and_nothing_else(start: Path, tmp_path: Path) -> None:
    changed = {"batches": 1, "tasks": (BEHAVIOR,), "measure": MeasureConfig(rows=0), "prompts": 2}
    for name, parts in (("one", 1), ("two", 2)):
        train_user_rl(config(start, tmp_path / name, accumulation=parts, **changed))
    one, two = parameters(tmp_path / "one"), parameters(tmp_path / "two")
    for name, value in one.items():
        assert torch.allclose(value, two[name], atol=2e-5), name


def test_the_clock_ends_a_run_between_two_batches(start: Path, tmp_path: Path) -> None:
    changed = {"tasks": (BEHAVIOR,), "measure": MeasureConfig(rows=0), "prompts": 2}
    result = train_user_rl(config(start, tmp_path, minutes=1e-6, batches=9, **changed))
    assert result["steps"] == 1
    assert [row["batch"] for row in result["curve"]] == [1]
    assert (tmp_path / "policy" / CARD).is_file()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"group": 1}, "'group'"),
        ({"accumulation": 5}, "'accumulation'"),
        ({"tasks": ()}, "'tasks'"),
        ({"lr": 0.0}, "'lr'"),
        ({"ratio_cap": 1.1}, "'ratio_cap'"),
    ],
)
def test_settings_that_cannot_be_trained_with(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        config(Path("x"), Path("y"), **changed)


def test_no_checkpoint_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault):
        train_user_rl(config(tmp_path / "nothing", tmp_path / "out"))


def test_a_refused_run_leaves_no_folder(start: Path, tmp_path: Path) -> None:
    parts = (TaskPart(name="behavior", held_out_judge="rulle"),)
    with pytest.raises(UnknownNameError):
        train_user_rl(config(start, tmp_path / "out", tasks=parts))
    with pytest.raises(EnvironmentFault):
        train_user_rl(config(tmp_path / "nothing", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_task_of_somebody_else_is_trained_on_by_its_path(start: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"word": "hello"}\n{"word": "bye"}\n', encoding="utf-8")
    name = "tests.envs.tasks.parrot:TASK"
    changed = {"tasks": (TaskPart(name=name, rows=str(rows)),), "batches": 1}
    result = train_user_rl(config(start, tmp_path / "out", **changed))
    assert result["curve"][0][f"episode/{name}/failed"] == 0
    assert (result["after"][name]["rows"], result["after"][name]["failed"]) == (2, {})
    assert result["without_score"] == []


def test_rollouts_without_a_reward_are_counted_and_not_printed(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(REGISTRY.builtin, "silent", f"{__name__}:make_silent")
    changed = {"batches": 1, "tasks": (TaskPart(name="behavior", judge="silent"),)}
    changed |= {"measure": MeasureConfig(rows=0), "policy": PolicyConfig(1.0, 24)}
    row = train_user_rl(config(start, tmp_path, **changed))["curve"][0]
    assert row["episode/behavior/failed"] > 0
    assert "All reward functions" not in "".join(capfd.readouterr())


def test_a_judge_that_dies_costs_batches_and_its_run_goes_on(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alarms and trackers of the agents: told, ended with a checkpoint, gone on from."""
    pytest.importorskip("tensorboard")
    monkeypatch.setitem(REGISTRY.builtin, "absent", f"{__name__}:Absent")
    monkeypatch.setattr(Absent, "now", False)
    told: dict[int, tuple[str, ...]] = {}

    def hear(log: BatchLog) -> None:
        told[log.batch] = log.told
        Absent.now = len(told) == log.batch  # away until the run has ended once

    one = config(
        start,
        tmp_path / "out",
        tasks=(TaskPart(name="behavior", judge="absent"),),
        measure=MeasureConfig(rows=0),
        prompts=1,
        group=2,
        minibatches=1,
        batches=7,
        save_every=50,
        trackers=("tensorboard",),
        alarms=AlarmConfig(failed_batches=1),
    )
    with pytest.raises(EnvironmentFault, match=r"no episode of the last 1 batches") as caught:
        train_user_rl(one, on_batch=hear)  # a message without words is not judged, and counts
    ended = max(told)
    assert 1 < ended < 7
    assert f"stopped after batch {ended}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "no episode of this batch could be counted (2 infra failure)" in told[ended][0]
    told.clear()
    Absent.now = False
    result = train_user_rl(one, on_batch=hear)
    assert list(told) == list(range(ended + 1, 8)), "it goes on where it stopped"
    assert [row["batch"] for row in result["curve"]] == list(range(1, 8))
    assert [row["batch"] for row in result["curve"] if not row["credit/valid"]] == [ended]
    assert {row["alarm"] for row in result["alarms"] if row["batch"] == ended} == {"failed"}
    assert len(list((one.out / "tracking").glob("events*"))) == 2, "one file for each start"


# ------------------------------------------------------------------------------- the collector


class Silent:
    """A judge that never comes to a verdict."""

    identity = Identity("rule", "silent")

    async def judge(self, request: JudgeRequest[Any]) -> JudgeResult[Any]:
        return Failed("nothing to say")

    async def aclose(self) -> None:
        """Release nothing."""


def make_silent(rest: str, options: Any) -> Silent:
    return Silent()


class Absent(RuleJudge):
    """The rules behind an endpoint that may be away."""

    now = False

    def __init__(self, rest: str, options: Any) -> None:
        super().__init__()

    async def judge(self, request: JudgeRequest[Any]) -> JudgeResult[Any]:
        if Absent.now:
            raise InfraError("nobody there")
        return await super().judge(request)


def collector(start: Path, part: TaskPart, *, thinking: bool, compat: bool = False) -> Any:
    model, tokenizer = load_policy(start)
    tasks = composed(SCENES, "train", 4, 0)
    speaker = Speaker(tokenizer, thinking, PolicyConfig(1.0, 6))
    return model, TaskCollector(Stage([part]), tasks, speaker, 0, compat=compat)


ROWS = [{"place": 0}] * 3 + [{"place": 1}] * 3


def test_a_group_is_a_prompt_and_the_reward_comes_last(start: Path) -> None:
    model, made = collector(start, BEHAVIOR, thinking=False)
    samples = made.collect(ROWS, model, 7)
    assert [s.group for s in samples] == ["7/0/user"] * 3 + ["7/1/user"] * 3
    for sample in samples:
        assert sample.valid
        assert len(sample.rewards) == len(sample.tokens.spans)
        assert not any(sample.rewards[:-1])
    again = made.collect(ROWS, model, 7)
    assert [s.tokens for s in again] == [s.tokens for s in samples]
    assert [s.tokens for s in made.collect(ROWS, model, 8)] != [s.tokens for s in samples]
    made.close()


def test_a_policy_that_should_think_and_does_not_earns_nothing(start: Path) -> None:
    model, made = collector(start, BEHAVIOR, thinking=True)
    samples = made.collect(ROWS, model, 7)
    assert all(s.valid and sum(s.rewards) == 0 for s in samples)
    assert all(s.metrics["gated"] == 1 for s in samples)
    made.close()


@pytest.mark.parametrize("compat", [False, True])
def test_a_judge_that_fails_is_missing_data(
    start: Path, monkeypatch: pytest.MonkeyPatch, compat: bool
) -> None:
    monkeypatch.setitem(REGISTRY.builtin, "silent", f"{__name__}:make_silent")
    model, made = collector(
        start, TaskPart(name="behavior", judge="silent"), thinking=False, compat=compat
    )
    samples = [s for batch in range(6) for s in made.collect(ROWS, model, batch)]
    judged = [s for s in samples if s.metrics["failed_judge"]]
    assert {s.metrics["gated"] for s in judged} == {0, 1}, "some were asked in vain, some gated"
    assert all(s.valid is (compat or s.metrics["gated"] == 1) for s in judged)
    assert all(sum(s.rewards) == 0 for s in judged)
    made.close()


def test_replayed_turns_are_context_with_an_empty_block(start: Path) -> None:
    task = composed(SCENES, "train", 1, 0)[0]
    told = Observation("who you are", "a summary of what was said")
    thinking = start_of(task, told, thinking=True)
    assert [m.role for m in thinking[:3]] == ["system", "user", "assistant"]
    assert thinking[-1].role == "user"
    own = [m.content for m in thinking if m.role == "assistant"]
    said = [t["text"] for t in task.public["replay"] if t["role"] == "user"]
    assert own == [join(None, text) for text in said]
    plain = [m.content for m in start_of(task, told, thinking=False) if m.role == "assistant"]
    assert plain == said
    model, made = collector(start, BEHAVIOR, thinking=False)
    record = made.collect([{"place": 0}] * 2, model, 0)[0].tokens
    _, tokenizer = load_policy(start)
    prompt = tokenizer.decode(record.prompt_ids)
    assert all(text in prompt for text in said)
    inside = [i for span in record.spans for i in range(span.start, span.end)]
    assert sum(record.env_mask) == len(inside)
    made.close()


def test_a_task_without_replay_opens_as_it_says() -> None:
    task = Task("task:fantom", "f", "train", (), {}, {})
    messages = start_of(task, Observation("s", "u"), thinking=True)
    assert [(m.role, m.content) for m in messages] == [("system", "s"), ("user", "u")]


def test_credit_compat_is_passed_on(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a silent judge owes is missing data, or a reward of 0 as in the original."""
    monkeypatch.setitem(REGISTRY.builtin, "silent", f"{__name__}:make_silent")
    changed = {"batches": 1, "tasks": (TaskPart(name="behavior", judge="silent"),)}
    changed |= {"measure": MeasureConfig(rows=0), "policy": PolicyConfig(1.0, 24)}
    invalid = {}
    for compat in (False, True):
        given = config(start, tmp_path / str(compat), credit=CreditConfig(compat=compat), **changed)
        invalid[compat] = train_user_rl(given)["curve"][0]["credit/invalid"]
    assert invalid[False] > invalid[True] == 0


# ------------------------------------------------------------------------------------ scoring


def scored(row: str, part: str, failed: str = "", **values: float) -> Scored:
    return Scored("behavior", row, 0, part, {} if failed else values, failed)


def test_failures_are_counted_and_enter_no_mean() -> None:
    some = [
        scored("a", "B3", reward=1.0, exhibit=1.0),
        scored("b", "B9", reward=0.5, exhibit=0.0),
        scored("c", "neutral", reward=0.8, cooperative=1.0),
        scored("d", "B3", failed="judge"),
    ]
    found = summary(some, MeasureConfig(), {"behavior": "rule"})["behavior"]
    assert found["failed"] == {"judge": 1}
    assert found["rollouts"] == 4
    assert list(found["parts"]) == ["behaving", "neutral", "B3", "B9"]
    assert found["parts"]["behaving"]["reward"]["value"] == 0.75
    assert found["parts"]["behaving"]["reward"]["n"] == 2
    assert found["numbers"]["reward"]["n"] == 3


def test_the_gain_pairs_rollouts_that_both_have_a_score() -> None:
    before = [
        scored("a", "B3", reward=0.2, exhibit=0.0),
        scored("b", "B9", reward=0.3, exhibit=0.0),
        scored("c", "neutral", reward=0.8, cooperative=1.0),
        scored("d", "B3", failed="judge"),
    ]
    after = [
        scored("a", "B3", reward=0.6, exhibit=1.0),
        scored("b", "B9", reward=0.5, exhibit=0.0),
        scored("c", "neutral", reward=0.7, cooperative=0.5),
        scored("d", "B3", reward=0.9, exhibit=1.0),
    ]
    gain = difference(before, after)
    assert gain["behavior/behaving"]["reward"]["value"] == pytest.approx(0.3)
    assert gain["behavior/behaving"]["reward"]["n"] == 2
    low, high = gain["behavior/behaving"]["reward"]["ci95"]
    assert 0.2 - 1e-9 <= low <= high <= 0.4 + 1e-9
    assert gain["behavior/neutral"]["cooperative"]["value"] == -0.5


# --------------------------------------------------------------------------------- warm start


def test_demonstrations_obey_in_part_and_think_first() -> None:
    made = SpeakerConfig(speech=SpeechConfig(rows=40), scenes=SceneConfig(turn_budget=5))
    talks = asyncio.run(demonstrate(made, 1))
    assert len(talks) == 40
    for talk in talks:
        own = [m.content for m in talk.messages if m.role == "assistant"]
        assert len(own) > talk.given > 0
        assert all(text.startswith(OPENER) for text in own)
        assert all(text.startswith(join(None, "")) for text in own[: talk.given])
        assert all(not text.startswith(join(None, "")) for text in own[talk.given :])
    obedient = SpeakerConfig(
        speech=SpeechConfig(rows=40, obedient=1.0, strange=0.0),
        scenes=SceneConfig(turn_budget=5),
    )
    best = asyncio.run(demonstrate(obedient, 1))
    assert sum(t.reward for t in best) > sum(t.reward for t in talks) + 2


def test_the_warm_start_learns_its_own_side_only(tmp_path: Path) -> None:
    made = SpeakerConfig(
        out=tmp_path,
        speech=SpeechConfig(rows=16, vocabulary=500),
        scenes=SceneConfig(turn_budget=3),
        shape=SMALL,
        steps=3,
        batch=4,
    )
    result = warm_start_speaker(made)
    assert result["demonstrations"] == 16
    assert 0 < result["learnt_tokens"] < result["tokens"] / 2
    assert jsonio.read_object(tmp_path / "policy" / CARD)["thinking"] is True
    _, tokenizer = load_policy(tmp_path / "policy")
    told = "ümläut 4417 <think>\nhm, so\n</think>\n\nfine"
    ids = tokenizer(told, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == told


def test_what_failed_throughout_is_without_a_score() -> None:
    curve = [{"episode/a/failed": 1.0, "episode/b/failed": 0.5, "episode/failed_judge": 1.0}] * 2
    assert without_a_score(curve, []) == ["a"]
    assert without_a_score(curve[:1], [scored("x", "B3", failed="judge")]) == ["a", "behavior"]
    assert without_a_score([], [scored("x", "B3", failed="judge"), scored("y", "B3")]) == []
