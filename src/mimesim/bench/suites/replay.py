"""A user in people's own conversations: before every message of a person, the user writes one too.

The user always reads what the two people really said up to there, so its messages stand in exactly
the situations of the person's: a difference is a difference of messages, not of where a conversation
drifted. It is not a live conversation: nobody answers what the user wrote. An episode holds the
user's messages between the recorded lines of the other side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.bench.suites.sessions import Session, SessionSet
from mimesim.dialogue.stop import Party, StopReason, UserAction
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import Identity, PublicMessage, Reply, Role, Usage
from mimesim.envs.actions import get_format
from mimesim.envs.base import (
    AgentAction,
    AgentMove,
    AgentView,
    Choice,
    GymSpec,
    Observation,
    StepPrivate,
    StepResult,
    Task,
)
from mimesim.errors import CallerError, UsageError, UserError
from mimesim.rollout.engine import Cast, EngineConfig, Job, RunSummary, run
from mimesim.rollout.events import OnEvent
from mimesim.rollout.record import task_ref
from mimesim.rollout.store import Plan, Store
from mimesim.seeds import derive, fingerprint
from mimesim.users.base import User, UserRequest, UserSource

NAME = "replay"
_GOAL = "Talk to the other person as people do."
_BLIND = "scripted"
"""Users of this kind say a part of their own and do not read what was said before."""
SPEC = GymSpec(
    name=NAME,
    choices=(Choice.ACTION,),
    max_steps=1000,
    step_bounds=(0.0, 0.0),
    return_bound=0.0,
    needs_user=True,
    needs_judge=False,
    summary="before every message of a person, the user writes one too",
    scored=False,
)


def tasks_of(sessions: tuple[Session, ...]) -> list[Task]:
    """Return one task per conversation in which somebody answers the person's first message."""
    found = []
    for session in sessions:
        roles = [role for role, _ in session.turns]
        if Role.USER in roles and Role.AGENT in roles[roles.index(Role.USER) :]:
            found.append(
                Task(
                    gym=NAME,
                    id=session.id,
                    split="test",
                    groups=(session.cluster,),
                    public={},
                    hidden={
                        "scenario": {"id": session.id, "goal": session.goal or _GOAL},
                        "turns": [[role.value, text] for role, text in session.turns],
                    },
                )
            )
    return found


def cast_of(user: UserSource) -> Cast:
    """Return who takes part: the user, and the recorded lines of the other side."""

    def make(task: Task, person: User | None) -> Replay:
        if person is None:
            raise CallerError("a replay needs a user")
        return Replay(user)

    return Cast(_Recorded(), make, get_format("plain"), user)


def check_reader(user: UserSource) -> None:
    """Refuse a user who does not read what the two people said: its words would answer nothing.

    Raises:
        UsageError: a scripted user.
    """
    if user.identity.kind == _BLIND:
        raise UsageError(
            f"{user.identity.name} cannot write in people's conversations: a script does not read "
            "what was said before",
            expected="a user that reads, e.g. --user roleplay:<model>",
            mend="for a script, compare conversations of its own: --episodes <run> --human <file>",
        )


def plan_of(tasks: Sequence[Task], cast: Cast, people: SessionSet, *, seed: int) -> Plan:
    """Return what identifies a replay: another user, seed or source is another run."""
    user = asdict(cast.user.identity) if cast.user else None
    hashes = {task.id: task_ref(task).hash for task in tasks}
    identity = {
        "gym": NAME,
        "seed": seed,
        "people": people.name,
        "turns": fingerprint(jsonio.canonical([dict(task.hidden) for task in tasks])),
        "user": user,
        "agent": asdict(cast.agent.identity),
    }
    return Plan(identity, {}, hashes, tuple((task.id, 0) for task in tasks))


def replay(
    people: SessionSet,
    user: UserSource,
    out: Path | str,
    *,
    config: EngineConfig,
    on_event: OnEvent | None = None,
) -> RunSummary:
    """Let `user` write in all conversations of `people`; resumes what `out` holds.

    Args:
        people: whose conversations.
        user: who writes; it stays open.
        out: run folder or `.jsonl`.
        config: seed, concurrency, retries.
        on_event: told what happens.

    Raises:
        UsageError: no conversation with two sides, or `out` belongs to another run.
    """
    tasks = tasks_of(people.sessions)
    if not tasks:
        raise UsageError(
            "no conversation in which somebody answers the user",
            where=people.name,
            expected="dialogues of two sides",
        )
    cast = cast_of(user)
    store = Store.open(out, plan_of(tasks, cast, people, seed=config.seed))
    try:
        return run([Job(task) for task in tasks], cast, config, store=store, on_event=on_event)
    finally:
        store.close()


class Replay:
    """One conversation (single use); a fresh user for every message, since none was the user's."""

    spec = SPEC

    def __init__(self, source: UserSource) -> None:
        self.opening_private = StepPrivate()
        self.user_usage = Usage()
        self.judge_usage = Usage()
        self._source = source
        self._task: Task | None = None
        self._turns: tuple[PublicMessage, ...] = ()
        self._seed = 0
        self._at = 0

    async def reset(self, task: Task, *, seed: int) -> Observation:
        """Let the user write the first message.

        Raises:
            CallerError: it was used before.
            UserError, InfraError: the user did not write one.
        """
        if self._task is not None:
            raise CallerError("a replay is single-use: make a new one for each episode")
        turns = tuple(PublicMessage(Role(role), text) for role, text in task.hidden["turns"])
        first = next(i for i, turn in enumerate(turns) if turn.role is Role.USER)
        self._turns, self._seed = turns, seed
        reply = await self._write(task, first)
        if is_blank(reply.utterance):
            raise UserError("the user said nothing at the start")
        self._task, self._at = task, first
        self.opening_private = StepPrivate(reply=reply, guards=reply.guards)
        return Observation(system="", first_user=reply.utterance)

    async def step(self, action: AgentAction) -> StepResult:
        """Go on to the person's next message, and let the user write it.

        Raises:
            CallerError: not started.
            UserError, InfraError: the user failed; nothing was committed.
        """
        if self._task is None:
            raise CallerError("the replay was not started: call reset first")
        places = [
            i for i, turn in enumerate(self._turns) if turn.role is Role.USER and i > self._at
        ]
        if not places:
            return _result(None, over=True)
        reply = await self._write(self._task, places[0])
        self._at = places[0]
        silent = is_blank(reply.utterance)
        if silent and reply.action is UserAction.SAY:
            raise UserError("the user said nothing")
        answered = any(turn.role is Role.AGENT for turn in self._turns[places[0] :])
        return _result(reply, over=not answered, left=silent)

    async def _write(self, task: Task, place: int) -> Reply:
        before = self._turns[:place]
        heard = before[-1].content if before and before[-1].role is Role.AGENT else ""
        seed = derive(self._seed, "turn", place)
        person = self._source.start(task.scenario, seed=seed)
        reply = await person.respond(UserRequest("chat", before, heard, derive(seed, "reply")))
        self.user_usage = self.user_usage + reply.usage
        return reply

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {"gym": NAME, "at": self._at}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state of the same task."""
        self._at = state["at"]

    async def aclose(self) -> None:
        """Release nothing; the users belong to their source."""


class _Recorded:
    """The other side of people's conversations."""

    identity = Identity(kind="recorded", name="recorded people")

    def start(self, *, task: Task, seed: int, key: str) -> _Line:
        return _Line([text for role, text in _after_first(task) if role == Role.AGENT.value])

    async def aclose(self) -> None:
        """Release nothing."""


class _Line:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    async def act(self, view: AgentView) -> AgentMove:
        return AgentMove(self._lines[view.step])

    async def aclose(self) -> None:
        """Release nothing."""


def _after_first(task: Task) -> list[list[str]]:
    """Return what was said after the person's first message, lines of one side joined."""
    turns = task.hidden["turns"]
    first = next(i for i, (role, _) in enumerate(turns) if role == Role.USER.value)
    joined: list[list[str]] = []
    for role, text in turns[first:]:
        if joined and joined[-1][0] == role:
            joined[-1][1] += "\n" + text
        else:
            joined.append([role, text])
    return joined


def _result(reply: Reply | None, *, over: bool, left: bool = False) -> StepResult:
    said = reply is not None and not left
    feedback = (PublicMessage(Role.USER, reply.utterance),) if reply is not None and said else ()
    reason = StopReason.USER_STOP if left else StopReason.MAX_TURNS if over else None
    by = Party.USER if left else Party.RUNNER if over else None
    return StepResult(
        feedback=feedback,
        reward=0.0,
        terminated=left,
        truncated=over and not left,
        reason=reason,
        by=by,
        private=StepPrivate(reply=reply, guards=reply.guards if reply else ()),
    )
