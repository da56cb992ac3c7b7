"""What happens during a run, as small frozen events, and the counts made from episodes.

Events go out through a callback; progress bars live in `cli`. Nothing that happens to an event
changes a result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mimesim.dialogue.episode import SIDES, Episode
from mimesim.dialogue.types import Usage


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run knows its work: `total` episodes, `resumed` of them already on disk."""

    total: int
    resumed: int


@dataclass(frozen=True, slots=True)
class EpisodeStarted:
    """An attempt at an episode began."""

    id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class StepTaken:
    """The gym executed one agent action."""

    id: str
    index: int
    reward: float


@dataclass(frozen=True, slots=True)
class EpisodeRetried:
    """An attempt failed in a way that a new attempt can help; it is in the failure record."""

    episode: Episode


@dataclass(frozen=True, slots=True)
class EpisodeFinished:
    """An episode is final and, where there is a store, on disk."""

    episode: Episode


Event = RunStarted | EpisodeStarted | StepTaken | EpisodeRetried | EpisodeFinished
OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Counts:
    """Outcome counts of a set of episodes, with both denominators.

    Attributes:
        all: every episode. counted: completed, truncated or failed by the agent.
        successes: k of `k/counted` and `k/all`.
        by_status: status -> n. stops: stop reason -> n. guards: guard name -> n.
        usage: side -> summed usage.
    """

    all: int = 0
    counted: int = 0
    successes: int = 0
    by_status: Mapping[str, int] = field(default_factory=dict)
    stops: Mapping[str, int] = field(default_factory=dict)
    guards: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict)

    @property
    def not_counted(self) -> dict[str, int]:
        """Failures that are not data: status -> n."""
        return {k: n for k, n in self.by_status.items() if n and k not in _COUNTED}

    @property
    def invalid_rate(self) -> float:
        """Share of episodes that are not counted; 0 when there are none."""
        return (self.all - self.counted) / self.all if self.all else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form for manifests."""
        total = total_usage(self.usage)
        return {
            "episodes": self.all,
            "counted": self.counted,
            "successes": self.successes,
            "by_status": dict(self.by_status),
            "stops": dict(self.stops),
            "guards": dict(self.guards),
            "tokens": tokens(self.usage),
            "cost_usd": total.cost,
            "unknown_cost_calls": total.unknown_cost_calls,
        }


_COUNTED = ("completed", "truncated", "agent_failure")


def count(episodes: Iterable[Episode]) -> Counts:
    """Count episodes by what became of them."""
    status: Counter[str] = Counter()
    stops: Counter[str] = Counter()
    guards: Counter[str] = Counter()
    usage: dict[str, Usage] = {}
    counted = successes = 0
    for episode in episodes:
        status[episode.outcome.status.value] += 1
        stops[episode.stop.reason.value] += 1
        guards.update(str(event["guard"]) for event in episode.guards)
        counted += episode.counted
        successes += bool(episode.counted and episode.outcome.success)
        for side, used in episode.usage.items():
            usage[side] = usage.get(side, Usage()) + used
    return Counts(
        all=status.total(),
        counted=counted,
        successes=successes,
        by_status=dict(sorted(status.items())),
        stops=dict(sorted(stops.items())),
        guards=dict(sorted(guards.items())),
        usage={side: usage[side] for side in SIDES if side in usage},
    )


def tokens(usage: Mapping[str, Usage]) -> dict[str, int | None]:
    """Return prompt plus completion tokens per side; None = unknown."""
    return {side: used_tokens(entry) for side, entry in usage.items()}


def used_tokens(usage: Usage) -> int | None:
    """Return prompt plus completion tokens; None when neither is known."""
    known = [n for n in (usage.prompt_tokens, usage.completion_tokens) if n is not None]
    return sum(known) if known else None


def total_usage(usage: Mapping[str, Usage]) -> Usage:
    """Return the usage of all sides together."""
    total = Usage()
    for entry in usage.values():
        total = total + entry
    return total
