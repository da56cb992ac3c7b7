"""The score of an episode of `travel`: the share of aspects that were booked well.

Questions and searches do not count; per aspect the best answer counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mimesim.envs.base import Choice

_OPTION = re.compile(r"\s*(?:\[\s*answer\s*\])?\s*([ACFHR])\d", re.IGNORECASE)


def travel_score(
    turns: Iterable[tuple[str, str, float]], aspects: int, *, compat: bool = False
) -> float:
    """Return the best reward per aspect, summed, divided by the number of aspects.

    Args:
        turns: (choice, content, reward) of each executed action, in any order; content as the
            agent gave it.
        aspects: how many aspects the task has.
        compat: answers are told apart by the first character of their content, as the original
            does, so a tag in front or several ids in one answer change the score.

    Raises:
        ValueError: `aspects` is not positive.
    """
    if aspects < 1:
        raise ValueError(f"a task has {aspects} aspects")
    best: dict[str, float] = {}
    for choice, content, reward in turns:
        if choice != Choice.ANSWER or not content.strip():
            continue
        key = content[0] if compat else _letter(content)
        if key:
            best[key] = max(best.get(key, 0.0), reward)
    return sum(best.values()) / aspects


def _letter(content: str) -> str:
    match = _OPTION.match(content)
    return match[1].upper() if match else ""
