"""Behaviors that weigh the conversation down: B7 takes means away, B12 piles wishes up."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.scenarios.behaviors.base import Behavior, Situation
from mimesim.scenarios.behaviors.cues import EXCLUSION, REQUEST
from mimesim.scenarios.fields import fold

CLAUSE = re.compile(r"\b(?:and|also|plus)\b|[;?!.,]+")
ASK = re.compile(r"\b(?:and|also|plus)\b|[;?!.]+")


def clauses(turns: Sequence[PublicMessage], mark: re.Pattern[str]) -> list[list[str]]:
    """Return the folded clauses of each customer turn; a line break always divides."""
    said = [message.content for message in turns if message.role is Role.USER]
    return [[c for line in text.splitlines() for c in mark.split(fold(line))] for text in said]


class ArtificialConstraintStacking(Behavior):
    """B7: every way out is closed."""

    id = "B7"
    has_check = True

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        """A third per clause that takes a means away."""
        said = [clause for turn in clauses(turns, CLAUSE) for clause in turn]
        return min(sum(bool(EXCLUSION.search(c)) for c in said) / 3, 1.0)


class RequestOverloading(Behavior):
    """B12: everything at once."""

    id = "B12"
    told = ("n_requests",)
    has_check = True

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        """Draw how many wishes."""
        return {"n_requests": rng.choice((3, 4, 5))}

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        """Requests in the fullest turn, as a share of those asked for."""
        counts = [sum(bool(REQUEST.search(c)) for c in turn) for turn in clauses(turns, ASK)]
        best = max(counts, default=0)
        return min(best / int(params["n_requests"]), 1.0)


B7 = ArtificialConstraintStacking()
B12 = RequestOverloading()
