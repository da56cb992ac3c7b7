"""Read stored episodes: the public side, the private side, an interval, a page.

An episode file is all that scoring and the report ever read, so this works on any run.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from mimesim import stats
from mimesim.dialogue.episode import public_copy
from mimesim.report.make import write
from mimesim.rollout.prepare import RunConfig, execute, prepare
from mimesim.rollout.store import Store, read_episodes


def main() -> None:
    """Play, read back, look at both sides, and make the page."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "episodes.jsonl"
        prepared = prepare(RunConfig(user="scripted:realistic", episodes=12, seed=5))
        store = Store.open(out, prepared.plan)
        try:
            asyncio.run(execute(prepared, store=store))
        finally:
            store.close()

        episodes = read_episodes(out)
        first = episodes[0]
        print("public: ", first.turns[0].content)
        print("private:", sorted(first.private or {}))
        print("shared: ", "private" in public_copy(first.to_json()))

        counted = [episode for episode in episodes if episode.counted]
        solved = stats.wilson(sum(bool(e.outcome.success) for e in counted), len(counted))
        print(f"solved:  {solved.value:.2f} [{solved.low:.2f}, {solved.high:.2f}], n = {solved.n}")

        page = write(out).out
        print("page:   ", page is not None and page.stat().st_size > 10_000)


if __name__ == "__main__":
    main()
