"""Run scripted episodes, store them, run the same again: nothing is done twice.

This is what `mimesim run` does. No model is involved, so the numbers repeat exactly.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from mimesim.rollout.engine import RunSummary
from mimesim.rollout.prepare import RunConfig, execute, prepare
from mimesim.rollout.store import Store


def play(config: RunConfig, out: Path) -> RunSummary:
    """Run what is not stored yet and return all episodes."""
    prepared = prepare(config)
    store = Store.open(out, prepared.plan)
    try:
        return asyncio.run(execute(prepared, store=store))
    finally:
        store.close()


def main() -> None:
    """Compare an easy user with a realistic one for the same agent."""
    with tempfile.TemporaryDirectory() as folder:
        for user in ("scripted:cooperative", "scripted:realistic"):
            config = RunConfig(agent="scripted:eager", user=user, episodes=20, seed=7)
            out = Path(folder) / f"{user.partition(':')[2]}.jsonl"
            first, second = play(config, out), play(config, out)
            counted = [episode for episode in first.episodes if episode.counted]
            solved = sum(bool(episode.outcome.success) for episode in counted)
            print(f"{user:22} solved {solved} of {len(counted)} counted", end="; ")
            print(f"second start: {second.resumed} of {len(second.episodes)} were there")


if __name__ == "__main__":
    main()
