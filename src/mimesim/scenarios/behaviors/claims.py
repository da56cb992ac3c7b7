"""Behaviors about what is true: B8 claims against the record, B11 against oneself."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from mimesim.dialogue.types import PublicMessage
from mimesim.scenarios import worlds
from mimesim.scenarios.behaviors.base import Behavior, Situation, customer_turns
from mimesim.scenarios.fields import field_name, says_field
from mimesim.scenarios.limits import days_since_purchase, holds
from mimesim.scenarios.types import Limit

_OLDEST_CLAIM = 430
"""Days; no claimed purchase is older."""
_COMPAT_FALSE_PAYMENT = "gift card"
_COMPAT_FALSE_DATE = "last week"
_COMPAT_CITIES = ("boston", "austin", "denver", "seattle")


def alternatives(field: str, case: Situation) -> list[str]:
    """Return the concrete values, other than the record's, that a customer could name."""
    true = str(case.row.record[field])
    if field == "order_id":
        return [true[:-1] + str((int(true[-1]) + 1) % 10)] if true[-1:].isdigit() else []
    if field == "purchase_date":
        return [_other_date(case, age) for age in _other_ages(case)]
    fixed: dict[str, Sequence[str]] = {"packaging": ("yes", "no"), "num_products": ("1", "2", "3")}
    if field == "city" and case.manual.compat:
        fixed["city"] = _COMPAT_CITIES
    options = fixed.get(field) or worlds.of(case.manual).values(field)
    return [value for value in options if value != true]


def _can_differ(field: str, case: Situation) -> bool:
    if field == "purchase_date":  # any other day would do
        return "as_of" in case.row.env
    return bool(alternatives(field, case))


def _other_date(case: Situation, age: int) -> str:
    today = date.fromisoformat(str(case.row.env["as_of"]))
    return (today - timedelta(days=age)).isoformat()


def _other_ages(case: Situation) -> list[int]:
    """Return the ages, in days, that would change what a limit says; any other age if none does."""
    row, true = case.row, days_since_purchase(case.row.record, case.row.env)
    dated = [m for m in case.manual.limits_of(row.subflow) if "purchase_date" in m.reads]

    def standing(age: int) -> list[Limit]:
        claimed = {**row.record, "purchase_date": _other_date(case, age)}
        return [limit for limit in dated if holds(limit, claimed, row.env)]

    now = standing(true)
    ages = [age for age in range(1, _OLDEST_CLAIM, 3) if age != true]
    return [age for age in ages if standing(age) != now] or ages


def _flattering(field: str, case: Situation) -> list[str]:
    """Return false values; nobody talks their own membership down if there is a higher one."""
    found = alternatives(field, case)
    if case.manual.compat and field == "purchase_date":
        return [_COMPAT_FALSE_DATE]
    if case.manual.compat and field == "payment_method":
        return [*found, _COMPAT_FALSE_PAYMENT]
    if field == "member_level":
        ranked = worlds.of(case.manual).values(field)
        true = str(case.row.record[field])
        higher = ranked[ranked.index(true) + 1 :] if true in ranked else ()
        return list(higher) or found
    return found


class FabricatedOrFalsePremise(Behavior):
    """B8: something untrue, taken for granted. `true_value` is never told to the customer."""

    id = "B8"
    told = ("field", "false_value")
    has_check = True
    fields = ("member_level", "purchase_date", "payment_method", "order_id", "packaging")

    def fitting(self, case: Situation) -> list[str]:
        """Return the fields that can be contradicted, those that matter to the case if any."""
        record = case.row.record
        present = [f for f in self.fields if f in record and _can_differ(f, case)]
        if not case.manual.compat:
            present = [f for f in present if not case.disclosed(f)]
        matter = {*case.required}
        matter.update(key for m in case.manual.limits_of(case.row.subflow) for key in m.reads)
        return [f for f in present if f in matter] or present

    def applicable(self, case: Situation) -> bool:
        """There is a field to be wrong about."""
        return bool(self.fitting(case))

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        """Draw the field and the false value."""
        field = rng.choice(self.fitting(case))
        return {
            "field": field,
            "true_value": str(case.row.record[field]),
            "false_value": rng.choice(_flattering(field, case)),
        }

    def words(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Name the field in everyday words."""
        return {
            "field_word": field_name(params["field"]),
            "false_value": told_value(params["field"], params["false_value"]),
        }

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        """1 = the false value alone was said, 0.5 = the true one too, 0 = it was not said."""
        said = customer_turns(turns)
        if not any(says_field(t, params["field"], params["false_value"]) for t in said):
            return 0.0
        both = any(says_field(t, params["field"], params["true_value"]) for t in said)
        return 0.5 if both else 1.0


class SelfContradiction(Behavior):
    """B11: one value first, another one later."""

    id = "B11"
    told = ("field", "value_a", "value_b")
    has_check = True
    fields = ("member_level", "payment_method", "city", "num_products", "packaging")

    def fitting(self, case: Situation) -> list[str]:
        """Return the fields with a concrete alternative, those the case needs if any."""
        record = case.row.record
        present = [f for f in self.fields if f in record and _can_differ(f, case)]
        return [f for f in present if f in case.required] or present

    def applicable(self, case: Situation) -> bool:
        """There is a field to be of two minds about."""
        return bool(self.fitting(case))

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        """Draw the field; the first value is the record's."""
        field = rng.choice(self.fitting(case))
        return {
            "field": field,
            "value_a": str(case.row.record[field]),
            "value_b": rng.choice(alternatives(field, case)),
        }

    def words(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Name the field in everyday words."""
        field = params["field"]
        return {
            "field_word": field_name(field),
            "value_a": told_value(field, params["value_a"]),
            "value_b": told_value(field, params["value_b"]),
        }

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        """1 = both values in different turns, 0.5 = in one turn only, 0 = one is missing."""
        said = customer_turns(turns)
        first = {i for i, t in enumerate(said) if says_field(t, params["field"], params["value_a"])}
        second = {
            i for i, t in enumerate(said) if says_field(t, params["field"], params["value_b"])
        }
        if not first or not second:
            return 0.0
        return 1.0 if len(first | second) > 1 else 0.5


def told_value(field: str, value: Any) -> str:
    """Word a value for a directive; of the packaging, yes and no become whole words."""
    if field == "packaging":
        return "still there" if value == "yes" else "gone"
    return str(value)


B8 = FabricatedOrFalsePremise()
B11 = SelfContradiction()
