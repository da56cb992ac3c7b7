"""The gym `tau`: help a customer with a company's tools, as its policy allows.

The agent talks to the customer with `action`, uses a tool with `answer` and looks up the tools with
`search`. The reward comes at the end: 1 when the database is what the task asks for and everything
that must be said was said. A customer who leaves with words gives the agent one closing turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from mimesim import prompts
from mimesim.dialogue.stop import END_MARKER, LEAVING, Party, StopReason, UserAction
from mimesim.dialogue.types import GuardEvent, PublicMessage, Reply, Role
from mimesim.envs.base import AgentAction, Choice, GymSpec, Task
from mimesim.envs.gyms.tau import bench, customer, world
from mimesim.envs.gyms.tau.calls import RESPOND, is_short, read_call, read_call_as_userrl, written
from mimesim.envs.gyms.tau.domain import Books, Call, gold_digest, told
from mimesim.envs.gyms.tau.hidden import domain_of, read_hidden
from mimesim.envs.turns.law import MAX_STEPS, BadAction, Opening, Question, Turn, TurnGym
from mimesim.envs.turns.parts import PARTY_FAILURES
from mimesim.errors import ConfigError, DataError
from mimesim.users.base import Script

T = TypeVar("T")
KIND = "tau.customer"
SPEC = GymSpec(
    name="tau",
    choices=(Choice.SEARCH, Choice.ACTION, Choice.ANSWER),
    max_steps=MAX_STEPS,
    step_bounds=(0.0, 1.0),
    return_bound=1.0,
    needs_user=True,
    needs_judge=False,
    profiles=tuple(bench.DOMAINS),
    summary="help a customer with a company's tools, as its policy allows",
)
REMINDER = "the tools were listed before ."
NO_LOOK_UP = 'only "tools" and "help" can be looked up'
EARLY_STOP = "early_stop"
"""Name of the guard that fires when a customer leaves before anything was changed."""


@dataclass(frozen=True, slots=True)
class State:
    """What was said and done.

    Attributes:
        talk: `user` or `agent` and the words, as the customer knows them.
        calls: of tools, all that were carried out.
        listed: whether the tools were looked up.
        left: how the customer left, "" = not yet.
        won: whether the episode ended well.
    """

    talk: tuple[tuple[str, str], ...] = ()
    calls: tuple[Call, ...] = ()
    listed: bool = False
    left: str = ""
    won: bool = False


class TauGym(TurnGym[State]):
    """One episode (single use)."""

    SPEC = SPEC
    STATE = State
    OPTIONS: ClassVar[Mapping[str, Any]] = {"max_turns": MAX_STEPS, "brief": False}

    def system(self, task: Task) -> str:
        """Return what the agent is told."""
        tools = list(self._domain.tools.values())
        if not self.compat.tau_policy_visible:
            return prompts.render("envs/tau/system", policy="", tools=(), typed=True)
        if self._domain.name == world.NAME:
            if self.options["brief"]:
                return prompts.render("envs/tau/brief")
            return prompts.render("envs/tau/mini", policy=self._domain.policy, tools=tools)
        return prompts.render(
            "envs/tau/system", policy=self._domain.policy, tools=tools, typed=True
        )

    async def begin(self, task: Task) -> Opening[State]:
        """Start: the customer speaks; compat shows the stored words instead."""
        self._domain = domain_of(task)
        self._hidden = read_hidden(task, self._domain)
        self._books = Books(self._domain, self._hidden.ref)
        stored = self.compat.tau_first_message == "stored"
        shown = str(task.public.get("first_message", ""))
        if stored and not shown:
            raise DataError(
                "public.first_message is missing",
                where=f"task {task.id!r}",
                expected="the stored first message, or the option tau_first_message = 'live'",
            )
        try:
            reply = await self.ask(self._question(State(), "", may_end=False))
        except PARTY_FAILURES:
            if self.compat.error_policy != "zero_reward":
                raise
            return Opening(State(), shown if stored else self.CANNED)
        state = State(talk=(("user", reply.utterance),))
        return Opening(state, shown if stored else reply.utterance, reply)

    async def act(self, state: State, action: AgentAction) -> Turn[State]:
        """Talk, use a tool or look up; compat tells what is wrong where an action is invalid."""
        try:
            turn = await self._acted_on(state, action)
        except BadAction as error:
            if not self.compat.plain_choices:
                raise
            turn = Turn(state, str(error))
        return await self._closed(state, turn)

    async def wasted(self, turn: Turn[State]) -> Turn[State]:
        """End where the closing turn was wasted: what was done before counts."""
        return await self._closed(turn.state, turn)

    def succeeded(self, state: State) -> bool:
        """Tell whether the task was done."""
        return state.won

    def forbidden(self) -> list[str]:
        """Return the instruction and the calls that are asked for."""
        return [self._hidden.instruction, *map(written, self._hidden.actions)]

    async def _acted_on(self, state: State, action: AgentAction) -> Turn[State]:
        if action.choice is Choice.SEARCH:
            return self._look_up(state, action.content)
        if action.choice is Choice.ACTION:
            return await self._talk(state, action.content)
        call = self._read(action.content)
        if call.tool == RESPOND:
            return await self._talk(state, call.arguments["content"])
        said = await self._work(self._books.use, state.calls, call)
        turn = Turn(replace(state, calls=(*state.calls, call)), said)
        if call.tool in self._domain.endings:
            return await self._ended(turn, StopReason.USER_TRANSFER, Party.AGENT)
        return turn

    def _read(self, content: str) -> Call:
        """Read a call; the short form of the own shop is read under compat, too: it has no original."""
        short = self._domain.name == world.NAME and is_short(content)
        read = read_call_as_userrl if self.compat.plain_choices and not short else read_call
        return read(content, self._domain.tools)

    def _look_up(self, state: State, content: str) -> Turn[State]:
        asked = content.strip().lower()
        if asked == "help":
            return Turn(state, prompts.render("envs/tau/help"))
        if asked != "tools":
            raise BadAction(NO_LOOK_UP)
        if state.listed:
            return Turn(state, REMINDER)
        listed = prompts.render(
            "envs/tau/tools",
            tools=list(self._domain.tools.values()),
            typed=self.compat.tau_policy_visible,
        )
        return Turn(replace(state, listed=True), listed)

    async def _talk(self, state: State, text: str) -> Turn[State]:
        after = replace(state, talk=(*state.talk, ("agent", text)))
        if state.left:  # closing words; nobody answers
            return Turn(after)
        reply = await self.ask(self._question(state, text, may_end=True))
        if reply.utterance:
            after = replace(after, talk=(*after.talk, ("user", reply.utterance)))
        if reply.action is UserAction.SAY and not self._ends_by_marker(reply):
            return Turn(after, reply=reply)
        if await self._work(self._is_early, after):
            early = GuardEvent(EARLY_STOP, 0, "record")
            reply = replace(reply, guards=(*reply.guards, early))
        how = UserAction.END if reply.action is UserAction.SAY else reply.action
        turn = Turn(replace(after, left=how.value), reply=reply)
        closing = reply.utterance and not self.compat.plain_choices and not self._is_last_turn()
        return turn if closing else await self._ended(turn, LEAVING[how], Party.USER)

    def _question(self, state: State, text: str, *, may_end: bool) -> Question:
        return Question(
            kind=KIND,
            text=text,
            script=self._script(state, text),
            public={"opening": not state.talk},
            private={"instruction": self._hidden.instruction},
            history=tuple(PublicMessage(Role(who), words) for who, words in state.talk),
            may_end=may_end,
        )

    def _script(self, state: State, text: str) -> Script:
        errand, instruction = self._hidden.errand, self._hidden.instruction
        talk = (*state.talk, ("agent", text))

        def mini(kind: str) -> Reply:
            assert errand is not None
            if not state.talk:
                return customer.opening(errand, kind, self.rng("customer"))
            return customer.reply(errand, talk, kind)

        def derived(kind: str) -> Reply:
            if not state.talk:
                return customer.derived_opening(instruction)
            return customer.derived_reply(instruction, talk)

        return derived if errand is None else mini

    def _ends_by_marker(self, reply: Reply) -> bool:
        """Tell whether the original would end here: it looks for the marker anywhere in the text."""
        return self.compat.plain_choices and END_MARKER in reply.utterance

    def _is_last_turn(self) -> bool:
        return self._turns() + 1 >= self.spec.max_steps

    async def _closed(self, before: State, turn: Turn[State]) -> Turn[State]:
        """End after the closing turn: the customer had left before it."""
        if turn.over is None and before.left:
            return await self._ended(turn, LEAVING[before.left], Party.USER)
        return turn

    async def _ended(self, turn: Turn[State], reason: StopReason, by: Party) -> Turn[State]:
        same, missing = await self._work(self._grade, turn.state)
        won = same and not missing
        return replace(
            turn,
            state=replace(turn.state, won=won),
            reward=float(won),
            over=reason,
            by=by,
            grading={"database": same, "unsaid": missing},
        )

    def _grade(self, state: State) -> tuple[bool, list[str]]:
        """Compare the database, and name the required outputs that the agent did not say."""
        hidden = self._hidden
        gold = gold_digest(self._domain, hidden.ref, hidden.actions)
        said = [words for who, words in state.talk if who == "agent"]
        whole = self._domain.whole_words
        missing = [one for one in hidden.outputs if not told(one, said, whole_words=whole)]
        return self._books.digest(state.calls) == gold, missing

    def _is_early(self, state: State) -> bool:
        """Tell whether the database still is as at the start although the task changes it."""
        start = gold_digest(self._domain, self._hidden.ref, ())
        gold = gold_digest(self._domain, self._hidden.ref, self._hidden.actions)
        return gold != start and self._books.digest(state.calls) == start

    async def _work(self, work: Callable[..., T], *args: Any) -> T:
        """Work on the database, in a thread where that may take long."""
        return await asyncio.to_thread(work, *args) if self._domain.heavy else work(*args)

    def _spec(self) -> GymSpec:
        most: int = self.options["max_turns"]
        if most < 1:
            raise ConfigError(f"gym 'tau': 'max_turns' is {most}", expected="1 or more")
        lost = MAX_STEPS - self.compat.steps  # compat does not carry out the last one in training
        return replace(super()._spec(), max_steps=max(1, most - lost))


class MiniTau(TauGym):
    """One episode in the built-in shop."""

    SPEC = replace(
        SPEC,
        profiles=(world.NAME,),
        summary="help a customer of a small built-in shop with its tools, in few short words",
    )
