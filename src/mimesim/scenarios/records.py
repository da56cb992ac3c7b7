"""Composes customer records that hang together, from a pack's value pools.

A record is flat: strings, and two parallel lists for the articles. One generator makes one
record and its surroundings; the same generator state always makes the same record.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, timedelta
from functools import cache
from typing import Any

from mimesim.errors import DataError
from mimesim.registry import closest
from mimesim.scenarios import manual as manuals
from mimesim.scenarios import reading
from mimesim.scenarios.limits import AGE, bounds
from mimesim.scenarios.manual import ENV_KEYS, read_toml
from mimesim.scenarios.types import Manual, RequestType
from mimesim.seeds import generator

_FIRST_DAY = date(2025, 3, 1)
_DAYS_OF_TODAY = 600
_ALPHANUMERIC = "abcdefghijkmnpqrstuvwxyz23456789"
GOAL_FIELD = re.compile(r"\{(\w+)\}")
"""A record or env field in the words of a goal."""
LEVELS = ("guest", "bronze", "silver", "gold")
"""Membership levels, the lowest first."""
_STEERED = {AGE: 150, "days": 40, "fee": 20, "disputed_amount": 40}
"""Numbers that a condition can be met by choosing -> how far beyond its bound they are drawn."""


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
    """Load the pools of a pack, or those beside a manual given by path; ours where it has none.

    Raises:
        DataError: an unknown key, or a list that is missing or empty.
    """
    path = manuals.pack_file(pack, "pools.toml")
    path = path if path.exists() else manuals.pack_file("company", "pools.toml")
    raw = read_toml(path)
    names = [part.name for part in fields(Pools)]
    reading.known_keys(raw, names, where=str(path), what="pools")
    if empty := [name for name in names if not raw.get(name)]:
        raise DataError(f"no values for {', '.join(empty)}", where=str(path), expected="lists")
    towns = tuple(sorted((str(city), str(state)) for city, state in raw.pop("towns")))
    return Pools(towns=towns, **{key: tuple(sorted(values)) for key, values in raw.items()})


@dataclass(frozen=True, slots=True)
class Case:
    """A drawn record and its surroundings."""

    record: dict[str, Any]
    env: dict[str, Any]
    source: str = "composed"


@dataclass(frozen=True, slots=True)
class PackWorld:
    """The world of a TOML manual: its cases are drawn from value pools."""

    manual: Manual
    pools: Pools

    def draw(
        self, request: RequestType, rng: random.Random, hint: Mapping[str, Any] | None = None
    ) -> Case:
        """Draw a case; `hint` is a set of a limit's conditions that it had better meet."""
        return draw_case(request, self.manual, self.pools, rng, hint)

    def values(self, field: str) -> tuple[str, ...]:
        """Return the values that a field can take; none where they are not listed."""
        pools = self.pools
        listed = {
            "member_level": tuple(level for level in LEVELS if level in pools.levels),
            "payment_method": pools.payment_methods,
            "refund_target": pools.refund_targets,
            "shipping_status": pools.shipping_statuses,
            "extra_item": pools.extra_items,
            "city": tuple(city for city, _ in pools.towns),
        }
        return listed.get(field, ())

    def address(self, rng: random.Random) -> dict[str, str]:
        """Draw an address."""
        return address(self.pools, rng)

    def customer(self, record: Mapping[str, Any]) -> str:
        """Return the customer's name: customers of different splits have different names."""
        return str(record["customer_name"])


def needed_fields(request: RequestType, manual: Manual) -> set[str]:
    """Return the record and env fields that a case of `request` must hold."""
    names = {*manual.flow(request.flow).fields, *request.required, "as_of"}
    names.update(name for step in request.procedure for name in step.fields)
    names.update(GOAL_FIELD.findall(request.goal))
    names.update(name for limit in manual.limits_of(request.name) for name in limit.reads)
    return names


def draw_case(
    request: RequestType,
    manual: Manual,
    pools: Pools,
    rng: random.Random,
    hint: Mapping[str, Any] | None = None,
) -> Case:
    """Draw one consistent case of a request type, with exactly the fields it needs."""
    today = _FIRST_DAY + timedelta(days=rng.randrange(_DAYS_OF_TODAY))
    everything = _everything(pools, today, rng)
    wanted = needed_fields(request, manual)
    if hint:
        steer(everything, hint, today, rng)
    if "days" in wanted:  # a parcel cannot be under way for longer than the purchase is old
        bought = today - timedelta(days=int(everything["days"]) + rng.randint(0, 4))
        everything["purchase_date"] = bought.isoformat()
    for name, allowed in request.only.items():
        if everything.get(name) not in allowed:
            everything[name] = rng.choice(allowed)
    record = {k: v for k, v in everything.items() if k in wanted and k not in ENV_KEYS}
    return Case(record, {k: everything[k] for k in ENV_KEYS if k in wanted})


def check_drawable(manual: Manual, pools: Pools) -> None:
    """Refuse a manual that needs fields which no record has.

    Raises:
        DataError: naming the request type and the field.
    """
    known = list(_everything(pools, _FIRST_DAY, generator(0)))
    for request in manual.request_types:
        for name in sorted(needed_fields(request, manual) - set(known)):
            raise DataError(
                f"no record holds {name!r}{closest(name, known)}",
                where=f"{manual.source}: {request.name}",
                expected="fields among " + ", ".join(known),
            )


def _everything(pools: Pools, today: date, rng: random.Random) -> dict[str, Any]:
    return {
        **_person(pools, rng),
        **_order(pools, today, rng),
        **_wishes(pools, rng),
        **_surroundings(today, rng),
    }


def steer(
    everything: dict[str, Any], hint: Mapping[str, Any], today: date, rng: random.Random
) -> None:
    """Choose values that meet a limit's conditions, as far as each can be chosen by itself."""
    for key, wanted in hint.items():
        if not isinstance(wanted, str):
            everything[key] = rng.choice(wanted)
        elif key in _STEERED:
            low, high = bounds(wanted)
            least = max(low, 2)
            number = rng.randint(least, max(least, min(high, least + _STEERED[key])))
            if key == AGE:
                everything["purchase_date"] = (today - timedelta(days=number)).isoformat()
            else:
                everything[key] = str(number)


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
        "disputed_amount": str(rng.randint(3, 40)),
        "info_source": rng.choice(("email", "news", "spouse")),
    }
