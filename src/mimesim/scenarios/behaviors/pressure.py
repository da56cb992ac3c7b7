"""Behaviors that push or give up: B9 haste, B10 leaving, B13 contempt."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.scenarios.behaviors.base import Behavior, Situation, customer_turns
from mimesim.scenarios.behaviors.cues import LEAVING, PRESSURE
from mimesim.scenarios.fields import fold, says, says_field

SHORT = 60
"""Characters of a turn that still counts as a burst."""


class ImpatientLowSignalPressure(Behavior):
    """B9: few words, all of them pushing."""

    id = "B9"
    has_check = True

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        """Half a point per short turn that presses and holds no value of a required field."""
        values = [str(case.row.record[name]) for name in case.required]
        values += [str(value) for value in params.values()]
        values = [value for value in values if len(value) > 3]
        count = sum(
            len(m.content) <= SHORT
            and (bool(PRESSURE.search(fold(m.content))) or _shouts(m.content))
            and not any(says(m.content, value) for value in values)
            for m in turns
            if m.role is Role.USER
        )
        return min(count / 2, 1.0)


def _shouts(text: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    return len(letters) > 1 and sum(c.isupper() for c in letters) > len(letters) / 2


class UnresolvedThreadAbandonment(Behavior):
    """B10: walking away from an open errand."""

    id = "B10"
    has_check = True

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        """0 = no leaving at the end, 1 = left with something still unsaid, else 0.5."""
        said = customer_turns(turns)
        if not said or not LEAVING.search(said[-1]):
            return 0.0
        record = case.row.record
        unsaid = any(
            not any(says_field(t, name, record[name]) for t in said)
            for name in case.required
            if name in record
        )
        return 1.0 if unsaid else 0.5


class BelittlingOrEntitledPressure(Behavior):
    """B13: contempt or entitlement as a lever."""

    id = "B13"
    told = ("register",)

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        """Draw the tone."""
        return {"register": rng.choice(list(self.options.values()))}


B9 = ImpatientLowSignalPressure()
B10 = UnresolvedThreadAbandonment()
B13 = BelittlingOrEntitledPressure()
