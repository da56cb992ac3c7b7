"""Hard limits of one conversation; they belong to the runner and hold whatever participants do."""

from __future__ import annotations

from dataclasses import dataclass

from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, check_ranges


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one episode; None = no such limit.

    Attributes:
        max_turns: user messages delivered to the agent (conversations; a gym counts steps).
        max_steps: executed agent actions; None = the gym's own number. It can only lower that.
        calls_per_turn: agent actions without a user message in between.
        seconds: wall clock of the conversation. step_seconds: of one move of either side.
        tokens: prompt and completion tokens of all sides together. cost: dollars of all sides.
        step_retries: how often a step that committed nothing is tried again where that can help.
        empty_retries: how often an agent that answered nothing is asked again (0 for policies
            under training: a second sample would not be on-policy).
        detect_loops: end exchanges of empty courtesies and verbatim repetition.
    """

    max_turns: int | None = None
    max_steps: int | None = None
    calls_per_turn: int = 30
    seconds: float | None = 1800.0
    step_seconds: float | None = 300.0
    tokens: int | None = None
    cost: float | None = None
    step_retries: int = 2
    empty_retries: int = 1
    detect_loops: bool = True

    def __post_init__(self) -> None:
        """Refuse limits that allow nothing.

        Raises:
            ConfigError: a limit is not positive.
        """
        check_ranges(self, COUNT, "max_turns", "max_steps", "calls_per_turn", "tokens")
        check_ranges(self, POSITIVE, "seconds", "step_seconds", "cost")
        check_ranges(self, NATURAL, "step_retries", "empty_retries")
