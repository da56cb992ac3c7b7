"""What the judge of the gym `turtle` answers: one value for each point, as a schema per task."""

from __future__ import annotations

import math
from functools import cache

from pydantic import BaseModel, model_validator

from mimesim.envs.gyms.turtle.stories import LEVELS


class Score(BaseModel):
    """The value of one criterion."""

    criterion_id: str
    value: float


class Scores(BaseModel):
    """The values of all criteria."""

    scores: list[Score]

    def values(self, names: tuple[str, ...]) -> list[float]:
        """Return the values in the order of `names`."""
        found = {score.criterion_id: score.value for score in self.scores}
        return [found[name] for name in names]


@cache
def scores_of(names: tuple[str, ...]) -> type[Scores]:
    """Return the verdicts that hold each id once, with no value but 0, .5 and 1."""

    class Strict(Scores):
        """The verdict on exactly these criteria."""

        @model_validator(mode="after")
        def _each_once(self) -> Strict:
            if sorted(score.criterion_id for score in self.scores) != sorted(names):
                raise ValueError("every criterion must occur exactly once: " + ", ".join(names))
            if any(score.value not in LEVELS for score in self.scores):
                raise ValueError("a value must be 0, 0.5 or 1")
            return self

    return Strict


class LooseScore(BaseModel):
    """A value as the original takes it: of any size, its id not looked at."""

    criterion_id: str = ""
    value: float


class LooseScores(BaseModel):
    """Values that belong to the criteria by their order."""

    scores: list[LooseScore]

    def values(self, names: tuple[str, ...]) -> list[float]:
        """Return the values in their order."""
        return [score.value for score in self.scores]


@cache
def loose_scores_of(count: int) -> type[LooseScores]:
    """Return the verdicts with as many values as there are criteria, whatever they are."""

    class Counted(LooseScores):
        """The verdict on so many criteria."""

        @model_validator(mode="after")
        def _as_many(self) -> Counted:
            if len(self.scores) != count:
                raise ValueError(f"{count} values were expected")
            if not all(math.isfinite(score.value) for score in self.scores):
                raise ValueError("a value must be a number")
            return self

    return Counted
