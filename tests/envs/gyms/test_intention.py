"""The gym `intention`: rows IN-01 to IN-15 in both modes, its scripted person, its tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim import jsonio, prompts
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import Reply
from mimesim.envs.base import AgentAction, Choice, StepResult, Task
from mimesim.envs.gyms.intention import person, scoring
from mimesim.envs.gyms.intention.details import read_details
from mimesim.envs.gyms.intention.gym import FRIENDLY, IntentionGym, State
from mimesim.envs.gyms.intention.tasks import group_of, make_tasks, templates
from mimesim.envs.load import check_tasks, load_gym, load_tasks
from mimesim.envs.packs import holds_string
from mimesim.envs.turns.cues import matches, read_cue
from mimesim.envs.turns.law import leaks
from mimesim.errors import ContextExceeded, DataError, InfraError, JudgeError, UserError
from mimesim.judges.base import Judge
from mimesim.judges.rubric import RubricJudge
from mimesim.models.scripted import Scripted
from mimesim.seeds import generator
from mimesim.stats.texts import words
from mimesim.users.base import User
from mimesim.users.load import make_user
from mimesim.users.scripted.kinds import CHARACTERS
from tests.support.gyms import CANARY, Table, play, table

USERRL = {"compat": "userrl"}
MIMESIS = {"compat": "mimesis"}
ORIGINAL = {"original_counting": True}
MODES: Sequence[Mapping[str, Any]] = ({}, USERRL, MIMESIS)
DETAILS: Sequence[Mapping[str, Any]] = (
    {
        "description": "number of guests",
        "inquiry": "How many people will come?",
        "options": ["eight", "twenty", "fifty"],
        "answer": "twenty",
    },
    {
        "description": "kind of place",
        "inquiry": "Where should it be?",
        "options": ["at home", "in the park"],
        "answer": "in the park",
    },
    {"description": "sum of money", "inquiry": "What may it cost?", "options": ["90 euros"]},
)
CUES = {"0": [["guests"], ["people"]], "1": [["where"], ["place"]], "2": [["cost"], ["money"]]}


def party(*importances: int, **more: Any) -> Task:
    """Return the task of the table; with other importances, as many details of that kind."""
    wanted = importances or (2, 2, 2)
    details = [{"id": n, "importance": one, **DETAILS[n % 3]} for n, one in enumerate(wanted)]
    hidden = {
        "details": details,
        "cues": {str(n): CUES[str(n % 3)] for n in range(len(wanted))},
        "scenario": {"id": "t", "goal": "Have a party.", "meta": {"profile": "asked"}},
    }
    public = {"category": "Events", "task": "Plan a birthday party."}
    return Task("intention", "golden", "test", ("tmpl:party",), public, hidden | more)


def names(*covered: Sequence[Any], related: bool = True, literal: bool = False) -> Judge:
    """Return a judge on a model that names these indices, one list after the other."""
    verdicts = [{"is_task_related": related, "covered": list(one)} for one in covered]
    return answers(*(repr(one) if literal else jsonio.dumps(one) for one in verdicts))


def answers(*raw: str) -> Judge:
    return RubricJudge(Scripted(list(raw)), name="model:scripted")


def asks(text: str, choice: Choice = Choice.ACTION) -> AgentAction:
    return AgentAction(choice, text)


def neutral(task: Task) -> User:
    return make_user("scripted:neutral").start(task.scenario, seed=1)


def asked(
    options: Mapping[str, Any],
    judge: Judge,
    turns: int = 1,
    *,
    task: Task | None = None,
    user: User | None = None,
) -> tuple[IntentionGym, list[StepResult]]:
    """Play `turns` questions; the judge is asked about each."""

    async def run() -> tuple[IntentionGym, list[StepResult]]:
        of = task or party()
        gym = IntentionGym(user=user or neutral(of), judge=judge, options=options)
        await gym.reset(of, seed=3)
        return gym, [await gym.step(asks(f"Question {turn}?")) for turn in range(turns)]

    return asyncio.run(run())


def one(options: Mapping[str, Any], *covered: Any, task: Task | None = None) -> list[Any]:
    """Return reward, details left and whether it ended, of one question."""
    literal = options.get("compat") == "userrl"
    of = task or party()
    gym, [result] = asked(options, names(covered, literal=literal), task=of)
    left = len(of.hidden["details"]) - len(gym.state.covered)
    return [result.reward, left, result.terminated]


# The table ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("covered", "fixed", "compat"),
    [
        pytest.param([0], [0.7, 2, False], 0.7, id="IN-01"),
        pytest.param([0, 0], [0.7, 2, False], 0.5, id="IN-02"),
        pytest.param([0, 1], [0.5, 1, False], 0.5, id="IN-03"),
        pytest.param([0, 1, 2], [0.3, 0, True], 0.3, id="IN-04"),
        pytest.param(["1"], [0.7, 2, False], 0.7, id="IN-05 one"),
        pytest.param(["1", 1], [0.7, 2, False], 0.5, id="IN-05 twice"),
        pytest.param([5], [0, 3, False], 0, id="IN-06 outside"),
        pytest.param([-1], [0, 3, False], 0, id="IN-06 negative"),
        pytest.param([], [0, 3, False], 0, id="IN-06 none"),
    ],
)
def test_what_a_verdict_pays(covered: Sequence[Any], fixed: Sequence[Any], compat: float) -> None:
    assert one({}, *covered) == fixed
    for mode in (USERRL, MIMESIS, ORIGINAL):
        reward, left, over = one(mode, *covered)
        assert reward == pytest.approx(compat, abs=1e-12)
        assert [left, over] == fixed[1:]


def test_in_02_compat_counts_twice() -> None:
    counted = [asked(mode, names([0, 0]))[0].state.counted for mode in ({}, MIMESIS)]
    assert counted == [1, 2]
    gym, _ = asked(USERRL, names([0, 0], literal=True))
    assert gym.answer().startswith("2 of 3")


def test_in_06_made_up_indices_are_counted() -> None:
    _, [result] = asked({}, names([5, 1, -1]))
    assert result.private.grading["dropped"] == 2
    assert result.reward == 0.7


def test_in_07_booleans() -> None:
    bad, good = (
        '{"is_task_related": true, "covered": [true]}',
        '{"is_task_related": true, "covered": [1]}',
    )
    gym, [mended] = asked({}, answers(bad, good))
    assert (mended.reward, gym.state.covered) == (0.7, (1,))
    with pytest.raises(JudgeError):
        asked({}, answers(bad, bad, bad))
    gym, [compat] = asked(MIMESIS, answers(bad))
    assert (compat.reward, gym.state.covered) == (0.0, ())
    assert one(USERRL, True) == [0.0, 3, False]


def test_in_08_not_of_the_task() -> None:
    for options in MODES:
        literal = options == USERRL
        gym, [result] = asked(options, names([0], related=False, literal=literal))
        assert (result.reward, gym.state.covered) == (0.0, ())


def test_in_09_no_verdict() -> None:
    async def fails() -> None:
        gym = IntentionGym(user=neutral(party()), judge=answers("Well.", "So.", "No."))
        await gym.reset(party(), seed=3)
        with pytest.raises(JudgeError):
            await gym.step(asks("Where?"))
        assert (gym.state, gym.snapshot()["turns"]) == (State(), 0)

    asyncio.run(fails())
    for mode in (USERRL, MIMESIS):
        gym, [result] = asked(mode, answers("Well.", "So.", "No."))
        assert (result.reward, gym.state.covered, result.done) == (0.0, (), False)
        assert result.private.reply is not None
        assert [m.content for m in result.feedback] == [result.private.reply.utterance]


def test_in_10_mixed_importances() -> None:
    assert one({}, 0, 1, task=party(2, 1, 3))[0] == 0.5
    assert one(USERRL, 0, 1, task=party(2, 1, 3))[0] == 0.49999999999999994


@pytest.mark.parametrize(
    ("importances", "reward"), [((1, 1), 0.2), ((1, 1, 1), 0), ((3,) * 6, 0)], ids=str
)
def test_in_11_crowded_questions(importances: Sequence[int], reward: float) -> None:
    for options in MODES:
        got, left, over = one(options, *range(len(importances)), task=party(*importances))
        assert got == pytest.approx(reward, abs=1e-12)
        assert (left, over) == (0, True)


def test_in_12_nothing_settled() -> None:
    _, results = asked({}, names(*[[]] * 16), 16)
    assert [r.done for r in results] == [False] * 15 + [True]
    last = results[-1]
    assert (last.truncated, last.terminated, last.success) == (True, False, False)
    assert sum(r.reward for r in results) == 0
    for mode in (USERRL, MIMESIS):
        _, results = asked(mode, names(*[[]] * 16, literal=mode == USERRL), 16)
        last = results[-1]
        assert (last.truncated, last.terminated, last.success) == (True, False, False)
        assert last.reason is StopReason.MAX_STEPS
        assert last.private.grading["compat"] == "both flags"  # what the original says of it
        assert not any(r.done or "compat" in r.private.grading for r in results[:-1])


def test_in_13_one_at_a_time() -> None:
    for options in MODES:
        verdicts = names([0], [0], [0], literal=options == USERRL)  # indices into what is left
        _, results = asked(options, verdicts, 3)
        assert [r.reward for r in results] == pytest.approx([0.7, 0.7, 0.7])
        total = sum(r.reward for r in results)
        assert total == pytest.approx(2.1)
        assert scoring.normalized(total, [2, 2, 2]) == pytest.approx(1.0)
        assert results[-1].private.grading["normalized"] == pytest.approx(1.0)
        assert (results[-1].terminated, results[-1].success) == (True, True)


def told_to_user(options: Mapping[str, Any]) -> str:
    """Return the private prompt of a model-backed person after one question."""
    at = table(party(), options=options)
    asyncio.run(at.env.reset(at.task, seed=0))
    asyncio.run(at.env.step(asks("Where?")))
    [request] = at.person.heard
    return prompts.render(
        "user/kinds/intention.reply", public=request.public, private=request.private
    )


def test_in_14_what_a_person_is_told() -> None:
    inquiries = [detail["inquiry"] for detail in DETAILS]
    values = ["twenty", "in the park", "90 euros"]
    default, full = told_to_user({}), told_to_user(USERRL)
    none = told_to_user({"intention_user_knowledge": "none"})
    for text in (default, none):
        assert not [inquiry for inquiry in inquiries if inquiry in text]
        assert "importan" not in text
    assert all(inquiry in full for inquiry in inquiries)
    assert all(value in default for value in values)
    assert "fifty" in full
    assert "fifty" not in default
    assert not [v for v in values if v in none]
    assert all(party().public["task"] in text for text in (default, full, none))


def test_in_15_a_person_that_fails() -> None:
    def at(options: Mapping[str, Any], error: Exception) -> Table:
        return table(party(), options=options, fails=[error])

    async def run(at: Table) -> StepResult:
        await at.env.reset(at.task, seed=0)
        return await at.env.step(asks("Where?"))

    for error in (UserError("silent"), InfraError("lost"), ContextExceeded("full", party="user")):
        with pytest.raises(type(error)):
            asyncio.run(run(at({}, error)))
        for mode in (USERRL, MIMESIS):
            result = asyncio.run(run(at(mode, error)))
            assert result.reward == 0.7
            assert result.feedback[-1].content in FRIENDLY
            assert result.private.grading["compat"] == "user failed"


# What else it does ----------------------------------------------------------------------------


def test_the_tags_that_the_original_takes_off() -> None:
    seen = []
    for choice in (Choice.ACTION, Choice.ANSWER, Choice.SEARCH):
        at = table(party(), options=USERRL)
        asyncio.run(at.env.reset(at.task, seed=0))
        asyncio.run(at.env.step(asks("Where?", choice)))
        seen.append(at.referee.asked[0].inputs["question"])
        fixed = table(party())
        asyncio.run(fixed.env.reset(fixed.task, seed=0))
        assert asyncio.run(fixed.env.step(asks("Where?", choice))).valid is (
            choice is Choice.ACTION
        )
    assert seen == ["Where?", "Where?", "[search] Where?"]


def test_a_question_may_not_be_endless() -> None:
    for options, valid in (({}, False), (USERRL, True)):
        at = table(party(), options=options)
        asyncio.run(at.env.reset(at.task, seed=0))
        assert asyncio.run(at.env.step(asks("a" * 1001))).valid is valid


def test_the_original_shows_three_exchanges() -> None:
    for options, most in (({}, 15), (USERRL, 6)):
        at = table(party(), options=options)
        asyncio.run(at.env.reset(at.task, seed=0))
        for turn in range(8):
            asyncio.run(at.env.step(asks(f"Number {turn}?")))
        assert len(at.person.heard[-1].history) == most


def test_coverage_is_of_the_question_and_answers_are_logged_beside_it() -> None:
    logged = []
    for kind in ("scripted:neutral", "scripted:B3"):
        at = table(party(), kind=kind)
        asyncio.run(at.env.reset(at.task, seed=0))
        first = asyncio.run(at.env.step(asks("Where should it be?")))
        again = asyncio.run(at.env.step(asks("Once more: where?")))
        assert (first.reward, again.reward) == (0.7, 0)
        assert holds_string(again.feedback[0].content, "in the park")
        logged.append([first.private.grading[key] for key in ("covered", "answered")])
    assert logged == [[[1], [1]], [[1], []]]


def test_a_value_without_an_answer_is_drawn_once_for_an_episode() -> None:
    details = [{"id": "x", "importance": 1, **DETAILS[0]}]
    del details[0]["answer"]
    task = party(details=details, cues={"x": CUES["0"]})

    def said(seed: int) -> str:
        at = table(task, seed=seed)
        asyncio.run(at.env.reset(task, seed=seed))
        result = asyncio.run(at.env.step(asks("How many guests?")))
        options: Sequence[str] = DETAILS[0]["options"]
        return next(value for value in options if value in result.feedback[0].content)

    assert {said(seed) for seed in range(12)} == {"eight", "twenty", "fifty"}
    assert said(5) == said(5)


def test_nothing_in_mind_is_said_so() -> None:
    reply: Reply = person.speak([""], "neutral", first=True, rng=generator(0, "x"))
    assert reply.utterance in person.WORDS["main"]["open"]


def test_a_judge_sees_what_is_left_under_new_indices() -> None:
    at = table(party(3, 1, 2))
    asyncio.run(at.env.reset(at.task, seed=0))
    asyncio.run(at.env.step(asks("How many guests?")))
    asyncio.run(at.env.step(asks("Where?")))
    left = at.referee.asked[1].inputs["details"]
    assert [(d["index"], d["description"]) for d in left] == [
        (0, "kind of place"),
        (1, "sum of money"),
    ]
    model = Scripted(['{"is_task_related": true, "covered": []}'])
    asyncio.run(RubricJudge(model).judge(at.referee.asked[1]))
    shown = model.requests[0][0][1].content
    assert "index 1, importance 2" in shown
    assert "Where should it be?" in shown


# Scores ---------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 3), min_size=1, max_size=20))
def test_no_question_pays_more_than_its_details_alone(importances: list[int]) -> None:
    assert 0 <= scoring.step_reward(importances) <= 1
    alone = sum(scoring.step_reward([value]) for value in importances)
    assert scoring.step_reward(importances) <= alone + 1e-9
    assert scoring.attainable(importances) == pytest.approx(alone)
    assert scoring.normalized(alone, importances) == pytest.approx(1.0)


def test_nothing_pays_nothing() -> None:
    assert scoring.step_reward([]) == scoring.original_reward([]) == 0


# Tasks ----------------------------------------------------------------------------------------


def test_templates_are_told_apart_by_their_cues() -> None:
    assert len(templates()) >= 20
    for name, template in templates().items():
        for detail in template["details"]:
            hit = [
                other["description"]
                for other in template["details"]
                if matches(read_cue(other["cue"], where=name), detail["inquiry"])
            ]
            assert hit == [detail["description"]], name


def test_the_tasks_are_sound() -> None:
    made = {split: make_tasks(split, 7, 60) for split in ("train", "validation", "test")}
    tasks = [task for part in made.values() for task in part]
    assert check_tasks(tasks) == []
    assert {task.groups[0] for task in tasks} <= {group_of(name) for name in templates()}
    assert all(task.meta["license"] == "Apache-2.0" for task in tasks)
    assert all(1.2 <= load_gym("intention").attainable(task) <= 5 for task in tasks)
    trained = {frozenset(words(task.public["task"])) for task in made["train"]}
    for text in {frozenset(words(task.public["task"])) for task in made["test"]}:
        assert max(len(text & other) / len(text | other) for other in trained) <= 0.8


def test_tasks_depend_on_the_seed_alone() -> None:
    assert load_tasks("intention", split="test", seed=7, count=9) == make_tasks("test", 7, 9)
    assert make_tasks("test", 7, 20)[:9] == make_tasks("test", 7, 9)
    assert make_tasks("test", 8, 9) != make_tasks("test", 7, 9)
    assert make_tasks("test", 7, 0) == []
    assert len({jsonio.canonical(t.hidden["details"]) for t in make_tasks("test", 1, 400)}) == 400


def test_too_many_tasks() -> None:
    with pytest.raises(DataError, match="0 different tasks of 3"):
        make_tasks("nowhere", 0, 3)


@pytest.mark.parametrize("kind", [*CHARACTERS, "realistic"])
def test_the_oracle_finds_everything_out(kind: str) -> None:
    task = make_tasks("test", 3, 1)[0]
    played = asyncio.run(play(table(task, kind=f"scripted:{kind}"), "oracle"))
    assert played.total == pytest.approx(load_gym("intention").attainable(task))
    assert played.results[-1].success


@pytest.mark.parametrize("options", MODES)
def test_floors_and_leaks(options: Mapping[str, Any]) -> None:
    shares: dict[str, list[float]] = {"oracle": [], "random": [], "null": []}
    for task in make_tasks("train", 5, 6):
        best = load_gym("intention").attainable(task)
        for agent, got in shares.items():
            at = table(task, options=options)
            seen: list[str] = []

            def look(played: Any, at: Table = at, seen: list[str] = seen) -> None:
                said = [action.content for action in played.actions]
                heard = [m.content for m in played.results[-1].feedback]
                assert isinstance(at.env, IntentionGym)
                seen.extend(leaks(heard, [*at.env.forbidden(), CANARY], said))

            got.append(asyncio.run(play(at, agent, after=look)).total / best)
            assert seen == []
    assert min(shares["oracle"]) >= 0.95
    assert max(shares["null"]) == 0
    assert sum(shares["random"]) / 6 < 0.6


def test_snapshots_keep_the_drawn_values() -> None:
    details = [{"id": n, "importance": 2, **d} for n, d in enumerate(DETAILS)]
    for detail in details:
        detail.pop("answer", None)
    task = party(details=details)

    async def run() -> None:
        first, other = table(task, seed=1), table(task, seed=9)
        await first.env.reset(task, seed=1)
        await other.env.reset(task, seed=9)
        await first.env.step(asks("Where?"))
        other.env.restore(jsonio.loads(jsonio.dumps(first.env.snapshot())))
        there, here = [await at.env.step(asks("People? Money?")) for at in (first, other)]
        assert (there.feedback, there.reward) == (here.feedback, here.reward)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"details": []}, "details"),
        ({"cues": None}, "cues"),
        ({"cues": {"0": [["guests"]]}}, "cue"),
        ({"details": [{"id": 0, **DETAILS[0]}]}, "importance"),
        ({"details": [{"id": 0, "importance": True, **DETAILS[0]}]}, "importance"),
        ({"details": [{"id": 0, "importance": 4, **DETAILS[0]}]}, "importance"),
        ({"details": [{"id": True, "importance": 1, **DETAILS[0]}]}, "detail"),
        ({"details": [{"id": 0, "importance": 1, **DETAILS[0], "inquiry": " "}]}, "inquiry"),
        ({"details": [{"id": 0, "importance": 1, **DETAILS[0], "options": "x"}]}, "options"),
        ({"details": [{"id": 0, "importance": 1, **DETAILS[0]}] * 2}, "twice"),
    ],
)
def test_damaged_tasks(broken: Mapping[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told) as caught:
        load_gym("intention").secrets(party(**broken))
    assert "golden" in str(caught.value)


def test_a_task_without_its_words() -> None:
    bare = Task("intention", "golden", "test", ("g",), {"category": "Events"}, party().hidden)
    with pytest.raises(DataError, match="task is None"):
        read_details(bare)
