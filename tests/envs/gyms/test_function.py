"""The gym `function`: its golden rows in both modes, its rules, its tasks, its small profile."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.dialogue.stop import Party, StopReason
from mimesim.envs.actions import get_format
from mimesim.envs.base import (
    AgentAction,
    AgentMove,
    AgentView,
    Choice,
    Observation,
    StepResult,
    Task,
)
from mimesim.envs.gyms.function import compact, gym, rules
from mimesim.envs.gyms.function.gym import FunctionGym
from mimesim.envs.load import check_tasks, load_gym, load_tasks, make_gym
from mimesim.envs.packs import holds_string
from mimesim.errors import ConfigError, DataError, UnknownNameError
from tests.support.gyms import play, table

RULE, CASE, VALUE = "c*(a*b)*d", [3, 5, 5, 3], 225


def task_of(
    rule: str = RULE, case: list[int] | None = None, expected: Any = VALUE, **hidden: Any
) -> Task:
    known = {"rule": rule, "test_case": case or CASE, "expected": expected, **hidden}
    return Task("function", "fn", "test", ("g",), {"intro": "The rule is set."}, known)


class At:
    """A started gym."""

    def __init__(self, task: Task | None = None, **options: Any) -> None:
        self.gym = FunctionGym(user=None, options=options)  # type: ignore[arg-type]
        self.seen = asyncio.run(self.gym.reset(task or task_of(), seed=1))

    def take(self, choice: str, content: str) -> StepResult:
        """Take one step."""
        return asyncio.run(self.gym.step(AgentAction(Choice(choice), content)))


def text(result: StepResult) -> str:
    return "\n".join(message.content for message in result.feedback)


def fixed(choice: str, content: str, task: Task | None = None) -> StepResult:
    return At(task).take(choice, content)


def compat(choice: str, content: str, task: Task | None = None) -> StepResult:
    return At(task, compat="userrl").take(choice, content)


def refused(result: StepResult) -> bool:
    """Not executed, the turn used, nothing won, the episode going on."""
    return not result.valid and result.reward == 0.0 and not result.done


def plainly(result: StepResult, told: str) -> bool:
    """Executed, nothing won, the episode going on."""
    return result.valid and result.reward == 0.0 and not result.done and told in text(result)


@pytest.mark.parametrize("content", ["3 5 5 3", "3, 5, 5, 3", "03 5 5 3", "+3 5 5 3"])
def test_fn_01_the_input_that_counts_cannot_be_tried(content: str) -> None:
    assert plainly(fixed("action", content), gym.REFUSED)
    assert plainly(compat("action", content), gym.REFUSED)


@pytest.mark.parametrize("content", ["3.0000001 5 5 3", "2.9999999 5 5 3"])
def test_fn_02_and_03_a_number_near_it_gives_its_value_away_in_compat_only(content: str) -> None:
    assert refused(fixed("action", content))
    assert plainly(compat("action", content), "225.0")


def test_fn_04_a_whole_number_written_as_a_float() -> None:
    assert refused(fixed("action", "3.0 5 5 3"))
    assert plainly(compat("action", "3.0 5 5 3"), gym.REFUSED)


def test_fn_05_a_trial() -> None:
    assert text(fixed("action", "1 2 3 4")) == "24"
    assert text(compat("action", "1 2 3 4")) == "24.0"


def test_fn_06_an_exponent_is_read_as_two_numbers_in_compat() -> None:
    assert refused(fixed("action", "1e1 5 5 3"))
    assert plainly(compat("action", "1e1 5 5 3"), "exactly four")


def test_fn_07_a_dash_is_read_as_a_sign_in_compat() -> None:
    assert refused(fixed("action", "3-4 5 3"))
    assert text(compat("action", "3-4 5 3")) == "-180.0"


def test_fn_08_words_around_numbers() -> None:
    assert refused(fixed("action", "five 1 2 3 4"))
    assert text(compat("action", "five 1 2 3 4")) == "24.0"


def test_fn_09_three_numbers() -> None:
    assert refused(fixed("action", "3 5 5"))
    assert plainly(compat("action", "3 5 5"), "exactly four")


def test_fn_10_looking_up_the_input() -> None:
    for one in (fixed, compat):
        assert plainly(one("search", "Test"), "3 5 5 3")
        assert "3 5 5 3" not in text(one("search", "tests"))
    assert refused(fixed("search", "tests"))
    assert plainly(compat("search", "tests"), gym.NO_LOOK_UP)


@pytest.mark.parametrize("content", ["225", "2.25e2", "225.0000009"])
def test_fn_11_right_answers(content: str) -> None:
    for one in (fixed, compat):
        result = one("answer", content)
        assert (result.reward, result.terminated, result.success) == (1.0, True, True)
        assert (result.reason, result.by) == (StopReason.GOAL_REACHED, Party.AGENT)


def test_fn_12_nearly_right_is_wrong() -> None:
    for one in (fixed, compat):
        assert plainly(one("answer", "225.000002"), gym.WRONG)


@pytest.mark.parametrize(
    ("content", "reward"), [("nan", 0), ("inf", 0), ("2_25", 1), ("= 225", 0), ("", 0)]
)
def test_fn_13_what_python_reads_as_a_number(content: str, reward: float) -> None:
    assert refused(fixed("answer", content))
    result = compat("answer", content)
    assert (result.reward, result.terminated, result.valid) == (reward, reward == 1, True)
    if content in ("= 225", ""):
        assert text(result) == gym.BROKEN


def test_fn_14_giving_up() -> None:
    for at, told in ((At(expose_finish=True), ""), (At(compat="userrl"), "The value is 225.")):
        last = at.take("finish", "enough")
        assert (last.reward, last.terminated, last.success) == (0.0, True, False)
        assert text(last) == told
        assert last.private.grading == {"answer": "The value is 225."}
    assert refused(fixed("finish", "enough"))


def test_fn_15_a_trial_without_a_value() -> None:
    task = task_of("d / a", expected=1)
    assert plainly(fixed("action", "0 5 5 3", task), gym.UNDEFINED)
    assert plainly(compat("action", "0 5 5 3", task), gym.BROKEN)


def test_fn_16_towers_of_powers_cost_no_time() -> None:
    at = At(task_of("a ** b ** c", [2, 2, 2, 2], 16))
    started = time.perf_counter()
    assert plainly(at.take("action", "20 20 20 20"), gym.UNDEFINED)
    assert time.perf_counter() - started < 0.1  # 10 ms on a machine at rest
    loose = At(task_of("a ** b ** c", [2, 2, 2, 2], 16), compat="userrl")
    assert plainly(loose.take("action", "20 20 20 20"), gym.BROKEN)


def test_fn_17_right_at_the_sixteenth_step() -> None:
    def last(**options: Any) -> StepResult:
        at = At(**options)
        for number in range(20):
            result = at.take("answer", "225" if number == 15 else "7")
            if result.done:
                return result
        raise AssertionError("it did not end")

    for options in ({}, {"compat": "userrl", "phase": "eval"}):
        result = last(**options)
        assert (result.reward, result.terminated, result.truncated) == (1.0, True, False)
    trained = last(compat="userrl", phase="train")
    assert (trained.reward, trained.terminated, trained.truncated) == (0.0, False, True)


@pytest.mark.parametrize("options", [{}, {"compat": "userrl"}])
def test_fn_18_equal_seeds_give_equal_transcripts(options: dict[str, Any]) -> None:
    (task,) = load_tasks("function", split="test", seed=4, count=1)
    plays = [asyncio.run(play(table(task, options=options), "random", seed=3)) for _ in range(2)]
    first, second = (played.transcript() for played in plays)
    assert first == second


def test_what_the_agent_is_told_first_hides_the_input_and_the_rule() -> None:
    at = At()
    assert at.seen.first_user == "The rule is set."
    assert "3 5 5 3" not in at.seen.system
    assert "225" not in at.seen.system


def test_only_what_nothing_has_shown_is_forbidden() -> None:
    at = At()
    assert at.gym.forbidden() == [RULE, "225"]
    at.take("action", "5 5 5 5")
    assert at.gym.forbidden() == [RULE]  # a trial may have had the same value
    shown = At(task_of("a + b - b", [3, 5, 1, 1], 3))
    assert shown.gym.forbidden() == ["a + b - b"]  # the input shows a 3


@pytest.mark.parametrize(
    "content", ["1001 1 1 1", "1234567 1 1 1", "1 2 3 4 5", "٣ 5 5 3", "1;2;3;4"]
)
def test_trials_beyond_a_thousand_or_in_other_digits_are_invalid(content: str) -> None:
    assert refused(fixed("action", content))


def test_values_are_shown_whole_or_to_four_decimals() -> None:
    third = task_of("a / b", [6, 2, 1, 1], 3)
    assert text(fixed("action", "1 3 1 1", third)) == "0.3333"
    assert text(fixed("action", "-6 3 1 1", third)) == "-2"
    assert text(compat("action", "1 3 1 1", third)) == "0.3333"


@pytest.mark.parametrize(
    ("hidden", "told"),
    [
        ({"rule": "import os"}, "is no rule"),
        ({"rule": "a + __name__"}, "holds Name"),
        ({"rule": "abs(a)"}, "holds Call"),
        ({"rule": "a + 1.5"}, "holds Constant"),
        ({"rule": "a if b else c"}, "holds IfExp"),
        ({"rule": None}, "hidden"),
        ({"test_case": [1, 2, 3]}, "test_case"),
        ({"test_case": [1, 2, 3, True]}, "test_case"),
        ({"test_case": None}, "test_case"),
        ({"expected": 224}, "the rule gives 225"),
        ({"expected": "many"}, "expected"),
        ({"rule": "a / (b - b)"}, "Undefined"),
    ],
)
def test_a_damaged_task_is_refused_before_anything_runs(hidden: dict[str, Any], told: str) -> None:
    task = task_of()
    broken = replace(task, hidden={**task.hidden, **hidden})
    with pytest.raises(DataError) as caught:
        At(broken)
    assert told in str(caught.value) or told == "hidden"
    assert check_tasks([broken])


@pytest.mark.parametrize(
    "rule",
    [
        "__import__('pathlib').Path('x').touch() or a+b",
        "a+b or __import__('pathlib').Path('x').touch()",
        "(lambda: a)()",
        "[a for a in (b, c)]",
        "a.__class__",
        "'a' * 9",
        "-" * 100_000 + "a",
        "a" + "+a" * 1_000,
    ],
    ids=lambda rule: rule[:12],
)
def test_a_rule_is_never_evaluated_as_code(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-SEC-03: it is refused when it is read, whatever it holds; no file appears."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"rule|holds"):
        rules.parse(rule)
    assert check_tasks([task_of(rule=rule)])
    assert list(tmp_path.iterdir()) == []


def test_a_task_without_its_rule_is_refused() -> None:
    for key in ("rule", "test_case", "expected"):
        task = task_of()
        bare = replace(task, hidden={k: v for k, v in task.hidden.items() if k != key})
        with pytest.raises(DataError, match="'fn'"):
            At(bare)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'function_probe'"):
        At(function_probes="ints")


# Rules ----------------------------------------------------------------------------------------

EXPRESSIONS = st.recursive(
    st.sampled_from([*rules.NAMES, "1", "2", "3"]),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**"]), inner).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=8,
)


@given(EXPRESSIONS, st.lists(st.integers(-1000, 1000), min_size=4, max_size=4))
def test_every_rule_has_a_bounded_value_or_none(rule: str, values: list[int]) -> None:
    tree = rules.parse(rule)
    try:
        value = rules.evaluate(tree, values)
    except rules.Undefined:
        return
    assert abs(value) <= max(rules.MAX_VALUE, 1000)
    assert rules.spell(value)


@given(EXPRESSIONS)
def test_rules_that_mean_the_same_have_one_signature(rule: str) -> None:
    tree = rules.parse(rule)
    assert rules.signature(tree) == rules.signature(rules.parse(f"(0 + {rule}) * 1"))


def test_signatures_tell_rules_apart() -> None:
    same = ["a * (b + c) + d", "d + a * c + b * a"]
    other = ["a * b + c + d", "a * (b + c) - d", "a ** 2 + b + c + d", "(a + b) / c + d"]
    signatures = {rule: rules.signature(rules.parse(rule)) for rule in same + other}
    assert signatures[same[0]] == signatures[same[1]]
    assert len(set(signatures.values())) == 1 + len(other)


def test_values_are_exact() -> None:
    tree = rules.parse("(a / b) * b - a + c ** 2 - -d")
    assert rules.evaluate(tree, (1, 3, 5, 7)) == Fraction(32)


# Tasks ----------------------------------------------------------------------------------------


def test_tasks_are_sound_and_no_group_is_in_two_splits() -> None:
    made = {s: load_tasks("function", split=s, seed=7, count=40) for s in ("train", "test")}
    made["validation"] = load_tasks("function", split="validation", seed=7, count=5)
    tasks = [task for each in made.values() for task in each]
    assert check_tasks(tasks) == []
    groups = [task.groups[0] for task in tasks]
    assert len(set(groups)) == len(groups)  # no two rules mean the same
    for task in tasks:
        hidden = gym.read_hidden(task)
        assert all(name in hidden.rule for name in rules.NAMES)
        assert 0 < abs(hidden.expected) <= 5000
        assert hidden.expected.denominator == 1


def test_equal_arguments_give_equal_tasks() -> None:
    first, second = (load_tasks("function", seed=3, count=5) for _ in range(2))
    assert first == second
    assert [t.id for t in first] != [t.id for t in load_tasks("function", seed=4, count=5)]


# The compact profile --------------------------------------------------------------------------


def compact_task(rule: str = "a - d", case: str = "3 1 4 9") -> Task:
    numbers = [int(word) for word in case.split()]
    value = int(rules.evaluate(rules.parse(rule), numbers))
    public = {"profile": "compact", "intro": f"input {case}"}
    hidden = {"rule": rule, "test_case": numbers, "expected": value}
    return Task("function", "fc", "test", ("g",), public, hidden)


def line(at: Any, written: str) -> StepResult:
    action = get_format("line").parse(AgentMove(written), at.spec)
    return asyncio.run(at.step(action))


def compact_gym(task: Task | None = None) -> Any:
    at = make_gym("function", profile="compact", user=None)  # type: ignore[arg-type]
    first = asyncio.run(at.reset(task or compact_task(), seed=1))
    assert first.first_user == "input 3 1 4 9"
    return at


def test_compact_is_played_in_the_line_grammar() -> None:
    at = compact_gym()
    assert text(line(at, "2 3 5 9")) == "-7"
    assert text(line(at, "ask 2 3 5 1")) == "1"
    last = line(at, "act -6")
    assert (last.reward, last.terminated, last.success) == (1.0, True, True)


def test_compact_takes_one_answer() -> None:
    at = compact_gym()
    last = line(at, "act 6")
    assert (last.reward, last.terminated, last.success) == (0.0, True, False)
    assert last.reason is StopReason.CASE_CLOSED


@pytest.mark.parametrize("written", ["act", "act yes", "0 1 1 1", "10 1 1 1", "-1 1 1 1", "hello"])
def test_compact_refuses_what_is_no_move(written: str) -> None:
    result = line(compact_gym(), written)
    assert not result.valid
    assert not result.done


def test_compact_refuses_the_input_that_counts_and_ends_after_six() -> None:
    at = compact_gym()
    assert text(line(at, "3 1 4 9")) == gym.REFUSED
    results = [line(at, "1 2 3 4") for _ in range(5)]
    assert [r.truncated for r in results] == [False] * 4 + [True]


def test_compact_questions_are_never_shared_between_splits() -> None:
    made = [
        task
        for split in ("train", "validation", "test")
        for task in load_tasks("function", profile="compact", split=split, seed=2, count=200)
    ]
    assert check_tasks(made) == []
    questions = [(t.hidden["rule"], tuple(t.hidden["test_case"])) for t in made]
    assert len(set(questions)) == len(questions)
    assert Counter(rule for rule, _ in questions).keys() == set(compact.RULES)
    assert len(compact.RULES) == 24


def test_every_word_of_a_compact_episode_is_in_its_vocabulary() -> None:
    words = set(compact.vocabulary())
    tasks = load_tasks("function", profile="compact", split="train", seed=5, count=30)
    for task, agent in zip(tasks, ["eager", "patient", "random"] * 10, strict=True):
        at = table(task)
        played = asyncio.run(play(at, agent, seed=1))
        said = [get_format("line").render(action) for action in played.actions]
        heard = [text(result) for result in played.results]
        for shown in (played.observation.system, played.observation.first_user, *said, *heard):
            assert set(shown.split()) <= words


def test_what_the_patient_agent_tries_tells_all_rules_apart() -> None:
    tried = set()
    for task in load_tasks("function", profile="compact", split="train", seed=4, count=400):
        agent = compact.PatientAgent(replace(task, hidden={}), 0)
        move = asyncio.run(agent.act(AgentView(Observation("", task.public["intro"]), (), 0, 6)))
        assert move.action is not None
        tried.add(tuple(int(word) for word in move.action.content.split()))
    for trial in tried:
        values = [rules.evaluate(rules.parse(rule), trial) for rule in compact.RULES]
        assert len(set(values)) == len(compact.RULES)


def test_compact_agents_read_public_text_only_and_patience_pays() -> None:
    tasks = load_tasks("function", profile="compact", split="test", seed=6, count=40)

    def mean(agent: str) -> float:
        blind = [replace(t, hidden={}) for t in tasks]
        kind = load_gym("function")
        players = [kind.agent(agent, b, n) for n, b in enumerate(blind)]
        totals = [
            asyncio.run(play(table(task), player, seed=1)).total
            for task, player in zip(tasks, players, strict=True)
        ]
        return sum(totals) / len(totals)

    eager, patient, luck = mean("eager"), mean("patient"), mean("random")
    assert luck < 0.2 < eager < 0.9 < patient


def test_agents_that_a_profile_lacks_are_told() -> None:
    with pytest.raises(UnknownNameError, match="agent of gym 'function' 'eager'"):
        load_gym("function").agent("eager", task_of(), 1)
    odd = replace(task_of(), public={"profile": "tiny"})
    with pytest.raises(UnknownNameError, match="profile of function 'tiny'"):
        load_gym("function").attainable(odd)


def test_nothing_hidden_stands_in_public() -> None:
    for profile in load_gym("function").profiles:
        for task in load_tasks("function", profile=profile, seed=1, count=10):
            assert not holds_string(str(task.public), str(task.hidden["rule"]))


@pytest.mark.parametrize("trial", ["hello", "1 2 3", "1 2 3 10"])
def test_compact_names_its_own_range(trial: str) -> None:
    told = text(line(compact_gym(), trial))
    assert "numbers from 1 to 9" in told
    assert "thousand" not in told
