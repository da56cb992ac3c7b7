"""Rows in the shape of the behavior task, both ways: a nested scenario and a list of behaviors.

    {scenario: {personal, order, product, wishes, flow, subflow}, env, flow, subflow,
     behavior_ids, kwargs, turn_budget, index, source, seed, split, replay}

`behavior_ids` is empty for a neutral row and `kwargs` holds one map per id. In `compat` scenario,
env, behavior_ids and kwargs are JSON texts, as in the original's files. The directive is no part of
it: it follows from behavior and parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim import jsonio
from mimesim.errors import DataError
from mimesim.scenarios import behaviors, reading
from mimesim.scenarios.types import Row

_PERSONAL = (
    *("customer_name", "email", "member_level", "phone", "username", "account_id"),
    *("pin_number", "security_answer"),
)
_ORDER = (
    *("street_address", "full_address", "city", "state", "zip_code", "num_products", "order_id"),
    *("packaging", "payment_method", "purchase_date", "shipping_status", "amount"),
)
_PRODUCT = {"product_names": "names", "product_amounts": "amounts"}
_ENCODED = ("scenario", "env", "behavior_ids", "kwargs")
_PLAIN = ("flow", "subflow", "turn_budget", "index", "source", "seed", "split", "replay")


def to_view(row: Row, *, compat: bool = False) -> dict[str, Any]:
    """Return a row as the behavior task has it."""
    record = row.record
    known = {*_PERSONAL, *_ORDER, *_PRODUCT}
    view: dict[str, Any] = {
        "scenario": {
            "personal": {key: record[key] for key in _PERSONAL if key in record},
            "order": {key: record[key] for key in _ORDER if key in record},
            "product": {short: record[key] for key, short in _PRODUCT.items() if key in record},
            "wishes": {key: value for key, value in record.items() if key not in known},
            "flow": row.flow,
            "subflow": row.subflow,
        },
        "env": dict(row.env),
        "behavior_ids": [row.behavior] if row.behavior else [],
        "kwargs": [dict(row.params)] if row.behavior else [],
    }
    if compat:
        view = {key: jsonio.dumps(value) for key, value in view.items()}
    told = row.to_json()
    return view | {key: told[key] for key in _PLAIN}


def from_view(obj: Any, where: str) -> Row:
    """Read a row of the behavior task, JSON texts or not.

    Raises:
        DataError: not such a row, or one with more than one behavior.
    """
    raw = reading.known_keys(obj, (*_ENCODED, *_PLAIN), where=where, what="behavior row")
    decoded = {key: _decoded(raw.get(key), key, where) for key in _ENCODED}
    scenario = reading.mapping(decoded, "scenario", where=where)
    record: dict[str, Any] = {}
    for part in ("personal", "order", "wishes"):
        record.update(reading.mapping(scenario, part, where=where))
    product = reading.mapping(scenario, "product", where=where)
    record.update({key: product[short] for key, short in _PRODUCT.items() if short in product})
    played, kwargs = decoded["behavior_ids"] or [], decoded["kwargs"] or []
    if not isinstance(played, list) or not isinstance(kwargs, list) or len(played) > 1:
        raise DataError(
            f"behavior_ids is {played!r}", where=where, expected="a list with one id, or none"
        )
    behavior = behaviors.get(str(played[0])) if played else None
    params: Mapping[str, Any] = kwargs[0] if played and kwargs else {}
    return Row.from_json(
        {
            **{key: raw[key] for key in _PLAIN if key in raw},
            "record": record,
            "env": decoded["env"],
            "behavior": behavior.id if behavior else None,
            "params": params,
            "directive": behavior.directive(params) if behavior else "",
        },
        where,
    )


def _decoded(value: Any, key: str, where: str) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return jsonio.loads(value)
    except ValueError as error:
        raise DataError(f"{key} is no JSON text: {error}", where=where) from error
