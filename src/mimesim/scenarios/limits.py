"""Hard limits: conditions of a manual, evaluated on one record and its surroundings.

A limit's words and its conditions stand in the manual; whether it stands against a case is decided
here and nowhere else. `when` lists the ways in which a limit stands; a way is a map from a field to
what it must be, and all of its fields must agree:

    when = [{ member_level = ["guest", "bronze"], days = ">45" }, { age = ">=180" }]

A list names the values; a text compares a whole number (`>`, `>=`, `<`, `<=`). `age` is the number
of days since the purchase. An empty way always stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Any

from mimesim.errors import DataError
from mimesim.scenarios.types import Limit

AGE = "age"
"""The condition key for days since the purchase; it reads `purchase_date` and `as_of`."""
_COMPARISON = re.compile(r"(>=|<=|>|<) ?(\d{1,9})")


def days_since_purchase(record: Mapping[str, Any], env: Mapping[str, Any]) -> int:
    """Return the whole days between purchase and today (`env.as_of`)."""
    bought = date.fromisoformat(str(record["purchase_date"]))
    return (date.fromisoformat(str(env["as_of"])) - bought).days


def holds(limit: Limit, record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    """Tell whether `limit` stands against this case.

    Raises:
        KeyError: the case lacks a field that the limit reads.
    """
    return any(
        all(_meets(key, wanted, record, env) for key, wanted in way.items()) for way in limit.when
    )


def reads_of(when: tuple[Mapping[str, Any], ...]) -> tuple[str, ...]:
    """Return the record and env keys that the conditions look at, in order of mention."""
    keys = [key for way in when for key in way]
    read = [k for key in keys for k in (("purchase_date", "as_of") if key == AGE else (key,))]
    return tuple(dict.fromkeys(read))


@lru_cache(maxsize=256)
def bounds(text: str) -> tuple[int, int]:
    """Return the smallest and the largest number (up to 10**9) that a comparison admits.

    Raises:
        DataError: no comparison.
    """
    match = _COMPARISON.fullmatch(text.strip())
    if match is None:
        raise DataError(
            f"condition {text!r} is no comparison", expected="such as '>45', '>=180', '<10', '<=7'"
        )
    sign, number = match[1], int(match[2])
    if sign[0] == ">":
        return number + (sign == ">"), 10**9
    return 0, number - (sign == "<")


def _meets(key: str, wanted: Any, record: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    if key == AGE:
        value: Any = days_since_purchase(record, env)
    else:
        value = record[key] if key in record else env[key]
    if isinstance(wanted, str):
        low, high = bounds(wanted)
        return low <= int(value) <= high
    return str(value) in wanted
