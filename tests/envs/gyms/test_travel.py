"""The gym `travel`: rows TR-01 to TR-15 in all modes, and EV-05 to EV-08 of its score."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from mimesim import prompts
from mimesim.dialogue.stop import Party, StopReason
from mimesim.dialogue.types import Identity, Role
from mimesim.envs.base import AgentAction, Choice, StepResult, Task
from mimesim.envs.gyms.travel import gym as texts
from mimesim.envs.gyms.travel import lines
from mimesim.envs.gyms.travel.gym import TravelGym
from mimesim.envs.gyms.travel.score import travel_score
from mimesim.envs.gyms.travel.verdicts import search_schema, utterance_schema
from mimesim.errors import ConfigError, ContextExceeded, InfraError, JudgeError, UserError
from mimesim.judges.base import Failed, Judge, JudgeRequest, JudgeResult, Verdict
from mimesim.judges.rubric import RubricJudge
from mimesim.judges.rule import RuleJudge
from mimesim.models.scripted import Scripted
from mimesim.models.structured import UnreadableError, validate
from mimesim.seeds import generator
from mimesim.users.base import User
from mimesim.users.load import make_user
from tests.support.gyms import Person

TRAIN = {"compat": "userrl", "phase": "train"}
EVAL = {"compat": "userrl", "phase": "eval"}
SYNC = {**EVAL, "travel_path": "sync"}
MIMESIS = {"compat": "mimesis", "phase": "eval"}
SETS: Sequence[Mapping[str, Any]] = ({}, EVAL, SYNC)
SMALL_TALK = {"type": 1, "preference_id": None}
NOT_HELD = {"type": 3, "preference_id": None}


def aspect(letter: str, wish: str, topic: str = "") -> dict[str, Any]:
    """Return a record with one preference, one best, one other correct and two wrong options."""
    options = [
        {"id": f"{letter}{n}", "price": 10 * n, "type": kind, "reason": f"because {kind}"}
        for n, kind in enumerate(("correct", "correct", "wrong", "noise"), start=1)
    ]
    return {
        "preferences": [
            {"id": f"P{letter}", "text": wish, "implicit": f"hint at {wish}", "topic": topic}
        ],
        "arguments": {"place": f"{letter}ville", "when": "3 May"},
        "options": options,
        "best_id": f"{letter}1",
        "correct_ids": [f"{letter}1", f"{letter}2"],
    }


def trip(**more: Any) -> Task:
    """Return the task of the table: flight, hotel, rental car, one preference each."""
    aspects = {
        "flight": aspect("F", "window place"),
        "hotel": aspect("H", "indoor swimming"),
        "rental_car": aspect("C", "clutch-free driving"),
    }
    hidden = {
        "dimensions": list(aspects),
        "aspects": aspects,
        "cues": {"PF": ["seat"], "PH": ["pool"], "PC": ["gearbox"]},
        "scenario": {"id": "t", "goal": "travel", "meta": {"profile": "asked"}},
    }
    initial = "A flight to Fville, a hotel in Hville, a rental car in Cville, all on 3 May."
    return Task("travel", "golden", "test", ("flight:1-1",), {"initial": initial}, hidden | more)


class Says:
    """A judge that gives the same answer to everything, checked as any answer is."""

    identity = Identity("rule", "test:says")

    def __init__(self, answer: Mapping[str, Any] | None) -> None:
        self._answer = answer

    async def judge(self, request: JudgeRequest[Any]) -> JudgeResult[Any]:
        """Give the answer, or none."""
        if self._answer is None:
            return Failed("the judge is not there")
        try:
            return Verdict(validate(self._answer, request.schema))
        except UnreadableError as error:
            return Failed(str(error))

    async def aclose(self) -> None:
        """Release nothing."""


class Unreachable(Says):
    """A judge whose server cannot be reached."""

    async def judge(self, request: JudgeRequest[Any]) -> JudgeResult[Any]:
        """Fail."""
        raise InfraError("the judge cannot be reached", retryable=True)


def person(kind: str = "neutral", **more: Any) -> Person:
    """Return a scripted traveler that notes what it is asked."""
    inner: User = make_user(f"scripted:{kind}").start(trip().scenario, seed=3)
    return Person(inner, **more)


async def start(
    options: Mapping[str, Any] | None = None,
    *,
    judge: Judge | None = None,
    user: User | None = None,
    task: Task | None = None,
    seed: int = 1,
) -> TravelGym:
    """Return a gym whose episode has begun."""
    gym = TravelGym(user=user or person(), judge=judge or RuleJudge(), options=options)
    await gym.reset(task or trip(), seed=seed)
    return gym


def played(*moves: tuple[str, str], **given: Any) -> tuple[TravelGym, list[StepResult]]:
    """Play moves from the start."""

    async def run() -> tuple[TravelGym, list[StepResult]]:
        gym = await start(given.pop("options", None), **given)
        return gym, [await gym.step(AgentAction(Choice(c), text)) for c, text in moves]

    return asyncio.run(run())


def answers(*contents: str, options: Mapping[str, Any]) -> tuple[TravelGym, list[StepResult]]:
    """Answer from the start."""
    return played(*(("answer", content) for content in contents), options=options)


def rewards(results: Sequence[StepResult]) -> list[float]:
    """Return the rewards."""
    return [result.reward for result in results]


def told(result: StepResult) -> str:
    """Return all that the agent reads after a step."""
    return "\n".join(message.content for message in result.feedback)


# ---------------------------------------------------------------------------------- the answers


def test_tr_01_several_answers_at_once() -> None:
    gym, [fixed] = answers("H1,F1,C1", options={})
    assert (fixed.reward, fixed.valid, fixed.done, gym.state.chosen) == (0.0, False, False, ())
    gym, [compat] = answers("H1,F1,C1", options=EVAL)
    assert (compat.reward, compat.terminated, compat.success) == (3.0, True, True)
    gym, [sync] = answers("H1,F1,C1", options=SYNC)
    assert (sync.reward, sync.done, gym.state.chosen) == (0.0, False, ())


def test_tr_02_an_answer_with_rubbish_behind_it() -> None:
    _, fixed = answers("H1, xx", "H1", options={})
    assert (rewards(fixed), fixed[0].valid) == ([0.0, 1.0], False)
    gym, [first] = answers("H1, xx", options=EVAL)
    assert (first.reward, gym.state.chosen) == (0.0, (("H", "H1"),))
    _, compat = answers("H1, xx", "H1", options=EVAL)
    assert rewards(compat) == [0.0, 0.0]
    assert told(compat[1]) == texts.CLOSED
    _, sync = answers("H1, xx", "H1", options=SYNC)
    assert rewards(sync) == [0.0, 1.0]


def test_tr_03_two_options_of_one_aspect() -> None:
    gym, [fixed] = answers("H1,H2", options={})
    assert (fixed.reward, fixed.valid, gym.state.chosen) == (0.0, False, ())
    gym, [compat] = answers("H1,H2", options=EVAL)
    assert (compat.reward, gym.state.chosen) == (0.0, (("H", "H1"),))
    gym, [sync] = answers("H1,H2", options=SYNC)
    assert (sync.reward, gym.state.chosen) == (0.0, ())


def test_tr_04_one_choice_that_is_not_the_best() -> None:
    for options, ends in (({}, True), (EVAL, False), (SYNC, True)):
        _, results = answers("H2", "F1", "C1", options=options)
        assert rewards(results) == [0.8, 1.0, 1.0]
        assert [result.done for result in results] == [False, False, ends]
    _, fixed = answers("H2", "F1", "C1", options={})
    assert (fixed[-1].reason, fixed[-1].by) == (StopReason.GOAL_REACHED, Party.AGENT)
    assert fixed[-1].success
    assert fixed[-1].private.grading["perfect"] is False
    _, compat = answers("H2", "F1", "C1", *["F1"] * 13, options=EVAL)
    assert (compat[-1].terminated, compat[-1].truncated) == (False, True)


def test_tr_05_letters_that_the_task_does_not_have() -> None:
    gym, fixed = answers("R9", "A7", "H1", options={})
    assert rewards(fixed) == [0.0, 0.0, 1.0]
    assert [result.valid for result in fixed] == [False, False, True]
    assert (fixed[-1].done, gym.state.chosen) == (False, (("H", "H1"),))
    _, compat = answers("R9", "A7", "H1", options=EVAL)
    assert (rewards(compat), compat[-1].done) == ([0.0, 0.0, 1.0], False)
    _, sync = answers("R9", "A7", "H1", options=SYNC)
    assert (rewards(sync), sync[-1].terminated) == ([0.0, 0.0, 1.0], True)
    assert (sync[-1].success, sync[-1].reason) == (False, StopReason.CASE_CLOSED)


def test_tr_06_a_small_letter() -> None:
    assert [rewards(answers("h1", options=o)[1]) for o in SETS] == [[1.0], [0.0], [0.0]]
    assert told(answers("h1", options=EVAL)[1][0]).startswith(texts.UNREADABLE)


def test_tr_07_a_leading_zero() -> None:
    gym, [fixed] = answers("H01", options={})
    assert (fixed.reward, fixed.valid, gym.state.chosen) == (0.0, False, ())
    for options in (EVAL, SYNC):
        gym, results = answers("H01", "H1", options=options)
        assert (rewards(results), gym.state.chosen) == ([0.0, 0.0], (("H", "H01"),))


def test_tr_08_the_same_answer_twice() -> None:
    for options in SETS:
        _, results = answers("H1", "H1", options=options)
        assert rewards(results) == [1.0, 0.0]
        assert (results[1].valid, told(results[1])) == (True, texts.CLOSED)


def test_compat_takes_its_own_tag_off_an_answer() -> None:
    gym, [result] = answers("[answer] H1", options=EVAL)
    assert (result.reward, gym.state.chosen) == (1.0, (("H", "H1"),))


@pytest.mark.parametrize("content", ["H1 F1", "the hotel", "H", "H1234567", "H1.", "H٣", "Z1", " "])
def test_what_is_no_answer(content: str) -> None:
    gym, [result] = answers(content, options={})
    assert (result.reward, result.valid, gym.state.chosen) == (0.0, False, ())


def test_three_invalid_answers_end_the_episode() -> None:
    _, results = answers("H9", "F9", "C9", options={})
    assert (results[-1].terminated, results[-1].reason) == (True, StopReason.AGENT_INVALID)


def test_an_answer_closes_its_aspect_and_drops_its_wishes() -> None:
    moves = (("answer", "H3"), ("action", "Do you want a pool?"))
    _, fixed = played(*moves)
    assert (rewards(fixed), told(fixed[1])) == ([0.0, 0.0], texts.NO_WISH)
    _, compat = played(*moves, options=EVAL)  # compares the topic with the name of the aspect
    assert rewards(compat) == [0.0, 0.6]
    aspects = trip().hidden["aspects"] | {"hotel": aspect("H", "indoor swimming", topic="hotel")}
    _, compat = played(*moves, options=EVAL, task=trip(aspects=aspects))
    assert rewards(compat) == [0.0, 0.0]


def test_the_async_path_alone_may_pay_for_several_answers() -> None:
    _, [result] = answers("H1,F1,C1", options={"travel_path": "async"})
    assert result.reward == 3.0


# ---------------------------------------------------------------------------------- the talk


def idle_turns(options: Mapping[str, Any], count: int = 5) -> tuple[TravelGym, list[StepResult]]:
    """Ask `count` times for what the traveler has no wish about."""
    moves = [("action", f"What about number {n}?") for n in range(count)]
    return played(*moves, options=options, judge=Says(NOT_HELD))


def speakers(results: Sequence[StepResult]) -> str:
    """Return a letter for each step: u the user volunteered, a apology, p a plain line."""
    return "".join(
        "u"
        if result.feedback[0].role is Role.USER
        else "a"
        if told(result) != texts.NO_WISH
        else "p"
        for result in results
    )


def test_tr_09_five_questions_about_nothing() -> None:
    gym, fixed = idle_turns({})
    assert (speakers(fixed), rewards(fixed)) == ("ppupp", [0.0] * 5)
    assert (len(gym.state.told), gym.state.idle) == (1, 2)
    wish = next(w for w in ("PF", "PH", "PC") if w in gym.state.told)
    hints = {"PF": "window place", "PH": "indoor swimming", "PC": "clutch-free driving"}
    assert f"hint at {hints[wish]}" in told(fixed[2])
    gym, broken = idle_turns(EVAL)
    assert (speakers(broken), gym.state.told, gym.state.idle) == ("pppap", (), 1)
    gym, mimesis = idle_turns(MIMESIS)
    assert (speakers(mimesis), len(gym.state.told)) == ("pppup", 1)
    gym, sync = idle_turns(SYNC)
    assert (speakers(sync), len(gym.state.told)) == ("ppupp", 1)


def test_searches_and_answers_do_not_count_as_idle() -> None:
    idle = ("action", "What about the weather?")
    gym, results = played(idle, idle, ("search", "a boat"), ("answer", "H3"), idle)
    assert results[-1].feedback[0].role is Role.USER
    assert gym.state.idle == 0


def test_nothing_is_volunteered_when_nothing_is_left() -> None:
    asked = [("action", f"Do you want a {word}?") for word in ("seat", "pool", "gearbox")]
    idle = [("action", "What about the weather?")] * 4
    _, results = played(*asked, *idle)
    assert rewards(results[:3]) == [0.8] * 3
    assert speakers(results[3:]) == "pppp"


def test_volunteering_can_be_switched_off_or_put_off() -> None:
    assert speakers(idle_turns({"elicitation_interval": 0}, 8)[1]) == "p" * 8
    assert speakers(idle_turns({"elicitation_interval": 1}, 4)[1]) == "uuup"


def test_tr_10_what_a_question_about_a_wish_is_worth() -> None:
    ask = ("action", "Which seat do you want?")
    for options, worth in (({}, 0.8), (TRAIN, 0.8), (EVAL, 0.6), ({**SYNC, "phase": "train"}, 0.8)):
        gym, [first, again] = played(ask, ask, options=options)
        assert (first.reward, again.reward) == (worth, 0.0)
        assert "hint at window place" in told(first)
        assert (gym.state.told, gym.state.idle) == (("PF",), 1)


def test_what_each_kind_of_utterance_gets() -> None:
    _, [chat, vague, many, held] = played(
        ("action", "Hello there, nice to meet you."),
        ("action", "Any other preferences?"),
        ("action", "Tell me about seat, pool and gearbox."),
        ("action", "How about a pool?"),
        options={"elicitation_interval": 0},
    )
    assert chat.feedback[0].role is Role.USER
    assert [told(vague), told(many)] == [texts.TOO_VAGUE] * 2
    assert (held.reward, "hint at indoor swimming" in told(held)) == (0.8, True)


def test_tr_13_a_judge_that_names_an_unknown_preference() -> None:
    lie = '{"type": 2, "preference_id": "P9"}'
    model = Scripted([lie] * 3)

    async def run() -> None:
        gym = await start(judge=RubricJudge(model))
        before = gym.snapshot()
        with pytest.raises(JudgeError):
            await gym.step(AgentAction(Choice.ACTION, "Which seat?"))
        assert gym.snapshot() | {"failures": 0} == before | {"failures": 0}

    asyncio.run(run())
    assert len(model.requests) == 3
    for options in (EVAL, SYNC):
        user = person()
        judge = Says({"type": 2, "preference_id": "P9"})
        gym, [result] = played(("action", "Seat?"), options=options, judge=judge, user=user)
        assert ([r.kind for r in user.heard], result.reward) == (["travel.chat"], 0.0)
        assert (gym.state.told, gym.state.idle) == ((), 1)


def test_tr_14_no_judge() -> None:
    for judge, kind in ((Says(None), JudgeError), (Unreachable(None), InfraError)):
        with pytest.raises(kind):
            played(("action", "Which seat?"), judge=judge)
    for options in (EVAL, SYNC):
        deaf = person(fails=[UserError("gone")])
        gym, [result] = played(
            ("action", "Which seat?"), options=options, judge=Says(None), user=deaf
        )
        assert [request.kind for request in deaf.heard] == ["travel.chat"]
        assert (told(result), result.reward, gym.state.idle) == (TravelGym.CANNED, 0.0, 1)
        gym, [result] = played(("search", "hotel"), options=options, judge=Says(None))
        assert (told(result), gym.state.searches) == (texts.TROUBLE, 1)
        for error in (InfraError("gone"), ContextExceeded("full", party="user")):
            deaf = person(fails=[error])
            gym, [result] = played(
                ("action", "Which seat?"), options=options, judge=Unreachable(None), user=deaf
            )
            assert (told(result), result.reward, gym.state.idle) == (TravelGym.CANNED, 0.0, 1)
            assert result.private.grading["compat"] == "judge failed; user failed"
        gym, [result] = played(("search", "hotel"), options=options, judge=Unreachable(None))
        assert (told(result), result.private.grading["compat"]) == (texts.TROUBLE, "judge failed")


def test_a_user_that_fails_commits_nothing() -> None:
    async def run() -> None:
        gym = await start(user=person(fails=[UserError("asleep", retryable=True)]))
        with pytest.raises(UserError):
            await gym.step(AgentAction(Choice.ACTION, "Which seat?"))
        assert (gym.state.told, gym.heard()) == ((), ())
        again = await gym.step(AgentAction(Choice.ACTION, "Which seat?"))
        assert again.reward == 0.8

    asyncio.run(run())


# ---------------------------------------------------------------------------------- the search

HOTEL = ("search", "a hotel in Hville on 3 May")
FLIGHT = ("search", "flight to Fville, 3 May")


def test_tr_11_every_fifth_search_fails() -> None:
    for options in SETS:
        gym, results = played(*[("search", "a boat")] * 4, HOTEL, HOTEL, options=options)
        assert [told(r) for r in results[:4]] == [texts.NO_MATCH] * 4
        assert (told(results[4]), results[4].reward) == (texts.DOWN, 0.0)
        assert '"H4"' in told(results[5])
        assert gym.state.searches == 6
    _, results = played(*[HOTEL] * 6, options={"search_failure_interval": 0})
    assert [told(r) for r in results[1:]] == [texts.REUSE] * 5


def test_tr_12_the_same_search_twice() -> None:
    for options, worth in (({}, 0.0), (TRAIN, 0.0), (EVAL, 0.2), (SYNC, 0.2)):
        _, results = played(HOTEL, HOTEL, FLIGHT, options=options)
        assert rewards(results) == [worth, 0.0, worth]
        assert told(results[1]).startswith(texts.REUSE)


def order(result: StepResult) -> list[str]:
    """Return the option ids in the order shown."""
    return [line.split('"')[3] for line in told(result).split("\n") if line.startswith("{")]


def test_tr_15_the_order_of_options() -> None:
    moves = [("search", "a boat"), HOTEL]
    for seed in range(4):
        shown = [order(played(*moves[n:], seed=seed)[1][-1]) for n in (0, 1)]
        later = order(played(HOTEL, seed=seed, options={"loaded_before": 700})[1][0])
        assert shown[0] == shown[1] == later
    assert len({tuple(order(played(HOTEL, seed=seed)[1][0])) for seed in range(12)}) > 5
    for compat in (EVAL, SYNC):
        orders = {
            tuple(order(played(HOTEL, options={**compat, "loaded_before": n})[1][0]))
            for n in range(12)
        }
        assert len(orders) > 5


@pytest.mark.parametrize(
    "request_text",
    [
        "hotel in Hville",  # no date
        "Hville on 3 May",  # no aspect
        "hotel in Hville and flight to Fville on 3 May",  # two aspects
        "hotel in Hville on 13 May",  # another date
        "restaurant in Hville on 3 May",  # not in the task
    ],
)
def test_a_search_must_be_complete(request_text: str) -> None:
    _, [result] = played(("search", request_text))
    assert (told(result), result.valid) == (texts.NO_MATCH, True)


def test_nothing_private_is_shown_of_an_option() -> None:
    _, [result] = played(HOTEL)
    assert '"price"' in told(result)
    assert "type" not in told(result)
    assert "because" not in told(result)


def test_limits_hold_only_if_asked_for() -> None:
    _, [all_of_them] = played(HOTEL)
    assert sorted(order(all_of_them)) == ["H1", "H2", "H3", "H4"]
    aspects = trip().hidden["aspects"]
    more = [{"id": f"H{n}", "price": n, "type": "wrong"} for n in range(5, 9)]
    hotel = aspects["hotel"] | {"options": [*aspects["hotel"]["options"], *more]}
    task = trip(aspects=aspects | {"hotel": hotel})
    _, [limited] = played(HOTEL, task=task, options={"wrong_limit": 2})
    assert sorted(order(limited)) == ["H1", "H2", "H3", "H4", "H5"]


def test_a_judge_that_names_an_aspect_outside_the_task() -> None:
    lie = {"match": True, "aspect": "restaurant"}
    with pytest.raises(JudgeError):
        played(HOTEL, judge=Says(lie))
    for options in (EVAL, SYNC):
        _, [result] = played(HOTEL, judge=Says(lie), options=options)
        assert (told(result), result.reward) == (texts.TROUBLE, 0.0)


def test_names_of_the_rental_car() -> None:
    for name in ("rental car", "Car rental", "rental_car", "rental-car"):
        _, [result] = played(HOTEL, judge=Says({"match": True, "aspect": name}))
        assert '"C1"' in told(result), name


# ---------------------------------------------------------------------------------- what is shown


def test_the_first_view() -> None:
    async def run() -> None:
        gym = TravelGym(user=person(), judge=RuleJudge())
        seen = await gym.reset(trip(), seed=1)
        assert seen.first_user == f"{trip().public['initial']}\n{texts.BUDGET}"
        for word in ("flight F", "rental car C", "search", "answer", "action"):
            assert word in seen.system
        for secret in gym.forbidden():
            assert secret not in seen.system + seen.first_user

    asyncio.run(run())


def test_what_is_forbidden_shrinks_with_what_is_told() -> None:
    gym, _ = played(("action", "Which seat?"))
    assert "window place" not in gym.forbidden()
    assert {"PH", "indoor swimming", "hint at clutch-free driving"} <= set(gym.forbidden())


def prompt_of(request: Any) -> str:
    """Return what a model-backed user is told by a question."""
    return prompts.render(
        f"user/kinds/{request.kind}", public=request.public, private=request.private
    )


def test_a_user_knows_one_wish_at_a_time() -> None:
    user = person()
    moves = [("action", "Which seat?"), *[("action", "What about the weather?")] * 3]
    played(("action", "Good day to you."), *moves, user=user)
    assert [r.kind for r in user.heard] == ["travel.chat", "travel.reveal", "travel.volunteer"]
    chat, reveal, volunteer = map(prompt_of, user.heard)
    wishes = ("window place", "indoor swimming", "clutch-free driving")
    assert [sum(wish in text for wish in wishes) for text in (chat, reveal, volunteer)] == [0, 1, 1]
    assert "window place" in reveal
    assert "hint at window place" in reveal
    for text in (chat, reveal, volunteer):
        assert "a hotel in Hville" in text


def test_the_user_hears_answers_and_compat_keeps_them_away() -> None:
    moves = [("answer", "H1"), ("action", "Which seat?")]
    for options, heard in (({}, ["H1"]), (EVAL, []), (SYNC, [])):
        user = person()
        played(*moves, options=options, user=user)
        assert [message.content for message in user.heard[0].history] == heard


def test_what_the_judge_reads() -> None:
    model = Scripted(
        ['{"type": 2, "preference_id": "PH"}', '{"match": true, "aspect": "Car Rental"}']
    )
    moves = (("action", "Any water?"), ("search", "rental car, Cville, 3 May"))
    gym, [talk, look] = played(*moves, judge=RubricJudge(model))
    assert (talk.reward, gym.state.told, gym.state.found) == (0.8, ("PH",), ("rental_car",))
    assert '"C1"' in told(look)
    first, second = (request[0][-1].content for request in model.requests)
    for text in ("Any water?", '"PH"', "indoor swimming", "A flight to Fville"):
        assert text in first
    for text in ("rental car, Cville", '"rental_car"', '"Cville"', '"3 May"'):
        assert text in second
    assert [verdict["kind"] for verdict in talk.private.judge] == ["travel.utterance"]


def test_schemas_refuse_what_does_not_fit() -> None:
    utterance, search = utterance_schema(("P1",)), search_schema(("hotel",))
    assert utterance(type=2, preference_id="P1").preference_id == "P1"
    assert utterance(type=3, preference_id="P9").type == 3
    assert search(match=False, aspect="flight").match is False
    refused: list[Callable[[], Any]] = [
        lambda: utterance(type=2),
        lambda: utterance(type=2, preference_id="P2"),
        lambda: utterance(type=5),  # type: ignore[arg-type]
        lambda: search(match=True),
        lambda: search(match=True, aspect="flight"),
    ]
    for make in refused:
        with pytest.raises(ValidationError):
            make()


@pytest.mark.parametrize("kind", ["neutral", "cooperative", "hostile", "heldout-3", "B3", "B13"])
def test_every_kind_of_person_lets_the_wish_show(kind: str) -> None:
    for seed in range(6):
        for make in (lines.tells, lines.volunteers):
            reply = make("I like clouds.", generator(seed))(kind)
            assert "I like clouds." in reply.utterance
            assert reply.source == "scripted"
        assert lines.chats(generator(seed))(kind).utterance


def test_options_of_the_gym_are_checked() -> None:
    for options in ({"search_failure_interval": -1}, {"wrong_limit": "2"}, {"no_such": 1}):
        with pytest.raises(ConfigError):
            TravelGym(user=person(), judge=RuleJudge(), options=options)


def test_a_restored_episode_goes_on_alike() -> None:
    moves = [("action", "Which seat?"), HOTEL, ("answer", "H2"), ("action", "Nice, thank you.")]

    async def run() -> None:
        gym = await start()
        for choice, content in moves:
            before = gym.snapshot()
            first = await gym.step(AgentAction(Choice(choice), content))
            after = gym.snapshot()
            gym.restore(before)
            assert await gym.step(AgentAction(Choice(choice), content)) == first
            assert gym.snapshot() == after

    asyncio.run(run())


# ---------------------------------------------------------------------------------- the score


def test_ev_05_the_best_per_aspect() -> None:
    turns = [("answer", "H2", 0.8), ("answer", "F1", 1.0), ("answer", "C9", 0.0)]
    assert travel_score(turns, 3) == pytest.approx(0.6)


def test_ev_06_several_answers_in_one() -> None:
    assert travel_score([("answer", "H1,F1,C1", 3.0)], 3, compat=True) == 1.0
    _, [result] = answers("H1,F1,C1", options=EVAL)
    assert travel_score([("answer", "H1,F1,C1", result.reward)], 3, compat=True) == 1.0


def test_ev_07_tags_in_front() -> None:
    turns = [("answer", f"[answer] {option}", 1.0) for option in ("H1", "F1", "C1")]
    assert travel_score(turns, 3) == 1.0
    assert travel_score(turns, 3, compat=True) == pytest.approx(1 / 3)


def test_ev_08_the_first_choice_stands() -> None:
    turns = [("answer", "H2", 0.8), ("answer", "H1", 0.0), ("answer", "F3", 0.0)]
    assert travel_score(turns, 2) == 0.4


def test_only_answers_are_scored() -> None:
    turns = [
        ("action", "H1", 0.8),
        ("search", "F1", 0.2),
        ("answer", "", 1.0),
        ("answer", " h2", 0.8),
    ]
    assert travel_score(turns, 2) == 0.4
    assert travel_score([("answer", " H1", 1.0), ("answer", " F1", 1.0)], 2, compat=True) == 0.5
    assert travel_score([], 2) == 0.0
    with pytest.raises(ValueError, match="0 aspects"):
        travel_score([], 0)
