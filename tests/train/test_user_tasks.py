"""Mixtures of tasks: shares, order, composed scenarios, refusals."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimesim.envs.base import Task
from mimesim.errors import ConfigError, DataError, UnknownNameError, UsageError
from mimesim.train.user_tasks import (
    SceneConfig,
    Stage,
    TaskPart,
    check_parts,
    check_run,
    composed,
    judge_names,
    rows_of,
    schedule,
    task_name,
)


def rows(name: str, count: int) -> list[Task]:
    return [Task(f"task:{name}", f"{name}-{i}", "train", (f"g{i}",), {}, {}) for i in range(count)]


@settings(max_examples=40, deadline=None)
@given(
    weights=st.lists(st.floats(0.05, 5), min_size=1, max_size=4),
    count=st.integers(1, 60),
    seed=st.integers(0, 5),
)
def test_every_task_has_its_share_at_any_point(weights: list[float], count: int, seed: int) -> None:
    parts = [TaskPart(name=f"t{i}", weight=weight) for i, weight in enumerate(weights)]
    tables = {part.name: rows(part.name, 5) for part in parts}
    prompts = schedule(parts, tables, count, seed)
    assert len(prompts) == count
    for end in range(1, count + 1):
        given_ = Counter(task_name(task) for task in prompts[:end])
        for part in parts:
            due = part.weight / sum(weights) * end
            assert abs(given_[part.name] - due) < len(parts)


def test_all_rows_are_met_before_one_comes_again() -> None:
    part = TaskPart(name="t")
    prompts = schedule([part], {"t": rows("t", 7)}, 21, 3)
    rounds = [tuple(task.id for task in prompts[i : i + 7]) for i in (0, 7, 14)]
    assert [sorted(one) for one in rounds] == [sorted(t.id for t in rows("t", 7))] * 3
    assert len(set(rounds)) == 3
    assert prompts == schedule([part], {"t": rows("t", 7)}, 21, 3)
    assert prompts != schedule([part], {"t": rows("t", 7)}, 21, 4)


@pytest.mark.parametrize("parts", [(), (TaskPart(name="a"), TaskPart(name="a", weight=2))])
def test_a_mixture_that_cannot_be_drawn_from(parts: tuple[TaskPart, ...]) -> None:
    with pytest.raises(ConfigError, match="'tasks'"):
        check_parts(parts)


@pytest.mark.parametrize("weight", [0, -1])
def test_a_weight_is_above_zero(weight: float) -> None:
    with pytest.raises(ConfigError, match="'weight'"):
        TaskPart(name="fantom", weight=weight)


def test_composed_scenarios_are_one_third_neutral_and_split_by_customer() -> None:
    scenes = SceneConfig(turn_budget=5)
    train, test = composed(scenes, "train", 60, 1), composed(scenes, "test", 30, 1)
    assert sum(task.public["behavior"] is None for task in train) == 20
    assert all(task.hidden["row"]["turn_budget"] == 5 for task in train)
    assert {task.split for task in test} == {"test"}
    people = [{task.public["name"] for task in some} for some in (train, test)]
    assert not people[0] & people[1]
    assert train == composed(scenes, "train", 60, 1)
    assert all(task.public["replay"] for task in train)


def test_own_rows_are_split() -> None:
    scenes = SceneConfig()
    own = rows_of(TaskPart(name="fantom"), "train", scenes, 3, 0)
    assert len(own) == 3
    assert {task.split for task in own} == {"train"}
    held = rows_of(TaskPart(name="fantom"), "test", scenes, 99, 0)
    assert not {t.groups for t in held} & {
        t.groups for t in rows_of(TaskPart(name="fantom"), "train", scenes, 99, 0)
    }


def test_a_stage_needs_its_parties_by_name() -> None:
    with pytest.raises(UnknownNameError):
        Stage([TaskPart(name="behavior", judge="rulle")])
    with pytest.raises(UnknownNameError):
        Stage([TaskPart(name="behaviour")])
    with pytest.raises(UsageError):
        Stage([TaskPart(name="behavior", mode="sloppy")])


def test_who_judges() -> None:
    parts = [TaskPart(name="behavior", held_out_judge="rule-heldout"), TaskPart(name="fantom")]
    assert judge_names(parts) == {"behavior": "rule", "fantom": ""}
    assert judge_names(parts, held_out=True) == {"behavior": "rule-heldout", "fantom": ""}


OWN = SceneConfig(behaviors="tests.support.dawdler:B91")


@pytest.mark.parametrize("judges", [("rule", "rule-heldout"), ("rule", ""), ("rule-heldout", "")])
def test_a_judge_without_rules_for_a_behavior_is_refused(judges: tuple[str, str]) -> None:
    part = TaskPart(name="behavior", judge=judges[0], held_out_judge=judges[1])
    with pytest.raises(ConfigError, match=r"'rule(-heldout)?' has no rules for behavior 'B91'"):
        check_run([part], OWN, scored=True)


def test_who_scores_is_checked_where_somebody_scores() -> None:
    part = TaskPart(name="behavior", judge="model:embedded", held_out_judge="rule")
    with pytest.raises(ConfigError, match="B91"):
        check_run([part], OWN, scored=True)
    check_run([part], OWN, scored=False)
    check_run([TaskPart(name="behavior", judge="model:embedded")], OWN, scored=True)
    check_run(
        [TaskPart(name="behavior", held_out_judge="rule-heldout")], SceneConfig(), scored=True
    )


def test_a_task_that_brings_no_second_rule_is_refused() -> None:
    with pytest.raises(ConfigError, match="'sotopia' brings no rules for judge 'rule-heldout'"):
        check_run([TaskPart(name="sotopia", held_out_judge="rule-heldout")], OWN, scored=True)
    check_run([TaskPart(name="fantom", held_out_judge="rule-heldout")], OWN, scored=True)


def test_a_stage_finds_the_parties_of_a_task_by_path(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"word": "hello"}\n', encoding="utf-8")
    part = TaskPart(name="tests.envs.tasks.parrot:TASK", rows=str(file))
    check_run([part], SceneConfig(), scored=True)
    (task,) = rows_of(part, "train", SceneConfig(), 5, 0)
    assert task_name(task) == part.name
    assert Stage([part]).make(task).spec.name == "task:parrot"


def test_nothing_composed_is_one_line() -> None:
    scenes = SceneConfig(turn_budget=1, behaviors="B2", neutral_share=0)
    with pytest.raises(DataError, match="none of 3 scenarios could be composed"):
        composed(scenes, "train", 3, 0)
