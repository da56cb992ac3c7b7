"""What other harnesses call the end of a conversation, and back: a field on both sides, never text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mimesim.dialogue.stop import Party, StopReason

TAU2: Mapping[StopReason, str] = {
    StopReason.USER_STOP: "user_stop",
    StopReason.USER_TRANSFER: "user_stop",
    StopReason.USER_OUT_OF_SCOPE: "user_stop",
    StopReason.GOAL_REACHED: "user_stop",
    StopReason.AGENT_STOP: "agent_stop",
    StopReason.CASE_CLOSED: "agent_stop",
    StopReason.MAX_TURNS: "max_steps",
    StopReason.MAX_STEPS: "max_steps",
    StopReason.LOOP_DETECTED: "max_steps",
    StopReason.TIMEOUT: "timeout",
    StopReason.CONTEXT_EXCEEDED: "context_window_exceeded",
    StopReason.BUDGET_EXCEEDED: "infrastructure_error",
    StopReason.AGENT_INVALID: "agent_error",
    StopReason.AGENT_ERROR: "agent_error",
    StopReason.USER_ERROR: "user_error",
    StopReason.JUDGE_ERROR: "unexpected_error",
    StopReason.ENV_ERROR: "unexpected_error",
    StopReason.INTERNAL_ERROR: "unexpected_error",
    StopReason.INFRA_ERROR: "infrastructure_error",
    StopReason.CANCELLED: "infrastructure_error",
    StopReason.UNTOLD: "user_stop",
}
"""Stop reason -> termination reason of tau2, which refuses any other word."""

INSPECT_LIMITS: Mapping[StopReason, str] = {
    StopReason.MAX_TURNS: "turn",
    StopReason.MAX_STEPS: "turn",
    StopReason.LOOP_DETECTED: "custom",
    StopReason.TIMEOUT: "time",
    StopReason.CONTEXT_EXCEEDED: "context",
    StopReason.BUDGET_EXCEEDED: "token",
    StopReason.CANCELLED: "operator",
}
"""Stop reason -> type of a sample limit of Inspect; the others are no limits."""

VERIFIERS_CUTS: Mapping[StopReason, str] = {
    StopReason.MAX_TURNS: "max_turns",
    StopReason.MAX_STEPS: "max_turns",
    StopReason.CONTEXT_EXCEEDED: "context_length",
    StopReason.BUDGET_EXCEEDED: "max_total_tokens",
}
"""Stop reason -> the stop condition by which verifiers knows that a trace was cut."""


class End(NamedTuple):
    """How a conversation of another harness ended, in our words."""

    reason: StopReason
    by: Party


_ENDS: Mapping[str, End] = {
    "user_stop": End(StopReason.USER_STOP, Party.USER),
    "agent_stop": End(StopReason.AGENT_STOP, Party.AGENT),
    "max_steps": End(StopReason.MAX_STEPS, Party.RUNNER),
    "timeout": End(StopReason.TIMEOUT, Party.RUNNER),
    "too_many_errors": End(StopReason.ENV_ERROR, Party.ENV),  # of tools, whoever called them
    "agent_error": End(StopReason.AGENT_ERROR, Party.AGENT),
    "user_error": End(StopReason.USER_ERROR, Party.USER),
    "infrastructure_error": End(StopReason.INFRA_ERROR, Party.RUNNER),
    "context_window_exceeded": End(StopReason.CONTEXT_EXCEEDED, Party.AGENT),
    "unexpected_error": End(StopReason.INTERNAL_ERROR, Party.ENV),
    # verifiers
    "max_turns": End(StopReason.MAX_TURNS, Party.RUNNER),
    "context_length": End(StopReason.CONTEXT_EXCEEDED, Party.AGENT),
    "max_input_tokens": End(StopReason.CONTEXT_EXCEEDED, Party.AGENT),
    "max_output_tokens": End(StopReason.CONTEXT_EXCEEDED, Party.AGENT),
    "max_total_tokens": End(StopReason.BUDGET_EXCEEDED, Party.RUNNER),
    # limits of Inspect
    "context": End(StopReason.CONTEXT_EXCEEDED, Party.AGENT),
    "time": End(StopReason.TIMEOUT, Party.RUNNER),
    "working": End(StopReason.TIMEOUT, Party.RUNNER),
    "message": End(StopReason.MAX_TURNS, Party.RUNNER),
    "turn": End(StopReason.MAX_TURNS, Party.RUNNER),
    "token": End(StopReason.BUDGET_EXCEEDED, Party.RUNNER),
    "cost": End(StopReason.BUDGET_EXCEEDED, Party.RUNNER),
    "operator": End(StopReason.CANCELLED, Party.RUNNER),
}

UNTOLD = End(StopReason.UNTOLD, Party.RUNNER)
"""The end of a conversation whose source says nothing of it: nobody's decision that is known."""


def ours(info: object) -> dict[str, Any]:
    """Return what our own exports say of task and end beside the words of the other harness.

    Args:
        info: a mapping with the key `mimesim`, as exports write it; anything else tells nothing.
    """
    told = info.get("mimesim") if isinstance(info, Mapping) else None
    if not isinstance(told, Mapping):
        return {}
    return {key: told[key] for key in ("task", "stop", "success") if key in told}


def end_of(word: object) -> End | None:
    """Return what a word of another harness means; None = it is no known end."""
    return _ENDS.get(word) if isinstance(word, str) else None
