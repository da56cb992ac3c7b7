"""Test an agent of yours with simulated users: `pytest examples/test_my_agent.py`.

The agent here answers by rule, so the example needs no model. Yours may be sync or async; its
parameters are chosen by name (`messages`, or `message`; `conversation_id` and more).
"""

from __future__ import annotations

import re
from typing import Any

import pytest

RETURNS = {
    "id": "blue-kettle",
    "goal": "get a refund for the blue kettle",
    "facts": {"order_id": "55127"},
    "withhold": ["order_id"],
    "success": {"checks": [{"agent_says": "refund of order 55127"}, {"ended_by": "user_stop"}]},
}


def shop(messages: list[dict[str, Any]]) -> str:
    """Ask for the order number once, then refund that order."""
    said = " ".join(m["content"] for m in messages if m["role"] == "user")
    order = re.search(r"\b\d{5}\b", said)
    if order is None:
        return "I can help with that. What is your order number?"
    return f"The refund of order {order.group()} is done. Is there anything else?"


@pytest.mark.mimesim(user="scripted:neutral", scenarios=[RETURNS], trials=3)
def test_a_customer_gets_the_refund(simulate: Any) -> None:
    """Three conversations with a customer who holds the number back until asked."""
    result = simulate(shop)
    assert result.success
    assert result.not_counted == {}


@pytest.mark.mimesim(user=["hello", "it is order 55127", "thanks"])
def test_the_words_of_one_customer(simulate: Any) -> None:
    """Lines of your own, word for word, and a condition of your own."""
    result = simulate(shop, success=lambda episode: "55127" in episode.turns[3].content)
    assert result.success
