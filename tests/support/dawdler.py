"""A behavior as somebody outside would write it: no rule judge knows it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from mimesim.scenarios.behaviors import Behavior, Situation, Taxon, closing


class Dawdler(Behavior):
    """Every answer comes later than it could."""

    id = "B91"
    told = ("excuse",)
    taxon = Taxon(
        name="dawdling",
        definition="The customer puts every answer off.",
        min_turns=1,
        contrasts={"B3": "Dawdling answers in the end; non-cooperation does not."},
        params={"excuse": "what is said meanwhile"},
    )

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        return {"excuse": rng.choice(["a call that comes in", "a kettle that boils"])}

    def directive(self, params: Mapping[str, Any]) -> str:
        return f"You take your time: before you answer, tell of {params['excuse']}.\n{closing()}"


B91 = Dawdler()
