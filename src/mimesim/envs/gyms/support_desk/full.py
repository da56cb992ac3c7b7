"""The full desk gym: elicit, verify, act within policy, close (profile `full`).

`action` is a message to the customer, `answer` a call of a desk tool, `search` a look into the
manual. Rewards are gains of S over its best so far. When the customer leaves, exactly one more
step is executed. A step that fails commits nothing: the state is one value, replaced at the end,
and the user is set back to where it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mimesim.dialogue.stop import LEAVING, UserAction
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import PublicMessage, Reply, Role, Usage
from mimesim.envs.actions import problem_of
from mimesim.envs.base import (
    AgentAction,
    Choice,
    GymSpec,
    Observation,
    StepPrivate,
    StepResult,
    Task,
)
from mimesim.envs.gyms.support_desk import texts, tools
from mimesim.envs.gyms.support_desk.case import Case, read_case
from mimesim.envs.gyms.support_desk.ending import MAX_STEPS, Turn, finish
from mimesim.envs.gyms.support_desk.scoring import canon
from mimesim.envs.gyms.support_desk.state import (
    State,
    count_asks,
    heard,
    note_use,
    verified,
)
from mimesim.errors import CallerError, ConfigError, DataError, UserError
from mimesim.scenarios import procedure
from mimesim.scenarios.fields import asked_fields
from mimesim.seeds import derive
from mimesim.users.base import User, UserRequest

SCHEMA = 1
SPEC = GymSpec(
    name="support-desk",
    choices=(Choice.ACTION, Choice.ANSWER, Choice.SEARCH),
    max_steps=MAX_STEPS,
    step_bounds=(0.0, 1.0),
    return_bound=1.0,
    needs_user=True,
    needs_judge=False,
    profiles=("full",),
    summary="support desk: get the details, keep to the policy, act, close the case",
)


def check_task(task: Task) -> None:
    """Read once what an episode of `task` reads.

    Raises:
        DataError: damaged, too thin to be won, or of a flow that the manual does not have.
    """
    case = read_case(task)
    texts.system_text(task)
    procedure.gold(case.row, case.manual)
    truth = case.truth({})
    lost = [name for name in case.required if name not in {**truth, **case.scenario.facts}]
    flows = {request.flow for request in case.manual.request_types}
    wrong = [key for key in ("policy", "as_of") if not isinstance(task.public[key], str)]
    if lost or wrong or task.public["flow"] not in flows:
        raise DataError(
            f"{(*lost, *wrong, 'flow')[0]!r} is missing or cannot be used",
            where=f"task {task.id!r}",
            expected="every required field in the record, texts in public, a flow of the manual",
        )


class FullDesk:
    """One episode of the full desk (single use)."""

    spec = SPEC

    def __init__(
        self, *, user: User, judge: object = None, options: Mapping[str, Any] | None = None
    ) -> None:
        if options:
            raise ConfigError(f"the support desk has no option {next(iter(options))!r}")
        self.opening_private = StepPrivate()
        self.user_usage = Usage()
        self.judge_usage = Usage()
        self._user = user
        self._task: Task | None = None
        self._case: Case | None = None
        self._seed = 0
        self._state = State()
        self._failures = 0
        self._busy = False

    async def reset(self, task: Task, *, seed: int) -> Observation:
        """Start the episode with the customer's opening line.

        Raises:
            CallerError: the gym was used before.
            DataError: the task's hidden side is damaged.
            UserError, InfraError: the customer did not speak; nothing was committed.
        """
        if self._task is not None:
            raise CallerError("a gym is single-use: make a new one for each episode")
        case = read_case(task)
        self._seed = seed
        reply = await self._ask(State(), "")
        self._task, self._case = task, case
        self._state = _hear(State(), reply, case)
        self._failures = 0
        self.opening_private = StepPrivate(reply=reply, guards=reply.guards)
        return Observation(system=texts.system_text(task), first_user=reply.utterance)

    async def step(self, action: AgentAction) -> StepResult:
        """Execute one action.

        Raises:
            CallerError: not started, over, or another step is running.
            UserError, InfraError: the customer failed; nothing was committed.
        """
        case = self._running()
        if self._state.done:
            raise CallerError("the episode is over")
        if self._busy:
            raise CallerError("two steps at once on one episode")
        self._busy = True
        try:
            turn = await self._execute(case, action)
        finally:
            self._busy = False
        result, self._state = finish(self._state, turn, case)
        self._failures = 0
        return result

    async def _execute(self, case: Case, action: AgentAction) -> Turn:
        state = replace(self._state, turns=self._state.turns + 1, invalid=0)
        problem = problem_of(action, self.spec)
        try:
            if problem:
                raise tools.BadCall(problem)
            if action.choice is Choice.ACTION:
                return await self._talk(state, case, action.content)
            if action.choice is Choice.SEARCH:
                assert self._task is not None
                found = texts.look_up(action.content, case.manual, self._task)
                return Turn(state, (_tool(found),))
            return _call(state, case, action.content)
        except tools.BadCall as error:
            invalid = replace(state, invalid=self._state.invalid + 1)
            told = texts.invalid_text(str(error), self.spec)
            return Turn(invalid, (_tool(told),), valid=False)

    async def _talk(self, state: State, case: Case, text: str) -> Turn:
        if state.left:
            return Turn(state, (_tool(texts.LEFT),))
        reply = await self._ask(state, text)
        spoken = (*state.history, PublicMessage(Role.AGENT, text))
        after = _hear(count_asks(replace(state, history=spoken), text), reply, case)
        feedback = [PublicMessage(Role.USER, reply.utterance)] if reply.utterance else []
        if after.left:
            feedback.append(_tool(texts.LEFT))
        return Turn(after, tuple(feedback), reply)

    async def _ask(self, state: State, text: str) -> Reply:
        """Ask the customer; on failure set the user back, so that the step can be tried again."""
        request = UserRequest(
            kind="desk.customer",
            history=(*state.history, PublicMessage(Role.AGENT, text)) if text else state.history,
            agent_text=text,
            seed=derive(self._seed, "user", state.turns, self._failures),
            asked_fields=asked_fields(text),
        )
        before = self._user.snapshot()
        try:
            reply = await self._user.respond(request)
            self.user_usage = self.user_usage + reply.usage  # spent, whatever it is worth
            if reply.action not in (UserAction.SAY, *LEAVING):
                raise UserError("the customer has no tools of their own here")
            if reply.action is UserAction.SAY and is_blank(reply.utterance):
                raise UserError("the customer said nothing")
        except BaseException:
            self._user.restore(before)
            self._failures += 1
            raise
        return reply

    def _running(self) -> Case:
        if self._case is None:
            raise CallerError("the episode was not started: call reset first")
        return self._case

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON values; the desk draws no random numbers."""
        self._running()
        assert self._task is not None
        return {
            "schema_version": SCHEMA,
            "gym": "support-desk/full",
            "task_id": self._task.id,
            "seed": self._seed,
            "turns": self._state.turns,
            "state": self._state.to_json(),
            "rng_state": None,
            "user_state": self._user.snapshot(),
            "judge_state": None,
            "transcript_len": len(self._state.history),
            "invalid_streak": self._state.invalid,
            "done": self._state.done,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state of the same task.

        Raises:
            CallerError: not started, or the state belongs to another task or gym.
        """
        self._running()
        assert self._task is not None
        origin = (state["gym"], state["task_id"], state["schema_version"])
        if origin != ("support-desk/full", self._task.id, SCHEMA):
            raise CallerError(f"a state of {origin} does not fit task {self._task.id!r}")
        self._seed = state["seed"]
        self._state = State.from_json(
            state["state"],
            turns=state["turns"],
            invalid=state["invalid_streak"],
            done=state["done"],
        )
        self._failures = 0
        self._user.restore(state["user_state"])

    def forbidden(self) -> list[str]:
        """Return strings that no feedback may hold now."""
        self._running()
        assert self._task is not None
        assert self._case is not None
        return texts.forbidden(self._task, self._case, self._state)

    async def aclose(self) -> None:
        """Release nothing; the user belongs to its source."""


def _tool(text: str) -> PublicMessage:
    return PublicMessage(Role.TOOL, text)


def _hear(state: State, reply: Reply, case: Case) -> State:
    """Take in what the customer said, did and now wishes."""
    history = state.history
    if reply.utterance:
        history = (*history, PublicMessage(Role.USER, reply.utterance))
    told = reply.wish.get("values", reply.wish)
    wish = {k: str(v) for k, v in told.items() if k in case.request.wishes}
    left = "" if reply.action is UserAction.SAY else reply.action.value
    return replace(
        state,
        history=history,
        wish={**state.wish, **wish},
        left=left,
        left_unverified=bool(left) and not verified(state, case),
    )


def _call(state: State, case: Case, content: str) -> Turn:
    """Carry out a tool call.

    Raises:
        BadCall: it cannot be read.
    """
    call = tools.read_call(content, case.manual)
    if call.name == tools.CLOSE:
        closed = replace(state, resolution=canon(call.arguments["resolution"]))
        return Turn(closed, (_tool("done; the case is closed"),))
    said = {
        name
        for slot, value in call.arguments.items()
        if heard(state, name := case.field_of(call.name, slot), value)
    }
    outcome = tools.run_tool(
        call, case, case.truth(state.wish), verified=verified(state, case), said=said
    )
    after = note_use(state, call, case)
    after = replace(
        after,
        matched=tuple(dict.fromkeys((*after.matched, *outcome.matched))),
        returned=tuple(dict.fromkeys((*after.returned, *outcome.returned))),
    )
    if outcome.executed:
        after = replace(after, executed=(*after.executed, call))
    if outcome.violation:
        after = replace(after, violations=(*after.violations, outcome.violation))
    return Turn(after, (_tool(f"{call.name}: {outcome.text}"),))
