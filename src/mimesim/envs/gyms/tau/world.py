"""The shop of the profile `mini`: tables made from a number, ten tools, and what its rules allow.

All that is said and written here is of small letters and few words, set apart by blanks, so that a
word-level policy of under a million parameters can learn it. The tools enforce no rule: what the
policy forbids can be done, and is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from mimesim import prompts
from mimesim.envs.gyms.tau.domain import Call, Records, Tables, Tool
from mimesim.seeds import generator

NAME = "mini"
WORLDS = 100
"""Different databases; order 104 is another one in each, so it has to be looked up."""
CUSTOMERS = 30
ORDERS_EACH = 2
ITEMS = ("lamp", "mug", "chair", "rug", "clock", "kettle", "scarf", "tent")
COLORS = ("red", "blue", "green", "black")
NAMES = tuple(
    first + second
    for first in ("ba", "de", "ko", "lu", "mi", "no", "ra", "si")
    for second in ("bo", "len", "mar", "nis", "rik", "tan", "vel", "zo")
)
ORDERS = tuple(str(n) for n in range(100, 400))
POINTS = tuple(str(n) for n in range(400, 600))
ZIPS = tuple(str(n) for n in range(600, 700))
"""Ranges of their own, so that a number tells what it is."""
HIGHEST = 699
PRICES = range(10, 50)
"""Two of them make less than the lowest order number."""
MOST_STOCK = 9
LONGEST = 60
"""Days since the oldest delivery."""
RETURN_DAYS = 30
PENDING, SHIPPED, DELIVERED, CANCELLED = "pending", "shipped", "delivered", "cancelled"
LATE, OUT = "late", "out"
REASONS = (PENDING, SHIPPED, DELIVERED, CANCELLED, LATE, OUT)
_STATUS = (PENDING, SHIPPED, DELIVERED, DELIVERED)
_ERROR = "error :"


class _Absent(Exception):
    """A record that there is not; the words say which."""


def make_tables(number: int) -> Tables:
    """Return the tables of world `number`; equal numbers give equal tables."""
    rng = generator(number, "tau-mini-world")
    products = {
        item: {
            "price": rng.choice(PRICES),
            "stock": {color: max(0, rng.randint(-3, MOST_STOCK)) for color in COLORS},
        }
        for item in ITEMS
    }
    names = rng.sample(NAMES, CUSTOMERS)
    numbers = rng.sample(ORDERS, CUSTOMERS * ORDERS_EACH)
    users: dict[str, Any] = {}
    orders: dict[str, Any] = {}
    for index, name in enumerate(names):
        user = f"u{index + 1}"
        own = sorted(numbers[index * ORDERS_EACH : (index + 1) * ORDERS_EACH])
        users[user] = {
            "name": name,
            "zip": rng.choice(ZIPS),
            "points": rng.choice(POINTS),
            "orders": own,
        }
        orders.update({order: _order(rng, user, users[user]["zip"], products) for order in own})
    return {"users": users, "orders": orders, "products": products}


def _order(rng: random.Random, user: str, zip_code: str, products: Mapping[str, Any]) -> Any:
    return {
        "user": user,
        "status": rng.choice(_STATUS),
        "days": rng.randint(1, LONGEST),
        "zip": zip_code,
        "items": {
            item: {"color": rng.choice(COLORS), "price": products[item]["price"], "state": "sold"}
            for item in rng.sample(ITEMS, 2)
        },
    }


def verdict(tables: Tables, intent: str, facts: Mapping[str, str]) -> str:
    """Return why the policy forbids what a customer wants; "" = it does not."""
    if intent in ("cancel", "redirect"):
        status = tables["orders"][facts["order"]]["status"]
        return "" if status == PENDING else str(status)
    if intent not in ("return", "exchange"):
        return ""
    order = tables["orders"][facts["order"]]
    if order["status"] != DELIVERED:
        return str(order["status"])
    if order["days"] > RETURN_DAYS:
        return LATE
    if intent == "exchange" and not tables["products"][facts["item"]]["stock"][facts["color"]]:
        return OUT
    return ""


def total(order: Mapping[str, Any]) -> int:
    """Return what the items of an order cost together."""
    return sum(item["price"] for item in order["items"].values())


# Tools ------------------------------------------------------------------------------------------


def _record(tables: Tables, table: str, key: str) -> Any:
    records: Records = tables[table]
    if key not in records:
        raise _Absent(f"no {table[:-1]} {key[:20]}")
    return records[key]


def _item(order: Mapping[str, Any], item: str) -> Any:
    if item not in order["items"]:
        raise _Absent(f"no item {item[:20]}")
    return order["items"][item]


def _find_user(tables: Tables, name: str) -> str:
    for user, record in tables["users"].items():
        if record["name"] == name:
            return _get_user(tables, user)
    raise _Absent(f"no user {name[:20]}")


def _get_user(tables: Tables, user: str) -> str:
    record = _record(tables, "users", user)
    orders = " ".join(record["orders"])
    return (
        f"user {user} : {record['name']} , zip {record['zip']} , points {record['points']}"
        f" , orders {orders}"
    )


def _get_order(tables: Tables, order: str) -> str:
    record = _record(tables, "orders", order)
    status = record["status"]
    if status == DELIVERED:
        status = f"{DELIVERED} {record['days']} days ago"
    items = [f"{name} {item['color']} {item['price']}" for name, item in record["items"].items()]
    parts = [status, f"zip {record['zip']}", *items, f"total {total(record)}"]
    return f"order {order} : " + " , ".join(parts)


def _get_product(tables: Tables, item: str) -> str:
    record = _record(tables, "products", item)
    stock = [f"{color} {count}" for color, count in record["stock"].items()]
    return f"{item} : price {record['price']} , " + " , ".join(stock)


def _cancel_order(tables: Tables, order: str) -> str:
    record = _record(tables, "orders", order)
    record["status"] = CANCELLED
    return f"order {order} is cancelled , refund {total(record)}"


def _return_item(tables: Tables, order: str, item: str) -> str:
    sold = _item(_record(tables, "orders", order), item)
    sold["state"] = "returned"
    return f"{item} of order {order} is returned , refund {sold['price']}"


def _exchange_item(tables: Tables, order: str, item: str, color: str) -> str:
    sold = _item(_record(tables, "orders", order), item)
    if color not in COLORS:
        raise _Absent(f"no color {color[:20]}")
    sold.update(color=color, state="exchanged")
    return f"{item} of order {order} is exchanged , color {color}"


def _set_order_zip(tables: Tables, order: str, zip: str) -> str:
    _record(tables, "orders", order)["zip"] = zip
    return f"zip of order {order} is set to {zip}"


def _set_user_zip(tables: Tables, user: str, zip: str) -> str:
    _record(tables, "users", user)["zip"] = zip
    return f"zip of user {user} is set to {zip}"


def _transfer(tables: Tables, reason: str) -> str:
    return "a human takes over"


_TOOLS: dict[str, tuple[Callable[..., str], str, tuple[str, ...]]] = {
    "find_user": (_find_user, "finds a customer by name", ("name",)),
    "get_user": (_get_user, "shows a customer", ("user",)),
    "get_order": (_get_order, "shows an order", ("order",)),
    "get_product": (_get_product, "shows price and stock of an item", ("item",)),
    "cancel_order": (_cancel_order, "cancels an order", ("order",)),
    "return_item": (_return_item, "takes an item back", ("order", "item")),
    "exchange_item": (
        _exchange_item,
        "swaps an item for another color",
        ("order", "item", "color"),
    ),
    "set_order_zip": (_set_order_zip, "sends an order to another zip", ("order", "zip")),
    "set_user_zip": (_set_user_zip, "changes the zip of a customer", ("user", "zip")),
    "transfer": (_transfer, "hands over to a human and ends the talk", ("reason",)),
}


def _schema(names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": list(names),
        "additionalProperties": False,
    }


class Shop:
    """The domain of the profile `mini`."""

    name = NAME
    endings = frozenset({"transfer"})
    whole_words = True
    heavy = False

    def __init__(self) -> None:
        self.tools: Mapping[str, Tool] = {
            name: Tool(name, description, _schema(arguments))
            for name, (_, description, arguments) in _TOOLS.items()
        }
        self.policy = prompts.render("envs/tau/mini_policy", days=RETURN_DAYS, reasons=REASONS)

    def tables(self, ref: str) -> Tables:
        """Return the shared tables of a world."""
        return _tables(int(ref))

    def use(self, tables: Tables, call: Call) -> str:
        """Carry out a call; what cannot be found is an error in the answer."""
        run, _, names = _TOOLS[call.tool]
        if set(call.arguments) != set(names):
            return f"{_ERROR} {call.tool} needs {' '.join(names)}"
        try:
            return run(tables, **{name: str(value) for name, value in call.arguments.items()})
        except _Absent as absent:
            return f"{_ERROR} {absent}"


@lru_cache(maxsize=WORLDS)
def _tables(number: int) -> Tables:
    return make_tables(number)


@lru_cache(maxsize=1)
def shop() -> Shop:
    """Return the one domain of the profile."""
    return Shop()
