"""A mixture of gyms in one training: rows, what is held out, the order, whole runs, refusals."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mimesim import config as configs
from mimesim.envs.load import load_tasks
from mimesim.envs.packs import write_tasks
from mimesim.errors import ConfigError, EnvironmentFault, UnknownNameError, UsageError
from mimesim.models.tiny import TinyConfig, build_tokenizer
from mimesim.rollout.policy import PolicyConfig
from mimesim.train.agent import AgentConfig, BatchLog, train_agent
from mimesim.train.agent_cast import make_worlds, practice_of
from mimesim.train.collect import GymCollector, World
from mimesim.train.credit import CreditConfig, Rollout, assign, assign_each
from mimesim.train.csd import CsdConfig
from mimesim.train.gyms import (
    GymShare,
    Rows,
    first_trials,
    held_rows,
    load_rows,
    schedule,
    trained_rows,
)
from mimesim.train.validation import ValidationConfig
from mimesim.train.warmstart import vocabulary
from mimesim.users.mixture import UserShare
from tests.support.agent_runs import config
from tests.support.rl_runs import curve, parameters, save_start

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=512)
PAPER = {"travel": 925, "turtle": 423, "function": 200, "tau": 500, "persuade": 378}
TENTH = ValidationConfig(share=0.1, at_most=500)
DESK = GymShare(gym="support-desk", profile="compact", rows=6)
RULE = GymShare(
    gym="function", profile="compact", rows=4, max_steps=2, credit=CreditConfig(turn="em")
)


# -- rows -----------------------------------------------------------------------------------


def test_the_rows_of_the_paper() -> None:
    rows = list(PAPER.values())
    held = held_rows(rows, ValidationConfig(share=0.05, at_most=121))
    assert held == [46, 21, 10, 25, 19]
    assert sum(rows) == 2_426
    assert sum(trained_rows(rows, ValidationConfig(share=0.05, at_most=121))) == 2_305
    assert held_rows(rows, ValidationConfig()) == [0] * 5


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.integers(2, 3_000), min_size=1, max_size=6),
    share=st.floats(0.01, 0.9),
    at_most=st.integers(1, 200),
)
def test_every_gym_gives_its_share(rows: list[int], share: float, at_most: int) -> None:
    held = held_rows(rows, SimpleNamespace(share=share, at_most=at_most))
    wanted = [max(1, round(share * n)) for n in rows]
    assert sum(held) == min(at_most, sum(wanted))
    for got, due in zip(held, wanted, strict=True):
        assert abs(got - due * sum(held) / sum(wanted)) < 1


def shares(**rows: int) -> tuple[GymShare, ...]:
    return tuple(GymShare(gym=gym, rows=count) for gym, count in rows.items())


def test_no_group_of_tasks_is_on_both_sides_and_a_small_pack_comes_again() -> None:
    turtle, rule = load_rows(shares(turtle=120, function=30), TENTH, 3)
    for part in (turtle, rule):
        out = {group for task in part.held for group in task.groups}
        assert not out & {group for task in part.train for group in task.groups}
    assert (len(turtle.train), len(turtle.held), turtle.tasks) == (108, 12, 48)
    times = Counter(task.id for task in turtle.train).values()
    assert max(times) - min(times) <= 1, "all tasks come again alike"
    assert (len(rule.train), len(rule.held), rule.tasks) == (27, 3, 30)
    assert len({task.id for task in (*rule.train, *rule.held)}) == 30
    assert load_rows(shares(turtle=120, function=30), TENTH, 3) == [turtle, rule]
    assert load_rows(shares(turtle=120), TENTH, 4)[0].held != turtle.held


def test_rows_of_a_file_are_its_training_tasks(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    made = [
        *load_tasks("function", split="train", seed=1, count=9),
        *load_tasks("function", split="test", seed=1, count=3),
    ]
    write_tasks(file, made)
    (all_,) = load_rows([GymShare(gym="function", rows=9, tasks=file)], ValidationConfig(), 0)
    assert list(all_.train) == made[:9]
    (some,) = load_rows([GymShare(gym="function", rows=4, tasks=file)], ValidationConfig(), 0)
    assert len({task.id for task in some.train} & {task.id for task in made[:9]}) == 4
    with pytest.raises(UsageError, match="no task of gym 'turtle'"):
        load_rows([GymShare(gym="turtle", rows=4, tasks=file)], ValidationConfig(), 0)


def test_epochs_are_shuffled_rows_of_all_gyms() -> None:
    parts = load_rows(shares(turtle=20, function=10), ValidationConfig(), 3)
    order = schedule(parts, 75, 5)
    rows = Counter(task.id for part in parts for task in part.train)
    first, second = order[:30], order[30:60]
    assert Counter(task.id for task in first) == Counter(task.id for task in second) == rows
    assert first != second
    gyms = [Counter(task.gym for task in order[at : at + 15]) for at in range(0, 75, 15)]
    assert all(set(found) == {"turtle", "function"} for found in gyms), "every batch has both"
    assert schedule(parts, 75, 5) == order
    assert schedule(parts, 75, 6) != order


def test_a_task_that_stands_twice_in_a_batch_goes_on_counting() -> None:
    one, two = load_tasks("function", split="train", seed=1, count=2)
    tasks = [one, two, one, one, two, two, one, one]
    assert first_trials(tasks, 4, 8) == [0, 0, 8, 16, 0, 8, 0, 8]


# -- credit ---------------------------------------------------------------------------------


def test_each_gym_has_its_own_credit() -> None:
    batch = [
        Rollout("a", (0.0, 1.0), (0, 0, 1)), Rollout("b", (0.5, 0.0), (0, 1)),
        Rollout("a", (0.0, 0.0), (0, 1)), Rollout("b", (0.0, 0.0), (0, 1, 1)),
    ]  # fmt: skip
    late, even = CreditConfig(turn="r2g", score="r2g"), CreditConfig()
    mixed = assign_each(batch, [late, even, late, even])
    for how, places in ((late, (0, 2)), (even, (1, 3))):
        alone = assign([batch[i] for i in places], how)
        assert [mixed.tokens[i] for i in places] == alone.tokens
        assert [mixed.advantages[i] for i in places] == alone.advantages
    assert mixed.tokens != assign(batch, even).tokens
    assert mixed.agent_tokens == assign(batch, even).agent_tokens
    assert assign_each(batch, [late] * 4) == assign(batch, late)


# -- whole runs -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    save_start(folder, build_tokenizer(vocabulary()), SMALL)
    return folder


def mixed(start: Path, out: Path, **changed: Any) -> AgentConfig:
    given: dict[str, Any] = {
        "gyms": (DESK, RULE),
        "prompts": 4,
        "group": 2,
        "batches": 3,
        "csd": CsdConfig(),
        "validation": ValidationConfig(share=0.3, every=2),
    }
    return config(start, out, **{**given, **changed})


def test_a_run_in_two_gyms_ends_as_if_it_had_not_been_interrupted(
    start: Path, tmp_path: Path
) -> None:
    whole = train_agent(mixed(start, tmp_path / "whole"))
    counts = {gym: (found["rows"], found["held_out"]) for gym, found in whole["gyms"].items()}
    assert counts == {"support-desk": (4, 2), "function": (3, 1)}
    assert (whole["user"], whole["judge"]) == ("scripted:realistic", "none")
    for row in whole["curve"]:
        for gym in counts:
            assert row[f"episode/success/{gym}"] <= 1
            assert f"episode/reward/{gym}" in row
    last = whole["curve"][-1]
    assert last["validation/episodes"] == 3
    assert [last[f"validation/episodes/{gym}"] for gym in counts] == [2, 1]

    def stop(log: BatchLog) -> None:
        if log.batch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_agent(mixed(start, tmp_path / "out"), on_batch=stop)
    heard: list[int] = []
    resumed = train_agent(
        mixed(start, tmp_path / "out"), on_batch=lambda log: heard.append(log.batch)
    )
    assert heard == [2, 3]
    assert curve(resumed) == curve(whole)
    assert resumed["validation"] == whole["validation"]
    for name, value in parameters(tmp_path / "whole").items():
        assert torch.equal(value, parameters(tmp_path / "out")[name]), name


def test_another_mixture_or_another_file_is_another_training(start: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    write_tasks(file, load_tasks("function", profile="compact", split="train", seed=1, count=4))
    own = GymShare(gym="function", profile="compact", rows=4, tasks=file)
    how: dict[str, Any] = {"batches": 1, "validation": ValidationConfig(), "out": tmp_path / "out"}
    how["gyms"] = (DESK, own)
    train_agent(mixed(start, **how))
    write_tasks(file, load_tasks("function", profile="compact", split="train", seed=2, count=4))
    for gyms in ((DESK, own), (DESK, RULE), (DESK,)):
        with pytest.raises(UsageError, match="other settings"):
            train_agent(mixed(start, **{**how, "gyms": gyms}))


def test_rows_of_one_task_are_groups_of_their_own(start: Path, tmp_path: Path) -> None:
    """Two rows of a batch with the same task neither replace one another nor are compared."""
    file = tmp_path / "own.jsonl"
    write_tasks(file, load_tasks("support-desk", profile="compact", split="train", seed=1, count=1))
    desk = GymShare(gym="support-desk", profile="compact", rows=3, tasks=file)
    how = {"gyms": (desk, RULE), "batches": 1, "prompts": 7, "minibatches": 1}
    (row,) = train_agent(mixed(start, tmp_path / "out", validation=ValidationConfig(), **how))[
        "curve"
    ]
    assert (row["credit/groups"], row["credit/valid"]) == (7, 14)
    world = make_worlds(mixed(start, tmp_path, **how))
    tasks = practice_of(mixed(start, tmp_path, validation=ValidationConfig(), **how)).tasks
    collector = GymCollector(
        world,
        tasks,
        build_tokenizer(vocabulary()),
        PolicyConfig(1.0, 4),
        0,
        first_trials=first_trials(tasks, 7, 2),
    )
    rows = [{"task_index": place // 2} for place in range(14)]
    jobs = collector._jobs(rows)
    assert len({(job.task.id, job.trial) for job in jobs}) == 14
    assert sorted(job.trial for job in jobs if job.task.gym == "support-desk") == list(range(6))


def test_what_each_gym_is_played_with() -> None:
    people = (UserShare("scripted:neutral"), UserShare("scripted:B3"))
    table = GymShare(gym="turtle", rows=3, judge="rule", options={"show_reward": "both"})
    tau = GymShare(gym="tau", rows=3, users=people, action_format="tool-call")
    worlds = make_worlds(AgentConfig(gyms=(DESK, RULE, table, tau), user="scripted:neutral"))
    assert isinstance(worlds, dict)
    assert list(worlds) == ["support-desk", "function", "turtle", "tau"]
    assert worlds["support-desk"].user is worlds["turtle"].user, "made once"
    assert worlds["tau"].user is not worlds["turtle"].user
    assert [w.judge is not None for w in worlds.values()] == [False, False, True, False]
    assert [w.limits.max_steps for w in worlds.values()] == [None, 2, None, None]
    assert [w.action_format for w in worlds.values()] == ["line"] * 3 + ["tool-call"]
    assert worlds["tau"].profile == "mini"
    assert worlds["turtle"].options["show_reward"] == "both"
    assert worlds["function"].credit == CreditConfig(turn="em")
    assert isinstance(make_worlds(AgentConfig()), World)


def test_one_gym_is_practised_as_before() -> None:
    """What the keys of one gym give does not know of mixtures."""
    one = AgentConfig(batches=2, prompts=3)
    found = practice_of(one)
    assert isinstance(found.parts, tuple)
    assert len(found.tasks) == 6
    assert found.held == []
    assert found.notes() == []
    assert found.record([]) == {}


def test_packs_that_come_again_are_told() -> None:
    small = AgentConfig(gyms=shares(turtle=60, function=5), batches=1, prompts=2)
    assert practice_of(small).notes() == [
        "gym 'turtle' has 48 training tasks for 60 rows: they come again with other seeds"
    ]
    assert list(practice_of(small).record([])["gyms"]) == ["turtle", "function"]
    assert Rows("turtle", (), (), 0).count == 0


# -- refusals -------------------------------------------------------------------------------

TABLES = '[[gyms]]\ngym = "turtle"\nrows = 9\n'


@pytest.mark.parametrize(
    ("text", "overrides", "words"),
    [
        ('gym = "turtle"\n' + TABLES, (), r"r\.toml:1: 'gym' names one gym, and 'gyms' several"),
        ('profile = "compact"\n' + TABLES, (), r"r\.toml:1: 'profile' names one gym"),
        (TABLES, ("gym='tau'",), "--set.*'gym' names one gym, and 'gyms' several; expected"),
        (TABLES + "[gym_options]\nx = 1\n", (), r"r\.toml:4: 'gym_options' names one gym"),
        (TABLES * 2, (), "'gyms' names 'turtle' twice"),
        (TABLES.replace("9", "0"), (), "'rows' cannot be 0"),
        (TABLES.replace("9", "1000000000000"), (), "expected 1 to 1,000,000"),
        (TABLES.replace("rows = 9\n", ""), (), "'gyms.0.rows' is missing"),
        (TABLES + "max_steps = -1\n", (), "'max_steps' cannot be -1"),
        (TABLES + "weight = 2\n", (), "unknown key 'gyms.0.weight'"),
        (TABLES + 'user = "a"\nusers = [{name = "b"}]\n', (), "'user' and 'users' stand together"),
        (TABLES.replace("9", "1") + "[validation]\nshare = 0.1\n", (), "too few to hold one out"),
    ],
)
def test_a_mixture_that_cannot_be(
    tmp_path: Path, text: str, overrides: tuple[str, ...], words: str
) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(text)
    with pytest.raises(ConfigError, match=words):
        configs.load(AgentConfig, [recipe], overrides=overrides, env={})


def test_a_mixture_is_read_and_left(tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(TABLES + 'tasks = "own.jsonl"\n[[gyms]]\ngym = "tau"\nrows = 3\n')
    read = configs.load(AgentConfig, [recipe], env={})
    assert [(share.gym, share.rows) for share in read.gyms] == [("turtle", 9), ("tau", 3)]
    assert read.gyms[0].tasks == tmp_path / "own.jsonl"
    assert read.gyms[1].tasks == "own"
    left = configs.load(AgentConfig, [recipe], overrides=["gyms=[]", "gym='tau'"], env={})
    assert (left.gyms, left.gym) == ((), "tau")
    with pytest.raises(ConfigError, match="'gym' names one gym"):
        AgentConfig(gym="tau", gyms=shares(turtle=9))
    with pytest.raises(UnknownNameError, match="chess"):
        practice_of(AgentConfig(gyms=shares(chess=9)))
    with pytest.raises(UnknownNameError, match="action format"):
        GymShare(gym="tau", rows=1, action_format="morse")


def test_a_start_that_cannot_be_leaves_nothing(start: Path, tmp_path: Path) -> None:
    down = GymShare(gym="turtle", rows=4, judge="model:openai:x@http://127.0.0.1:9/v1")
    odd = GymShare(gym="tau", rows=4, options={"nix": 1})
    absent = GymShare(gym="tau", rows=4, tasks=tmp_path)
    how: dict[str, Any] = {"validation": ValidationConfig(), "trackers": ("auto",)}
    for second, told in (
        (down, "127.0.0.1:9"),
        (odd, "'tau' has no option 'nix'"),
        (absent, r"'gyms\.1\.tasks' cannot be read: Is a directory"),
    ):
        with pytest.raises(UsageError, match=told):
            train_agent(mixed(start, tmp_path / "out", gyms=(DESK, second), **how))
        assert not (tmp_path / "out").exists()


def test_a_gym_with_one_group_cannot_be_held_out(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    write_tasks(file, load_tasks("turtle", split="train", seed=1, count=1))
    with pytest.raises((ConfigError, EnvironmentFault), match="1 training tasks of gym 'turtle'"):
        load_rows([GymShare(gym="turtle", rows=4, tasks=file)], TENTH, 0)
