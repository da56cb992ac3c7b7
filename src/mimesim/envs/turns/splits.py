"""Which split a group of made tasks belongs to: decided by its name alone, whatever the seed.

So no group occurs in two splits, however many tasks are made, and from whatever seeds.
"""

from __future__ import annotations

from mimesim.seeds import derive

TEST_SHARE, VALIDATION_SHARE = 0.25, 0.05
"""Of the groups; validation is taken from what is left for training."""
_GRAIN = 10_000


def split_of(gym: str, group: str) -> str:
    """Return the split of a group: train, validation or test."""
    point = derive(0, "split", gym, group) % _GRAIN / _GRAIN
    if point < TEST_SHARE:
        return "test"
    return "validation" if point < TEST_SHARE + VALIDATION_SHARE else "train"
