"""Behaviors that weigh the conversation down: B7 takes means away, B12 piles wishes up."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.dialogue.types import PublicMessage
from mimesim.scenarios.behaviors.base import Behavior, Situation, customer_turns
from mimesim.scenarios.behaviors.cues import EXCLUSION, REQUEST

CLAUSE = re.compile(r"\b(?:and|also|plus)\b|[;?!.\n,]+")
ASK = re.compile(r"\b(?:and|also|plus)\b|[;?!.\n]+")


class ArtificialConstraintStacking(Behavior):
    """B7: every way out is closed."""

    id = "B7"
    has_check = True

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        """A third per clause that takes a means away."""
        clauses = [c for text in customer_turns(turns) for c in CLAUSE.split(text)]
        return min(sum(bool(EXCLUSION.search(c)) for c in clauses) / 3, 1.0)


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
        best = max(
            (
                sum(bool(REQUEST.search(c)) for c in ASK.split(text))
                for text in customer_turns(turns)
            ),
            default=0,
        )
        return min(best / int(params["n_requests"]), 1.0)


B7 = ArtificialConstraintStacking()
B12 = RequestOverloading()
