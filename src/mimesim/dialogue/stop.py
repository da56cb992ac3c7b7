"""Why a conversation stopped, whose doing it was, and the only code that knows end markers.

Which ends are truncations is ruling 7. The markers are recognized here and nowhere else; a marker
counts only at the very end of a public text, in exact spelling.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Party(StrEnum):
    """Who ended a conversation or is at fault."""

    USER = "user"
    AGENT = "agent"
    JUDGE = "judge"
    ENV = "env"
    RUNNER = "runner"


class Status(StrEnum):
    """What an episode is worth: the first three are counted, the others are not data."""

    COMPLETED = "completed"
    TRUNCATED = "truncated"
    AGENT_FAILURE = "agent_failure"
    USER_FAILURE = "user_failure"
    JUDGE_FAILURE = "judge_failure"
    ENV_FAILURE = "env_failure"
    INFRA_FAILURE = "infra_failure"

    @property
    def counted(self) -> bool:
        """Whether episodes of this status enter scores."""
        return self in (Status.COMPLETED, Status.TRUNCATED, Status.AGENT_FAILURE)


class StopReason(StrEnum):
    """Every way a conversation can end."""

    USER_STOP = "user_stop"
    USER_TRANSFER = "user_transfer"
    USER_OUT_OF_SCOPE = "user_out_of_scope"
    AGENT_STOP = "agent_stop"
    GOAL_REACHED = "goal_reached"
    CASE_CLOSED = "case_closed"
    MAX_TURNS = "max_turns"
    MAX_STEPS = "max_steps"
    LOOP_DETECTED = "loop_detected"
    CONTEXT_EXCEEDED = "context_exceeded"
    AGENT_INVALID = "agent_invalid"
    AGENT_ERROR = "agent_error"
    USER_ERROR = "user_error"
    JUDGE_ERROR = "judge_error"
    ENV_ERROR = "env_error"
    INTERNAL_ERROR = "internal_error"
    TIMEOUT = "timeout"
    BUDGET_EXCEEDED = "budget_exceeded"
    INFRA_ERROR = "infra_error"
    CANCELLED = "cancelled"


_STATUS: dict[StopReason, Status] = {
    StopReason.MAX_TURNS: Status.TRUNCATED,
    StopReason.MAX_STEPS: Status.TRUNCATED,
    StopReason.LOOP_DETECTED: Status.TRUNCATED,
    StopReason.AGENT_ERROR: Status.AGENT_FAILURE,
    StopReason.USER_ERROR: Status.USER_FAILURE,
    StopReason.JUDGE_ERROR: Status.JUDGE_FAILURE,
    StopReason.ENV_ERROR: Status.ENV_FAILURE,
    StopReason.INTERNAL_ERROR: Status.ENV_FAILURE,
    StopReason.TIMEOUT: Status.INFRA_FAILURE,
    StopReason.BUDGET_EXCEEDED: Status.INFRA_FAILURE,
    StopReason.INFRA_ERROR: Status.INFRA_FAILURE,
    StopReason.CANCELLED: Status.INFRA_FAILURE,
}
_CONTEXT: dict[Party, Status] = {
    Party.AGENT: Status.TRUNCATED,
    Party.USER: Status.USER_FAILURE,
    Party.JUDGE: Status.JUDGE_FAILURE,
}


@dataclass(frozen=True, slots=True)
class Stop:
    """The recorded end of a conversation.

    Attributes:
        reason: why.
        by: whose doing.
        turn: index of the user message at which it ended, counted from 0; -1 = before any.
        limit: the limit that was hit, if one was.
        detail: short, public text.
    """

    reason: StopReason
    by: Party
    turn: int = -1
    limit: float | None = None
    detail: str = ""

    @property
    def status(self) -> Status:
        """The outcome class of this end."""
        if self.reason is StopReason.CONTEXT_EXCEEDED:
            return _CONTEXT.get(self.by, Status.INFRA_FAILURE)
        return _STATUS.get(self.reason, Status.COMPLETED)


class UserAction(StrEnum):
    """What the user does with a reply."""

    SAY = "say"
    TOOL = "tool"
    END = "end"
    TRANSFER = "transfer"
    OUT_OF_SCOPE = "out_of_scope"


END_MARKER = "###STOP###"
"""What our own simulators write to end a conversation."""

MARKERS: dict[str, UserAction] = {
    END_MARKER: UserAction.END,
    "###TRANSFER###": UserAction.TRANSFER,
    "###OUT-OF-SCOPE###": UserAction.OUT_OF_SCOPE,
}


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A public text after the end marker was looked for.

    Attributes:
        text: everything before the marker, outer white space trimmed.
        action: `SAY` when no marker ends the text.
        fault: a marker, or a near spelling of one, stands where it does not count.
    """

    text: str
    action: UserAction
    fault: bool


def read_marker(text: str, markers: dict[str, UserAction] | None = None) -> MarkedText:
    """Map a marker at the very end of `text` to its action."""
    known = MARKERS if markers is None else markers
    body = text.strip()
    action = UserAction.SAY
    for marker, meaning in known.items():
        if body.endswith(marker):
            rest = body[: -len(marker)]
            if not rest or rest[-1].isspace():
                body, action = rest.strip(), meaning
                break
    return MarkedText(body, action, fault=mentions_marker(body, known))


def mentions_marker(text: str, markers: dict[str, UserAction] | None = None) -> bool:
    """Tell whether `text` holds a marker or a near spelling of one (case, blanks, quotes)."""
    folded = "".join(c for c in text.casefold() if not c.isspace() and c not in "`'\"")
    known = MARKERS if markers is None else markers
    return any("".join(marker.casefold().split()) in folded for marker in known)
