"""Hard limits as pure predicates over one record and its surroundings, by name.

A limit's words stand in the manual; whether it stands against a case is decided here and nowhere
else. A predicate answers True when the request must *not* be granted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from mimesim.registry import unknown_name
from mimesim.scenarios.types import Limit

Predicate = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]

RETURN_DAYS = {"guest": 14, "bronze": 30, "silver": 60, "gold": 120}
"""Days in which an item may come back, by member level."""
SHIPPED = ("in transit", "out for delivery", "delivered")
LOW_LEVELS = ("guest", "bronze")


def days_since_purchase(record: Mapping[str, Any], env: Mapping[str, Any]) -> int:
    """Return the whole days between purchase and today (`env.as_of`)."""
    bought = date.fromisoformat(str(record["purchase_date"]))
    return (date.fromisoformat(str(env["as_of"])) - bought).days


def _return_window(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return days_since_purchase(record, env) > RETURN_DAYS[str(record["member_level"])]


def _no_packaging(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return str(record["packaging"]) == "no" and str(record["member_level"]) in LOW_LEVELS


def _no_receipt(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return str(env["receipt"]) == "no" and str(record["member_level"]) != "gold"


def _final_sale(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return str(env["clearance"]) == "yes"


def _high_value(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return int(record["amount"]) >= 180


def _shipped(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return str(record["shipping_status"]) in SHIPPED


def _too_early(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return int(env["days"]) < 10


def _long_gone(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return int(env["days"]) > 45


def _charge_confirmed(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return str(env["oracle"]) == "no" and str(record["member_level"]) != "gold"


def _large_dispute(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return int(record["fee"]) >= 40


def _old_code(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return int(env["days"]) > 20 and str(record["member_level"]) in LOW_LEVELS


def _level_without_extension(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return str(record["member_level"]) in LOW_LEVELS


def _very_late(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return int(env["days"]) > 25


def _recent_change(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return int(env["days"]) < 12


def _locked(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return str(env["locked"]) == "yes"


def _flagged(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return str(env["flag"]) == "yes"


def _out_of_stock(record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    return str(env["oracle"]) == "no"


PREDICATES: dict[str, Predicate] = {
    "return_window": _return_window,
    "no_packaging": _no_packaging,
    "no_receipt": _no_receipt,
    "final_sale": _final_sale,
    "high_value": _high_value,
    "shipped": _shipped,
    "too_early": _too_early,
    "long_gone": _long_gone,
    "charge_confirmed": _charge_confirmed,
    "large_dispute": _large_dispute,
    "old_code": _old_code,
    "level_without_extension": _level_without_extension,
    "very_late": _very_late,
    "recent_change": _recent_change,
    "locked": _locked,
    "flagged": _flagged,
    "out_of_stock": _out_of_stock,
}


def holds(limit: Limit, record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    """Tell whether `limit` stands against this case.

    Raises:
        UnknownNameError: the limit has no predicate.
    """
    if limit.name not in PREDICATES:
        raise unknown_name("limit predicate", limit.name, list(PREDICATES))
    return PREDICATES[limit.name](record, env)
