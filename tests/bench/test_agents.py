"""The evaluation matrix: cells run and resumed, rows, averages and differences by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.bench.agents import (
    Cell,
    Key,
    Matrix,
    MatrixConfig,
    SeedPair,
    difference,
    hierarchical,
    run_cell,
    score_cell,
)
from mimesim.bench.config import EvaluationConfig
from mimesim.bench.evaluate import evaluate
from mimesim.dialogue.types import Identity
from mimesim.envs.agents.load import make_agent
from mimesim.envs.base import Agent, Task
from mimesim.envs.load import load_tasks
from mimesim.errors import ConfigError, UnknownNameError, UsageError
from mimesim.models.tiny import build_tokenizer, token_model
from mimesim.results import RunRecord
from mimesim.rollout.policy import PolicyConfig, PolicySource
from mimesim.train.warmstart import vocabulary
from tests.support.bigram import desk_policy

SMALL = MatrixConfig(tasks=24, seed=5, concurrency=24)
COOPERATIVE = "scripted:cooperative"


class Untouchable:
    """An agent that must not be asked: what is stored is not run again."""

    def __init__(self, identity: Identity, allowed: int = 0) -> None:
        self.identity = identity
        self.allowed = allowed
        self.inner = make_agent("scripted:eager", action_format="line")

    def start(self, *, task: Task, seed: int, key: str) -> Agent:
        assert self.allowed > 0, "an episode was run again"
        self.allowed -= 1
        return self.inner.start(task=task, seed=seed, key=key)

    async def aclose(self) -> None:
        """Release nothing."""


def cell(agent: str, user: str, out: Path | None = None, config: MatrixConfig = SMALL) -> Cell:
    return run_cell("arm", 3, user, make_agent(agent, action_format="line"), config, out)


# -- cells ----------------------------------------------------------------------------------


def test_a_cell_of_sure_successes() -> None:
    found = cell("scripted:patient", COOPERATIVE)
    assert (found.arm, found.seed, found.user, found.agent) == (
        "arm",
        3,
        COOPERATIVE,
        "scripted:patient",
    )
    tasks = load_tasks("support-desk", profile="compact", split="test", seed=5, count=24)
    assert set(found.success) == {Key(COOPERATIVE, t.id, 0) for t in tasks}
    assert set(found.success.values()) == {1.0}
    assert set(found.reward.values()) == {1.0}
    assert dict(found.ends) == {"case_closed": 24}
    assert (found.invalid, found.total) == (0, 24)


def test_harder_users_are_harder() -> None:
    easy, hard = (cell("scripted:eager", user) for user in (COOPERATIVE, "scripted:hostile"))
    assert sum(easy.success.values()) == 24
    assert sum(hard.success.values()) < 12
    assert all(0 <= r <= 1 for r in hard.reward.values())


def test_failures_have_no_value() -> None:
    found = cell("scripted:eager", "tests.support.faulty:make")
    tasks = load_tasks("support-desk", profile="compact", split="test", seed=5, count=24)
    failing = {t.id for t in tasks if int(t.scenario["facts"]["order"]) % 3 == 0}
    assert found.invalid == len(failing) > 2
    assert {key.task for key in found.success} == {t.id for t in tasks} - failing
    assert found.total == 24
    (row,) = Matrix((found,)).rows([found.user])
    assert row.n == 24 - len(failing)
    assert row.invalid_rate == pytest.approx(len(failing) / 24)
    wins = sum(found.success.values())
    assert row.success_strict == pytest.approx(wins / 24)
    assert row.success.value == pytest.approx(wins / row.n)


def test_arms_meet_the_same_tasks_and_the_same_customers(tmp_path: Path) -> None:
    for name in ("eager", "patient"):
        cell(f"scripted:{name}", "scripted:neutral", tmp_path / name)
    eager, patient = (episodes(tmp_path / name) for name in ("eager", "patient"))
    assert [e["task"]["id"] for e in eager] == [e["task"]["id"] for e in patient]
    assert [e["seed"] for e in eager] == [e["seed"] for e in patient]
    assert [e["turns"][0]["content"] for e in eager] == [e["turns"][0]["content"] for e in patient]
    assert eager != patient


def episodes(folder: Path) -> list[Any]:
    found = [line.value for line in jsonio.read_jsonl(folder / "episodes.jsonl")]
    return sorted(found, key=lambda e: str(e["task"]["id"]))


def test_a_policy_fills_a_cell_in_one_batch() -> None:
    words = build_tokenizer(vocabulary())
    model = token_model(desk_policy(words, acts=0.9), words, name="policy:test")
    source = PolicySource(model, PolicyConfig(temperature=0.0, max_tokens=8))
    found = run_cell("arm", 0, COOPERATIVE, source, SMALL)
    assert (found.agent, found.total, found.invalid) == ("policy:test", 24, 0)
    assert 0 < sum(found.reward.values()) < 24


# -- resumption -----------------------------------------------------------------------------


def test_a_finished_cell_is_read_from_its_files(tmp_path: Path) -> None:
    first = cell("scripted:eager", "scripted:realistic", tmp_path)
    identity = make_agent("scripted:eager", action_format="line").identity
    again = run_cell("arm", 3, "scripted:realistic", Untouchable(identity), SMALL, tmp_path)
    assert again == first


def test_a_cut_cell_runs_only_what_is_missing(tmp_path: Path) -> None:
    first = cell("scripted:eager", "scripted:realistic", tmp_path)
    stored = tmp_path / "episodes.jsonl"
    lines = stored.read_bytes().splitlines(keepends=True)
    stored.write_bytes(b"".join(lines[:20]) + lines[20][:100])  # killed while it wrote
    identity = make_agent("scripted:eager", action_format="line").identity
    agent = Untouchable(identity, allowed=4)
    again = run_cell("arm", 3, "scripted:realistic", agent, SMALL, tmp_path)
    assert agent.allowed == 0
    assert again == first


@pytest.mark.parametrize("changed", ["agent", "user", "config"])
def test_a_folder_of_another_cell_is_refused(tmp_path: Path, changed: str) -> None:
    cell("scripted:eager", COOPERATIVE, tmp_path)
    agent = "scripted:patient" if changed == "agent" else "scripted:eager"
    user = "scripted:easy" if changed == "user" else COOPERATIVE
    config = MatrixConfig(tasks=24, seed=6) if changed == "config" else SMALL
    with pytest.raises(UsageError):
        cell(agent, user, tmp_path, config)


def test_an_unknown_user_is_named() -> None:
    with pytest.raises(UnknownNameError, match="cooperativ"):
        cell("scripted:eager", "scripted:cooperativ")


# -- rows and differences, by hand ----------------------------------------------------------


def made(arm: str, seed: int, user: str, values: dict[str, float], invalid: int = 0) -> Cell:
    keys = {Key(user, task, 0): value for task, value in values.items()}
    rewards = {key: value / 2 for key, value in keys.items()}
    ends = {"case_closed": len(keys) - 1, "max_steps": 1}
    return Cell(arm, seed, user, "policy", keys, rewards, ends, invalid)


MATRIX = Matrix(
    (
        made("new", 0, "u", {"t1": 1, "t2": 1, "t3": 0}),
        made("new", 1, "u", {"t1": 1, "t2": 0, "t3": 0}),
        made("new", 0, "v", {"t1": 1, "t2": 1}, invalid=1),
        made("new", 1, "v", {"t1": 1, "t2": 1, "t3": 1}),
        made("old", 0, "u", {"t1": 0, "t2": 1, "t3": 0}),
        made("old", 0, "v", {"t1": 0, "t2": 0, "t3": 0}),
    )
)


def test_rows_put_the_seeds_of_an_arm_together() -> None:
    rows = {(r.arm, r.user): r for r in MATRIX.rows(["u", "v", "nobody"])}
    assert list(rows) == [("new", "u"), ("new", "v"), ("old", "u"), ("old", "v")]
    row = rows["new", "u"]
    assert row.success.value == pytest.approx(3 / 6)
    assert row.reward.value == pytest.approx(1.5 / 6)
    assert (row.n, row.seeds, row.invalid_rate) == (6, (0, 1), 0.0)
    assert row.ends == pytest.approx({"case_closed": 4 / 6, "max_steps": 2 / 6})
    assert "3 clusters" in row.success.method
    lossy = rows["new", "v"]
    assert (lossy.n, lossy.success.value) == (5, 1.0)
    assert lossy.success_strict == pytest.approx(5 / 6)
    assert lossy.invalid_rate == pytest.approx(1 / 6)


def test_averages_are_over_the_users_named() -> None:
    averages = {r.arm: r for r in MATRIX.averages(["u", "v"], "both")}
    assert {r.user for r in averages.values()} == {"both"}
    assert averages["new"].success.value == pytest.approx(8 / 11)
    assert averages["old"].success.value == pytest.approx(1 / 6)
    assert averages["old"].n == 6
    alone = {r.arm: r for r in MATRIX.averages(["v"], "v")}
    assert alone["new"].success.value == 1.0


def test_arms_seeds_and_outcomes() -> None:
    assert MATRIX.arms() == ["new", "old"]
    assert MATRIX.seeds("new") == [0, 1]
    assert MATRIX.outcomes("new", 1, ["u"]) == {
        Key("u", "t1", 0): 1,
        Key("u", "t2", 0): 0,
        Key("u", "t3", 0): 0,
    }


def test_a_difference_is_paired_by_user_and_task() -> None:
    """Seeds are averaged first: u: 1, .5, 0 less 0, 1, 0; v: 1, 1, 1 less 0, 0, 0."""
    found = difference(MATRIX, "new", "old", ["u", "v"], headline=True)
    assert found.value.value == pytest.approx((1 - 0.5 + 0 + 1 + 1 + 1) / 6)
    assert (found.arm, found.baseline, found.headline) == ("new", "old", True)
    assert found.value.n == 6
    assert found.value.low is not None
    assert found.value.high is not None
    assert found.value.low <= found.value.value <= found.value.high
    assert "3 clusters" in found.value.method
    back = difference(MATRIX, "old", "new", ["u", "v"])
    assert back.value.value == pytest.approx(-found.value.value)
    assert difference(MATRIX, "new", "new", ["u", "v"]).value.value == 0


def test_an_episode_that_one_arm_lost_is_left_out_and_told() -> None:
    short = Matrix(tuple(c for c in MATRIX.cells if c.seed == 0))
    found = difference(short, "new", "old", ["v"])
    assert (found.value.value, found.value.n) == (1.0, 2)
    assert "1 unpaired" in found.value.method


def test_a_hierarchical_difference_keeps_seeds_apart() -> None:
    pairs = [SeedPair(0, 0, 0, 0), SeedPair(0, 1, 1, 0)]
    found = hierarchical(MATRIX, "new", "old", pairs, ["u"])
    assert found.per_seed == pytest.approx({"SFT 0, RL 0": 1 / 3, "SFT 0, RL 1": 0.0})
    assert found.value.value == pytest.approx(1 / 6)
    assert found.value.low is not None
    assert "2 runs" in found.value.method


def test_an_empty_arm_is_unknown_and_not_zero() -> None:
    nothing = Matrix((Cell("new", 0, "u", "policy", {}, {}, {}, 4),))
    (row,) = nothing.rows(["u"])
    assert row.success.value is None
    assert (row.n, row.invalid_rate, row.success_strict) == (0, 1.0, 0.0)
    assert row.ends == {}


def test_scoring_the_same_episodes_again_gives_the_same_cell(tmp_path: Path) -> None:
    from mimesim.dialogue.episode import Episode

    first = cell("scripted:eager", "scripted:neutral", tmp_path)
    stored = [Episode.from_json(line) for line in episodes(tmp_path)]
    again = score_cell("arm", 3, "scripted:neutral", "scripted:eager", stored)
    assert again.success == first.success
    assert again.reward == first.reward
    assert again.ends == first.ends


# -- a whole matrix -------------------------------------------------------------------------


def test_a_matrix_of_named_arms(tmp_path: Path) -> None:
    config = EvaluationConfig(
        arms={"hasty": "scripted:eager", "careful": "scripted:patient"},
        users=("scripted:hostile", "scripted:heldout-4"),
        matrix=SMALL,
        out=tmp_path,
    )
    told: list[tuple[str, int, int]] = []
    record = evaluate(config, lambda *said: told.append(said))
    assert told == [
        ("hasty in support-desk with scripted:hostile", 0, 4),
        ("hasty in support-desk with scripted:heldout-4", 1, 4),
        ("careful in support-desk with scripted:hostile", 2, 4),
        ("careful in support-desk with scripted:heldout-4", 3, 4),
    ]
    assert next((r.arm, r.user) for r in record.rows) == ("hasty", "scripted:hostile")
    (gain,) = record.differences
    assert (gain.arm, gain.baseline) == ("careful", "hasty")
    assert gain.value.value is not None
    assert gain.value.value > 0.2
    assert RunRecord.read(tmp_path / "record.json").rows == record.rows
    assert evaluate(config).rows == record.rows


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"arms": {}}, "'arms' is empty"),
        ({"arms": {"a": "null"}, "users": ()}, "'users' is empty"),
        ({"arms": {"a": "null"}, "users": ("u", "u")}, "'users' names one twice"),
        ({"arms": {"a": "null"}, "baseline": "b"}, "'baseline' 'b' is no arm"),
    ],
)
def test_a_matrix_without_rows_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        EvaluationConfig(**wrong)


def test_a_mistyped_user_and_a_dead_endpoint_show_before_the_first_cell(tmp_path: Path) -> None:
    dead = "model:openai:m@http://127.0.0.1:9/v1"
    heard: list[str] = []
    for arms, users in (
        ({"x": "scripted:eager"}, (COOPERATIVE, "scripted:cooperativ")),
        ({"x": "scripted:eager", "y": dead}, (COOPERATIVE,)),
    ):
        with pytest.raises(UsageError) as caught:
            evaluate(
                EvaluationConfig(arms=arms, users=users, matrix=SMALL, out=tmp_path),
                lambda text, done, total: heard.append(text),
            )
        assert "cooperativ" in str(caught.value) or "does not serve" in str(caught.value)
        assert heard == []
        assert not (tmp_path / "cells").exists()
