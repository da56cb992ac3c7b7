"""The result of a run as one JSON object: means with intervals, failures, usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Status
from mimesim.rollout.engine import RunSummary
from mimesim.rollout.events import tokens, total_usage
from mimesim.rollout.prepare import RunConfig

_FAILURES = tuple(status for status in Status if not status.counted)

_SLACK = 1e-9
"""Six sixths are a little less than 1."""


def summarize(summary: RunSummary, *, out: str) -> dict[str, Any]:
    """Return the machine-readable result of a run."""
    counts = summary.counts
    usage = summary.usage
    total = total_usage(usage)
    return {
        "out": out,
        "episodes": counts.all,
        "completed": counts.counted,
        "resumed": summary.resumed,
        "failures": {s.value: counts.by_status.get(s.value, 0) for s in _FAILURES},
        "success": _mean(summary.episodes, "success"),
        "reward": _mean(summary.episodes, "reward"),
        "success_counted": f"{counts.successes}/{counts.counted}",
        "success_all": f"{counts.successes}/{counts.all}",
        "truncated": counts.by_status.get(Status.TRUNCATED.value, 0),
        "retried": len(summary.failures),
        "tokens": tokens(usage),
        "cost_usd": total.cost,
        "unknown_cost_calls": total.unknown_cost_calls,
        "wall_s": round(summary.wall_s, 3),
    }


def shortfalls(config: RunConfig, summary: RunSummary) -> list[str]:
    """Return why a run is below the thresholds of its config, one line each; empty = it is not."""
    counts = summary.counts
    found = []
    if counts.invalid_rate > config.max_invalid:
        found.append(
            f"{counts.all - counts.counted} of {counts.all} episodes are not counted "
            f"({counts.invalid_rate:.1%}); allowed {config.max_invalid:.1%}"
        )
    for name, lowest in config.fail_under.items():
        mean = _mean(summary.episodes, name)["mean"]
        if mean is None or mean < lowest - _SLACK:
            told = "unknown" if mean is None else f"{mean:.4f}"
            found.append(f"{name} is {told}, below {lowest}")
    return found


def _mean(episodes: Sequence[Episode], name: str) -> dict[str, Any]:
    """Return the mean over counted episodes, its interval clustered by task, and n."""
    values: list[float] = []
    clusters: list[str] = []
    for episode in episodes:
        value = episode.outcome.success if name == "success" else episode.outcome.reward
        if episode.counted and value is not None:
            values.append(float(value))
            clusters.append(episode.task.id)
    if not values:
        return {"mean": None, "ci95": None, "n": 0}
    from mimesim.stats import (  # numpy: not needed before there is something to count
        mean_ci,
        rate_ci,
    )

    if name == "success":
        interval = rate_ci([bool(value) for value in values], clusters)
    else:
        interval = mean_ci(values, clusters)
    known = interval.low is not None and interval.high is not None
    return {
        "mean": interval.value,
        "ci95": [interval.low, interval.high] if known else None,
        "n": interval.n,
    }
