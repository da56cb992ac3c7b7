"""The compact desk gym: ask in words, close with one line, be graded once (design ruling 2).

An `action` is a question in words, answered by the customer; an `answer` is an `act …` line that
ends the episode with the graded reward of `scenarios.compact.grade`. A customer who leaves ends it
with reward 0. At most 8 executed actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.dialogue.stop import Party, StopReason, UserAction
from mimesim.dialogue.types import PublicMessage, Reply, Role, Usage
from mimesim.envs.base import (
    AgentAction,
    Choice,
    GymSpec,
    Observation,
    StepPrivate,
    StepResult,
    Task,
)
from mimesim.errors import CallerError, DataError
from mimesim.scenarios.compact import (
    FIELD_NAMES,
    REQUIRED,
    asked_fields,
    compose_scenario,
    grade,
    parse_final,
    policy_line,
    read_policy,
    right_kind,
)
from mimesim.seeds import derive
from mimesim.users.base import User, UserRequest

MAX_STEPS = 8
MOVES = (
    *(("action", f"what is the {name} ?") for name in FIELD_NAMES.values()),
    *(("answer", f"act {kind} order 1") for kind in ("deny", "escalate", "wait", "cancel")),
)
"""What a random agent draws from: it asks and acts, and never uses what it hears."""
_MAX_INVALID = 3
_INVALID = "not an action . ask for a thing , or act on the order"

SPEC = GymSpec(
    name="support-desk",
    choices=(Choice.ACTION, Choice.ANSWER),
    max_steps=MAX_STEPS,
    step_bounds=(0.0, 1.0),
    return_bound=1.0,
    needs_user=True,
    needs_judge=False,
    profiles=("compact",),
    summary="support desk, compact profile: elicit the fields, close with one line",
)


def make_tasks(split: str, seed: int, count: int) -> list[Task]:
    """Make `count` compact tasks of a split; the same arguments give the same tasks."""
    tasks = []
    for index in range(count):
        scenario = compose_scenario(seed, split, index)
        tasks.append(
            Task(
                gym="support-desk",
                id=scenario["id"],
                split=split,
                groups=(f"record:{scenario['id']}",),
                public={"profile": "compact", "policy": policy_line(scenario["meta"]["policy"])},
                hidden={"scenario": scenario},
                meta={"source": "mimesim", "license": "Apache-2.0", "schema": 1},
            )
        )
    return tasks


def check_task(task: Task) -> None:
    """Read once what an episode of `task` reads.

    Raises:
        DataError: a value of the customer is missing.
    """
    policy, meta = read_policy(task.public["policy"]), task.scenario["meta"]
    facts, intent = task.scenario["facts"], meta["intent"]
    int(meta["opening_seed"])
    missing = [name for name in REQUIRED[intent] if not isinstance(facts.get(name), str)]
    if missing or not isinstance(meta["item"], str):
        raise DataError(
            f"the customer has no {(*missing, 'item')[0]!r}",
            where=f"task {task.id!r}",
            expected="a text for every required field",
        )
    right_kind(policy, intent, facts)


class CompactDesk:
    """One episode of the compact desk (single use)."""

    spec = SPEC

    def __init__(
        self, *, user: User, judge: object = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self.user = user
        self.opening_private = StepPrivate()
        self.user_usage = Usage()
        self.judge_usage = Usage()
        self._task: Task | None = None
        self._seed = 0
        self._history: list[PublicMessage] = []
        self._wish: Mapping[str, Any] = {}
        self._steps = 0
        self._invalid = 0
        self._done = False
        self._busy = False

    async def reset(self, task: Task, *, seed: int) -> Observation:
        """Start the episode with the customer's opening line."""
        if self._task is not None:
            raise CallerError("a gym is single-use: make a new one for each episode")
        self._task, self._seed = task, seed
        reply = await self._ask_user("", ())
        self._hear(reply)
        self.opening_private = StepPrivate(reply=reply)
        self._done = reply.action is not UserAction.SAY
        return Observation(system=task.public["policy"], first_user=reply.utterance)

    async def step(self, action: AgentAction) -> StepResult:
        """Execute one action.

        Raises:
            CallerError: not started, over, or another step is running.
        """
        if self._task is None or self._done:
            raise CallerError("the episode is not running: reset it once, stop when it is done")
        if self._busy:
            raise CallerError("two steps at once on one episode")
        self._busy = True
        try:
            result = await self._execute(action)
        finally:
            self._busy = False
        self._done = result.done
        return result

    async def _execute(self, action: AgentAction) -> StepResult:
        if action.problem:
            return self._refuse()
        if action.choice is Choice.ANSWER:
            return self._close(action.content)
        reply = await self._ask_user(action.content, asked_fields(action.content))
        self._history.append(PublicMessage(Role.AGENT, action.content))
        self._hear(reply)
        self._steps += 1
        self._invalid = 0
        said = (self._history[-1],) if reply.utterance else ()
        private = StepPrivate(reply=reply)
        if reply.action is not UserAction.SAY:
            reason = StopReason.USER_STOP
            return StepResult(said, 0.0, True, False, reason, Party.USER, False, private=private)
        if self._steps >= MAX_STEPS:
            reason = StopReason.MAX_STEPS
            return StepResult(said, 0.0, False, True, reason, Party.RUNNER, False, private=private)
        return StepResult(said, 0.0, False, False, private=private)

    def _close(self, line: str) -> StepResult:
        final = parse_final(line)
        if final is None:
            return self._refuse()
        self._steps += 1
        self._history.append(PublicMessage(Role.AGENT, line))
        assert self._task is not None
        policy = read_policy(self._task.public["policy"])
        score = grade(policy, self._wish["intent"], self._wish["values"], final)
        grading = {
            "kind_ok": score.kind_ok,
            "order_ok": score.order_ok,
            "slot_ok": score.slot_ok,
            "missing": list(self._wish["missing"]),
        }
        return StepResult(
            (),
            score.reward,
            True,
            False,
            StopReason.CASE_CLOSED,
            Party.AGENT,
            score.success,
            private=StepPrivate(grading=grading),
        )

    def _refuse(self) -> StepResult:
        self._steps += 1
        self._invalid += 1
        told = (PublicMessage(Role.TOOL, _INVALID),)
        if self._invalid >= _MAX_INVALID:
            reason = StopReason.AGENT_INVALID
            return StepResult(told, 0.0, True, False, reason, Party.AGENT, False, valid=False)
        if self._steps >= MAX_STEPS:
            reason = StopReason.MAX_STEPS
            return StepResult(told, 0.0, False, True, reason, Party.RUNNER, False, valid=False)
        return StepResult(told, 0.0, False, False, valid=False)

    async def _ask_user(self, text: str, fields: tuple[str, ...]) -> Reply:
        request = UserRequest(
            kind="desk.customer",
            history=tuple(self._history),
            agent_text=text,
            seed=derive(self._seed, "user", self._steps if text else "opening"),
            asked_fields=fields,
        )
        return await self.user.respond(request)

    def _hear(self, reply: Reply) -> None:
        self.user_usage = self.user_usage + reply.usage
        if reply.utterance:
            self._history.append(PublicMessage(Role.USER, reply.utterance))
        # A customer who states no wish (a model) keeps the one of the scenario.
        self._wish = reply.wish or self._wish or self._scenario_wish()

    def _scenario_wish(self) -> Mapping[str, Any]:
        assert self._task is not None
        scenario = self._task.scenario
        intent = scenario["meta"]["intent"]
        return {"intent": intent, "values": dict(scenario["facts"]), "missing": []}

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {
            "schema_version": 1,
            "gym": "support-desk/compact",
            "task_id": self._task.id if self._task else None,
            "seed": self._seed,
            "turns": self._steps,
            "state": {"history": [[m.role, m.content] for m in self._history], "wish": self._wish},
            "user_state": self.user.snapshot(),
            "invalid_streak": self._invalid,
            "done": self._done,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state of the same task.

        Raises:
            CallerError: the state belongs to another task.
        """
        if self._task is None or state["task_id"] != self._task.id:
            raise CallerError(f"state of task {state['task_id']!r} restored into another task")
        self._seed, self._steps = state["seed"], state["turns"]
        self._invalid, self._done = state["invalid_streak"], state["done"]
        self._history = [PublicMessage(Role(r), text) for r, text in state["state"]["history"]]
        self._wish = state["state"]["wish"]
        self.user.restore(state["user_state"])

    def forbidden(self) -> list[str]:
        """Return strings that no feedback may hold now: none in this profile.

        The customer's values are theirs to tell; what stays hidden is no string but a choice.
        """
        return []

    async def aclose(self) -> None:
        """Release nothing; twice is harmless."""
