"""Write an agent of your own: any callable that takes the history and returns text.

On the command line such an agent is called `python:<module>:<callable>`. It sees public messages
only; what it raises is recorded as its own failure and never becomes somebody's words.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from mimesim.rollout.prepare import RunConfig, execute, prepare


def reply(messages: list[dict[str, Any]]) -> str:
    """Ask once for the order number, then cancel that order, whatever the customer wanted."""
    said = " ".join(m["content"] for m in messages if m["role"] == "user")
    order = re.search(r"\b\d{3}\b", said)
    asked = any(m["role"] == "assistant" for m in messages)
    if order is None and not asked:
        return "may i have the order number ?"
    return f"act cancel order {order.group() if order else '000'}"


def main() -> None:
    """Run twelve episodes of the compact desk and print what the agent earned."""
    config = RunConfig(
        profile="compact",
        agent="python:__main__:reply",
        user="scripted:easy",
        episodes=12,
        seed=3,
    )
    summary = asyncio.run(execute(prepare(config)))
    for episode in summary.episodes:
        last = episode.steps[-1].text if episode.steps else "(nothing)"
        print(f"{episode.outcome.status.value:10} reward {episode.outcome.reward}  {last}")


if __name__ == "__main__":
    main()
