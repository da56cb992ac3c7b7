"""Why a conversation stopped, whose doing it was, and the only code that knows end markers.

Which ends are truncations is ruling 7. The markers are recognized here and nowhere else; a marker
counts only at the very end of a public text, in exact spelling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache


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
    UNTOLD = "untold"
    """Of others' transcripts: their source does not say how they ended."""


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


LEAVING: Mapping[str, StopReason] = {
    UserAction.END: StopReason.USER_STOP,
    UserAction.TRANSFER: StopReason.USER_TRANSFER,
    UserAction.OUT_OF_SCOPE: StopReason.USER_OUT_OF_SCOPE,
}
"""How a user can leave, and the stop reason it gives."""

END_MARKER = "###STOP###"
"""What our own simulators write to end a conversation."""

USERLM_MARKER = "<|endconversation|>"
"""What user models of the UserLM kind write, and the rows that they are measured by."""

MARKERS: dict[str, UserAction] = {
    END_MARKER: UserAction.END,
    "###TRANSFER###": UserAction.TRANSFER,
    "###OUT-OF-SCOPE###": UserAction.OUT_OF_SCOPE,
    "###DONE###": UserAction.END,
    "</finished>": UserAction.END,
    "[[TERMINATE CHAT]]": UserAction.END,
    USERLM_MARKER: UserAction.END,
    "/close": UserAction.END,
}
"""Every marker that simulators of the field end with, and what it means."""

_WAYS = (UserAction.END, UserAction.TRANSFER, UserAction.OUT_OF_SCOPE)

DIALECTS: Mapping[str, Mapping[UserAction, str]] = {
    "plain": {},
    "tau": dict.fromkeys(_WAYS, END_MARKER),
    "tau2": {
        UserAction.END: END_MARKER,
        UserAction.TRANSFER: "###TRANSFER###",
        UserAction.OUT_OF_SCOPE: "###OUT-OF-SCOPE###",
    },
    "verifiers": dict.fromkeys(_WAYS, "###DONE###"),
    "adk": dict.fromkeys(_WAYS, "</finished>"),
    "collabllm": dict.fromkeys(_WAYS, "[[TERMINATE CHAT]]"),
    "realusersim": dict.fromkeys(_WAYS, "/close"),
    "userlm": dict.fromkeys(_WAYS, USERLM_MARKER),
}
"""Harness -> what it reads each way of leaving from; `plain` ones read a field, no marker."""

LEAST_MARKER = "at least 4 characters, one of them no letter, digit or blank"
"""What a marker must be like, in words; `usable_marker` decides."""

_ENDS = tuple(MARKERS)
_AROUND = "`'\"*"
"""Signs that may stand around a marker without changing what was meant."""


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


def usable_marker(marker: str) -> bool:
    """Tell whether `marker` is odd enough to end a conversation: it can occur in no plain text."""
    return len(marker) >= 4 and not all(c.isalnum() or c.isspace() for c in marker)


def read_marker(text: str, markers: Mapping[str, UserAction] | None = None) -> MarkedText:
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
    glued = any(body.casefold().endswith(marker.casefold()) for marker in known)
    return MarkedText(body, action, fault=glued or mentions_marker(body, known))


def mentions_marker(text: str, markers: Mapping[str, UserAction] | None = None) -> bool:
    """Tell whether `text` holds a marker or a near spelling of one (case, blanks, quotes).

    A marker that begins or ends like a word, such as a slash and a verb, must stand apart: people
    write "open/close" and paths.
    """
    folded = text.casefold()
    bare = "".join(c for c in folded if not c.isspace() and c not in "`'\"")
    for marker in MARKERS if markers is None else markers:
        wanted = marker.casefold()
        if wanted[0].isalnum() or wanted[-1].isalnum():
            if _apart(wanted).search(folded):
                return True
        elif "".join(wanted.split()) in bare:
            return True
    return False


@lru_cache(maxsize=64)
def _apart(marker: str) -> re.Pattern[str]:
    """Return what finds a word-like marker between blanks or signs, or spaced alone on a line."""
    spaced = r"[ \t]*".join(map(re.escape, "".join(marker.split())))
    signs = re.escape(_AROUND)
    alone = rf"^[ \t{signs}]*{spaced}[ \t.!{signs}]*$"
    return re.compile(rf"(?<![^\s{signs}([]){re.escape(marker)}(?![\w/-])|{alone}", re.MULTILINE)


def cut_markers(text: str) -> str:
    """Return a stored text without the marker at its end, even where it is glued to the last word.

    Unlike a live text, a stored one has no user that could be told to spell it right. A marker
    that ends like a word must stand apart: people write "open/close".
    """
    text = text.strip()
    for marker in MARKERS if text.endswith(_ENDS) else ():
        rest = text.removesuffix(marker)
        if rest != text and (not marker[-1].isalnum() or not rest or rest[-1].isspace()):
            text = rest.strip()
    return text
