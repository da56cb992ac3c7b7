"""Composes customer records that hang together, from a pack's value pools.

A record is flat: strings, and two parallel lists for the articles. One generator makes one
record and its surroundings; the same generator state always makes the same record.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Any

from mimesim.scenarios.manual import ENV_KEYS, PACKS, read_toml
from mimesim.scenarios.types import Manual, RequestType

_FIRST_DAY = date(2025, 3, 1)
_DAYS_OF_TODAY = 600
_ALPHANUMERIC = "abcdefghijkmnpqrstuvwxyz23456789"
_GOAL_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Pools:
    """Value pools of a pack, each sorted so that file order never matters."""

    first_names: tuple[str, ...]
    last_names: tuple[str, ...]
    streets: tuple[str, ...]
    towns: tuple[tuple[str, str], ...]
    mail_hosts: tuple[str, ...]
    products: tuple[str, ...]
    extra_items: tuple[str, ...]
    levels: tuple[str, ...]
    payment_methods: tuple[str, ...]
    refund_targets: tuple[str, ...]
    shipping_statuses: tuple[str, ...]


@cache
def load_pools(pack: str = "company") -> Pools:
    """Load the pools of a shipped pack."""
    raw = read_toml(PACKS / pack / "pools.toml")
    towns = tuple(sorted((str(city), str(state)) for city, state in raw.pop("towns")))
    return Pools(towns=towns, **{key: tuple(sorted(values)) for key, values in raw.items()})


@dataclass(frozen=True, slots=True)
class Case:
    """A drawn record and its surroundings."""

    record: dict[str, Any]
    env: dict[str, Any]


def needed_fields(request: RequestType, manual: Manual) -> set[str]:
    """Return the record and env fields that a case of `request` must hold."""
    names = {*manual.flow(request.flow).fields, *request.required, "as_of"}
    names.update(name for step in request.procedure for name in step.fields)
    names.update(_GOAL_FIELD.findall(request.goal))
    names.update(name for limit in manual.limits_of(request.name) for name in limit.reads)
    return names


def draw_case(request: RequestType, manual: Manual, pools: Pools, rng: random.Random) -> Case:
    """Draw one consistent case of a request type, with exactly the fields it needs."""
    today = _FIRST_DAY + timedelta(days=rng.randrange(_DAYS_OF_TODAY))
    everything: dict[str, Any] = {
        **_person(pools, rng),
        **_order(pools, today, rng),
        **_wishes(pools, rng),
    }
    everything.update(_surroundings(today, rng))
    wanted = needed_fields(request, manual)
    if "days" in wanted:  # a parcel cannot be under way for longer than the purchase is old
        bought = today - timedelta(days=int(everything["days"]) + rng.randint(0, 4))
        everything["purchase_date"] = bought.isoformat()
    for name, allowed in request.only.items():
        everything[name] = rng.choice(allowed)
    record = {k: v for k, v in everything.items() if k in wanted and k not in ENV_KEYS}
    return Case(record, {k: everything[k] for k in ENV_KEYS if k in wanted})


def _digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(count))


def _phone(rng: random.Random) -> str:
    return f"({rng.randint(201, 989)}) 555-{_digits(rng, 4)}"


def address(pools: Pools, rng: random.Random) -> dict[str, str]:
    """Draw an address: street, city, state, zip and all of it in one line."""
    street = f"{rng.randint(1000, 9899)} {rng.choice(pools.streets)}"
    city, state = rng.choice(pools.towns)
    zip_code = str(rng.randint(10000, 99899))
    return {
        "street_address": street,
        "city": city,
        "state": state,
        "zip_code": zip_code,
        "full_address": f"{street}, {city}, {state} {zip_code}",
    }


def _person(pools: Pools, rng: random.Random) -> dict[str, str]:
    first, last = rng.choice(pools.first_names), rng.choice(pools.last_names)
    stem = rng.choice((first[0] + last, first + last[0], first + last, first[0] + last[0]))
    username = stem + _digits(rng, rng.randint(2, 6))
    return {
        "customer_name": f"{first} {last}",
        "username": username,
        "email": f"{username}@{rng.choice(pools.mail_hosts)}",
        "phone": _phone(rng),
        **address(pools, rng),
        "member_level": rng.choice(pools.levels),
        "account_id": "".join(rng.choice(_ALPHANUMERIC) for _ in range(10)),
    }


def _order(pools: Pools, today: date, rng: random.Random) -> dict[str, Any]:
    count = rng.choice((1, 1, 2, 2, 3))
    names = rng.sample(pools.products, count)
    prices = [rng.randrange(19, 120, 5) for _ in names]
    bought = today - timedelta(days=rng.choice((rng.randint(2, 28), rng.randint(29, 170))))
    return {
        "order_id": _digits(rng, 10),
        "purchase_date": bought.isoformat(),
        "payment_method": rng.choice(pools.payment_methods),
        "packaging": rng.choice(("yes", "yes", "no")),
        "product_names": names,
        "product_amounts": prices,
        "num_products": str(count),
        "amount": str(sum(prices)),
        "shipping_status": rng.choice(pools.shipping_statuses),
        "fee": str(rng.randrange(6, 60, 3)),
    }


def _wishes(pools: Pools, rng: random.Random) -> dict[str, str]:
    return {
        "refund_target": rng.choice(pools.refund_targets),
        "new_address": address(pools, rng)["full_address"],
        "new_phone": _phone(rng),
        "extra_item": rng.choice(pools.extra_items),
    }


def _surroundings(today: date, rng: random.Random) -> dict[str, str]:
    return {
        "as_of": today.isoformat(),
        "oracle": rng.choice(("yes", "no")),
        "days": str(rng.randint(2, 60)),
        "receipt": rng.choice(("yes", "yes", "no")),
        "clearance": rng.choice(("no", "no", "yes")),
        "locked": rng.choice(("no", "no", "yes")),
        "flag": rng.choice(("no", "no", "no", "yes")),
    }
