"""Counts of a server in the text form that Prometheus reads; no text of a conversation in them."""

from __future__ import annotations

from collections import Counter

from mimesim.server.answering import Answer

_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class Metrics:
    """What has happened since the start."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str]] = Counter()
        self._actions: Counter[str] = Counter()
        self._guards: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._buckets: Counter[float] = Counter()
        self._seconds = 0.0
        self._replies = 0

    def request(self, route: str, status: int) -> None:
        """Count a request."""
        self._requests[route, str(status)] += 1

    def reply(self, answer: Answer, seconds: float) -> None:
        """Count a reply."""
        self._replies += 1
        self._seconds += seconds
        self._buckets.update(bound for bound in _BUCKETS if seconds <= bound)
        self._actions[answer.action.value] += 1
        self._guards.update(answer.guards)
        self._tokens["prompt"] += answer.usage.prompt_tokens or 0
        self._tokens["completion"] += answer.usage.completion_tokens or 0

    def text(self, *, active: int, waiting: int) -> str:
        """Return everything."""
        out = [
            *_counter(
                "requests",
                "Requests by route and status.",
                {
                    f'route="{route}",status="{status}"': n
                    for (route, status), n in sorted(self._requests.items())
                },
            ),
            *_counter("replies", "Replies by what the user does.", _by("action", self._actions)),
            *_counter("guards", "Replies in which a guard fired.", _by("guard", self._guards)),
            *_counter("tokens", "Tokens of the model behind the user.", _by("kind", self._tokens)),
            "# HELP mimesim_reply_seconds Time of a reply.",
            "# TYPE mimesim_reply_seconds histogram",
            *(f'mimesim_reply_seconds_bucket{{le="{b:g}"}} {self._buckets[b]}' for b in _BUCKETS),
            f'mimesim_reply_seconds_bucket{{le="+Inf"}} {self._replies}',
            f"mimesim_reply_seconds_sum {self._seconds:.6f}",
            f"mimesim_reply_seconds_count {self._replies}",
            *_gauge("active", "Replies in the making.", active),
            *_gauge("waiting", "Requests that wait for a place.", waiting),
        ]
        return "\n".join([*out, ""])


def _by(label: str, counts: Counter[str]) -> dict[str, int]:
    return {f'{label}="{name}"': n for name, n in sorted(counts.items())}


def _counter(name: str, told: str, rows: dict[str, int]) -> list[str]:
    full = f"mimesim_{name}_total"
    head = [f"# HELP {full} {told}", f"# TYPE {full} counter"]
    return [*head, *(f"{full}{{{labels}}} {n}" for labels, n in rows.items())]


def _gauge(name: str, told: str, value: int) -> list[str]:
    full = f"mimesim_{name}"
    return [f"# HELP {full} {told}", f"# TYPE {full} gauge", f"{full} {value}"]
