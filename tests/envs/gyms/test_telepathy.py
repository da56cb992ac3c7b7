"""The gym `telepathy`: rows TE-01 to TE-09 in both modes, its answers, its table."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from mimesim import jsonio, prompts
from mimesim.dialogue.stop import StopReason
from mimesim.envs.agents.floors import floors
from mimesim.envs.base import AgentAction, Choice, StepResult, Task
from mimesim.envs.gyms.telepathy.gym import RIGHT, WRONG, TelepathyGym
from mimesim.envs.gyms.telepathy.tasks import Thing, table
from mimesim.envs.gyms.telepathy.things import check, plain, read_hidden
from mimesim.envs.load import check_tasks, load_tasks
from mimesim.envs.packs import SPLITS
from mimesim.envs.turns.law import leaks
from mimesim.errors import ConfigError, DataError, JudgeError, UserError
from mimesim.judges.base import Judge
from mimesim.judges.rubric import RubricJudge
from mimesim.judges.rule import RuleJudge
from mimesim.models.scripted import Scripted
from mimesim.users.base import User
from mimesim.users.load import make_user
from mimesim.users.scripted.kinds import CHARACTERS
from tests.support.gyms import CANARY, Person, Referee, play
from tests.support.gyms import table as seated

FIXED: Mapping[str, Any] = {}
USERRL = {"compat": "userrl"}
MIMESIS = {"compat": "mimesis"}
COMMENT = {"guess": "comment"}
BOTH = pytest.mark.parametrize("options", [FIXED, USERRL, MIMESIS], ids=["fixed", "rl", "mimesis"])
ORIGINALS = pytest.mark.parametrize(
    "options", [USERRL, MIMESIS, COMMENT], ids=["rl", "mimesis", "flag"]
)
OWN = {"source": "mimesim", "license": "Apache-2.0", "schema": 1}


def lion(**changed: Any) -> Task:
    """Return the golden task."""
    hidden = {
        "title": "Lion",
        "target": "Lion, a large wild cat",
        "aliases": ["african lion"],
        "attributes": {"fur": True, "feathers": False, "wild cat": True, "red": False},
        "cues": {
            "fur": ["fur", "hairy"],
            "feathers": ["feathers"],
            "wild cat": ["big cat"],
            "red": ["red"],
            "tame": ["cat", "tame"],
        },
        "oracle_trace": [["answer", "Lion"]],
        "scenario": {"id": "t", "goal": "Think of it.", "meta": {"profile": "asked"}},
    }
    public = {"intro": "I am thinking of an animal.", "kind": "animal"}
    return Task("telepathy", "golden", "test", ("kind:animal",), public, hidden | changed)


def neutral(kind: str = "neutral") -> User:
    return make_user(f"scripted:{kind}").start(lion().scenario, seed=1)


def says(*verdicts: Any) -> Judge:
    return RubricJudge(Scripted([jsonio.dumps(one) for one in verdicts]), name="model:scripted")


def acted(
    options: Mapping[str, Any],
    *actions: AgentAction,
    judge: Judge | None = None,
    user: User | None = None,
    task: Task | None = None,
) -> list[StepResult]:
    async def run() -> list[StepResult]:
        gym = TelepathyGym(user=user or neutral(), judge=judge or RuleJudge(), options=options)
        await gym.reset(task or lion(), seed=3)
        return [await gym.step(action) for action in actions]

    return asyncio.run(run())


def ask(text: str) -> AgentAction:
    return AgentAction(Choice.ACTION, text)


def guess(text: str) -> AgentAction:
    return AgentAction(Choice.ANSWER, text)


def told(result: StepResult) -> str:
    [message] = result.feedback
    return message.content


# The table ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["lion", "The Lion.", "a LION", "African lion!", "the african  lion"]
)
def test_te_01_a_name_is_right_by_rule(name: str) -> None:
    referee = Referee()
    [result] = acted(FIXED, guess(name), judge=referee)
    assert (result.reward, result.terminated, result.success) == (1.0, True, True)
    assert (result.reason, told(result)) == (StopReason.GOAL_REACHED, RIGHT)
    assert referee.asked == []


@ORIGINALS
@pytest.mark.parametrize(("verdict", "reward"), [("Yes", 1.0), ("No", 0.0)])
def test_te_01_in_the_original_the_judge_decides(
    options: Mapping[str, Any], verdict: str, reward: float
) -> None:
    [result] = acted(options, guess("lion"), judge=says({"correct": verdict}))
    assert (result.reward, result.terminated) == (reward, reward == 1)


@BOTH
def test_te_02_another_animal(options: Mapping[str, Any]) -> None:
    verdict = {"correct": "No"} if options else {"correct": False}
    [judged] = acted(options, guess("tiger"), judge=says(verdict))
    [ruled] = acted(options, guess("tiger"))
    for result in (judged, ruled):
        assert (told(result), result.reward, result.done) == (WRONG, 0, False)
        assert result.private.judge


def test_te_02_the_judge_knows_other_names() -> None:
    [result] = acted(FIXED, guess("panthera leo"), judge=says({"correct": True}))
    assert (result.reward, told(result)) == (1.0, RIGHT)


@pytest.mark.parametrize("text", ["lion or tiger", "lion, tiger", "tiger; lion", "lion/tiger"])
def test_te_03_several_guesses_are_wrong(text: str) -> None:
    referee = Referee()
    [result] = acted(FIXED, guess(text), judge=referee)
    assert (told(result), result.reward, referee.asked) == (WRONG, 0, [])
    [result] = acted(USERRL, guess(text), judge=says({"correct": "Yes"}))
    assert result.reward == 1


@pytest.mark.parametrize("text", ["lion,", "/lion", "lion or the"])
def test_te_03_one_guess_with_a_sign_too_many_is_one(text: str) -> None:
    referee = Referee()
    acted(FIXED, guess(text), judge=referee)
    assert len(referee.asked) == (0 if plain(text) == "lion" else 1)


def test_te_03_a_name_may_hold_an_or() -> None:
    task = lion(title="Salt or pepper", target="Salt or pepper, a game", aliases=["salt, pepper"])
    for name in ("salt or pepper", "Salt, Pepper"):
        assert acted(FIXED, guess(name), task=task)[0].reward == 1


@pytest.mark.parametrize(("word", "reward"), [("yes", 1), (" YES", 1), ("no", 0), ("No", 0)])
def test_te_04_a_yes_in_lower_case(word: str, reward: int) -> None:
    [result] = acted(FIXED, guess("big cat of africa"), judge=says({"correct": word}))
    assert result.reward == reward


def test_te_04_any_other_word_is_asked_for_again() -> None:
    judge = says({"correct": "perhaps"}, {"correct": True})
    assert acted(FIXED, guess("big cat of africa"), judge=judge)[0].reward == 1


@ORIGINALS
def test_te_04_the_original_wants_it_exactly(options: Mapping[str, Any]) -> None:
    [result] = acted(options, guess("lion"), judge=says({"correct": "yes"}))
    assert (result.reward, result.done) == (0, False)


@BOTH
def test_te_05_a_question_that_names_it(options: Mapping[str, Any]) -> None:
    [result] = acted(options, ask("Is it a lion?"))
    assert (told(result), result.reward, result.done) == ("Yes", 0, False)


def test_te_06_what_the_judge_says_besides() -> None:
    comment = "It is a lion, of course."
    verdict = {"correct": False, "comment": comment}
    [result] = acted(FIXED, guess("tiger"), judge=says(verdict))
    assert told(result) == WRONG
    for options in (USERRL, MIMESIS, COMMENT):
        [result] = acted(options, guess("tiger"), judge=says({**verdict, "correct": "No"}))
        assert comment in told(result)
        assert leaks([told(result)], ["Lion"], [])


def test_te_07_a_person_that_fails() -> None:
    def failing() -> Person:
        return Person(neutral(), fails=[UserError("gone"), None])

    async def run() -> None:
        gym = TelepathyGym(user=failing(), judge=RuleJudge())
        await gym.reset(lion(), seed=3)
        with pytest.raises(UserError):
            await gym.step(ask("Does it have fur?"))
        assert (gym.snapshot()["turns"], gym.state.asked) == (0, 0)
        assert told(await gym.step(ask("Does it have fur?"))) == "Yes"

    asyncio.run(run())
    for options in (USERRL, MIMESIS):
        [result] = acted(options, ask("Does it have fur?"), user=failing())
        assert (told(result), result.reward, result.done) == (TelepathyGym.CANNED, 0, False)


def test_te_07_a_judge_that_fails() -> None:
    with pytest.raises(JudgeError):
        acted(FIXED, guess("tiger"), judge=Referee(fails=[JudgeError("gone")]))
    [result] = acted(USERRL, guess("lion"), judge=Referee(fails=[JudgeError("gone")]))
    assert (told(result), result.reward, result.done) == (TelepathyGym.CANNED, 0, False)


@BOTH
def test_te_08_right_in_the_last_step(options: Mapping[str, Any]) -> None:
    """The original's evaluator also calls it cut off; a step here is never both."""
    results = acted(options, *[ask("Is it red?")] * 15, guess("lion"))
    assert [r.done for r in results] == [False] * 15 + [True]
    last = results[-1]
    assert (last.reward, last.terminated, last.truncated) == (1.0, True, False)
    noted = {"compat": "both flags"} if options else {}
    assert last.private.grading == noted


def test_te_08_training_in_the_original_ends_a_step_earlier() -> None:
    results = acted({**USERRL, "phase": "train"}, *[ask("Is it red?")] * 15)
    assert (results[-1].truncated, results[-1].success) == (True, False)


def test_te_09_a_pasted_conversation() -> None:
    pasted = ask("Is it red? No. " * 67)
    assert len(pasted.content) > 1000
    assert not acted(FIXED, pasted)[0].valid
    for options in (USERRL, MIMESIS):
        [result] = acted(options, pasted)
        assert (result.valid, told(result)) == (True, "No")


# Beyond the table -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "label"),
    [
        ("Does it have FUR?", "Yes"),
        ("Has it feathers?", "No"),
        ("Is it a big cat?", "Yes"),
        ("Is it a cat?", "Maybe"),
        ("Has it fur or feathers?", "Maybe"),
        ("Is it red or has it feathers?", "No"),
        ("Is it a furry thing?", "Maybe"),
        ("Is it old?", "Maybe"),
        ("An African bird or a lion?", "Yes"),
    ],
)
def test_questions_are_known_by_their_words(question: str, label: str) -> None:
    assert told(acted(FIXED, ask(question))[0]) == label


@pytest.mark.parametrize("kind", sorted(CHARACTERS))
def test_people_tell_the_same_and_evasive_ones_do_so_later(kind: str) -> None:
    results = acted(FIXED, *[ask("Does it have fur?")] * 2, user=neutral(kind))
    evasive = {"B1", "B3"} & set(CHARACTERS[kind].behaviors)
    assert [told(r) for r in results] == ["Maybe" if evasive else "Yes", "Yes"]


@pytest.mark.parametrize(("options", "heard"), [({}, 0), ({"oracle_history": True}, 2)])
def test_earlier_questions_are_read_on_request(options: Mapping[str, Any], heard: int) -> None:
    person = Person(neutral())
    acted(options, ask("Is it red?"), ask("Has it fur?"), user=person)
    assert len(person.heard[1].history) == heard
    assert person.heard[1].agent_text == "Has it fur?"


def test_prompts_hold_what_is_needed_and_no_more() -> None:
    person, referee = Person(neutral()), Referee()
    acted(FIXED, ask("Is it red?"), guess("tiger"), user=person, judge=referee)
    [asked], [judged] = person.heard, referee.asked
    part = prompts.render("user/kinds/telepathy.oracle", public=asked.public, private=asked.private)
    assert "Lion, a large wild cat" in part
    question = prompts.render("judge/telepathy.guess", **judged.inputs)
    assert "| tiger" in question
    assert "comment" not in question
    assert "comment" in prompts.render(
        "judge/telepathy.guess", **{**judged.inputs, "comments": True}
    )


def test_giving_up_tells_the_name_under_compat_only() -> None:
    give_up = AgentAction(Choice.FINISH, "no idea")
    assert acted({"expose_finish": True}, give_up)[0].feedback == ()
    assert "Lion" in told(acted(USERRL, give_up)[0])


def test_an_unknown_way_to_guess_is_refused() -> None:
    with pytest.raises(ConfigError, match="'guess' is 'chance'"):
        TelepathyGym(user=neutral(), judge=RuleJudge(), options={"guess": "chance"})


# Tasks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"title": ""}, "hidden.title"),
        ({"title": "The"}, "no name"),
        ({"target": None}, "hidden.target"),
        ({"aliases": "lion"}, "hidden.aliases"),
        ({"attributes": None}, "hidden.attributes"),
        ({"attributes": {"fur": "yes"}}, "'fur' is 'yes'"),
        ({"cues": None}, "hidden.cues"),
        ({"cues": {"fur": "fur"}}, "cues of 'fur'"),
        ({"cues": {"fur": ["?"]}}, "a cue is"),
        ({"oracle_trace": [["guess", "Lion"]]}, "oracle_trace"),
    ],
)
def test_a_damaged_task_is_refused(change: Mapping[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check(lion(**change))


@pytest.mark.parametrize("key", ["intro", "kind"])
def test_a_task_without_a_first_view_is_refused(key: str) -> None:
    task = lion()
    with pytest.raises(DataError, match=f"public.{key}"):
        check(replace(task, public={k: v for k, v in task.public.items() if k != key}))


def everything() -> list[Task]:
    return [task for split in SPLITS for task in load_tasks("telepathy", split=split, count=999)]


def test_the_table_is_sound() -> None:
    things, attributes = table()
    tasks = everything()
    assert check_tasks(tasks) == []
    assert len(tasks) == len(things) == 190
    assert len(attributes) >= 25
    assert {split: sum(t.split == split for t in tasks) for split in SPLITS} == {
        "train": 133,
        "validation": 12,
        "test": 45,
    }
    assert {len(t.groups) for t in tasks} == {1}
    assert all(t.meta == OWN for t in tasks)
    names = [n for t in tasks for n in {plain(name) for name in read_hidden(t).names}]
    assert len(names) == len(set(names))


def apart(one: Thing, two: Thing) -> bool:
    """Tell whether some question is answered Yes for one and No for the other."""
    mine, others = one.attributes, two.attributes
    return any(others.get(name, value) != value for name, value in mine.items())


def test_all_things_of_a_kind_can_be_told_apart() -> None:
    things, _ = table()
    alike = [
        (one.title, two.title)
        for one, two in combinations(things, 2)
        if one.kind == two.kind and not apart(one, two)
    ]
    assert alike == []


def test_every_question_of_the_table_is_answered_from_its_own_column() -> None:
    _, attributes = table()
    labels = {True: "Yes", False: "No", None: "Maybe"}
    for task in everything():
        hidden = read_hidden(task)
        wanted = {name: labels[hidden.attributes.get(name)] for name in attributes}
        assert wanted == {name: hidden.label(one.question) for name, one in attributes.items()}


def test_the_trace_leaves_one_thing_of_its_kind() -> None:
    """What is open for a thing fits every answer."""
    things, attributes = table()
    column = {one.question: name for name, one in attributes.items()}
    for task in everything():
        *asked, last = task.hidden["oracle_trace"]
        hidden = read_hidden(task)
        assert last == ["answer", hidden.title]
        heard = {column[text]: hidden.label(text) == "Yes" for _, text in asked}
        left = [
            thing.title
            for thing in things
            if thing.kind == task.public["kind"]
            and all(thing.attributes.get(name, yes) == yes for name, yes in heard.items())
        ]
        assert left == [hidden.title]


def test_tasks_come_in_a_seeded_order() -> None:
    def names(seed: int, count: int | None = None) -> list[str]:
        return [t.id for t in load_tasks("telepathy", split="test", seed=seed, count=count)]

    assert names(1) == names(1)
    assert names(1) != names(2)
    assert sorted(names(1)) == sorted(names(2))
    assert names(1, 5) == names(1)[:5]


def test_floors_of_the_test_split() -> None:
    tasks = load_tasks("telepathy", split="test", count=999)
    found = asyncio.run(floors(tasks, make_user("scripted:neutral")))
    assert (found.null, found.random, found.oracle, found.attainable) == (0, 0, 1, 1)


@pytest.mark.parametrize(
    ("agent", "kind", "least", "most"),
    [("patient", "neutral", 0.95, 1), ("patient", "B3", 0.9, 1), ("eager", "neutral", 0.2, 0.5)],
)
def test_agents_that_know_the_table_find_the_thing(
    agent: str, kind: str, least: float, most: float
) -> None:
    tasks = load_tasks("telepathy", split="test", count=999)
    won = [
        asyncio.run(play(seated(task, kind=f"scripted:{kind}"), agent, seed=n)).total
        for n, task in enumerate(tasks)
    ]
    assert least <= sum(won) / len(won) <= most


@pytest.mark.parametrize("agent", ["patient", "eager"])
def test_a_kind_that_is_not_in_the_table_is_not_found(agent: str) -> None:
    played = asyncio.run(play(seated(lion()), agent))
    assert played.total == 0
    assert played.results[-1].truncated


@pytest.mark.parametrize("kind", ["neutral", "hostile", "realistic"])
def test_nothing_hidden_is_heard(kind: str) -> None:
    at = seated(load_tasks("telepathy", split="train", count=1)[0], kind=f"scripted:{kind}")
    played = asyncio.run(play(at, "random"))
    assert CANARY not in played.transcript()
    shown = [message.content for result in played.results for message in result.feedback]
    assert leaks(shown, list(read_hidden(at.task).names), []) == []
