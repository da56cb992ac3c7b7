"""Training against several frozen users: groups, the curve, going on after a stop, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from mimesim import config as configs
from mimesim.envs.load import load_tasks
from mimesim.errors import ConfigError
from mimesim.models.tiny import TinyConfig, build_tokenizer
from mimesim.rollout.policy import PolicyConfig
from mimesim.train.agent import AgentConfig, BatchLog, train_agent
from mimesim.train.collect import GymCollector, World
from mimesim.train.csd import CsdConfig
from mimesim.train.warmstart import vocabulary
from mimesim.users.load import make_user
from mimesim.users.mixture import UserShare, make_mixture
from tests.support.bigram import desk_policy
from tests.support.rl_runs import curve, parameters, save_start

pytestmark = pytest.mark.filterwarnings("ignore")
TOKENS = build_tokenizer(vocabulary())
SMALL = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=512)
NAMES = ("scripted:neutral", "scripted:B3")
SHARES = tuple(UserShare(name) for name in NAMES)
ROWS = [{"task_index": index // 3} for index in range(18)]


def collect(user: Any, batch: int = 0) -> list[Any]:
    tasks = load_tasks("support-desk", profile="compact", split="train", seed=6, count=6)
    world = World("support-desk", "compact", user)
    made = GymCollector(world, tasks, TOKENS, PolicyConfig(1.0, 8), 1)
    try:
        return made.collect(ROWS, desk_policy(TOKENS, acts=0.4), batch)
    finally:
        made.close()


def test_a_group_meets_one_user_and_its_success_is_told_by_user() -> None:
    mixed = collect(make_mixture(SHARES, 0))
    met = [[name for name in NAMES if f"success/{name}" in s.metrics] for s in mixed]
    assert all(len(found) == 1 for found in met)
    groups = [met[place : place + 3] for place in range(0, len(met), 3)]
    assert all(group == [group[0]] * 3 for group in groups)
    assert len({group[0][0] for group in groups}) == 2
    # whom it meets aside, an episode is the one that a single user gives
    alone = {name: collect(make_user(name)) for name in NAMES}
    for place, sample in enumerate(mixed):
        assert sample.tokens.completion_ids == alone[met[place][0]][place].tokens.completion_ids
        assert sample.group == alone[met[place][0]][place].group


def settings(start: Path, out: Path, **changed: Any) -> AgentConfig:
    given: dict[str, Any] = {
        "init": start, "out": out, "batches": 3, "prompts": 4, "group": 2, "minibatches": 2,
        "lr": 1e-3, "warmup": 1, "csd": CsdConfig(alpha=0.0), "policy": PolicyConfig(1.0, 6),
        "save_every": 1, "users": (*SHARES, UserShare("scripted:B7", 20.0, 2)),
    }  # fmt: skip
    return AgentConfig(**{**given, **changed})


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    save_start(folder, TOKENS, SMALL)
    return folder


def test_a_run_goes_on_with_the_same_people(start: Path, tmp_path: Path) -> None:
    whole = train_agent(settings(start, tmp_path / "whole"))
    met = [{k for k in row if k.startswith("episode/success/")} for row in whole["curve"]]
    assert all(met)
    assert ["episode/success/scripted:B7" in keys for keys in met] == [False, False, True]

    def stop(log: BatchLog) -> None:
        if log.batch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_agent(settings(start, tmp_path / "cut"), on_batch=stop)
    resumed = train_agent(settings(start, tmp_path / "cut"))
    assert curve(resumed) == curve(whole)
    assert resumed["user"] == [*NAMES, "scripted:B7"]
    after, before = parameters(tmp_path / "cut"), parameters(tmp_path / "whole")
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_the_model_behind_several_users_is_no_coach(start: Path, tmp_path: Path) -> None:
    asked = settings(start, tmp_path / "out", csd=CsdConfig(alpha=0.1), coach="user")
    with pytest.raises(ConfigError, match="'users' has 3"):
        train_agent(asked)


def test_a_recipe_may_hold_a_table_of_users(tmp_path: Path) -> None:
    recipe = tmp_path / "mixed.toml"
    recipe.write_text(
        'users = [{name = "scripted:neutral", weight = 2.0}, '
        '{name = "scripted:B3", from_batch = 10}]\n'
    )
    read = configs.load(AgentConfig, [recipe])
    assert read.users == (UserShare("scripted:neutral", 2.0), UserShare("scripted:B3", 1.0, 10))
    recipe.write_text('users = [{name = "scripted:neutral", from_batch = 3}]\n')
    with pytest.raises(ConfigError, match="first batch"):
        configs.load(AgentConfig, [recipe])
