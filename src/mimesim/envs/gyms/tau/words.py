"""Every word that an episode of the profile `mini` can hold, for word-level tokenizers."""

from __future__ import annotations

import re

from mimesim import prompts
from mimesim.envs.gyms.tau import agents, customer, tasks, world
from mimesim.envs.gyms.tau.gym import NO_LOOK_UP, REMINDER, MiniTau
from mimesim.envs.turns.law import invalid_text

_CALL_TROUBLE = "act ask error : there is no tool has no argument needs the argument has no value"
_TOOL_WORDS = (
    "user zip points orders order total days ago price is cancelled refund of returned exchanged "
    "color set to a human takes over no item sold none"
)


def vocabulary() -> list[str]:
    """Return the words; what an agent makes up itself is not among them."""
    shop = world.shop()
    system = prompts.render("envs/tau/mini", policy=shop.policy, tools=list(shop.tools.values()))
    texts = [
        prompts.render("envs/tau/brief"),
        *(system, _CALL_TROUBLE, _TOOL_WORDS, REMINDER, invalid_text(NO_LOOK_UP, MiniTau.SPEC)),
        *(line for ways in customer.WISHES.values() for line in ways),
        *(line for ways in customer.DETAILS.values() for line in ways),
        *(customer.PUT_OFF, customer.INSIST, customer.PITY, customer.YES, customer.UNKNOWN),
        *(customer.GO_ON, customer.GRUMBLE, agents.GREETING, agents.BYE, *agents.ASKS),
        *(*agents.SPOKEN.values(), "and the hello .", "sorry , it is"),
        *(tasks.closing_words(intent, _ANY, "9") for intent in tasks.INTENTS),
        tasks.closing_words("cancel", _ANY, reason=world.LATE),
        *(*shop.tools, *(name for tool in shop.tools.values() for name in tool.names)),
        *(*world.ITEMS, *world.COLORS, *world.NAMES, *world.REASONS),
        *(f"u{n + 1}" for n in range(world.CUSTOMERS)),
        *map(str, range(world.HIGHEST + 1)),
    ]
    return sorted({word for text in texts for word in re.sub(r"\{\w*\}", " ", text).split()})


_ANY = {"order": "104", "item": "lamp", "zip": "612"}
