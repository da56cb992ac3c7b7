"""The compact desk: a customer record, one policy line and a line grammar (design ruling 2).

A task small enough for a policy of under a million parameters: five request types over seven
record fields, an order number of one token, final actions of one line. Everything here is public
knowledge of the profile; what a customer wants and hides lies in `users/scripted/compact`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mimesim.seeds import derive, fingerprint, generator

ORDERS = tuple(str(n) for n in range(100, 400))
ZIPS = tuple(str(n) for n in range(600, 700))
"""Order numbers and zip codes: one token each, in ranges of their own, so that copying is learnt
early."""

VALUES: dict[str, tuple[str, ...]] = {
    "order": ORDERS,
    "method": ("card", "wallet", "voucher", "transfer"),
    "days": ("12", "20", "25", "40", "50", "70", "80", "98"),
    "tier": ("gold", "basic"),
    "size": ("small", "medium", "large", "huge"),
    "zip": ZIPS,
    "status": ("shipped", "not shipped"),
}
ITEMS = ("boots", "lantern", "parka", "teapot", "tablet", "hammock", "clock", "blender", "stool")
WINDOWS = ("15", "30", "60", "90")
REQUIRED: dict[str, tuple[str, ...]] = {
    "refund": ("order", "method", "days", "tier"),
    "exchange": ("order", "size", "days"),
    "cancel": ("order", "status"),
    "address": ("order", "zip"),
    "missing": ("order", "days"),
}
SLOT: dict[str, str] = {"refund": "method", "exchange": "size", "address": "zip"}
"""The one field that a final action of this kind carries beside the order number."""

_SLOT_WORD = {"refund": "to", "exchange": "size", "address": "zip"}
FIELD_NAMES: dict[str, str] = {
    "order": "order number",
    "method": "refund method",
    "days": "purchase date",
    "tier": "member level",
    "size": "new size",
    "zip": "new zip",
    "status": "shipping status",
    "intent": "kind of help",
}
_KEYWORDS = {
    "number": "order",
    "method": "method",
    "date": "days",
    "level": "tier",
    "size": "size",
    "zip": "zip",
    "status": "status",
    "help": "intent",
}
KINDS = ("refund", "exchange", "cancel", "address", "deny", "escalate", "wait")
ASKS = (
    "what is the {fields} ?",
    "can you give me the {fields} ?",
    "please tell me the {fields} .",
    "i need the {fields} .",
)
_ACT = re.compile(r"act (\w+) order (\S+)(?: (to|size|zip) (\S+))?")


@dataclass(frozen=True, slots=True)
class FinalAction:
    """A parsed `act …` line: kind, order number and the slot value, if the kind has one."""

    kind: str
    order: str
    slot: str | None = None

    def line(self) -> str:
        """Return the line grammar's text."""
        text = f"act {self.kind} order {self.order}"
        return f"{text} {_SLOT_WORD[self.kind]} {self.slot}" if self.slot else text


def parse_final(text: str) -> FinalAction | None:
    """Read an `act …` line; None when it is not one of the grammar."""
    match = _ACT.fullmatch(" ".join(text.split()))
    if match is None or match[1] not in KINDS or match[3] != _SLOT_WORD.get(match[1]):
        return None
    return FinalAction(match[1], match[2], match[4])


def asked_fields(text: str) -> tuple[str, ...]:
    """Return the fields that an agent's line asks for, in order of mention."""
    found = [_KEYWORDS[word] for word in text.split() if word in _KEYWORDS]
    return tuple(dict.fromkeys(found))


def ask_line(fields: Sequence[str], rng: random.Random) -> str:
    """Return an agent's question for `fields`."""
    return rng.choice(ASKS).format(fields=" and the ".join(FIELD_NAMES[f] for f in fields))


def policy_line(policy: Mapping[str, str]) -> str:
    """Return the policy as the agent sees it."""
    windows = " ".join(f"{key} {policy[key]}" for key in ("refund", "gold", "exchange", "missing"))
    return f"policy {windows} cancel not shipped"


def read_policy(line: str) -> dict[str, str]:
    """Return the windows (days) of a policy line."""
    words = line.split()
    return {key: words[words.index(key) + 1] for key in ("refund", "gold", "exchange", "missing")}


def right_kind(policy: Mapping[str, str], intent: str, values: Mapping[str, str]) -> str:
    """Return the action kind that the policy demands for `intent` with these field values."""
    if intent == "refund":
        window = policy["gold" if values["tier"] == "gold" else "refund"]
        return "refund" if int(values["days"]) <= int(window) else "deny"
    if intent == "exchange":
        return "exchange" if int(values["days"]) <= int(policy["exchange"]) else "deny"
    if intent == "cancel":
        return "cancel" if values["status"] == "not shipped" else "deny"
    if intent == "address":
        return "address"
    return "escalate" if int(values["days"]) > int(policy["missing"]) else "wait"


def right_action(policy: Mapping[str, str], intent: str, values: Mapping[str, str]) -> FinalAction:
    """Return the one right final action."""
    kind = right_kind(policy, intent, values)
    slot = values[SLOT[kind]] if kind in SLOT else None
    return FinalAction(kind, values["order"], slot)


@dataclass(frozen=True, slots=True)
class CompactScore:
    """Graded terminal reward in [0, 1] and whether every part was right."""

    reward: float
    success: bool
    kind_ok: bool
    order_ok: bool
    slot_ok: bool


def grade(
    policy: Mapping[str, str],
    intent: str,
    values: Mapping[str, str],
    action: FinalAction,
) -> CompactScore:
    """Grade a final action against the customer's current wish.

    0.3 for the kind, 0.1 each for order number and slot (the slot only with the right kind),
    0.5 for all of it.
    """
    gold = right_action(policy, intent, values)
    kind_ok = action.kind == gold.kind
    order_ok = action.order == gold.order
    slot_ok = kind_ok and action.slot == gold.slot
    success = kind_ok and order_ok and slot_ok
    reward = 0.3 * kind_ok + 0.1 * order_ok + 0.1 * slot_ok + 0.5 * success
    return CompactScore(reward, success, kind_ok, order_ok, slot_ok)


def compose_scenario(seed: int, split: str, index: int) -> dict[str, Any]:
    """Compose the scenario of task `index` of a split: record, policy, request (JSON values)."""
    rng = generator(seed, "compact", split, index)
    policy = {key: rng.choice(WINDOWS) for key in ("refund", "gold", "exchange", "missing")}
    record = {field: rng.choice(pool) for field, pool in VALUES.items()}
    item, intent = rng.choice(ITEMS), rng.choice(tuple(REQUIRED))
    identity = fingerprint(f"{seed}|{split}|{index}", 12)
    return {
        "id": f"compact-{split}-{identity}",
        "goal": f"{intent} for the {item}",
        "facts": record,
        "meta": {
            "profile": "compact",
            "intent": intent,
            "item": item,
            "policy": policy,
            "opening_seed": derive(seed, "compact-opening", split, index),
        },
    }
