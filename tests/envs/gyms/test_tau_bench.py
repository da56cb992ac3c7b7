"""The back end of `tau` on tau-bench: a hand-made copy always, the real one where it is named."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from mimesim.dialogue.stop import UserAction
from mimesim.envs.agents.floors import floors
from mimesim.envs.base import Task
from mimesim.envs.gyms.tau import bench, customer
from mimesim.envs.gyms.tau.calls import written
from mimesim.envs.gyms.tau.domain import Call, gold_digest
from mimesim.envs.gyms.tau.hidden import read_hidden
from mimesim.envs.load import gym_spec, load_gym, load_tasks, make_gym
from mimesim.envs.packs import read_tasks, write_tasks
from mimesim.errors import EnvironmentFault, UsageError
from mimesim.users.load import make_user
from tests.support.tau import STOPS, Customer, checkout, run, say, says, started, told, use

REAL = os.environ.get(bench.VARIABLE, "")
real = pytest.mark.skipif(not REAL, reason=f"{bench.VARIABLE} names no checkout of tau-bench")
SPLITS = [(domain, split) for domain, splits in bench.DOMAINS.items() for split in splits]


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(bench.VARIABLE, str(checkout(tmp_path)))
    yield tmp_path
    bench._OPENED.clear()


def retail(split: str = "test") -> list[Task]:
    return sorted(load_tasks("tau", profile="retail", split=split), key=lambda task: task.id)


@pytest.mark.parametrize(
    ("domain", "split", "first"),
    [
        ("retail", "test", "retail-000"),
        ("retail", "train", "retail-train-000"),
        ("retail", "validation", "retail-dev-000"),
        ("airline", "test", "airline-000"),
    ],
)
def test_tasks_of_a_checkout(copy: Path, domain: str, split: str, first: str) -> None:
    tasks = load_tasks("tau", profile=domain, split=split, seed=1, count=50)
    assert tasks == load_tasks("tau", profile=domain, split=split, seed=1, count=50)
    assert len(tasks) == 3
    task = min(tasks, key=lambda one: one.id)
    assert task.id == first
    assert task.public == {"profile": domain}
    assert task.hidden["actions"][1] == {
        "name": "paint",
        "kwargs": {"key": "c1", "colors": ["green"]},
    }
    assert load_gym("tau").attainable(task) == 1.0
    assert load_gym("tau").secrets(task) == [task.hidden["instruction"]]


def test_a_split_that_there_is_not(copy: Path) -> None:
    with pytest.raises(UsageError, match="no split 'train'"):
        load_tasks("tau", profile="airline", split="train")


def test_policy_and_tools_are_shown_with_types(copy: Path) -> None:
    async def system(**options: object) -> str:
        gym = await started(retail()[0], None, {**options, "tau_first_message": "live"})
        return gym.system(gym.task)

    fixed = asyncio.run(system())
    assert "Be kind to the customers of retail." in fixed
    assert "colors (array, required)" in fixed
    assert "key (string, required): words for key" in fixed
    hidden = asyncio.run(system(compat=True))
    assert "Be kind" not in hidden
    assert "paint" not in hidden


def test_an_episode_and_that_the_shared_data_stay(copy: Path) -> None:
    task = retail()[0]
    shared = bench.opened_domain("retail").tables("")
    paint = use(written(Call("paint", {"key": "c1", "colors": ["green"]})))
    user = Customer(says("paint it"), STOPS)
    shown, painted, again, last = run(
        task, use('show: {"key": "c1"}'), paint, use('show: {"key": "c1"}'), say("ok"), user=user
    )
    assert ("red" in told(shown), told(painted), "green" in told(again)) == (True, "painted", True)
    assert (last.reward, last.success) == (1.0, True)
    assert shared == {"things": {"c1": {"colors": ["red"]}, "c2": {"colors": []}}}


def test_a_tool_that_breaks_says_so_and_keeps_what_it_did(copy: Path) -> None:
    results = run(retail()[0], use('spoil: {"key": "c1"}'), use('show: {"key": "c1"}'))
    assert told(results[0]).startswith("Error: ")
    assert results[0].valid
    assert "rust" in told(results[1])
    (missing,) = run(retail()[0], use("show: {}"))
    assert not missing.valid
    options = {"compat": True, "tau_first_message": "live"}
    (compat,) = run(retail()[0], use("show: {}"), **options)
    assert told(compat).startswith("Error: ")


def test_what_the_agent_passed_is_not_changed_by_a_tool(copy: Path) -> None:
    paint = Call("paint", {"key": "c2", "colors": ["blue"]})
    domain = bench.opened_domain("retail") if retail() else None
    assert domain is not None
    twice = (paint, Call("spoil", {"key": "c2"}))
    assert gold_digest(domain, "", twice) == gold_digest(domain, "", twice)
    assert paint.arguments["colors"] == ["blue"]


def test_only_parts_are_loaded_and_modules_are_left_as_they_were(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ModuleType("tau_bench")
    monkeypatch.setitem(sys.modules, "tau_bench", own)
    before = {name for name in sys.modules if name.startswith("tau_bench.")}  # of other tests
    assert retail()
    assert sys.modules["tau_bench"] is own
    assert {name for name in sys.modules if name.startswith("tau_bench.")} == before


def test_a_variable_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(bench.VARIABLE, raising=False)
    with pytest.raises(EnvironmentFault, match=bench.VARIABLE) as caught:
        load_tasks("tau", profile="retail")
    assert "to mend: clone tau-bench" in str(caught.value)
    assert gym_spec("tau", "retail").max_steps == 16
    assert make_gym("tau", profile="retail", user=Customer())


def test_a_variable_that_names_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(bench.VARIABLE, str(tmp_path))
    with pytest.raises(EnvironmentFault, match="no checkout of tau-bench"):
        load_tasks("tau", profile="airline")


@pytest.mark.parametrize("text", ["1 / 0", "import nothing_like_this", "TASKS = 3"])
def test_a_damaged_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    root = checkout(tmp_path)
    (root / "tau_bench" / "envs" / "airline" / "tasks_test.py").write_text(text, "utf-8")
    monkeypatch.setenv(bench.VARIABLE, str(root))
    with pytest.raises(EnvironmentFault):
        load_tasks("tau", profile="airline")


def test_an_episode_reads_no_environment(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = retail()[1]
    monkeypatch.delenv(bench.VARIABLE)
    (result,) = run(task, say("no"), user=Customer(says("hi"), STOPS))
    assert result.reward == 1.0
    bench._OPENED.clear()
    with pytest.raises(EnvironmentFault, match="was not opened"):
        asyncio.run(started(task))


def test_a_task_file_opens_the_checkout(copy: Path, tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    write_tasks(path, retail())
    bench._OPENED.clear()
    assert load_tasks("tau", profile="retail", path=path) == read_tasks(path)
    assert run(read_tasks(path)[0], say("hello"))


def test_oracle_and_null_agent_of_a_checkout(copy: Path) -> None:
    found = asyncio.run(floors(retail(), make_user("scripted:neutral")))
    assert found.oracle == 1.0
    assert found.null == pytest.approx(1 / 3)  # the one that nobody can do


def test_a_customer_without_a_script_speaks_from_the_instruction() -> None:
    instruction = "You are Mo. You want your chair painted green. The chair is number 4471."
    assert customer.derived_opening(instruction).utterance == "i want my chair painted green."
    said = customer.derived_reply(instruction, (("agent", "What is the number of the chair?"),))
    assert said.utterance == "The chair is number 4471."
    for words, action in (("It is done.", UserAction.END), ("Is it done?", UserAction.SAY)):
        assert customer.derived_reply(instruction, (("agent", words),)).action is action
    assert customer.derived_reply(instruction, (("agent", "I cannot."),)).action is UserAction.END


def test_floor_tasks_are_known_by_their_ids() -> None:
    assert bench.is_floor("airline-012")
    assert bench.is_floor("retail-train-161")
    assert not bench.is_floor("retail-161")
    assert not bench.is_floor("ms-tau-test-0-00012")
    counts = {prefix: len(found) for prefix, found in bench.FLOORS.items()}
    assert counts == {"airline": 19, "retail": 7, "retail-train": 5, "retail-dev": 1}
    share = (counts["airline"] + counts["retail"]) / 165
    assert share == pytest.approx(0.157576, abs=1e-6)


@real
@pytest.mark.parametrize(("domain", "split"), SPLITS)
def test_the_floor_tasks_of_the_real_copy(domain: str, split: str) -> None:
    tasks = load_tasks("tau", profile=domain, split=split, count=1000)
    opened = bench.opened_domain(domain)
    start = gold_digest(opened, "", ())
    won = set()
    for task in tasks:
        hidden = read_hidden(task, opened)
        if not hidden.outputs and gold_digest(opened, "", hidden.actions) == start:
            won.add(task.id)
    assert won == {task.id for task in tasks if bench.is_floor(task.id)}
    assert len(tasks) == {"train": 500, "validation": 20}.get(
        split, 115 if domain == "retail" else 50
    )


@real
def test_the_null_floor_of_the_real_copy() -> None:
    tasks = [t for d in bench.DOMAINS for t in load_tasks("tau", profile=d, count=1000)]
    transfer = use(written(Call(bench.TRANSFER, {"summary": "none"})))
    won = {t.id for t in tasks if run(t, transfer)[0].reward == 1.0}
    assert len(won) / len(tasks) == pytest.approx(0.157576, abs=1e-6)
    assert all(bench.is_floor(one) for one in won)  # nothing is left of it over the other tasks
    stops = {t.id for t in tasks if run(t, say("hi"), user=Customer(says("x"), STOPS))[0].reward}
    assert stops == won


@real
def test_the_oracle_on_the_real_copy() -> None:
    tasks = load_tasks("tau", profile="airline", count=25)
    found = asyncio.run(floors(tasks, make_user("scripted:neutral")))
    assert found.oracle >= 0.95


@real
def test_airline_12_is_a_floor_task() -> None:
    task = next(t for t in load_tasks("tau", profile="airline", count=99) if t.id == "airline-012")
    transfer = use(written(Call(bench.TRANSFER, {"summary": "none"})))
    for options in ({}, {"compat": True, "tau_first_message": "live"}):
        (result,) = run(task, transfer, **options)
        assert result.reward == 1.0
