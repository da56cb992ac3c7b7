"""The law of turn-taking gyms, on a gym that exists for these tests only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel

from mimesim import jsonio
from mimesim.dialogue.stop import Party, StopReason, UserAction
from mimesim.dialogue.types import Reply, Role, Usage
from mimesim.envs.base import AgentAction, Choice, GymSpec, Observation, StepResult, Task
from mimesim.envs.turns.kind import scripted
from mimesim.envs.turns.law import (
    BadAction,
    Opening,
    Question,
    Turn,
    TurnGym,
    leaks,
    tagged,
)
from mimesim.errors import (
    CallerError,
    ContextExceeded,
    EnvError,
    EpisodeError,
    InfraError,
    JudgeError,
    UserError,
)
from mimesim.users.base import UserRequest
from tests.support.gyms import CANARY, Person, Referee, plain

TASK = Task("toy", "t1", "test", ("g",), {}, {"secret": "marzipan"})


class Mark(BaseModel):
    """A verdict."""

    value: Literal[0, 1]


@dataclass(frozen=True, slots=True)
class State:
    """How often something happened."""

    asked: int = 0
    drawn: tuple[int, ...] = ()


class Toy(TurnGym[State]):
    """`action` asks the person, `answer` asks the judge, `search` draws a number."""

    SPEC = GymSpec(
        "toy", (Choice.ACTION, Choice.ANSWER, Choice.SEARCH), 16, (0.0, 1.0), 16.0, True, True
    )
    STATE = State
    OPTIONS: ClassVar[Mapping[str, Any]] = {"opens": True, "reward": 1.0}

    def system(self, task: Task) -> str:
        return "a toy"

    async def begin(self, task: Task) -> Opening[State]:
        if not self.options["opens"]:
            return Opening(State(), "the rule is set")
        reply = await self.ask(Question("toy.open", "", lambda kind: scripted(f"hello, {kind}")))
        return Opening(State(), reply.utterance, reply)

    async def act(self, state: State, action: AgentAction) -> Turn[State]:
        if action.content == "bad":
            raise BadAction("that word is bad")
        if action.choice is Choice.SEARCH:
            number = self.rng("draw", len(state.drawn)).randint(0, 10**9)
            return Turn(replace(state, drawn=(*state.drawn, number)), str(number))
        if action.choice is Choice.ACTION:
            reply = await self.ask(Question("toy.ask", action.content, self._said, may_end=True))
            over = StopReason.USER_STOP if reply.action is UserAction.END else None
            after = replace(state, asked=state.asked + 1)
            if action.content == "then bad":
                raise BadAction("too late")
            return Turn(after, reply=reply, over=over, by=Party.USER)
        mark = await self.decide("toy.mark", {"text": action.content}, Mark, self._rule)
        won = self.options["reward"] * mark.value
        over = StopReason.GOAL_REACHED if mark.value else None
        return Turn(state, "right" if mark.value else "wrong", reward=won, over=over)

    def succeeded(self, state: State) -> bool:
        return state.asked > 0

    def forbidden(self) -> list[str]:
        return ["marzipan"]

    def answer(self) -> str:
        return "It was marzipan."

    def _said(self, kind: str) -> Reply:
        return scripted(f"answer {len(self.heard())}", "thinking")

    def _rule(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"value": int(inputs["text"] == "marzipan")}


class Counter:
    """A person with a state: it counts what it was asked, and says it."""

    def __init__(self) -> None:
        self.count = 0

    async def respond(self, request: UserRequest) -> Reply:
        self.count += 1
        return replace(scripted(f"number {self.count}"), usage=Usage(prompt_tokens=1))

    def snapshot(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.count = state["count"]


@dataclass
class Scene:
    """A toy, started, with its parties."""

    gym: Toy
    counter: Counter
    person: Person
    referee: Referee
    observation: Observation = field(default_factory=lambda: Observation("", ""))

    def step(self, content: str, choice: Choice = Choice.ACTION, problem: str = "") -> StepResult:
        """Take one step."""
        return asyncio.run(self.gym.step(AgentAction(choice, content, problem=problem)))


def scene(
    *,
    fails: list[Exception | None] | None = None,
    late: bool = False,
    judge_fails: list[Exception | None] | None = None,
    **options: Any,
) -> Scene:
    """Start a toy; `fails` begins with the opening."""
    counter = Counter()
    person = Person(counter, fails=fails or [], late=late)
    referee = Referee(fails=judge_fails or [])
    made = Scene(Toy(user=person, judge=referee, options=options), counter, person, referee)
    made.observation = asyncio.run(made.gym.reset(TASK, seed=5))
    return made


def told(result: StepResult) -> list[str]:
    return [message.content for message in result.feedback]


def test_the_person_opens_and_its_thought_stays_private() -> None:
    at = scene()
    assert at.observation.first_user == "number 1"
    assert at.gym.opening_private.reply is not None
    assert at.gym.opening_private.reply.thought is not None
    assert CANARY not in jsonio.dumps(at.gym.snapshot())
    assert [m.role for m in at.gym.heard()] == [Role.USER]
    silent = scene(opens=False)
    assert silent.gym.heard() == ()
    assert silent.gym.opening_private.reply is None


def test_words_go_into_the_history_and_look_ups_do_not() -> None:
    at = scene()
    result = at.step("how are you")
    assert told(result) == ["number 2"]
    assert result.feedback[0].role is Role.USER
    at.step("anything", Choice.SEARCH)
    at.step("guess", Choice.ANSWER)
    said = [(m.role, m.content) for m in at.gym.heard()]
    assert said == [
        (Role.USER, "number 1"),
        (Role.AGENT, "how are you"),
        (Role.USER, "number 2"),
        (Role.AGENT, "guess"),
    ]


def test_reasoning_written_into_an_action_reaches_neither_person_nor_judge() -> None:
    at = scene()
    at.step("<think>my plan</think>how are you")
    at.step("<think>my plan</think>guess", Choice.ANSWER)
    assert at.person.heard[-1].agent_text == "how are you"
    assert at.referee.asked[-1].inputs == {"text": "guess"}
    unclosed = at.step("<think>all of it")
    assert not unclosed.valid
    assert len(at.person.heard) == 2


@pytest.mark.parametrize(
    ("content", "choice", "problem", "reason"),
    [
        ("", Choice.ACTION, "nothing was said", "nothing was said"),
        ("  \n", Choice.ACTION, "", "content is empty"),
        ("x" * 8001, Choice.ACTION, "", "longer than 8000"),
        ("x", Choice.FINISH, "", "'finish' is not a choice here"),
        ("bad", Choice.ACTION, "", "that word is bad"),
    ],
)
def test_an_invalid_action_costs_the_turn_and_changes_nothing(
    content: str, choice: Choice, problem: str, reason: str
) -> None:
    at = scene()
    before = at.gym.snapshot()
    result = at.step(content, choice, problem)
    assert not result.valid
    assert result.reward == 0.0
    assert not result.done
    (text,) = told(result)
    assert reason in text
    assert "action, answer, search" in text
    after = at.gym.snapshot()
    assert after == before | {"turns": 1, "invalid_streak": 1}
    assert len(at.person.heard) == 1  # the opening


def test_an_action_found_bad_after_the_person_spoke_sets_the_person_back() -> None:
    at = scene()
    assert not at.step("then bad").valid
    assert at.counter.count == 1
    assert told(at.step("again")) == ["number 2"]


def test_three_invalid_actions_in_a_row_end_the_episode() -> None:
    at = scene()
    assert not at.step("").done
    assert not at.step("").done
    at.step("fine")  # the row is broken
    assert [at.step("").done for _ in range(3)] == [False, False, True]
    with pytest.raises(CallerError, match="the episode is over"):
        at.step("more")


def test_the_end_by_invalid_actions_is_the_agents() -> None:
    at = scene()
    last = [at.step("") for _ in range(3)][-1]
    assert (last.terminated, last.truncated) == (True, False)
    assert (last.reason, last.by) == (StopReason.AGENT_INVALID, Party.AGENT)
    assert last.success is False


def test_sixteen_steps_are_executed() -> None:
    at = scene()
    results = [at.step("hello") for _ in range(16)]
    assert [r.done for r in results] == [False] * 15 + [True]
    assert (results[-1].terminated, results[-1].truncated) == (False, True)
    assert (results[-1].reason, results[-1].by) == (StopReason.MAX_STEPS, Party.RUNNER)
    assert results[-1].success is True


def test_an_end_at_the_last_step_is_no_truncation() -> None:
    at = scene()
    for _ in range(15):
        at.step("hello")
    last = at.step("marzipan", Choice.ANSWER)
    assert (last.terminated, last.truncated, last.reward) == (True, False, 1.0)


def test_compat_carries_out_fifteen_steps_in_training_only() -> None:
    for phase, steps in (("train", 15), ("eval", 16)):
        at = scene(compat="userrl", phase=phase)
        results = [at.step("hello") for _ in range(steps)]
        assert [r.truncated for r in results] == [False] * (steps - 1) + [True]


def test_a_person_that_leaves_ends_it() -> None:
    at = scene()

    async def leaves(request: UserRequest) -> Reply:
        return Reply(None, "bye", UserAction.END)

    at.person.respond = leaves  # type: ignore[method-assign]
    last = at.step("hello")
    assert (last.reason, last.by, told(last)) == (StopReason.USER_STOP, Party.USER, ["bye"])


@pytest.mark.parametrize(
    "reply",
    [Reply(None, " "), Reply(None, "x", UserAction.TOOL), Reply(None, "\u200b")],
    ids=["blank", "tool", "invisible"],
)
def test_a_person_that_says_nothing_or_calls_a_tool_has_failed(reply: Reply) -> None:
    at = scene()

    async def odd(request: UserRequest) -> Reply:
        return replace(reply, usage=Usage(prompt_tokens=7))

    at.person.respond = odd  # type: ignore[method-assign]
    before = at.gym.snapshot()
    with pytest.raises(UserError) as caught:
        at.step("hello")
    assert caught.value.retryable
    assert at.gym.snapshot() == before | {"failures": 1}
    assert at.gym.user_usage.prompt_tokens == 8  # what was drawn is paid for


FAILURES = [
    UserError("broke", retryable=True),
    InfraError("no answer"),
    ContextExceeded("full", party="user"),
    EnvError("bug"),
    RuntimeError("bug"),
]


@pytest.mark.parametrize("error", FAILURES, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("late", [False, True], ids=["before", "after it spoke"])
def test_a_failed_step_commits_nothing_and_can_be_taken_again(error: Exception, late: bool) -> None:
    calm, broken = scene(), scene(fails=[None, None, error], late=late)
    assert plain(calm.step("one")) == plain(broken.step("one"))
    before = broken.gym.snapshot()
    with pytest.raises(type(error)):
        broken.step("two")
    assert broken.gym.snapshot() == before | {"failures": 1}
    assert plain(calm.step("two")) == plain(broken.step("two"))
    after = calm.gym.snapshot()
    assert broken.gym.snapshot() == after
    assert after["failures"] == 0


def test_a_failed_step_that_is_taken_again_asks_with_another_seed() -> None:
    at = scene(fails=[None, InfraError("no answer")])
    with pytest.raises(InfraError):
        at.step("one")
    at.step("one")
    first, second = at.person.heard[-2:]
    assert first.seed != second.seed


@pytest.mark.parametrize("error", [JudgeError("unreadable"), InfraError("no answer")])
def test_a_failed_verdict_commits_nothing(error: EpisodeError) -> None:
    at = scene(judge_fails=[error])
    before = at.gym.snapshot()
    with pytest.raises(type(error)):
        at.step("marzipan", Choice.ANSWER)
    assert at.gym.snapshot() == before | {"failures": 1}
    result = at.step("marzipan", Choice.ANSWER)
    assert result.reward == 1.0
    assert [v["value"] for v in result.private.judge] == [1]
    first, second = at.referee.asked
    assert (first.trial, second.trial) == (0, 1)
    assert first.seed != second.seed


def test_an_opening_that_failed_can_be_tried_again() -> None:
    counter = Counter()
    person = Person(counter, fails=[InfraError("no answer")], late=True)
    gym = Toy(user=person, judge=Referee())
    with pytest.raises(InfraError):
        asyncio.run(gym.reset(TASK, seed=5))
    with pytest.raises(CallerError, match="not started"):
        gym.snapshot()
    assert asyncio.run(gym.reset(TASK, seed=5)).first_user == "number 1"
    assert gym.snapshot() == scene().gym.snapshot()


def test_a_step_that_is_cancelled_commits_nothing() -> None:
    at = scene()
    before = at.gym.snapshot()

    async def never(request: UserRequest) -> Reply:
        at.counter.count = 99
        await asyncio.sleep(60)
        raise AssertionError

    async def cancelled() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await at.gym.step(AgentAction(Choice.ACTION, "hello"))

    usual, at.person.respond = at.person.respond, never  # type: ignore[method-assign]
    asyncio.run(cancelled())
    assert at.gym.snapshot() == before | {"failures": 1}
    at.person.respond = usual  # type: ignore[method-assign]
    assert told(at.step("hello")) == ["number 2"]


def test_a_reward_out_of_bounds_is_a_bug_and_commits_nothing() -> None:
    for reward in (1.5, -0.1, float("nan"), float("inf")):
        at = scene(reward=reward)
        before = at.gym.snapshot()
        with pytest.raises(EnvError, match=r"outside 0\.0 to 1\.0"):
            at.step("marzipan", Choice.ANSWER)
        assert at.gym.snapshot() == before | {"failures": 1}


def test_two_steps_at_once_are_refused() -> None:
    at = scene()

    async def both() -> list[Any]:
        steps = [at.gym.step(AgentAction(Choice.ACTION, text)) for text in "ab"]
        return await asyncio.gather(*steps, return_exceptions=True)

    async def slow(request: UserRequest) -> Reply:
        await asyncio.sleep(0.01)
        return scripted("slow")

    at.person.respond = slow  # type: ignore[method-assign]
    first, second = asyncio.run(both())
    assert isinstance(first, StepResult)
    assert isinstance(second, CallerError)
    assert "two steps at once" in str(second)
    assert at.gym.snapshot()["turns"] == 1


def test_an_episode_is_started_once_and_first() -> None:
    gym = Toy(user=Person(Counter()), judge=Referee())
    for call in (gym.snapshot, lambda: gym.restore({}), lambda: gym.state, lambda: gym.task):
        with pytest.raises(CallerError, match="not started"):
            call()
    with pytest.raises(CallerError, match="not started"):
        asyncio.run(gym.step(AgentAction(Choice.ACTION, "x")))
    asyncio.run(gym.reset(TASK, seed=1))
    with pytest.raises(CallerError, match="single-use"):
        asyncio.run(gym.reset(TASK, seed=1))


def test_a_gym_without_its_judge_says_so() -> None:
    gym = Toy(user=Person(Counter()))
    asyncio.run(gym.reset(TASK, seed=1))
    with pytest.raises(CallerError, match="made without a judge"):
        asyncio.run(gym.step(AgentAction(Choice.ANSWER, "x")))


STEPS = [
    ("hello", Choice.ACTION),
    ("draw", Choice.SEARCH),
    ("bad", Choice.ACTION),
    ("guess", Choice.ANSWER),
    ("draw", Choice.SEARCH),
    ("bye", Choice.ACTION),
    ("marzipan", Choice.ANSWER),
]


def test_the_law_of_snapshots() -> None:
    at, other = scene(), scene()
    for content, choice in STEPS:
        state = jsonio.loads(jsonio.dumps(at.gym.snapshot()))
        result = at.step(content, choice)
        end = at.gym.snapshot()
        for again in (at, other):
            again.gym.restore(state)
            assert jsonio.loads(jsonio.dumps(again.gym.snapshot())) == state
            assert plain(again.step(content, choice)) == plain(result)
            assert again.gym.snapshot() == end


def test_a_state_after_a_failure_draws_what_the_episode_would_draw() -> None:
    at = scene(fails=[None, InfraError("no answer")])
    with pytest.raises(InfraError):
        at.step("one")
    state = at.gym.snapshot()
    at.step("one")
    at.gym.restore(state)
    at.step("one")
    assert at.person.heard[-1].seed == at.person.heard[-2].seed


def test_a_state_of_another_task_is_refused() -> None:
    at = scene()
    state = at.gym.snapshot()
    for key, value in (("task_id", "t2"), ("gym", "turtle"), ("schema_version", 2)):
        with pytest.raises(CallerError, match="does not fit task 't1'"):
            at.gym.restore(state | {key: value})
    other = Toy(user=Person(Counter()), judge=Referee())
    asyncio.run(other.reset(replace(TASK, id="t2"), seed=5))
    with pytest.raises(CallerError):
        other.restore(state)


def test_draws_depend_on_task_and_seed_alone() -> None:
    def drawn(task: Task, seed: int) -> list[str]:
        gym = Toy(user=Person(Counter()), judge=Referee())
        asyncio.run(gym.reset(task, seed=seed))
        steps = [gym.step(AgentAction(Choice.SEARCH, "draw")) for _ in range(3)]
        return [told(asyncio.run(step))[0] for step in steps]

    assert drawn(TASK, 1) == drawn(TASK, 1)
    assert len({tuple(drawn(t, s)) for t in (TASK, replace(TASK, id="t2")) for s in (1, 2)}) == 4
    assert len(set(drawn(TASK, 1))) == 3


def test_giving_up_tells_the_answer_in_private_only() -> None:
    at = scene(expose_finish=True)
    last = at.step("enough", Choice.FINISH)
    assert (last.terminated, last.reason, last.by) == (True, StopReason.AGENT_STOP, Party.AGENT)
    assert told(last) == []
    assert last.private.grading == {"answer": "It was marzipan."}
    revealed = scene(expose_finish=True, finish_reveals_answer=True)
    assert told(revealed.step("enough", Choice.FINISH)) == ["It was marzipan."]


def test_compat_takes_every_choice_and_shows_no_canned_text_for_it() -> None:
    at = scene(compat="userrl")
    assert at.step("", Choice.ACTION).valid  # the gym decides on blank content
    assert at.step("x" * 9000, Choice.ANSWER).valid
    assert [at.step("bad").done for _ in range(4)] == [False] * 4  # no end after three
    assert told(at.step("enough", Choice.FINISH)) == ["It was marzipan."]


def test_compat_ends_where_no_call_can_be_read() -> None:
    at = scene(compat="userrl")
    last = at.step("", problem="your message holds no call")
    assert (last.terminated, last.reward, last.valid) == (True, 0.0, False)
    assert last.reason is StopReason.AGENT_INVALID
    nudged = scene(compat="userrl", no_tool_call="nudge")
    assert not nudged.step("", problem="your message holds no call").done


def test_compat_shows_the_reward_in_the_phase_it_is_asked_for() -> None:
    def shown(**options: Any) -> list[str]:
        return told(scene(**options).step("marzipan", Choice.ANSWER))

    assert shown(compat="userrl", phase="train") == ["right\nReward: 1.0"]
    assert shown(compat="userrl", phase="eval") == ["right"]
    assert shown(show_reward="both") == ["right\nReward: 1.0"]
    assert shown(show_reward="eval") == ["right\nReward: 1.0"]
    assert shown() == ["right"]
    spoken = scene(show_reward="both").step("hello")
    assert told(spoken) == ["number 2", "Reward: 0.0"]


LOST = [
    (Choice.ACTION, UserError("broke")),
    (Choice.ACTION, InfraError("no answer")),
    (Choice.ACTION, ContextExceeded("full", party="user")),
    (Choice.ANSWER, JudgeError("unreadable")),
    (Choice.ANSWER, InfraError("no answer")),
    (Choice.ANSWER, ContextExceeded("full", party="judge")),
]


@pytest.mark.parametrize(("choice", "error"), LOST)
def test_zero_reward_turns_a_failure_of_a_party_into_a_turn(
    choice: Choice, error: EpisodeError
) -> None:
    user: list[Exception | None] = [None, error] if choice is Choice.ACTION else []
    judge: list[Exception | None] = [error] if choice is Choice.ANSWER else []
    at = scene(fails=user, judge_fails=judge, error_policy="zero_reward")
    before = at.gym.state
    result = at.step("marzipan", choice)
    assert (result.reward, result.valid, result.done) == (0.0, True, False)
    assert told(result) == [Toy.CANNED]
    who = "user" if choice is Choice.ACTION else "judge"
    assert result.private.grading == {"compat": f"{who} failed; failure scored 0"}
    assert at.gym.state == before
    assert at.gym.snapshot()["turns"] == 1
    assert at.gym.snapshot()["failures"] == 0
    assert at.step("marzipan", choice).private.grading == {}


@pytest.mark.parametrize("error", [EnvError("bug"), RuntimeError("bug")])
def test_no_policy_scores_what_the_environment_failed(error: Exception) -> None:
    at = scene(fails=[None, error], compat="userrl")
    before = at.gym.snapshot()
    with pytest.raises(type(error)):
        at.step("hello")
    assert at.gym.snapshot() == before | {"failures": 1}


@pytest.mark.parametrize(("choice", "error"), LOST)
def test_a_failure_is_never_scored_outside_compat(choice: Choice, error: EpisodeError) -> None:
    at = scene(fails=[None, error], judge_fails=[error], no_tool_call="end", plain_choices=True)
    before = at.gym.snapshot()
    with pytest.raises(type(error)):
        at.step("hello", choice)
    assert at.gym.snapshot() == before | {"failures": 1}


def test_an_end_at_the_last_step_is_noted_where_the_original_calls_it_both() -> None:
    def last(choice: Choice, **options: Any) -> StepResult:
        at = scene(**options)
        for _ in range(15):
            at.step("hello")
        return at.step("marzipan", choice)

    noted = {"compat": "both flags"}
    for profile in ("userrl", "mimesis"):
        won = last(Choice.ANSWER, compat=profile)
        assert (won.terminated, won.truncated, won.private.grading) == (True, False, noted)
        cut = last(Choice.ACTION, compat=profile)
        assert (cut.terminated, cut.truncated, cut.private.grading) == (False, True, {})
    assert last(Choice.ANSWER).private.grading == {}
    assert scene(compat="userrl").step("marzipan", Choice.ANSWER).private.grading == {}


def test_leaks_are_found_whatever_their_spelling_and_own_words_are_exempt() -> None:
    assert leaks(["It is  MARZIPAN!"], ["marzipan"], []) == ["marzipan"]
    assert leaks(["It is marzipan"], ["marzipan"], ["marzipan?"]) == []
    assert leaks(["ticket 120"], ["12"], []) == []  # short strings stand on word borders
    assert leaks(["room 12."], ["12"], []) == ["12"]


def test_a_tag_is_never_doubled() -> None:
    assert tagged(AgentAction(Choice.ACTION, "hello")) == "[action] hello"
    assert tagged(AgentAction(Choice.ACTION, "[action] hello")) == "[action] hello"
