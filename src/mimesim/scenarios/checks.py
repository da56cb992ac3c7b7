"""What a scenario calls success, as far as no model is needed: `success.checks`.

    {"success": {"checks": [{"agent_says": ["refund", "money back"]}, {"ended_by": "user_stop"}]}}

A check has one key; of a list of texts one is enough (`agent_never_says`: none may occur). Words are
compared without regard to case. Checks read the public side of an episode only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import Role
from mimesim.errors import DataError
from mimesim.registry import closest

_REASONS = [reason.value for reason in StopReason]


@dataclass(frozen=True, slots=True)
class Check:
    """One condition; `holds` tells whether an episode meets it."""

    kind: str
    wanted: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the check is called among the scores of an episode."""
        return f"{self.kind}: {' | '.join(self.wanted)}"

    def holds(self, episode: Episode) -> bool:
        """Tell whether the episode meets it."""
        return _KINDS[self.kind](episode, self.wanted)


def checked(success: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a scenario's `success` if its checks and criteria can be read.

    Raises:
        DataError: they cannot.
    """
    read_checks(success, where)
    read_criteria(success, where)
    return success


def read_checks(success: Mapping[str, Any], where: str) -> tuple[Check, ...]:
    """Read `checks` of a scenario's `success`; none = ().

    Raises:
        DataError: an unknown kind, or a value that it does not take.
    """
    value = success.get("checks", [])
    if not isinstance(value, list | tuple):
        raise DataError(f"success.checks is {value!r}", where=where, expected="a list of checks")
    return tuple(_check(entry, where) for entry in value)


def read_criteria(success: Mapping[str, Any], where: str) -> dict[str, str]:
    """Read `criteria` of a scenario's `success`, for a judge: id -> statement; none = {}.

    Raises:
        DataError: something that is no list of texts.
    """
    value = success.get("criteria", [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(t, str) and t for t in texts):
        raise DataError(f"success.criteria is {value!r}", where=where, expected="a list of texts")
    return {f"c{number}": text for number, text in enumerate(texts, start=1)}


def _check(entry: Any, where: str) -> Check:
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise DataError(
            f"the check {entry!r} is no object with one key",
            where=where,
            expected="one of " + ", ".join(_KINDS),
        )
    kind, value = next(iter(entry.items()))
    if kind not in _KINDS:
        raise DataError(
            f"unknown check {kind!r}{closest(str(kind), list(_KINDS))}",
            where=where,
            expected="one of " + ", ".join(_KINDS),
        )
    wanted = tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)
    right = all(wanted) and bool(wanted)
    if kind == "turns_at_most":
        right = isinstance(value, int) and not isinstance(value, bool) and value > 0
    elif kind == "ended_by":
        right = right and set(wanted) <= set(_REASONS)
    if not right:
        raise DataError(f"{kind} is {value!r}", where=where, expected=_EXPECTED.get(kind, _TEXTS))
    return Check(str(kind), wanted)


_TEXTS = "a text or a list of texts"
_EXPECTED = {
    "turns_at_most": "a whole number >= 1",
    "ended_by": "one or more of " + ", ".join(_REASONS),
}


def _agent_says(episode: Episode, wanted: Sequence[str]) -> bool:
    said = "\n".join(t.content for t in episode.turns if t.role is Role.AGENT).casefold()
    return any(text.casefold() in said for text in wanted)


_KINDS: Mapping[str, Callable[[Episode, Sequence[str]], bool]] = {
    "agent_says": _agent_says,
    "agent_never_says": lambda episode, wanted: not _agent_says(episode, wanted),
    "ended_by": lambda episode, wanted: episode.stop.reason.value in wanted,
    "turns_at_most": lambda episode, wanted: episode.turns_used <= int(wanted[0]),
}
