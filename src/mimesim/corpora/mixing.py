"""How much of each source goes into training: ratios by taking away, never by repeating.

Which dialogues stay is decided by the hash order of their ids, so a source gives the same dialogues
in every build that asks as much of it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence

from mimesim.errors import ConfigError


def check_shares(shares: Sequence[float | None]) -> None:
    """Make sure that all sources have a share, or none.

    Raises:
        ConfigError: only some have one.
    """
    given = [share for share in shares if share is not None]
    if given and len(given) < len(shares):
        raise ConfigError(
            f"{len(shares) - len(given)} of {len(shares)} sources have no 'share'",
            expected="a share for every source, or for none",
        )


def amounts(available: Sequence[int], shares: Sequence[float | None]) -> list[int]:
    """Return how much of every source is taken, so that the shares hold and most is kept.

    Args:
        available: dialogues, or words, that each source has.
        shares: parts of the mix, of any common unit; all None = everything is taken.
    """
    wanted = [share for share in shares if share is not None]
    if not wanted:
        return list(available)
    total = min(has / share for has, share in zip(available, wanted, strict=True))
    return [min(has, round(total * s)) for has, s in zip(available, wanted, strict=True)]


def thin_out(
    order: Sequence[int], sources: array[int], weights: array[int], taken: Sequence[int]
) -> list[int]:
    """Return the dialogues of `order` that stay.

    Args:
        order: dialogues in hash order.
        sources: source of each dialogue.
        weights: what each counts: 1, or its words.
        taken: per source how much is taken; a source ends with the dialogue that reaches it.
    """
    used: Counter[int] = Counter()
    kept = []
    for number in order:
        source = sources[number]
        if used[source] < taken[source]:
            used[source] += weights[number]
            kept.append(number)
    return kept
