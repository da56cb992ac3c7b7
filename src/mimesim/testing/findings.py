"""What the conformance suites report: findings, which also take in whatever a checked part raises."""

from __future__ import annotations

from dataclasses import dataclass

from mimesim.errors import MimesimError


@dataclass(frozen=True, slots=True)
class Finding:
    """How one check ended; `told` says what was seen, or what is wrong."""

    name: str
    ok: bool
    told: str


class Wrong(Exception):
    """What a check found wrong."""


def need(condition: object, told: str) -> None:
    """Go on where `condition` holds.

    Raises:
        Wrong: it does not.
    """
    if not condition:
        raise Wrong(told)


def failed(name: str, error: Exception) -> Finding:
    """Return the finding of a check that raised; errors that are not ours are told with their type."""
    ours = isinstance(error, Wrong | MimesimError)
    return Finding(name, ok=False, told=str(error) if ours else f"{type(error).__name__}: {error}")
