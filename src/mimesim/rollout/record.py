"""Writing down one conversation while it runs: from moves and steps to an `Episode`.

The recorder also holds the public history that an agent is shown, so what is shown and what is
recorded cannot differ.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import mimesim
from mimesim import config, jsonio
from mimesim.dialogue.episode import Episode, Outcome, Step, TaskRef, Turn
from mimesim.dialogue.stop import Stop
from mimesim.dialogue.types import GuardEvent, Identity, PublicMessage, Reply, Role, Usage
from mimesim.envs.actions import as_message
from mimesim.envs.base import (
    AgentAction,
    AgentMove,
    Observation,
    StepPrivate,
    StepResult,
    Task,
    profile_of,
)
from mimesim.errors import EpisodeError
from mimesim.rollout.limits import Limits
from mimesim.seeds import fingerprint
from mimesim.users.guards import clean

_PRIVATE_KEYS = (
    "goal",
    "persona",
    "facts",
    "withhold",
    "unknown",
    "behavior",
    "style",
    "end",
    "may_state_goal",
    "success",
)
_SCENARIO_KEYS = ("id", "source", "license", "tags")
_SOURCES = {"scripted": "scripted", "rule": "scripted", "human": "human"}


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of an episode before it runs.

    Attributes:
        seed: of this attempt. world_seed: of its user and environment streams; None = `seed`.
    """

    id: str
    run_id: str
    trial: int
    seed: int
    agent: Identity
    user: Identity | None = None
    judge: Identity | None = None
    attempt: int = 0
    world_seed: int | None = None


def task_ref(task: Task) -> TaskRef:
    """Return the reference to `task` that an episode keeps."""
    whole = {
        "gym": task.gym,
        "id": task.id,
        "split": task.split,
        "groups": list(task.groups),
        "public": task.public,
        "hidden": task.hidden,
    }
    return TaskRef(
        gym=task.gym,
        id=task.id,
        profile=profile_of(task),
        split=task.split,
        groups=task.groups,
        hash=fingerprint(jsonio.canonical(whole)),
        public=task.public,
    )


@cache
def software() -> Mapping[str, str]:
    """Return the versions that stand in every episode and manifest."""
    return {
        "version": mimesim.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.machine()}",
    }


def now() -> str:
    """Return the time of day in RFC 3339, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Recorder:
    """Collects one conversation. `history` is what the agent is shown after the opening."""

    def __init__(self, task: Task, header: Header, limits: Limits) -> None:
        self.task = task
        self.header = header
        self.limits = limits
        self.history: list[PublicMessage] = []
        self.turns: list[Turn] = []
        self.steps: list[Step] = []
        self.agent_usage = Usage()
        self.lost_usage = Usage()
        self.scored = True
        self._opening: PublicMessage | None = None
        self._observation = Observation("", "")
        self._success: bool | None = None
        self._done = False
        self._moved_at = 0
        self._guards: list[dict[str, Any]] = []
        self._errors: list[dict[str, Any]] = []
        self._thoughts: list[dict[str, Any]] = []
        self._raw: list[dict[str, Any]] = []
        self._drafts: list[dict[str, Any]] = []
        self._wishes: list[dict[str, Any]] = []
        self._reasoning: list[dict[str, Any]] = []
        self._grading: list[dict[str, Any]] = []
        self._judge: list[dict[str, Any]] = []
        self._created = now()
        self._start = time.monotonic()

    @property
    def public(self) -> list[PublicMessage]:
        """The whole public transcript, the opening included."""
        return [self._opening, *self.history] if self._opening else list(self.history)

    @property
    def turns_used(self) -> int:
        """User messages that reached the agent."""
        return sum(turn.role is Role.USER and turn.delivered for turn in self.turns)

    def elapsed(self) -> float:
        """Return seconds since the start."""
        return round(time.monotonic() - self._start, 4)

    def opening(self, observation: Observation, private: StepPrivate) -> None:
        """Write down what the agent sees first."""
        self._observation = observation
        reply = private.reply
        if observation.first_user:
            self._opening = PublicMessage(Role.USER, observation.first_user)
        self._private_side(private, len(self.turns))
        if self._opening:
            self._user_turn(self._opening, reply, delivered=True)

    def agent_move(self, move: AgentMove, action: AgentAction, latency: float) -> PublicMessage:
        """Write down the agent's messages and return the public form of the last."""
        self._moved_at = len(self.turns)
        for done in move.activity:
            self._append(done, self.header.agent)
            self.history.append(done)
        message = as_message(action, move.text)
        if move.last is not None:
            message = replace(message, content=move.last)
        turn = self._append(
            message, self.header.agent, finish_reason=move.finish_reason, latency_s=latency
        )
        if move.reasoning:
            self._reasoning.append({"turn": turn.i, "text": move.reasoning})
        self.history.append(message)
        return message

    def agent_move_failed(self) -> None:
        """Mark the agent's last words as never handed over: the gym did not execute them."""
        last = len(self.turns) - 1
        for place in range(self._moved_at, last + 1):
            turn = self.turns[place]
            if place == last or (turn.role is Role.AGENT and turn.content):
                self.turns[place] = Turn(**{**_shallow(turn), "delivered": False})
        self.history.pop()

    def step(self, move: AgentMove, action: AgentAction, result: StepResult) -> None:
        """Write down an executed step; its messages follow with `feedback`."""
        self.steps.append(
            Step(
                i=len(self.steps),
                turn=len(self.turns) - 1,
                choice=action.choice.value,
                content=action.content,
                text=move.text,
                valid=result.valid and not action.problem,
                reward=result.reward,
                problem=action.problem,
            )
        )
        self._done = result.done
        if result.success is not None or result.done:
            self._success = result.success

    def feedback(self, result: StepResult, *, delivered: bool, latency: float) -> None:
        """Write down what the step gave back; undelivered user messages never reach the agent."""
        private = result.private
        self._private_side(private, len(self.turns))
        for message in result.feedback:
            if message.role is Role.USER:
                self._user_turn(message, private.reply, delivered=delivered, latency=latency)
            else:
                self._append(message, self.header.user)
            if delivered or message.role is not Role.USER:
                self.history.append(message)

    def guard(self, event: GuardEvent) -> None:
        """Write down a guard event of the runner at the current message."""
        turn = event.turn if event.turn >= 0 else len(self.turns)
        self._guards.append({**asdict(event), "turn": turn})

    def error(self, where: str, error: BaseException, *, attempt: int = 0) -> None:
        """Write down an error; logins in addresses are removed."""
        self._errors.append(
            {
                "where": where,
                "type": type(error).__name__,
                "message": config.redact(str(error)),
                "retryable": isinstance(error, EpisodeError) and error.retryable,
                "attempt": attempt,
                "turn": len(self.turns),
                "at": self.elapsed(),
            }
        )

    def lost(self, error: EpisodeError) -> None:
        """Write down what the user drew and spent on a turn before it failed."""
        reply = error.lost
        if not isinstance(reply, Reply):
            return
        self.lost_usage = self.lost_usage + reply.usage
        turn = len(self.turns)
        for event in reply.guards:
            self.guard(GuardEvent(event.guard, event.attempt, event.action, event.detail, turn))
        self._held_back(reply, turn)

    def finish(self, stop: Stop, usage: Mapping[str, Usage]) -> Episode:
        """Return the finished episode."""
        valued = stop.status.counted and self.scored
        success = self._success if self._done else False
        reward = float(sum(step.reward for step in self.steps))
        scenario = self.task.scenario
        return Episode(
            id=self.header.id,
            run_id=self.header.run_id,
            trial=self.header.trial,
            seed=self.header.seed,
            attempt=self.header.attempt,
            task=task_ref(self.task),
            agent=self.header.agent,
            user=self.header.user,
            judge=self.header.judge,
            system=self._observation.system,
            tools=self._observation.tools,
            scenario=_scenario_ref(scenario),
            software=software(),
            limits=asdict(self.limits),
            turns=tuple(self.turns),
            steps=tuple(self.steps),
            stop=stop,
            outcome=Outcome(stop.status, success if valued else None, reward if valued else None),
            guards=tuple(self._guards),
            usage={"agent": self.agent_usage, **usage},
            errors=tuple(self._errors),
            created_at=self._created,
            finished_at=now(),
            duration_s=self.elapsed(),
            private=self._private(scenario),
        )

    def _private(self, scenario: Mapping[str, Any]) -> dict[str, Any]:
        kept = {key: scenario[key] for key in _PRIVATE_KEYS if key in scenario}
        lists = {
            "thoughts": self._thoughts,
            "raw": self._raw,
            "drafts": self._drafts,
            "wishes": self._wishes,
            "agent_reasoning": self._reasoning,
            "grading": self._grading,
            "judge": self._judge,
        }
        return kept | {key: entries for key, entries in lists.items() if entries}

    def _private_side(self, private: StepPrivate, turn: int) -> None:
        reply = private.reply
        if reply is not None:
            self._reply(reply, turn)
        for event in private.guards or (reply.guards if reply else ()):
            self.guard(GuardEvent(event.guard, event.attempt, event.action, event.detail, turn))
        if private.grading:
            self._grading.append({"step": len(self.steps) - 1, **private.grading})
        self._judge += [{"turn": turn, **entry} for entry in private.judge]

    def _reply(self, reply: Reply, turn: int) -> None:
        if reply.thought is not None:
            source = "generated" if reply.thought else "none"
            self._thoughts.append({"turn": turn, "text": reply.thought.reveal(), "source": source})
        if reply.raw and reply.raw != reply.utterance:
            self._raw.append({"turn": turn, "text": reply.raw})
        self._held_back(reply, turn)
        if reply.wish:
            self._wishes.append({"turn": turn, "wish": dict(reply.wish)})

    def _held_back(self, reply: Reply, turn: int) -> None:
        self._drafts += [
            {"turn": turn, "attempt": d.attempt, "guard": d.guard, "text": d.text.reveal()}
            for d in reply.drafts
        ]

    def _user_turn(
        self,
        message: PublicMessage,
        reply: Reply | None,
        *,
        delivered: bool,
        latency: float | None = None,
    ) -> None:
        if reply is None:
            self._append(message, self.header.user, delivered=delivered, latency_s=latency)
            return
        self._append(
            message,
            self.header.user,
            action=reply.action.value,
            attempts=reply.attempts,
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            delivered=delivered,
            latency_s=latency,
        )

    def _append(self, message: PublicMessage, who: Identity | None, **extra: Any) -> Turn:
        turn = Turn(
            i=len(self.turns),
            role=message.role,
            content=message.content,
            tool_calls=message.tool_calls,
            tool_call_id=message.tool_call_id,
            name=message.name,
            owner=message.owner,
            source=_SOURCES.get(who.kind if who else "scripted", "generated"),
            at=self.elapsed(),
            **extra,
        )
        self.turns.append(turn)
        return turn


def _scenario_ref(scenario: Mapping[str, Any]) -> dict[str, Any]:
    known = {key: scenario[key] for key in _SCENARIO_KEYS if key in scenario}
    return {**known, "hash": fingerprint(jsonio.canonical(scenario))} if scenario else {}


def _shallow(turn: Turn) -> dict[str, Any]:
    return {name: getattr(turn, name) for name in Turn.__slots__}


def replace_surrogates(text: str) -> tuple[str, bool]:
    """Return `text` with lone surrogates and NUL as U+FFFD, and whether any was there."""
    return clean(text)
