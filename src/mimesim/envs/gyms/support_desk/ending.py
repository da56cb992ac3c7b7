"""From an executed action to a step result: its reward, and whether the episode is over."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from mimesim.dialogue.stop import LEAVING, Party, StopReason
from mimesim.dialogue.types import PublicMessage, Reply
from mimesim.envs.base import StepPrivate, StepResult
from mimesim.envs.gyms.support_desk.case import Case
from mimesim.envs.gyms.support_desk.state import State, grade

MAX_STEPS = 16
MAX_INVALID = 3
"""Invalid actions in a row that end an episode."""


class Turn(NamedTuple):
    """What executing an action gave, before it is scored."""

    state: State
    feedback: tuple[PublicMessage, ...]
    reply: Reply | None = None
    valid: bool = True


class End(NamedTuple):
    """How the episode is over."""

    reason: StopReason
    by: Party
    truncated: bool = False


def finish(before: State, turn: Turn, case: Case) -> tuple[StepResult, State]:
    """Score a turn; return what the step gives and the state to commit."""
    marks = grade(turn.state, case)
    end = _end(before, turn.state)
    reward = max(0.0, marks.S - before.best)
    state = replace(turn.state, best=max(before.best, marks.S), done=end is not None)
    reply = turn.reply
    result = StepResult(
        feedback=turn.feedback,
        reward=reward,
        terminated=end is not None and not end.truncated,
        truncated=end is not None and end.truncated,
        reason=end.reason if end else None,
        by=end.by if end else None,
        success=(marks.V == 1.0 and marks.P == 1.0) if end else None,
        valid=turn.valid,
        private=StepPrivate(
            reply=reply,
            grading={
                "E": marks.E,
                "P": marks.P,
                "V": marks.V,
                "S": marks.S,
                "violations": list(state.violations),
            },
            guards=reply.guards if reply else (),
        ),
    )
    return result, state


def _end(before: State, after: State) -> End | None:
    if after.resolution:
        return End(StopReason.CASE_CLOSED, Party.AGENT)
    if before.left:
        return End(LEAVING[before.left], Party.USER)
    if after.invalid >= MAX_INVALID:
        return End(StopReason.AGENT_INVALID, Party.AGENT)
    if after.turns >= MAX_STEPS:
        return End(StopReason.MAX_STEPS, Party.RUNNER, truncated=True)
    return None
