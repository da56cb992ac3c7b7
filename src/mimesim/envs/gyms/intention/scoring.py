"""What questions of the gym `intention` are worth.

A question pays by the most important detail that it settles, less a fifth for each further one; so
what can be won is reached by asking for one detail at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

WORTH = {1: 0.4, 2: 0.7, 3: 1.0}
"""Importance -> what settling such a detail alone pays."""
CROWDING = 0.2
"""Taken off for each further detail of one question."""


def step_reward(importances: Sequence[int]) -> float:
    """Return what a question pays that settles details of these importances; never below 0."""
    return round(original_reward(importances), 10)


def original_reward(importances: Sequence[int]) -> float:
    """Return the same with the noise of binary fractions, as the original does."""
    if not importances:
        return 0.0
    return max(0.0, WORTH[max(importances)] - CROWDING * (len(importances) - 1))


def attainable(importances: Sequence[int]) -> float:
    """Return the most that can be won: each detail by a question of its own."""
    return round(sum(WORTH[one] for one in importances), 10)


def normalized(total: float, importances: Sequence[int]) -> float:
    """Return a return as a share of what could be won, 0 to 1.

    Args:
        total: sum of the rewards of an episode.
        importances: of all details of its task, at least one.
    """
    return total / attainable(importances)
