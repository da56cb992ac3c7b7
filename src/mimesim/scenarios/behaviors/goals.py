"""Behaviors about the goal: B2 moves it, B4 insists on it, B6 swaps it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.scenarios import worlds
from mimesim.scenarios.behaviors.base import Behavior, Situation
from mimesim.scenarios.behaviors.cues import PERSISTENCE, REFUSAL
from mimesim.scenarios.fields import fold
from mimesim.scenarios.procedure import limits_holding
from mimesim.scenarios.rows import fill
from mimesim.scenarios.types import DENIED, Limit

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


class IncrementalGoalpostShifting(Behavior):
    """B2: one more condition, once something is settled.

    `field` names the wish that the new value replaces, "" where nothing in the record moves.
    """

    id = "B2"
    told = ("constraint",)

    def fitting(self, case: Situation) -> list[str]:
        """Return the kinds of conditions that make sense in this case."""
        fits = {
            "delivery_speed": True,
            "other_address": "full_address" in case.row.record,
            "price_ceiling": "amount" in case.row.record,
            "one_more_item": "product_names" in case.row.record,
            "refund_method": "refund_target" in case.row.record,
        }
        return [name for name, ok in fits.items() if ok]

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        """Draw the kind and a concrete value that differs from the record's."""
        kind = rng.choice(self.fitting(case))
        value = self._value(kind, case, rng)
        moved = {"other_address": "new_address", "refund_method": "refund_target"}.get(kind, "")
        return {
            "constraint_kind": kind,
            "value": value,
            "field": moved if moved in case.request.wishes else "",
            "constraint": fill(self.options[kind], {"value": value}),
        }

    def _value(self, kind: str, case: Situation, rng: random.Random) -> str:
        record, world = case.row.record, worlds.of(case.manual)
        if kind == "delivery_speed":
            return rng.choice(_DAYS)
        if kind == "other_address":
            return world.address(rng)["full_address"]
        if kind == "price_ceiling":
            return str(max(5, int(record["amount"]) - rng.randrange(4, 20, 3)))
        if kind == "one_more_item":
            taken = {*record["product_names"], record.get("extra_item")}
            return rng.choice([p for p in world.values("extra_item") if p not in taken])
        targets = world.values("refund_target")
        return rng.choice([t for t in targets if t != record["refund_target"]])


class InfeasibilityPersistence(Behavior):
    """B4: arguing with a rule that stands against this very case."""

    id = "B4"
    told = ("blocked_action",)
    has_check = True

    def _standing(self, case: Situation) -> list[Limit]:
        return [m for m in limits_holding(case.row, case.manual) if m.outcome == DENIED]

    def applicable(self, case: Situation) -> bool:
        """A refusing limit holds for this record; the original task asks the manual alone."""
        if case.manual.compat:
            return case.row.subflow in case.manual.infeasible
        return bool(self._standing(case))

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        """Name what the limit refuses."""
        if case.manual.compat:
            return {"limit": "", "blocked_action": case.request.title}
        limit = rng.choice(self._standing(case))
        return {"limit": limit.name, "blocked_action": limit.request}

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        """1 if the customer keeps at it after the first refusal, 0 if not; None = no refusal."""
        texts = [(m.role, fold(m.content)) for m in turns]
        for position, (role, text) in enumerate(texts):
            if role is Role.AGENT and REFUSAL.search(text):
                later = [t for r, t in texts[position:] if r is Role.USER]
                return float(any(PERSISTENCE.search(t) for t in later))
        return None


class AbruptIntentSwitching(Behavior):
    """B6: another errand while the first is open."""

    id = "B6"
    told = ("target_topic",)

    _OWN: Mapping[str, tuple[str, ...]] = {
        "password": ("password", "username", "2fa"),
        "crate_charge": ("subscription", "fee", "charge", "bill", "due"),
        "delivery_days": ("order", "parcel", "shipping", "delivery"),
        "phone": ("phone",),
        "promo": ("promo",),
    }
    """Topic -> words in the names of request types and flows that are about it."""

    def fitting(self, case: Situation) -> list[str]:
        """Return the topics that are not the row's own."""
        own = {*case.row.subflow.split("_"), *case.row.flow.split("_")}
        return [topic for topic in self.options if not own & {*self._OWN[topic]}]

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        """Draw another topic."""
        topic = rng.choice(self.fitting(case))
        return {"topic": topic, "target_topic": self.options[topic]}


B2 = IncrementalGoalpostShifting()
B4 = InfeasibilityPersistence()
B6 = AbruptIntentSwitching()
