"""The gym `turtle`: rows TU-01 to TU-13 in both modes, its scripts and cues, its pack."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import pytest

from mimesim import jsonio, prompts
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import Thought
from mimesim.envs.agents.floors import floors
from mimesim.envs.base import AgentAction, Choice, StepResult, Task
from mimesim.envs.gyms.turtle.gym import NOTHING, TurtleGym
from mimesim.envs.gyms.turtle.stories import check, read_hidden
from mimesim.envs.load import check_tasks, load_tasks
from mimesim.envs.packs import SPLITS, public_text
from mimesim.envs.turns.labels import MAX_QUESTION, original_reading
from mimesim.envs.turns.law import leaks
from mimesim.envs.turns.parts import by_tag
from mimesim.errors import DataError, JudgeError, UserError
from mimesim.judges.base import Judge
from mimesim.judges.rubric import RubricJudge
from mimesim.judges.rule import RuleJudge
from mimesim.models.scripted import Scripted
from mimesim.stats.texts import words
from mimesim.users.base import User
from mimesim.users.load import make_user
from mimesim.users.scripted.kinds import CHARACTERS
from mimesim.users.settings import Settings
from mimesim.users.sources import make_source
from tests.support.gyms import CANARY, play, table

FIXED: Mapping[str, Any] = {}
USERRL = {"compat": "userrl"}
MIMESIS = {"compat": "mimesis"}
BOTH = pytest.mark.parametrize("options", [FIXED, USERRL, MIMESIS], ids=["fixed", "rl", "mimesis"])
STATEMENTS = (
    "The sound is the purpose, not the water.",
    "A dog reacts to it.",
    "Someone must take medicine.",
)
BOTTOM = "The whistle tells her deaf neighbor's dog to wake him for his medicine."


def kettle(*weights: float, **changed: Any) -> Task:
    """Return a story with as many points as weights; the golden one has .5, .3 and .2."""
    weights = weights or (0.5, 0.3, 0.2)
    given = [*STATEMENTS, "She does it every evening."]
    criteria = [
        {"id": f"c{n}", "statement": given[n - 1], "weight": weight}
        for n, weight in enumerate(weights, 1)
    ]
    cues = {"c1": [["whistle"]], "c2": [["dog"]], "c3": [["medicine"]], "c4": [["evening"]]}
    hidden = {
        "bottom": BOTTOM,
        "criteria": criteria,
        "cues": {one["id"]: cues[str(one["id"])] for one in criteria},
        "script": [
            {"pattern": r"\b(sound|whistle|noise)\b", "label": "Yes"},
            {"pattern": r"\b(thirst|drink)", "label": "No"},
        ],
        "oracle_trace": [["answer", BOTTOM]],
        "scenario": {"id": "t", "goal": "Know the story.", "meta": {"profile": "asked"}},
    }
    public = {
        "title": "The Quiet Kettle",
        "surface": "Every evening a woman boils water and never drinks it.",
    }
    return Task("turtle", "golden", "test", ("family:habit",), public, hidden | changed)


def scores(*values: float) -> str:
    """Return a verdict on as many points as there are values."""
    found = [{"criterion_id": f"c{n}", "value": v} for n, v in enumerate(values, 1)]
    return jsonio.dumps({"scores": found})


def says(*answers: str) -> Judge:
    return RubricJudge(Scripted(list(answers)), name="model:scripted")


def modeled(*replies: str) -> User:
    """Return a model-backed person that says these texts one after the other."""
    settings = Settings(max_regen=0)
    model = Scripted(list(replies))
    source = make_source("roleplay:scripted", model, template="user/roleplay", settings=settings)
    return source.start(kettle().scenario, seed=1)


def neutral(kind: str = "neutral") -> User:
    return make_user(f"scripted:{kind}").start(kettle().scenario, seed=1)


def acted(
    options: Mapping[str, Any],
    *actions: AgentAction,
    judge: Judge | None = None,
    user: User | None = None,
    task: Task | None = None,
) -> tuple[TurtleGym, list[StepResult]]:
    async def run() -> tuple[TurtleGym, list[StepResult]]:
        gym = TurtleGym(user=user or neutral(), judge=judge or RuleJudge(), options=options)
        await gym.reset(task or kettle(), seed=3)
        return gym, [await gym.step(action) for action in actions]

    return asyncio.run(run())


def ask(text: str) -> AgentAction:
    return AgentAction(Choice.ACTION, text)


def tell(text: str = "A story.") -> AgentAction:
    return AgentAction(Choice.ANSWER, text)


def told(result: StepResult) -> str:
    [message] = result.feedback
    return message.content


# The table ------------------------------------------------------------------------------------


@BOTH
def test_tu_01_to_04_a_story_pays_what_it_gains(options: Mapping[str, Any]) -> None:
    """TU-01, TU-02, TU-03, TU-04."""
    judged = says(scores(1, 0.5, 0), scores(0.5, 0, 0), scores(1, 0.5, 1), scores(1, 1, 1))
    gym, results = acted(options, *[tell()] * 4, judge=judged)
    assert [r.reward for r in results] == pytest.approx([0.65, 0, 0.2, 0.15])
    assert [r.done for r in results] == [False, False, False, True]
    assert results[-1].reason is StopReason.GOAL_REACHED
    assert (results[-1].success, results[-1].truncated) == (True, False)
    assert sum(r.reward for r in results) == pytest.approx(1)
    assert gym.state.best == 1


def test_tu_02_the_best_story_stays_the_measure() -> None:
    gym, _ = acted(FIXED, tell(), tell(), judge=says(scores(1, 0.5, 0), scores(0.5, 0, 0)))
    assert gym.state.best == pytest.approx(0.65)


@pytest.mark.parametrize(
    ("options", "text"),
    [(FIXED, "0 of 3 points fully right, 3 partly."), (USERRL, NOTHING), (MIMESIS, NOTHING)],
)
def test_tu_05_half_points_alone(options: Mapping[str, Any], text: str) -> None:
    _, [result] = acted(options, tell(), judge=says(scores(0.5, 0.5, 0.5)))
    assert result.reward == pytest.approx(0.5)
    assert told(result) == text


@pytest.mark.parametrize(
    ("options", "ends"),
    [(FIXED, True), (USERRL, False), (MIMESIS, False), ({"turtle_tol": "exact"}, False)],
)
def test_tu_06_weights_that_do_not_quite_add_up(options: Mapping[str, Any], *, ends: bool) -> None:
    """Added from left to right, .4, .3, .2 and .1 are less than 1: the original never ends."""
    _, [result] = acted(
        options, tell(), judge=says(scores(1, 1, 1, 1)), task=kettle(0.4, 0.3, 0.2, 0.1)
    )
    assert result.terminated is ends
    assert result.reward == pytest.approx(1)
    if not ends:
        assert result.reward == 0.9999999999999999


@pytest.mark.parametrize(
    "wrong",
    [
        scores(1, 1),
        '{"scores": [{"criterion_id": "c1", "value": 1}, {"criterion_id": "c1", "value": 1},'
        ' {"criterion_id": "c3", "value": 1}]}',
        '{"scores": [{"criterion_id": "c1", "value": 1}, {"criterion_id": "c2", "value": 1},'
        ' {"criterion_id": "c9", "value": 1}]}',
    ],
    ids=["too-few", "twice", "unknown"],
)
def test_tu_07_a_verdict_must_hold_each_point_once(wrong: str) -> None:
    _, [result] = acted(FIXED, tell(), judge=says(wrong, scores(1, 0, 0)))
    assert result.reward == pytest.approx(0.5)

    async def run() -> None:
        gym = TurtleGym(user=neutral(), judge=says(wrong, wrong, wrong, scores(1, 1, 1)))
        await gym.reset(kettle(), seed=3)
        with pytest.raises(JudgeError):
            await gym.step(tell())
        assert (gym.state.best, gym.snapshot()["turns"]) == (0, 0)
        assert (await gym.step(tell())).reward == pytest.approx(1)

    asyncio.run(run())


@pytest.mark.parametrize("options", [USERRL, MIMESIS])
def test_tu_07_compat_spends_the_turn_without_a_word_of_it(options: Mapping[str, Any]) -> None:
    gym, [result] = acted(options, tell(), judge=says(*[scores(1, 1)] * 3))
    assert (told(result), result.reward, result.valid) == (TurtleGym.CANNED, 0, True)
    assert gym.snapshot()["turns"] == 1


@pytest.mark.parametrize("options", [USERRL, MIMESIS])
def test_tu_07_compat_pairs_by_place_and_only_counts(options: Mapping[str, Any]) -> None:
    odd = (
        '{"scores": [{"criterion_id": "x", "value": 1}, {"criterion_id": "x", "value": 0},'
        ' {"criterion_id": "x", "value": 1}]}'
    )
    _, [result] = acted(options, tell(), judge=says(odd))
    assert result.reward == pytest.approx(0.7)


def test_tu_08_a_value_that_there_is_not_is_asked_for_again() -> None:
    _, [result] = acted(FIXED, tell(), judge=says(scores(5, 0, 0), scores(0.5, 0, 0)))
    assert result.reward == pytest.approx(0.25)


@pytest.mark.parametrize("options", [USERRL, MIMESIS, {"turtle_tol": "exact"}])
def test_tu_08_compat_takes_it(options: Mapping[str, Any]) -> None:
    _, [result] = acted(options, tell(), judge=says(scores(5, 0, 0)))
    assert (result.reward, result.terminated) == (1.0, True)


@pytest.mark.parametrize(("options", "shown"), [(FIXED, "Yes"), (MIMESIS, "Yes"), (USERRL, "yes.")])
def test_tu_09_a_reply_in_other_spelling(options: Mapping[str, Any], shown: str) -> None:
    _, [result] = acted(options, ask("Is it the sound?"), user=modeled("yes."))
    assert told(result) == shown


def test_tu_10_a_reply_with_reasoning_in_front() -> None:
    thought = "<think>The whistle.</think>Yes"
    _, [result] = acted(FIXED, ask("Is it the sound?"), user=modeled(thought))
    assert told(result) == "Yes"
    assert result.private.reply is not None
    assert result.private.reply.thought == Thought("The whistle.")
    _, [result] = acted(USERRL, ask("Is it the sound?"), user=modeled(thought))
    assert (told(result), result.reward) == (TurtleGym.CANNED, 0)


def test_tu_11_a_blank_question() -> None:
    _, [result] = acted(FIXED, ask("  "), user=modeled("Yes"))
    assert not result.valid
    assert not result.private.reply
    _, [result] = acted(USERRL, ask(""), user=modeled("Yes"))
    assert (told(result), result.valid) == ("Yes", True)


def test_tu_12_compat_takes_what_is_no_answer_for_a_question() -> None:
    """TU-12: and cuts off as many letters as its tag has, whether or not it is there."""

    def read(text: str) -> tuple[Choice, str]:
        return original_reading(by_tag(AgentAction(Choice.ACTION, text, raw=True)))

    assert read("Is it a thirsty woman?") == (Choice.ACTION, "thirsty woman?")
    assert read("[action] Is it she?") == (Choice.ACTION, "Is it she?")
    assert read("[answer] She drinks.") == (Choice.ANSWER, "She drinks.")
    searched = AgentAction(Choice.SEARCH, "Is it the whistle?")
    _, [result] = acted(USERRL, searched)
    assert told(result) == "Yes"
    _, [result] = acted(FIXED, searched)
    assert not result.valid


@pytest.mark.parametrize(
    ("options", "shown"),
    [(FIXED, False), (USERRL, True), (MIMESIS, True), ({"turtle_feedback": "statements"}, True)],
)
def test_tu_13_points_are_named_by_the_original_alone(
    options: Mapping[str, Any], *, shown: bool
) -> None:
    gym, [result] = acted(options, tell(), judge=says(scores(1, 0.5, 0)))
    assert (STATEMENTS[0] in told(result)) is shown
    assert not any(statement in told(result) for statement in STATEMENTS[1:])
    assert bool(leaks([told(result)], gym.forbidden(), [])) is shown


# Beyond the table -----------------------------------------------------------------------------


def test_a_question_has_an_end() -> None:
    _, [kept, cut] = acted(FIXED, ask("w" * MAX_QUESTION), ask("w" * (MAX_QUESTION + 1)))
    assert (kept.valid, cut.valid) == (True, False)
    _, [sent] = acted(USERRL, ask("w" * (MAX_QUESTION + 1)))
    assert sent.valid


def test_a_reply_without_a_label_is_a_failure() -> None:
    class Chatty:
        """Answers at length."""

        def __init__(self) -> None:
            self.inner = neutral()

        async def respond(self, request: Any) -> Any:
            reply = await self.inner.respond(request)
            return type(reply)(None, "That would be telling.")

        def snapshot(self) -> dict[str, Any]:
            return {}

        def restore(self, state: Mapping[str, Any]) -> None:
            """Take nothing over."""

    with pytest.raises(UserError, match="neither Yes"):
        acted(FIXED, ask("Is it the sound?"), user=Chatty())


@pytest.mark.parametrize(
    ("question", "label"),
    [
        ("Does the sound matter?", "Yes"),
        ("Was she THIRSTY?", "No"),
        ("Is the noise of drinking meant?", "Yes"),
        ("Is it Tuesday?", "Maybe"),
    ],
)
def test_the_script_answers_by_its_first_pattern(question: str, label: str) -> None:
    _, [result] = acted(FIXED, ask(question))
    assert told(result) == label
    assert result.reward == 0


@pytest.mark.parametrize("kind", sorted(CHARACTERS))
def test_people_tell_the_same_and_evasive_ones_do_so_later(kind: str) -> None:
    _, results = acted(FIXED, *[ask("Is it the whistle?")] * 2, user=neutral(kind))
    plays = set(CHARACTERS[kind].behaviors)
    first = "Maybe" if plays & {"B1", "B3"} else "Yes"
    assert [told(r) for r in results] == [first, "Yes"]


@pytest.mark.parametrize(
    ("story", "values"),
    [
        (BOTTOM, [1, 1, 1]),
        ("A whistle wakes the DOG.", [1, 1, 0]),
        ("Whistles and dogs.", [0, 0, 0]),
        ("The kettle.", [0, 0, 0]),
    ],
)
def test_the_rule_judge_reads_whole_words(story: str, values: Sequence[float]) -> None:
    _, [result] = acted(FIXED, tell(story))
    assert list(result.private.grading["values"]) == values


@pytest.mark.parametrize(
    ("story", "met"),
    [("the red barn door", 1.0), ("a red door", 0.5), ("a red thing", 0.0), ("barn", 0.5)],
)
def test_half_of_the_cues_is_half_a_point(story: str, met: float) -> None:
    cues = {"c1": [["red", "door"], "barn"], "c2": ["x"], "c3": ["x"]}
    hidden = read_hidden(kettle(cues=cues))
    assert hidden.criteria[0].met(story) == met


def test_the_judge_reads_neither_weights_nor_cues() -> None:
    at = table(load_tasks("turtle", split="test", count=1)[0])
    asyncio.run(play(at, "oracle"))
    [asked] = at.referee.asked
    assert set(asked.inputs) == {"surface", "bottom", "story", "criteria"}
    assert {key for one in asked.inputs["criteria"] for key in one} == {"id", "statement"}
    shown = prompts.render("judge/turtle.score", **asked.inputs)
    assert all(one["statement"] in shown for one in asked.inputs["criteria"])


def test_the_person_reads_the_story_and_the_question() -> None:
    task = load_tasks("turtle", split="test", count=1)[0]
    at = table(task)
    played = asyncio.run(play(at, "oracle"))
    heard = at.person.heard
    assert [request.agent_text for request in heard] == [
        action.content for action in played.actions if action.choice is Choice.ACTION
    ]
    assert heard[1].history[-1].content == "Yes"
    shown = prompts.render(
        "user/kinds/turtle.oracle", public=heard[0].public, private=heard[0].private
    )
    assert task.public["surface"] in shown
    assert task.hidden["bottom"] in shown
    assert CANARY not in played.transcript()


def test_giving_up_tells_the_story_under_compat_only() -> None:
    give_up = AgentAction(Choice.FINISH, "I give up.")
    _, [result] = acted({"expose_finish": True}, give_up)
    assert (result.feedback, result.terminated, result.success) == ((), True, False)
    _, [result] = acted(USERRL, give_up)
    assert told(result) == BOTTOM


# Tasks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bottom": ""}, "hidden.bottom"),
        ({"criteria": []}, "criteria"),
        ({"criteria": "none"}, "hidden.criteria"),
        ({"criteria": [{"id": "c1", "statement": "s", "weight": True}]}, "weight"),
        ({"criteria": [{"id": "c1", "statement": "s", "weight": 0.5}]}, "sum to 0.5"),
        ({"criteria": [{"id": "c1", "statement": "s", "weight": 0.5}] * 2}, "each id once|c1"),
        ({"cues": {}}, "no cues"),
        ({"cues": {"c1": [[]], "c2": ["x"], "c3": ["x"]}}, "cue"),
        ({"cues": {"c1": ["("], "c2": ["x"], "c3": ["x"]}}, "pattern"),
        ({"cues": None}, "hidden.cues"),
        ({"script": [{"pattern": "x", "label": "Perhaps"}]}, "label"),
        ({"script": [{"label": "Yes"}]}, "pattern"),
        ({"oracle_trace": ["answer"]}, "oracle_trace"),
    ],
)
def test_a_damaged_task_is_refused(change: Mapping[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check(kettle(**change))


@pytest.mark.parametrize(
    "weights", [(1.0,), (0.51, 0.49), (0.2, 0.2, 0.2, 0.2)], ids=["one", "odd", "less"]
)
def test_own_tasks_keep_to_the_grid(weights: Sequence[float]) -> None:
    own = kettle(*weights)
    own = Task(own.gym, own.id, own.split, own.groups, own.public, own.hidden, OWN)
    with pytest.raises(DataError, match="two to five"):
        check(own)


OWN = {"source": "mimesim", "license": "Apache-2.0"}


def pack() -> list[Task]:
    return [task for split in SPLITS for task in load_tasks("turtle", split=split, count=999)]


def each_story(test: Callable[[Task], None]) -> Any:
    return pytest.mark.parametrize("task", pack(), ids=lambda task: task.id)(test)


def test_the_pack_is_sound() -> None:
    tasks = pack()
    assert check_tasks(tasks) == []
    assert len(tasks) >= 60
    assert {split: sum(t.split == split for t in tasks) for split in SPLITS} == {
        "train": 48,
        "validation": 3,
        "test": 15,
    }
    assert all(t.meta == {**OWN, "schema": 1} for t in tasks)
    assert len({t.public["title"] for t in tasks}) == len(tasks)


def test_no_test_story_is_nearly_one_of_training() -> None:
    said = {(t.split, t.id): set(words(public_text(t))) for t in pack()}
    for (left, one), (right, two) in product(said.items(), repeat=2):
        if left[0] == "test" and right[0] == "train":
            assert len(one & two) / len(one | two) <= 0.8


@each_story
def test_a_story_can_be_told_and_is_not_told_by_its_surface(task: Task) -> None:
    hidden = read_hidden(task)
    assert 2 <= len(hidden.criteria) <= 5
    assert [one.met(hidden.bottom) for one in hidden.criteria] == [1] * len(hidden.criteria)
    for text in (task.public["surface"], task.public["title"]):
        assert [one.met(text) for one in hidden.criteria] == [0] * len(hidden.criteria)
    for one in hidden.criteria:
        assert one.met(one.statement) > 0
    asked = [text for choice, text in task.hidden["oracle_trace"] if choice == "action"]
    assert [hidden.label(text) for text in asked] == ["Yes"] * len(asked)
    assert len(asked) >= 2
    assert {label for _, label in hidden.script} == {"Yes", "No"}


def test_tasks_come_in_a_seeded_order() -> None:
    def names(seed: int, count: int | None = None) -> list[str]:
        return [t.id for t in load_tasks("turtle", split="train", seed=seed, count=count)]

    assert names(1) == names(1)
    assert names(1) != names(2)
    assert sorted(names(1)) == sorted(names(2))
    assert names(1, 5) == names(1)[:5]


def test_floors_of_the_whole_pack() -> None:
    found = asyncio.run(floors(pack(), make_user("scripted:neutral")))
    assert found.tasks == 66
    assert (found.null, found.random) == (0, 0)
    assert found.oracle == pytest.approx(found.attainable)
    assert found.attainable == 1


def test_a_story_of_something_else_pays_little() -> None:
    """Cues are words, so any story meets some; that of another task is worth little by mistake."""
    tasks = pack()
    won = [
        sum(one.weight * one.met(other.hidden["bottom"]) for one in read_hidden(task).criteria)
        for task in tasks
        for other in tasks
        if other is not task
    ]
    assert sum(won) / len(won) < 0.1
