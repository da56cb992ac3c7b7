"""Composes records in the manner of ABCD, from its ontology and its value pools.

Composed records are plausible and without limit; they are labelled `composed` and are no ABCD
data. Where the place names the corpus itself (`abcd_v1.1.json`, `.gz` too), records are the
corpus's own and are labelled `abcd`; only wishes and surroundings are drawn.

A place is a folder with guidelines.json, kb.json, ontology.json and perhaps value_pools.json, or
the corpus file in such a folder; `#compat` at its end follows the original task.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.errors import DataError
from mimesim.scenarios.abcd.corpus import INVENTED, read_records
from mimesim.scenarios.abcd.manual import build, read_guidelines, tables
from mimesim.scenarios.limits import bounds
from mimesim.scenarios.manual import ENV_KEYS
from mimesim.scenarios.records import LEVELS, Case, needed_fields, steer
from mimesim.scenarios.types import Manual, RequestType

_FIRST_DAY = date(2019, 10, 1)
_DAYS_OF_TODAY = 300
_WEEK = "7"
"""The guidelines contradict themselves about exactly seven days: never drawn."""
_ALPHANUMERIC = "abcdefghijklmnopqrstuvwxyz0123456789"
_CLEAN = {
    "username": re.compile(r"[a-z]{2,}\d{1,6}"),
    "phone": re.compile(r"\(\d{3}\) \d{3}-\d{4}"),
    "pin_number": re.compile(r"\d{6}"),
    "zip_code": re.compile(r"\d{5}"),
    "street_address": re.compile(r"\d{4} [a-z0-9 ]+"),
}
"""Slots drawn from the pools, and what a sound value looks like. Order and account numbers are made
up, so that no two rows share an order."""


@dataclass(frozen=True, slots=True)
class Lists:
    """What the ontology lists."""

    names: tuple[str, ...]
    products: tuple[str, ...]
    levels: tuple[str, ...]
    payment_methods: tuple[str, ...]
    refund_targets: tuple[str, ...]
    shipping_statuses: tuple[str, ...]
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AbcdWorld:
    """ABCD's cases.

    Attributes:
        pools: flow -> slot -> sound values, sorted; empty without value_pools.json.
        usernames: flow -> name -> usernames of the pool that fit the name.
        records: subflow -> records of the corpus; None = records are composed.
    """

    manual: Manual
    lists: Lists
    pools: Mapping[str, Mapping[str, tuple[str, ...]]]
    usernames: Mapping[str, Mapping[str, tuple[str, ...]]]
    streets: tuple[str, ...]
    records: Mapping[str, Sequence[Mapping[str, Any]]] | None = None

    def draw(
        self, request: RequestType, rng: random.Random, hint: Mapping[str, Any] | None = None
    ) -> Case | None:
        """Draw a case; `hint` is a set of a limit's conditions that it had better meet."""
        table = tables()["subflows"][request.name]
        today = _FIRST_DAY + timedelta(days=rng.randrange(_DAYS_OF_TODAY))
        everything: dict[str, Any] = {
            **self._person(request.flow, rng),
            **self._order(today, rng),
            **self._wishes(rng),
            **_surroundings(table, today, rng),
        }
        if hint:
            steer(everything, hint, today, rng)
        for name, allowed in request.only.items():
            everything[name] = rng.choice(allowed)
        self._settle(everything, table, rng)
        if self.records is not None:
            recorded = self.records.get(request.name)
            if not recorded:
                return None
            everything = _recorded(rng.choice(recorded), everything, request, hint, rng)
        wanted = needed_fields(request, self.manual) | {*table.get("env", ())}
        if any(step.tool == "ask-the-oracle" for step in request.procedure):
            wanted.add("oracle")
        return Case(
            {k: v for k, v in everything.items() if k in wanted and k not in ENV_KEYS},
            {k: everything[k] for k in ENV_KEYS if k in wanted},
            "composed" if self.records is None else "abcd",
        )

    def values(self, field: str) -> tuple[str, ...]:
        """Return the values that a field can take; none where they are not listed."""
        listed = {
            "member_level": self.lists.levels,
            "payment_method": self.lists.payment_methods,
            "refund_target": self.lists.refund_targets,
            "shipping_status": self.lists.shipping_statuses,
            "extra_item": self.lists.products,
            "city": tuple(tables()["places"]["cities"]),
        }
        return listed.get(field, ())

    def address(self, rng: random.Random) -> dict[str, str]:
        """Draw an address; two blanks stand between street and city, as in the corpus."""
        city = rng.choice(tables()["places"]["cities"])
        state = rng.choice(tables()["places"]["states"])
        street = f"{_digits(rng, 4)} {rng.choice(self.streets)}"
        return _address(street, city, state, f"{rng.randint(10000, 99899)}")

    def customer(self, record: Mapping[str, Any]) -> str:
        """Return the username, or the phone number: ten names serve all customers."""
        return str(record.get("username") or record.get("phone") or record["customer_name"])

    def _settle(
        self, everything: dict[str, Any], table: Mapping[str, Any], rng: random.Random
    ) -> None:
        """Keep clear of seven days, and make what the customer wants anew something else."""
        if everything["days"] == _WEEK:
            low, _ = bounds(str(table.get("days", ">1")))
            everything["days"] = str(rng.randint(max(low, 8), 12))
        for new, old, values in (
            ("new_name", "customer_name", self.lists.names),
            ("new_payment_method", "payment_method", self.lists.payment_methods),
        ):
            if everything[new] == everything[old]:
                everything[new] = rng.choice([v for v in values if v != everything[old]])

    # -- parts of a record -----------------------------------------------------------------

    def _person(self, flow: str, rng: random.Random) -> dict[str, str]:
        name = rng.choice(self.lists.names)
        pool = self.pools.get(flow, {})
        fitting = self.usernames.get(flow, {}).get(name, ())
        made_up = rng.choice(stems(name)) + _digits(rng, rng.randint(1, 6))
        username = rng.choice(fitting) if fitting else made_up
        place = self.address(rng)
        street = _from(pool, "street_address", rng) or place["street_address"]
        zip_code = _from(pool, "zip_code", rng) or place["zip_code"]
        phone = f"({_digits(rng, 3)}) {_digits(rng, 3)}-{_digits(rng, 4)}"
        return {
            "customer_name": name,
            "username": username,
            "email": f"{username}@email.com",
            "phone": _from(pool, "phone", rng) or phone,
            **_address(street, place["city"], place["state"], zip_code),
            "member_level": rng.choice(self.lists.levels),
            "account_id": "".join(rng.choice(_ALPHANUMERIC) for _ in range(10)),
            "pin_number": _from(pool, "pin_number", rng) or _digits(rng, 6),
            "security_answer": rng.choice(self.lists.answers),
        }

    def _order(self, today: date, rng: random.Random) -> dict[str, Any]:
        names = rng.sample(self.lists.products, rng.choice((1, 1, 2, 2, 3)))
        amounts = [rng.randrange(49, 100, 5) for _ in names]
        age = rng.choice((rng.randint(2, 28), rng.randint(29, 170), rng.randint(171, 400)))
        return {
            "order_id": _digits(rng, 10),
            "purchase_date": (today - timedelta(days=age)).isoformat(),
            "payment_method": rng.choice(self.lists.payment_methods),
            "packaging": rng.choice(("yes", "no")),
            "product_names": names,
            "product_amounts": amounts,
            "num_products": str(len(names)),
            "amount": str(sum(amounts)),
            "shipping_status": rng.choice(self.lists.shipping_statuses),
        }

    def _wishes(self, rng: random.Random) -> dict[str, str]:
        return {
            "refund_target": rng.choice(self.lists.refund_targets),
            "new_address": self.address(rng)["full_address"],
            "new_phone": f"({_digits(rng, 3)}) {_digits(rng, 3)}-{_digits(rng, 4)}",
            "new_name": rng.choice(self.lists.names),
            "new_payment_method": rng.choice(self.lists.payment_methods),
            "extra_item": rng.choice(self.lists.products),
            "return_method": rng.choice(("by mail", "in store", "drop off center")),
        }


def open_world(place: str) -> AbcdWorld:
    """Open a folder with ABCD's files, or a corpus file in such a folder.

    Raises:
        DataError: a file is missing, damaged, or not of ABCD's shape.
    """
    path, _, rules = place.partition("#")
    if rules not in ("", "compat"):
        raise DataError(f"{rules!r} after # means nothing", where=place, expected="#compat")
    where = Path(path).expanduser()
    if not where.exists():
        raise DataError(
            "no such folder or file", where=path, mend="name the folder of your ABCD copy"
        )
    folder = where if where.is_dir() else where.parent
    raw = read_guidelines(folder)
    manual = build(raw, f"abcd:{place}", compat=rules == "compat")
    lists = _lists(raw.ontology, folder / "ontology.json")
    pools = _pools(folder / "value_pools.json")
    usernames = {flow: _by_name(slots["username"], lists.names) for flow, slots in pools.items()}
    world = AbcdWorld(manual, lists, pools, usernames, _streets(pools))
    if where.is_dir():
        return world
    records, skipped = read_records(where, manual)
    counted = replace(manual, skipped={**manual.skipped, **skipped})
    return replace(world, manual=counted, records=records)


def _lists(ontology: Mapping[str, Any], where: Path) -> Lists:
    try:
        listed = ontology["values"]["enumerable"]
        found = {
            key: tuple(sorted(str(value).lower() for value in listed[name]))
            for key, name in (
                ("names", "customer_name"),
                ("products", "product"),
                ("levels", "membership_level"),
                ("payment_methods", "payment_method"),
                ("refund_targets", "refund_target"),
                ("shipping_statuses", "shipping_option"),
                ("answers", "security_answer"),
            )
        }
    except (KeyError, TypeError) as error:
        raise DataError(
            f"no list of {error}", where=str(where), expected="ABCD's ontology: values.enumerable"
        ) from error
    found["levels"] = tuple(level for level in LEVELS if level in found["levels"])
    return Lists(**found)


def _pools(path: Path) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the sound values of each pool, sorted; nothing where there is no file."""
    if not path.exists():
        return {}
    out: dict[str, dict[str, tuple[str, ...]]] = {}
    for flow, slots in jsonio.read_json(path).items():
        out[flow] = {slot: sound(slot, slots.get(f"<{slot}>", ())) for slot in _CLEAN}
    return out


def sound(slot: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a pool that are whole, without stray brackets, sorted, each once."""
    bare = {str(value).strip("()[]") if slot != "phone" else str(value) for value in values}
    return tuple(sorted(value for value in bare if _CLEAN[slot].fullmatch(value)))


def _streets(pools: Mapping[str, Mapping[str, tuple[str, ...]]]) -> tuple[str, ...]:
    named = {s.partition(" ")[2] for slots in pools.values() for s in slots["street_address"]}
    return tuple(sorted(named)) or ("lincoln ave", "kennedy st")


def _from(pool: Mapping[str, tuple[str, ...]], slot: str, rng: random.Random) -> str:
    values = pool.get(slot, ())
    return rng.choice(values) if values else ""


def stems(name: str) -> tuple[str, ...]:
    """Return the beginnings of a username that fit a name."""
    first, _, last = name.partition(" ")
    return (first[0] + last, first + last[0], first + last, first[0] + last[0])


def _by_name(usernames: Sequence[str], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(u for u in usernames if u.rstrip("0123456789") in stems(name)) for name in names
    }


def _digits(rng: random.Random, count: int) -> str:
    return f"{rng.randrange(10**count):0{count}d}"


def _address(street: str, city: str, state: str, zip_code: str) -> dict[str, str]:
    return {
        "street_address": street,
        "city": city,
        "state": state,
        "zip_code": zip_code,
        "full_address": f"{street}  {city}, {state} {zip_code}",
    }


def _surroundings(table: Mapping[str, Any], today: date, rng: random.Random) -> dict[str, str]:
    low, high = bounds(str(table.get("days", ">1")))
    return {
        "as_of": today.isoformat(),
        "oracle": rng.choice(("yes", "no")),
        "days": str(rng.randint(max(low, 1), min(high, 40))),
        "receipt": rng.choice(("yes", "no")),
        "disputed_amount": str(rng.randint(3, 40)),
        "info_source": rng.choice(("email", "news", "spouse")),
    }


def _recorded(
    own: Mapping[str, Any],
    drawn: Mapping[str, Any],
    request: RequestType,
    hint: Mapping[str, Any] | None,
    rng: random.Random,
) -> dict[str, Any]:
    """Put the surroundings and wishes that were drawn around a record of the corpus.

    Today is a day on which the recorded purchase is as old as the hint wants it.
    """
    free = {*ENV_KEYS, *request.wishes, *INVENTED}
    everything = {key: value for key, value in drawn.items() if key in free} | dict(own)
    if "purchase_date" in own:
        low, high = bounds(str((hint or {}).get("age", ">=2")))
        least = max(low, 2)
        age = rng.randint(least, max(least, min(high, least + 150)))
        today = date.fromisoformat(str(own["purchase_date"])) + timedelta(days=age)
        everything["as_of"] = today.isoformat()
    return everything
