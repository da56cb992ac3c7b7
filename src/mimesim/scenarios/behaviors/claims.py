"""Behaviors about what is true: B8 claims against the record, B11 against oneself."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from mimesim.dialogue.types import PublicMessage
from mimesim.scenarios import records
from mimesim.scenarios.behaviors.base import Behavior, Situation, customer_turns
from mimesim.scenarios.fields import field_name, says_field
from mimesim.scenarios.limits import RETURN_DAYS, days_since_purchase


def other_value(field: str, case: Situation, rng: random.Random) -> str:
    """Draw a concrete value for `field` that differs from the record's.

    Dates are drawn so that they change what the return window says, where one applies.
    """
    true, pools = str(case.row.record[field]), records.load_pools()
    if field == "purchase_date":
        return _other_date(case, rng)
    if field == "order_id":
        return true[:-1] + str((int(true[-1]) + 1) % 10)
    options = {
        "member_level": pools.levels,
        "payment_method": pools.payment_methods,
        "packaging": ("yes", "no"),
        "num_products": ("1", "2", "3"),
        "city": tuple(city for city, _ in pools.towns),
    }[field]
    return rng.choice([value for value in options if value != true])


def _flattering(field: str, case: Situation, rng: random.Random) -> str:
    """Draw a false value; nobody talks their own membership down if there is a higher one."""
    levels = list(RETURN_DAYS)
    true = str(case.row.record[field])
    if field == "member_level" and true in levels[:-1]:
        return rng.choice(levels[levels.index(true) + 1 :])
    return other_value(field, case, rng)


def _other_date(case: Situation, rng: random.Random) -> str:
    today = date.fromisoformat(str(case.row.env["as_of"]))
    age = days_since_purchase(case.row.record, case.row.env)
    window = RETURN_DAYS[str(case.row.record["member_level"])]
    claimed = rng.randint(1, window - 1) if age > window else window + rng.randint(3, 40)
    return (today - timedelta(days=claimed)).isoformat()


class FabricatedOrFalsePremise(Behavior):
    """B8: something untrue, taken for granted. `true_value` is never told to the customer."""

    id = "B8"
    told = ("field", "false_value")
    has_check = True
    fields = ("member_level", "purchase_date", "payment_method", "order_id", "packaging")

    def fitting(self, case: Situation) -> list[str]:
        """Return the fields that can be contradicted, those that matter to the case if any."""
        present = [f for f in self.fields if f in case.row.record and not case.disclosed(f)]
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
            "false_value": _flattering(field, case, rng),
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
        present = [f for f in self.fields if f in case.row.record]
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
            "value_b": other_value(field, case, rng),
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
