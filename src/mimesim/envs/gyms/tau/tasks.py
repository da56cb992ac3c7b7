"""Tasks of the profile `mini`: a customer of a made world with one errand, split by customer."""

from __future__ import annotations

import random
from typing import Any

from mimesim import prompts
from mimesim.envs.base import Task
from mimesim.envs.gyms.tau import world
from mimesim.envs.gyms.tau.calls import spelled
from mimesim.envs.gyms.tau.customer import NEEDS, WISHES
from mimesim.envs.gyms.tau.domain import Call, Tables
from mimesim.envs.turns.splits import split_of
from mimesim.errors import DataError
from mimesim.seeds import generator

INTENTS = tuple(NEEDS)
_GRANTED = 0.5
"""Share of errands that the policy allows, where it can forbid them."""
_TRIES = 40
Facts = dict[str, str]
WRITES = {
    "cancel": "cancel_order",
    "return": "return_item",
    "exchange": "exchange_item",
    "redirect": "set_order_zip",
    "move": "set_user_zip",
}
"""Errand -> the tool that does it."""
FORBIDDABLE = ("cancel", "return", "exchange", "redirect")
"""Errands that the policy may forbid."""
_CLOSINGS = {
    "cancel": "order {order} is cancelled .",
    "return": "the {item} is returned .",
    "exchange": "the {item} is exchanged .",
    "redirect": "the zip is set to {zip} .",
    "move": "the zip is set to {zip} .",
    "total": "the total is {value} .",
    "stock": "{value} are in stock .",
    "points": "you have {value} points .",
}
_WANTED = {
    "cancel": "You want to cancel order {order}.",
    "return": "You want to return the {item} of order {order}.",
    "exchange": "You want to exchange the {item} of order {order} for one in {color}.",
    "redirect": "You want order {order} sent to the zip {zip} instead.",
    "move": "You moved and want the company to have your new zip, {zip}.",
    "total": "You want to know the total of order {order}.",
    "stock": "You want to know how many of the {item} there are in {color}.",
    "points": "You want to know how many points you have.",
}


def make_tasks(split: str, seed: int, count: int) -> list[Task]:
    """Return `count` tasks of a split; no two are the same errand.

    Raises:
        DataError: there are not so many.
    """
    rng = generator(seed, "tau-mini", split)
    tasks: list[Task] = []
    seen: set[str] = set()
    for _ in range(_TRIES * count):
        if len(tasks) == count:
            break
        task = _draw(rng, split, f"ms-tau-{split}-{seed}-{len(tasks):05d}")
        if task is not None:
            key = f"{task.hidden['db_ref']} {task.hidden['instruction']}"
            tasks += [] if key in seen else [task]
            seen.add(key)
    if len(tasks) < count:
        raise DataError(f"only {len(tasks)} errands of {count} were found", where="tau")
    return tasks


def _draw(rng: random.Random, split: str, name: str) -> Task | None:
    """Return a task, or None where the customer belongs to another split or has no such errand."""
    number = rng.randrange(world.WORLDS)
    user = f"u{rng.randint(1, world.CUSTOMERS)}"
    intent = rng.choice(INTENTS)
    granted = rng.random() < _GRANTED
    if split_of("tau", f"{number}:{user}") != split:
        return None
    tables = world.shop().tables(str(number))
    facts = _facts(rng, tables, user, intent)
    if facts is None or (
        intent in FORBIDDABLE and granted == bool(world.verdict(tables, intent, facts))
    ):
        return None
    actions, outputs, closing = _gold(tables, user, intent, facts)
    wish = _WANTED[intent].format(**facts)
    instruction = prompts.render("envs/tau/mini_goal", name=facts["name"], wish=wish)
    return Task(
        gym="tau",
        id=name,
        split=split,
        groups=(f"{number}:{user}:{intent}",),
        public={"profile": world.NAME, "first_message": WISHES[intent][0]},
        hidden={
            "instruction": instruction,
            "db_ref": number,
            "actions": [{"name": one.tool, "kwargs": one.arguments} for one in actions],
            "outputs": outputs,
            "script": {"intent": intent, "facts": facts},
            "oracle_trace": [*(["answer", spelled(one)] for one in actions), ["action", closing]],
            "scenario": {"id": name, "goal": instruction, "meta": {"profile": "asked"}},
        },
        meta={"source": "mimesim", "license": "Apache-2.0", "schema": 1},
    )


def _facts(rng: random.Random, tables: Tables, user: str, intent: str) -> Facts | None:
    """Return all that the customer knows of the errand, name included; None = no such errand."""
    record = tables["users"][user]
    facts: Facts = {"name": record["name"]}
    order = rng.choice(record["orders"])
    if "order" in NEEDS[intent]:
        facts["order"] = order
    if "item" in NEEDS[intent]:
        known = world.ITEMS if intent == "stock" else tuple(tables["orders"][order]["items"])
        facts["item"] = rng.choice(known)
    if "zip" in NEEDS[intent]:
        facts["zip"] = rng.choice([z for z in world.ZIPS if z != record["zip"]])
    if "color" in NEEDS[intent]:
        stock = tables["products"][facts["item"]]["stock"]
        own: Any = tables["orders"][order]["items"].get(facts["item"], {}).get("color")
        least = 1 if intent == "stock" else 0  # "0" would be too easy a guess
        fitting = [c for c in world.COLORS if stock[c] >= least and c != own]
        if not fitting:
            return None
        facts["color"] = rng.choice(fitting)
    return facts


def closing_words(intent: str, facts: Facts, value: str = "", reason: str = "") -> str:
    """Return what an agent tells the customer at the end.

    Args:
        intent: the errand.
        facts: what the customer said.
        value: what was asked, where the errand is a question.
        reason: why it cannot be done; "" = it was done.
    """
    if reason:
        return f"sorry , that cannot be done : {reason} ."
    return _CLOSINGS[intent].format(value=value, **facts)


def _gold(
    tables: Tables, user: str, intent: str, facts: Facts
) -> tuple[list[Call], list[str], str]:
    """Return the calls and outputs that the task asks for, and words that end the talk."""
    reason = world.verdict(tables, intent, facts)
    if reason:
        return [], [reason], closing_words(intent, facts, reason=reason)
    value = ""
    if intent == "total":
        value = str(world.total(tables["orders"][facts["order"]]))
    elif intent == "stock":
        value = str(tables["products"][facts["item"]]["stock"][facts["color"]])
    elif intent == "points":
        value = str(tables["users"][user]["points"])
    closing = closing_words(intent, facts, value)
    if value:
        return [], [value], closing
    tool = WRITES[intent]
    known = {**facts, "user": user}
    names = world.shop().tools[tool].names
    return [Call(tool, {name: known[name] for name in names})], [], closing
