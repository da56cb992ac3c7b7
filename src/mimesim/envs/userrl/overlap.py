"""What a published split has in common: test tasks that a trained agent has met in some form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mimesim.envs.base import Task


@dataclass(frozen=True, slots=True)
class Contamination:
    """How far the test tasks of a gym are known from its training tasks.

    Attributes:
        group: what tasks of one group share, in words.
        train, test: how many tasks there are.
        train_groups, test_groups: how many groups those have.
        shared: test tasks with at least one group that training has. whole: with all of them.
    """

    gym: str
    group: str
    train: int
    test: int
    train_groups: int
    test_groups: int
    shared: int
    whole: int


def contamination(gym: str, group: str, tasks: Sequence[Task]) -> Contamination:
    """Return what train and test of one gym share."""
    train = [task for task in tasks if task.split == "train"]
    test = [task for task in tasks if task.split == "test"]
    known = {group for task in train for group in task.groups}
    return Contamination(
        gym=gym,
        group=group,
        train=len(train),
        test=len(test),
        train_groups=len(known),
        test_groups=len({group for task in test for group in task.groups}),
        shared=sum(not known.isdisjoint(task.groups) for task in test),
        whole=sum(known.issuperset(task.groups) for task in test),
    )
