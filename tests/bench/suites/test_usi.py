"""The user-sim index: golden numbers, pairing, floors, official files, and what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.bench.suites.base import Inputs
from mimesim.bench.suites.difficulty import frozen_difficulty
from mimesim.bench.suites.goldens import calibration, usi
from mimesim.bench.suites.goldens.base import Check
from mimesim.bench.suites.sessions import Session, SessionSet, read_sessions
from mimesim.bench.suites.usi.features import NAMES, STRUCTURAL, identifiers, measure
from mimesim.bench.suites.usi.lexicon import own_lexicon
from mimesim.bench.suites.usi.suite import SUITE, TAU_SUITE
from mimesim.corpora.build import BuildConfig, SourceConfig, build
from mimesim.dialogue.stop import END_MARKER
from mimesim.dialogue.types import Role
from mimesim.errors import UsageError
from mimesim.results.suite import SuiteScore
from mimesim.stats import Design, ece, null_ece

TASKS = [task for task in frozen_difficulty() if task.startswith("airline")][:12]


def session(task: str, *said: str, trial: int = 0, reward: float | None = 1.0) -> Session:
    turns = tuple((Role.USER, text) for text in said)
    return Session(f"{task}/{trial}", turns, task=task, trial=trial, reward=reward)


def sets(*sessions: Session) -> SessionSet:
    return SessionSet("some", sessions)


def some(word: str, trials: int = 1, tasks: Sequence[str] = tuple(TASKS)) -> SessionSet:
    """Return conversations whose users differ in length, and whose success alternates."""
    return sets(
        *(
            session(
                task, f"{word} please " * (1 + n % 3), "ok", trial=trial, reward=(n + trial) % 2
            )
            for trial in range(trials)
            for n, task in enumerate(tasks)
        )
    )


def scored(ours: SessionSet, theirs: SessionSet | None = None, **fields: Any) -> SuiteScore:
    return SUITE.score(Inputs(ours, theirs, **{"draws": 50, **fields}))


@pytest.mark.parametrize("check", [*usi.CHECKS, *calibration.CHECKS], ids=lambda check: check.name)
def test_golden(check: Check, request: pytest.FixtureRequest) -> None:
    data = None
    if check.outcome(None).verdict == "skipped":
        data = request.getfixturevalue("test_data")
    outcome = check.outcome(data)
    if outcome.verdict == "skipped":
        pytest.skip(outcome.reason)
    assert outcome.verdict == "passed", outcome


def test_a_user_beside_itself_is_perfect_and_beside_another_is_not() -> None:
    same = scored(some("hello", 3), some("hello", 3))
    assert {
        name: same.metric(name).value.value for name in ("D1", "D2", "D3", "D4")
    } == dict.fromkeys(("D1", "D2", "D3", "D4"), pytest.approx(100))
    other = scored(some("definitely wrong \u2014 are you sure"), some("hello", 3))
    assert (other.metric("USI5").value.value or 100) < 80
    assert other.suite == "usi-own"
    assert not other.references
    people = [one for one in other.floors if one.name == "people against people"]
    assert {one.metric for one in people} >= {"D1", "ECE", "USI5"}
    (perfect,) = [one for one in other.floors if one.name == "perfect simulator"]
    assert "1 runs, 3 batches" in perfect.value.method
    assert other.metric("politeness_rate").note.startswith("likeness")
    assert "rare" in other.metric("certainty_rate").note


def test_scoring_is_pure_and_does_not_depend_on_order() -> None:
    ours, theirs = some("hello", 2), some("goodbye", 2)
    first = scored(ours, theirs).to_json()
    assert jsonio.dumps(first) == jsonio.dumps(scored(ours, theirs).to_json())
    turned = replace(theirs, sessions=theirs.sessions[::-1])
    again = scored(ours, turned)
    for metric in scored(ours, theirs).metrics:
        assert again.metric(metric.name).value.value == pytest.approx(metric.value.value)


def test_what_has_no_counterpart_is_told() -> None:
    mute = session("airline_9", END_MARKER)
    ours = sets(*some("hello").sessions, session("only_here", "hi"), replace(mute, id="m"))
    unknown = replace(some("bye", tasks=TASKS[:5]).sessions[0], reward=None, success=None)
    found = scored(ours, sets(unknown, *some("bye", tasks=TASKS[1:5]).sessions))
    assert found.excluded == {"no_user_turn": 1}
    told = " ".join(found.warnings)
    assert "8 tasks of the user have no counterpart" in told
    assert "1 conversations of people have no known success" in told
    assert found.provenance["tasks"] == 5


def test_sides_without_common_tasks() -> None:
    ours, theirs = some("hello"), some("bye", tasks=["a", "b", "c"])
    with pytest.raises(UsageError, match=r"no task is common.*without --set paired=true"):
        scored(ours, theirs, options={"paired": True})
    found = scored(ours, theirs)
    assert found == scored(ours, theirs, options={"paired": False})
    assert any("not paired by task" in text for text in found.warnings)
    assert found.metric("ECE").value.value is None
    assert found.metric("USI5").value.value is None
    assert found.metric("D2").value.low is not None
    with pytest.raises(UsageError, match="says nothing"):
        scored(sets(session("airline_1", END_MARKER)))


def test_a_reward_is_no_success_where_the_record_says_so() -> None:
    part = replace(session("airline_1", "hi", reward=0.4), success=False)
    assert scored(sets(part)).metric("success").value.value == 0
    assert scored(sets(part), mode="compat").metric("success").value.value == 100
    assert scored(sets(replace(part, success=None))).metric("success").value.value == 100


def test_what_neither_side_shows_is_no_likeness_of_a_hundred() -> None:
    found = scored(some("hello"), some("hello"))
    assert found.metric("emotion_rate").note == "on neither side"


def test_without_people_the_row_and_the_noise_of_runs() -> None:
    found = scored(some("hello", 3))
    assert {one.name for one in found.metrics} == {*NAMES, "turns", "user_turns", "success"}
    assert {one.name for one in found.floors} == {"the same user, run against run"}
    assert "3 pairs" in found.floors[0].covers
    assert not scored(some("hello")).floors
    one = scored(sets(session("airline_1", "hi")))
    assert one.metric("opening_words").value.low is None
    assert "one cluster" in one.metric("opening_words").value.method


def test_what_makes_one_doubt_a_comparison_is_told(tmp_path: Path) -> None:
    same = scored(some("hello", 2), some("hello", 2))
    assert any("24 conversations stand on both sides" in told for told in same.warnings)
    other = scored(some("hello", 2), some("bye", 2))
    assert not any("stand on both sides" in told for told in other.warnings)
    jsonio.write_json(tmp_path / "d.json", dict.fromkeys(TASKS, 0.99))
    lie = scored(some("a", 2), some("b", 2), options={"difficulty": str(tmp_path / "d.json")})
    assert any("49 points or more from the success of both" in told for told in lie.warnings)
    own = scored(some("a", 10), some("b"), options={"difficulty": "self"})
    (perfect,) = [one for one in own.floors if one.name == "perfect simulator"]
    assert "is unknown" in perfect.note


def test_the_perfect_simulator_plays_what_was_played() -> None:
    """Four runs of two tasks make its error as large as theirs, not as small as full runs would."""
    few = tuple(TASKS[:2])
    ours = sets(*some("a", 1).sessions, *(s for s in some("a", 5, few).sessions if s.trial))
    (perfect,) = [one for one in scored(ours, some("b")).floors if one.name == "perfect simulator"]
    (full,) = [
        one for one in scored(some("a", 5), some("b")).floors if one.name == "perfect simulator"
    ]
    assert (perfect.value.high or 0) > 1.4 * (full.value.high or 0)
    assert perfect.covers == "5 to 95 %"
    assert perfect.brief().keys() == {"value", "range", "covers", "method"}


def test_difficulties_of_the_measured_runs(tmp_path: Path) -> None:
    many = some("hello", 10)
    found = scored(many, some("bye"), options={"difficulty": "self", "null": "pooled"})
    assert found.metric("ECE").value.value is not None
    assert any("own success" in warning for warning in found.warnings)
    with pytest.raises(UsageError, match="ten times"):
        scored(some("hello"), some("bye"), options={"difficulty": "self"})
    jsonio.write_json(tmp_path / "d.json", {"airline_1": 1.5})
    with pytest.raises(UsageError, match="a success rate from 0 to 1"):
        scored(many, some("bye"), options={"difficulty": str(tmp_path / "d.json")})
    with pytest.raises(UsageError, match="difficulty or pooled"):
        scored(many, some("bye"), options={"null": "half"})


def test_official_files(tmp_path: Path) -> None:
    """People in three batches, a model in its own shape, surveys: none of it may be trained on."""

    def entry(key: str, *said: str, **more: Any) -> dict[str, Any]:
        opening = {"role": "assistant", "content": "Hi! How can I help you today?"}
        talk = [opening, *({"role": "user", "content": text} for text in said)]
        survey = {"human_like": {"question": "?", "answer": "Yes"}}
        base = {"task_id": 0, "instance_id": "x", "agent_id": "a", "reward": 1.0, "keep": True}
        return {**base, "conversation": talk, "survey": survey, **more}

    people = {
        f"airline_{n}{end}": entry("", "\\tau airline", f"cancel {n} please", "ok", "/stop")
        for n in range(3)
        for end in ("", "_ann2", "_ann3")
    }
    people["airline_4"] = entry("", "hi", keep=False)
    model = [
        {
            "domain": "airline",
            "task_index": n,
            "conversation": [
                {"role": "user", "content": f"cancel {n} ###STOP###"},
                {"role": "user", "content": "###STOP###"},
            ],
            "reward": 0,
        }
        for n in range(3)
    ]
    human, runs, answers = (tmp_path / f"{name}.json" for name in ("human", "runs", "survey"))
    jsonio.write_json(human, people)
    jsonio.write_json(runs, {"results": model})
    jsonio.write_json(answers, {"airline_0_ann2": {"survey": {"human_like": {"answer": "No"}}}})
    theirs = read_sessions(f"tau-usi:{human}", raw=True)
    ours = read_sessions(f"tau-usi:{runs}", raw=True)
    assert sorted({one.trial for one in theirs.sessions}) == [0, 1, 2]
    assert theirs.left_out == {"not_kept": 1}
    assert ours.simulated
    assert not theirs.simulated
    assert theirs.sessions[0].said == ("cancel 0 please", "ok")
    found = scored(ours, theirs, mode="compat", options={"survey": str(answers)})
    assert found.metric("user_words_per_turn").value.value == pytest.approx(3)
    assert found.metric("ECE").value.value == 1
    assert found.metric("Eval").value.value == 0
    assert found.metric("USI6").value.value is not None
    assert scored(ours, theirs).metric("user_words_per_turn").value.value == 2
    source = SourceConfig(corpus="own", place=str(human))
    with pytest.raises(UsageError):
        build(BuildConfig(source=(source,), out=tmp_path / "built"))
    assert not (tmp_path / "built" / "train.jsonl").exists()


def test_texts_as_recorded(test_data: Path) -> None:
    """A bare path is known by its ids; markers stay, and messages of one side are not joined."""
    place = str(test_data / "tau_bench" / "gpt4o_airline_trajectories.jsonl")
    kept, tidied = read_sessions(place, raw=True), read_sessions(place)
    assert sum(END_MARKER in text for one in kept.sessions for text in one.said) == 147
    assert not any(END_MARKER in text for one in tidied.sessions for text in one.said)
    assert kept.sessions[0].id == "tau_bench/airline/0/0"
    assert [one.task for one in kept.sessions[:2]] == ["airline_0", "airline_1"]


def test_official_lists_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MIMESIM_TAU_USI_LEXICON", raising=False)
    with pytest.raises(UsageError, match="do not come with MimeSim"):
        TAU_SUITE.score(Inputs(some("hello")))
    detectors = {
        name: {"match": one.match, "patterns": [{"type": "phrase", "value": "hello"}]}
        for name, one in own_lexicon().detectors.items()
    }
    lists = tmp_path / "lists.json"
    jsonio.write_json(lists, {"schema": "mimesim.usi_lexicon/1", "detectors": detectors})
    monkeypatch.setenv("MIMESIM_TAU_USI_LEXICON", str(lists))
    with pytest.raises(UsageError, match="not the official word lists"):
        TAU_SUITE.score(Inputs(some("hello")))
    found = scored(some("hello"), options={"lexicon": str(lists)})
    assert found.suite == "usi-custom"
    assert found.metric("emotion_rate").value.value == 50


def test_only_structural_features_do_without_lists() -> None:
    assert len(STRUCTURAL) == 8
    text = "\u2019tis what i\u2019d like: hello hello hello " * 12
    row = measure(session("a", text), own_lexicon(), "fixed")
    compat = measure(session("a", text), own_lexicon(), "compat")
    assert row is not None
    assert compat is not None
    values, old = (dict(zip(NAMES, one.values, strict=True)) for one in (row, compat))
    assert (values["pivot_rate"], old["pivot_rate"]) == (1, 0)
    assert values["repeat_rate"] == 1
    private = "<think>your order</think>hello"
    shown = measure(session("a", private, "<function=x>y</function>"), own_lexicon(), "fixed")
    assert shown is not None
    assert (shown.user_turns, shown.dropped, shown.values[NAMES.index("id_confuse_rate")]) == (
        1,
        1,
        0,
    )


def test_long_tokens_take_linear_time() -> None:
    assert identifiers("_" * 200_000 + "12") == 0
    assert identifiers("a_b_" * 50_000 + "123") == 1


@settings(max_examples=40)
@given(data=st.data())
def test_calibration_error_is_at_least_the_gap_and_forgets_order(data: st.DataObject) -> None:
    rates = frozen_difficulty()
    tasks = data.draw(
        st.lists(st.sampled_from(sorted(rates)), min_size=1, max_size=40, unique=True)
    )
    sides = [
        {task: float(data.draw(st.booleans())) for task in tasks},
        {task: float(data.draw(st.booleans())) for task in tasks},
    ]
    value = ece(sides[0], sides[1], rates).value
    assert value is not None
    gap = abs(sum(sides[0].values()) - sum(sides[1].values())) / len(tasks)
    assert value >= gap - 1e-12
    turned = [{task: side[task] for task in data.draw(st.permutations(tasks))} for side in sides]
    assert ece(turned[0], turned[1], rates).value == pytest.approx(value)


def test_the_null_covers_a_perfect_simulator() -> None:
    rates = list(frozen_difficulty().values())
    design = Design.full(3, 3, len(rates))
    null = null_ece(rates, design)
    perfect = null_ece(rates, design, draws=500, seed=1).samples
    covered = sum(null.share_at_least(error) >= 0.05 for error in perfect) / len(perfect)
    assert 0.93 <= covered <= 0.97
    worse = null_ece(rates, design, rates=[0.2] * len(rates), draws=50, seed=1)
    assert worse.interval.value is not None
    with pytest.raises(ValueError, match="a common task"):
        null_ece([], Design.full(1, 1, 0))
