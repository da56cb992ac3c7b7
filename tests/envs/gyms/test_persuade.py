"""The gym `persuade`: rows PE-01 to PE-10 in both modes, its scripted person, its pack."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.stop import StopReason
from mimesim.envs.base import AgentAction, Choice, StepResult, Task
from mimesim.envs.gyms.persuade.gym import UNKNOWN, PersuadeGym, State, read_hidden
from mimesim.envs.gyms.persuade.person import LAST, STANCES, Mind, Point, consider
from mimesim.envs.gyms.persuade.tasks import PACK
from mimesim.envs.load import check_tasks, load_gym, load_tasks
from mimesim.envs.packs import public_text, read_tasks
from mimesim.envs.turns.cues import derived, matches, read_cue
from mimesim.envs.turns.law import leaks
from mimesim.errors import DataError, JudgeError, UnknownNameError, UserError
from mimesim.judges.base import Judge
from mimesim.judges.rubric import RubricJudge
from mimesim.models.base import Completion
from mimesim.models.scripted import Scripted
from mimesim.seeds import generator
from mimesim.stats.texts import words
from mimesim.users.base import User
from mimesim.users.load import make_user
from mimesim.users.scripted.kinds import CHARACTERS
from mimesim.users.settings import Settings
from mimesim.users.sources import make_source
from tests.support.gyms import CANARY, play, table

USERRL = {"compat": "userrl"}
MIMESIS = {"compat": "mimesis"}
MODES: Sequence[Mapping[str, Any]] = ({}, USERRL, MIMESIS)
SA, A, PA, N, PD, D, SD = STANCES
ARGUMENT = "They gather dust and nobody waters them."


def office(**more: Any) -> Task:
    hidden = {
        "argument": ARGUMENT,
        "max_level": 6,
        "counterpoints": [
            {"id": "air", "cues": [["air"]]},
            {"id": "mood", "cues": [["mood"], ["feel", "calm"]]},
            {"id": "rota", "cues": [["rota"], ["schedule"]]},
        ],
        "scenario": {"id": "t", "goal": "Hold the view.", "meta": {"profile": "asked"}},
    }
    public = {"claim": "Every office should remove its plants."}
    return Task("persuade", "golden", "test", ("claim:office",), public, hidden | more)


def says(*stances: str) -> Judge:
    """Return a judge on a model that gives these stances one after the other."""
    return answers(*(jsonio.dumps({"stance": stance}) for stance in stances))


def answers(*texts: str) -> Judge:
    return RubricJudge(Scripted(list(texts)), name="model:scripted")


def neutral(task: Task) -> User:
    return make_user("scripted:neutral").start(task.scenario, seed=1)


def modeled(*texts: str | Completion, thinking: bool | None = None) -> tuple[User, Scripted]:
    """Return a model-backed person that says these texts one after the other."""
    model = Scripted(list(texts))
    settings = Settings(max_regen=0, thinking=thinking)
    source = make_source("roleplay:scripted", model, template="user/roleplay", settings=settings)
    return source.start(office().scenario, seed=1), model


async def started(
    options: Mapping[str, Any], judge: Judge, user: User | None = None, task: Task | None = None
) -> PersuadeGym:
    task = task or office()
    gym = PersuadeGym(user=user or neutral(task), judge=judge, options=options)
    await gym.reset(task, seed=3)
    return gym


def argued(
    options: Mapping[str, Any], judge: Judge, turns: int, user: User | None = None
) -> tuple[PersuadeGym, list[StepResult]]:
    async def run() -> tuple[PersuadeGym, list[StepResult]]:
        gym = await started(options, judge, user)
        return gym, [await gym.step(say(f"Reason {turn}.")) for turn in range(turns)]

    return asyncio.run(run())


def say(text: str, choice: Choice = Choice.ANSWER) -> AgentAction:
    return AgentAction(choice, text)


def rewards(options: Mapping[str, Any], *stances: str) -> list[float]:
    return [result.reward for result in argued(options, says(*stances), len(stances))[1]]


# The table ------------------------------------------------------------------------------------

SWING = (D, SA, D, SA, SD)


@pytest.mark.parametrize(
    ("stances", "fixed", "compat"),
    [
        pytest.param(SWING, [5 / 6, 0, 0, 0, 1 / 6], [0.833333, 0, 0.833333, 0, 1.0], id="PE-01"),
        pytest.param((A, PA, N, PD, D, SD), [1 / 6] * 6, [0.166667] * 6, id="PE-02"),
        pytest.param((N, A, N), [0.5, 0, 0], [0.5, 0, 0.333333], id="PE-03"),
        pytest.param((SD,), [1.0], [1.0], id="PE-08"),
    ],
)
def test_a_stance_pays(
    stances: Sequence[str], fixed: Sequence[float], compat: Sequence[float]
) -> None:
    assert rewards({}, *stances) == pytest.approx(fixed, abs=1e-12)
    assert rewards({"persuade_reward": "previous"}, *stances) == compat
    for mode in (USERRL, MIMESIS):
        assert rewards(mode, *stances) == compat  # to the last digit


def test_pe_01_sums() -> None:
    assert sum(rewards({}, *SWING)) == pytest.approx(1.0)
    assert sum(rewards(USERRL, *SWING)) == pytest.approx(2.666666, abs=1e-9)


def test_pe_02_sums_to_more_than_one_by_rounding_only_in_compat() -> None:
    assert sum(rewards({}, A, PA, N, PD, D, SD)) <= 1.0
    assert sum(rewards(USERRL, A, PA, N, PD, D, SD)) == pytest.approx(1.000002, abs=1e-9)


@pytest.mark.parametrize(
    ("steps", "most"), [(16, 6.833331), (3, 1.833333)], ids=["16 steps", "3 steps"]
)
def test_swinging_never_pays_twice_by_default(steps: int, most: float) -> None:
    swing = [D, *[SA, D] * steps]
    stances = [*swing[: steps - 1], SD]
    assert sum(rewards({"persuade_reward": "previous"}, *stances)) == pytest.approx(most, abs=1e-5)
    assert sum(rewards({}, *stances)) == pytest.approx(1.0)


def test_pe_04_lower_case() -> None:
    _, [only] = argued({}, says("strongly disagree"), 1)
    assert (only.reward, only.terminated, only.success) == (1.0, True, True)
    gym, results = argued(USERRL, says("strongly disagree", N, D), 3)
    assert [result.reward for result in results] == [0.0, 0.0, 0.333333]
    assert not results[-1].done
    assert gym.state.level == STANCES.index(D)


def test_pe_04_an_unknown_label_is_the_current_stance_of_compat() -> None:
    gym, _ = argued(USERRL, says("strongly disagree"), 1)
    assert gym.state.level == UNKNOWN


def test_pe_05_no_such_stance() -> None:
    bad = jsonio.dumps({"stance": "Slightly Disagree"})
    good = jsonio.dumps({"stance": PD})
    _, [mended] = argued({}, answers(bad, good), 1)
    assert mended.reward == pytest.approx(4 / 6)

    async def fails() -> None:
        gym = await started({}, answers(bad, bad, bad, good))
        before = gym.snapshot()
        with pytest.raises(JudgeError):
            await gym.step(say("A reason."))
        assert gym.snapshot() == before | {"failures": 1}
        assert (await gym.step(say("A reason."))).reward == pytest.approx(4 / 6)

    asyncio.run(fails())
    _, results = argued(USERRL, says("Slightly Disagree", SD), 2)
    assert [result.reward for result in results] == [0.0, 0.0]
    assert results[-1].terminated
    assert results[-1].success


def test_pe_06_other_signs() -> None:
    _, [only] = argued({}, says("STRONGLY-DISAGREE "), 1)
    assert (only.reward, only.terminated) == (1.0, True)
    _, [only] = argued(USERRL, says("STRONGLY-DISAGREE "), 1)
    assert (only.reward, only.done) == (0.0, False)


@pytest.mark.parametrize(
    "raw",
    ['<think>They move.</think>{"stance": "Neutral"}', '{"thought": null, "stance": "Neutral"}'],
    ids=["think prefix", "null"],
)
def test_pe_07_verdicts(raw: str) -> None:
    _, [fixed] = argued({}, answers(raw), 1)
    assert fixed.reward == pytest.approx(0.5)
    gym, [compat] = argued(USERRL, answers(raw), 1)
    assert (compat.reward, gym.state) == (0.0, State())
    assert compat.feedback[-1].content == PersuadeGym.CANNED
    _, [mended] = argued(MIMESIS, answers(raw), 1)
    assert mended.reward == 0.5


def test_pe_07_replies() -> None:
    raw = "<think>That is new.</think>I see."
    _, [fixed] = argued({}, says(N), 1, modeled(raw, thinking=True)[0])
    assert [message.content for message in fixed.feedback] == ["I see."]
    assert fixed.private.reply is not None
    assert fixed.private.reply.thought is not None
    for said in (raw, ""):
        gym, [compat] = argued(USERRL, says(N), 1, modeled(said, thinking=True)[0])
        assert (compat.reward, gym.state) == (0.0, State())
        assert [message.content for message in compat.feedback] == [PersuadeGym.CANNED]


def test_pe_07_a_reply_of_nothing_is_a_failure() -> None:
    with pytest.raises(UserError):
        argued({}, says(N), 1, modeled("<think>Well.</think>", "", thinking=True)[0])


@pytest.mark.parametrize("choice", [Choice.ACTION, Choice.SEARCH])
def test_pe_09_other_choices(choice: Choice) -> None:
    async def one(options: Mapping[str, Any]) -> StepResult:
        gym = await started(options, says(N))
        return await gym.step(say("They clean the air.", choice))

    fixed = asyncio.run(one({}))
    assert (fixed.valid, fixed.reward, fixed.private.reply) == (False, 0.0, None)
    for mode in (USERRL, MIMESIS):
        compat = asyncio.run(one(mode))
        assert (compat.valid, compat.reward) == (True, 0.5)


def test_pe_10_a_user_that_refuses() -> None:
    words_ = "As an AI language model, I cannot play the role of a person with opinions."
    refused = Completion("I can't do that.", finish_reason="content_filter")

    async def fails(said: str | Completion) -> None:
        gym = await started({}, says(N), modeled(said)[0])
        with pytest.raises(UserError):
            await gym.step(say("They clean the air."))
        assert (gym.state, gym.heard()[1:]) == (State(), ())

    asyncio.run(fails(words_))
    asyncio.run(fails(refused))
    gym, [compat] = argued(USERRL, says(N), 1, modeled(refused)[0])
    assert (compat.reward, gym.state) == (0.0, State())
    assert not compat.done


# What is asked --------------------------------------------------------------------------------


def test_a_person_knows_its_view_and_its_stance() -> None:
    user, model = modeled("Hm, true.", "Hm.")
    argued({}, says(N, N), 2, user)
    told = [request[0][0].content for request in model.requests]
    assert all(ARGUMENT in text and office().public["claim"] in text for text in told)
    assert f'"{SA}"' in told[0]
    assert f'"{N}"' in told[1]


@pytest.mark.parametrize("sees", [False, True])
def test_a_judge_reads_a_thought_only_if_it_may(sees: bool) -> None:
    at = table(office(), options={"judge_sees_thought": sees})
    asyncio.run(at.env.reset(at.task, seed=0))
    asyncio.run(at.env.step(say("They clean the air.")))
    [asked] = at.referee.asked
    assert (CANARY in jsonio.dumps(asked.inputs)) is sees
    model = Scripted([jsonio.dumps({"stance": N})])
    asyncio.run(RubricJudge(model).judge(asked))
    shown = model.requests[0][0][1].content
    assert (CANARY in shown) is sees
    for part in (ARGUMENT, SA, "They clean the air.", office().public["claim"]):
        assert part in shown


def test_an_argument_may_not_be_endless() -> None:
    async def one(options: Mapping[str, Any]) -> bool:
        return (await (await started(options, says(N))).step(say("a" * 4001))).valid

    assert not asyncio.run(one({}))
    assert asyncio.run(one(USERRL))


def test_giving_up_tells_the_stance_in_compat_only() -> None:
    async def told(options: Mapping[str, Any]) -> str:
        gym = await started(options, says(PA))
        await gym.step(say("They clean the air."))
        result = await gym.step(say("done", Choice.FINISH))
        assert result.reason is StopReason.AGENT_STOP
        return " ".join(message.content for message in result.feedback)

    assert PA in asyncio.run(told(USERRL))
    assert asyncio.run(told({"expose_finish": True})) == ""


def test_the_last_stance_is_logged() -> None:
    _, results = argued({}, says(D, A), 2)
    logged = [result.private.grading for result in results]
    assert [one["final_level"] for one in logged] == pytest.approx([5 / 6, 1 / 6])
    assert [one["best"] for one in logged] == [5, 5]


def test_snapshots_hold_the_mind_of_the_person() -> None:
    at = table(office())

    async def run() -> None:
        await at.env.reset(at.task, seed=0)
        await at.env.step(say("They clean the air."))
        kept = jsonio.loads(jsonio.dumps(at.env.snapshot()))
        first = await at.env.step(say("The air, and a rota."))
        at.env.restore(kept)
        again = await at.env.step(say("The air, and a rota."))
        assert first.reward == again.reward == pytest.approx(1 / 6)
        assert first.feedback == again.feedback

    asyncio.run(run())


# The scripted person --------------------------------------------------------------------------

POINTS = (Point("air", (("air",),)), Point("mood", (("mood",), ("feel", "calm"))))


@pytest.mark.parametrize(
    ("text", "level", "took"),
    [
        ("They clean the AIR.", 1, "moved"),
        ("You feel calm beside them.", 1, "moved"),
        ("You feel fine.", 0, "same"),
        ("They are fair.", 0, "same"),  # whole words only
        ("Air and mood!", 2, "moved"),
        ("Only an idiot forgets the air.", 0, "hurt"),
        ("Shut up.", 0, "hurt"),
    ],
)
def test_new_reasons_move_a_person(text: str, level: int, took: str) -> None:
    mind, how = consider(Mind(), POINTS, LAST, text)
    assert (mind.level, how) == (level, took)


def test_repetition_moves_nobody_and_insults_set_back() -> None:
    mind, _ = consider(Mind(), POINTS, LAST, "air")
    mind, how = consider(mind, POINTS, LAST, "air, as I said")
    assert (mind.level, how) == (1, "same")
    assert consider(mind, POINTS, LAST, "you fool")[0].level == 0


def test_a_person_goes_no_further_than_it_can() -> None:
    assert consider(Mind(), POINTS, 1, "air and mood")[0].level == 1


def test_difficult_people_take_longer() -> None:
    first, how = consider(Mind(), POINTS, LAST, "air", "B3")
    assert (first.level, how) == (0, "aside")
    assert consider(first, POINTS, LAST, "air", "B3")[0].level == 1
    slow, _ = consider(Mind(), POINTS, LAST, "air and mood", "B4")
    assert (slow.level, slow.heard) == (1, ("air",))
    with pytest.raises(UnknownNameError):
        consider(Mind(), POINTS, LAST, "air", "B99")


# Cues -----------------------------------------------------------------------------------------


def test_cues() -> None:
    cue = read_cue([["how", "many"], ["guests"]], where="here")
    assert matches(cue, "Many ask HOW.")
    assert matches(cue, "guests?")
    assert not matches(cue, "How much, guest?")
    assert derived("The number of your guests, and the number", ["guests"]) == [["number"]]
    damaged: Sequence[Any] = (None, [], "air", [[]], ["air"], [[1]], [["!"]])
    for bad in damaged:
        with pytest.raises(DataError, match="cue"):
            read_cue(bad, where="here")


# The pack -------------------------------------------------------------------------------------


def pack() -> list[Task]:
    return read_tasks(PACK)


def test_the_pack_is_sound() -> None:
    tasks = pack()
    assert len(tasks) >= 60
    assert check_tasks(tasks) == []
    assert {task.split for task in tasks} == {"train", "validation", "test"}
    assert all(task.meta["license"] == "Apache-2.0" for task in tasks)
    assert all(load_gym("persuade").attainable(task) == 1.0 for task in tasks)
    claims = [set(words(public_text(task))) for task in tasks]
    likeness = [len(a & b) / len(a | b) for i, a in enumerate(claims) for b in claims[:i]]
    assert max(likeness) <= 0.8


def test_each_argument_of_the_oracle_makes_one_new_point() -> None:
    for task in pack():
        hidden = read_hidden(task)
        said = [text for _, text in task.hidden["oracle_trace"]]
        made = [{p.id for p in hidden.points if matches(p.cue, text)} for text in said]
        assert made[:6] == [{point.id} for point in hidden.points], task.id
        assert not any(matches(point.cue, task.public["claim"]) for point in hidden.points)


@pytest.mark.parametrize("kind", [*CHARACTERS, "realistic"])
def test_the_oracle_convinces_everybody(kind: str) -> None:
    task = generator(0, "persuade", kind).choice(pack())
    played = asyncio.run(play(table(task, kind=f"scripted:{kind}"), "oracle"))
    assert played.total == pytest.approx(1.0)
    assert played.results[-1].success


@pytest.mark.parametrize("options", MODES)
def test_floors_and_leaks(options: Mapping[str, Any]) -> None:
    totals: dict[str, list[float]] = {"oracle": [], "random": [], "null": []}
    for task in pack()[::6]:
        for agent, got in totals.items():
            at = table(task, options=options)
            played = asyncio.run(play(at, agent))
            got.append(played.total)
            own = [action.content for action in played.actions]
            heard = [m.content for result in played.results for m in result.feedback]
            assert isinstance(at.env, PersuadeGym)
            assert leaks(heard, [*at.env.forbidden(), CANARY], own) == []
    assert min(totals["oracle"]) >= 0.95
    assert max(totals["null"]) == 0
    assert sum(totals["random"]) / len(totals["random"]) <= 0.1


def test_tasks_come_in_a_seeded_order_and_never_twice() -> None:
    many = load_tasks("persuade", split="test", seed=4, count=500)
    assert len({task.id for task in many}) == len(many) == sum(t.split == "test" for t in pack())
    assert load_tasks("persuade", split="test", seed=4, count=5) == many[:5]
    assert load_tasks("persuade", split="test", seed=5, count=500) != many


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"argument": ""}, "argument"),
        ({"max_level": 7}, "max_level"),
        ({"max_level": True}, "max_level"),
        ({"counterpoints": []}, "counterpoints"),
        ({"counterpoints": [{"cues": [["air"]]}]}, "counterpoint"),
        ({"counterpoints": [{"id": "air", "cues": "air"}]}, "cue"),
        ({"counterpoints": [{"id": "air", "cues": [["air"]]}] * 2}, "twice"),
    ],
)
def test_damaged_tasks(broken: Mapping[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told) as caught:
        load_gym("persuade").secrets(office(**broken))
    assert "golden" in str(caught.value)


def test_a_task_without_a_claim() -> None:
    bare = Task("persuade", "golden", "test", ("g",), {}, office().hidden)
    with pytest.raises(DataError, match="claim"):
        load_gym("persuade").secrets(bare)
