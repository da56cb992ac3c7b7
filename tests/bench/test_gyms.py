"""The matrix over gyms: played, resumed, labelled, closed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mimesim.bench.agents import MatrixConfig
from mimesim.bench.config import EvaluationConfig, GymsConfig
from mimesim.bench.evaluate import evaluate
from mimesim.bench.outline import gym_names
from mimesim.cli.eval import app
from mimesim.dialogue.types import Identity
from mimesim.envs.base import Agent, Task
from mimesim.envs.load import REGISTRY, load_gym, load_tasks
from mimesim.envs.packs import write_tasks
from mimesim.errors import ConfigError, UnknownNameError, UsageError
from mimesim.results import GymAverages, MatrixRow, RunRecord

CLOSED: list[str] = []
STARTED: list[str] = []


class Watched:
    """The oracle of any gym, which notes when it starts and when it is closed."""

    identity = Identity("scripted", "watched")

    def start(self, *, task: Task, seed: int, key: str) -> Agent:
        STARTED.append(task.id)
        return load_gym(task.gym).agent("oracle", task, seed)

    async def aclose(self) -> None:
        CLOSED.append("agent")


def watched(rest: str, written: Any, options: Mapping[str, Any] | None) -> Watched:
    return Watched()


def config(out: Path, *gyms: str, **changes: Any) -> EvaluationConfig:
    own = {
        key: changes.pop(key) for key in ("trials", "options", "tasks", "compat") if key in changes
    }
    return EvaluationConfig(
        arms=changes.pop("arms", {"best": "oracle", "worst": "null"}),
        users=changes.pop("users", ("scripted:neutral",)),
        matrix=MatrixConfig(tasks=6, seed=3, concurrency=6),
        gyms=GymsConfig(names=gyms, **own),
        out=out,
    )


def row(record: RunRecord, arm: str, gym: str) -> MatrixRow:
    (found,) = [r for r in record.rows if (r.arm, r.gym) == (arm, gym)]
    return found


def means(record: RunRecord, arm: str) -> GymAverages:
    (found,) = [one for one in record.gym_averages if one.arm == arm]
    return found


def test_oracle_and_null_end_the_scale(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    record = evaluate(config(tmp_path, "function", "persuade"), lambda *said: told.append(said))
    assert told == [
        ("best in function", 0, 4),
        ("worst in function", 1, 4),
        ("best in persuade with scripted:neutral", 2, 4),
        ("worst in persuade with scripted:neutral", 3, 4),
    ]
    talkless = row(record, "best", "function")
    assert (talkless.user, talkless.judge, talkless.reward.value) == ("none", "none", 1.0)
    best, worst = row(record, "best", "persuade"), row(record, "worst", "persuade")
    assert (best.user, best.judge, best.success.value) == ("scripted:neutral", "rule", 1.0)
    assert (worst.reward.value, worst.success.value) == (0.0, 0.0)
    assert best.floor is not None
    assert (best.floor.null, best.floor.corrected, best.floor.tasks) == (0.0, 1.0, 6)
    assert best.settings["max_steps"] == 16
    assert (best.n, best.invalid_rate, best.note) == (6, 0.0, "")
    average = means(record, "best")
    assert average.weighted.value == average.unweighted.value == 1.0
    assert average.missing == ("travel", "turtle", "tau", "intention", "telepathy", "search")
    assert "user=scripted:neutral; judge=rule; partial" in average.label
    assert RunRecord.read(tmp_path / "record.json") == record


def test_shares_of_what_could_be_had(tmp_path: Path) -> None:
    record = evaluate(config(tmp_path, "intention", arms={"best": "oracle"}))
    found = row(record, "best", "intention")
    assert found.reward.value is not None
    assert found.reward.value > 1.2
    assert found.of_attainable == pytest.approx(1.0)
    assert found.floor is None
    assert means(record, "best").without_intention is None
    assert means(record, "best").held_out == pytest.approx(found.reward.value)


def test_all_means_every_gym_there_is() -> None:
    assert gym_names(["all"]) == tuple(REGISTRY.names())
    assert gym_names(["search", "function"]) == ("search", "function")
    with pytest.raises(UnknownNameError, match="serch"):
        gym_names(["serch"])


def test_users_stand_apart_and_share_what_has_none(tmp_path: Path) -> None:
    users = ("scripted:neutral", "scripted:realistic")
    record = evaluate(
        config(tmp_path, "function", "telepathy", arms={"best": "oracle"}, users=users)
    )
    assert [(r.gym, r.user) for r in record.rows] == [
        ("function", "none"),
        *(("telepathy", user) for user in users),
    ]
    assert [one.user for one in record.gym_averages] == list(users)
    assert all(set(one.gyms) == {"function", "telepathy"} for one in record.gym_averages)


def test_a_finished_matrix_is_read_from_its_files_and_everybody_is_closed(tmp_path: Path) -> None:
    CLOSED.clear()
    STARTED.clear()
    chosen = config(tmp_path, "function", arms={"w": "tests.bench.test_gyms:watched"})
    first = evaluate(chosen)
    assert (len(STARTED), CLOSED) == (6, ["agent"])
    assert evaluate(chosen) == first
    assert (len(STARTED), CLOSED) == (6, ["agent", "agent"])
    (tmp_path / "cells/function/w-none/episodes.jsonl").write_text("")
    assert evaluate(chosen).rows == first.rows
    assert len(STARTED) == 12


def test_the_matrix_of_one_gym_closes_its_agents_too(tmp_path: Path) -> None:
    CLOSED.clear()
    evaluate(
        EvaluationConfig(
            arms={"w": "tests.bench.test_gyms:watched"},
            users=("scripted:cooperative",),
            matrix=MatrixConfig(tasks=3),
            out=tmp_path,
        )
    )
    assert CLOSED == ["agent"]


def test_a_folder_of_another_matrix_is_refused(tmp_path: Path) -> None:
    evaluate(config(tmp_path, "function", arms={"a": "null"}))
    with pytest.raises(UsageError, match="another configuration"):
        evaluate(
            config(tmp_path, "function", arms={"a": "null"}, options={"function": {"compat": True}})
        )


def test_trials_give_pass_k(tmp_path: Path) -> None:
    record = evaluate(config(tmp_path, "function", arms={"a": "oracle"}, trials=3))
    found = row(record, "a", "function")
    assert found.pass_k == {"1": 1.0, "2": 1.0, "3": 1.0}
    assert found.n == 18
    assert found.counting is not None
    assert found.counting.episodes == 18


def test_a_gym_with_lost_episodes_is_marked(tmp_path: Path) -> None:
    record = evaluate(
        config(tmp_path, "support-desk", arms={"a": "oracle"}, users=("tests.support.faulty:make",))
    )
    found = row(record, "a", "support-desk")
    assert found.counting is not None
    assert found.counting.faults["user"] + found.counting.faults["env"] == found.invalid_rate > 0.02
    assert found.note == "not reportable"
    assert means(record, "a").not_reportable == ("support-desk",)
    assert "not reportable: support-desk" in means(record, "a").label


@pytest.mark.parametrize("split", ["test", "train"])
def test_tasks_of_a_file_are_all_played(tmp_path: Path, split: str) -> None:
    file = tmp_path / "tasks.jsonl"
    write_tasks(file, load_tasks("function", split=split, seed=8, count=9))
    record = evaluate(
        config(tmp_path / "out", "function", arms={"a": "oracle"}, tasks={"function": file})
    )
    assert row(record, "a", "function").n == 9


def test_the_original_scores_travel_by_first_character(tmp_path: Path) -> None:
    record = evaluate(config(tmp_path, "travel", arms={"a": "oracle"}, compat="userrl"))
    found = row(record, "a", "travel")
    assert found.settings["compat"] == "userrl"
    assert found.reward.value == 1.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"users": ("scripted:neutral", "roleplay:scripted:x")}, "mixes 'scripted:neutral'"),
        ({"options": {"turtle": {}}}, "'turtle', which is not played"),
        ({"tasks": {"tau": "x.jsonl"}}, "'tau', which is not played"),
    ],
)
def test_what_makes_no_matrix_is_refused(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        evaluate(config(tmp_path, "function", **changes))
    assert not (tmp_path / "cells").exists()


def test_a_gym_named_twice_and_no_trial_are_refused() -> None:
    with pytest.raises(ConfigError, match="names one twice"):
        GymsConfig(names=("tau", "tau"))
    with pytest.raises(ConfigError, match="trials"):
        GymsConfig(trials=0)


# ---------------------------------------------------------------------------------- command line


def test_the_command_prints_tables_and_one_object(tmp_path: Path) -> None:
    arguments = ["agents", "--gyms", "function,search", "--agents", "oracle,null"]
    arguments += ["--users", "scripted:neutral", "--set", "matrix.tasks=4", "--quiet"]
    arguments += ["--out", str(tmp_path)]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "average, weighted" in shown.output
    assert "partial: without" in shown.output
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout.splitlines()[-1])
    assert [(r["gym"], r["arm"], r["reward"]["mean"]) for r in found["rows"]] == [
        ("function", "oracle", 1.0),
        ("function", "null", 0.0),
        ("search", "oracle", 1.0),
        ("search", "null", 0.0),
    ]
    assert found["rows"][0]["counting"]["strict"] == 1.0
    best, worst = found["averages"]
    assert (best["arm"], best["weighted"], best["unweighted"]) == ("oracle", 1.0, 1.0)
    assert (worst["weighted"], worst["weighted_strict"]) == (0.0, 0.0)
    assert best["partial"] is True
    assert best["search"] == "static"


def test_a_gym_that_is_none_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["agents", "--gyms", "travell", "--agents", "null", "--out", str(tmp_path)]
    )
    assert isinstance(result.exception, UnknownNameError)
    assert "did you mean 'travel'" in str(result.exception)
