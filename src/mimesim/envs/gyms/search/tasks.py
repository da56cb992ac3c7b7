"""Tasks of the gym `search`: questions about the invented country, split by their bridge."""

from __future__ import annotations

from mimesim.envs.base import Task
from mimesim.envs.gyms.search.world import Asked, the_world
from mimesim.envs.turns.splits import split_of
from mimesim.seeds import generator


def make_tasks(split: str, seed: int, count: int) -> list[Task]:
    """Return `count` tasks of a split in an order that the seed draws, or all that there are."""
    numbered = list(enumerate(the_world().questions))
    own = [(number, asked) for number, asked in numbered if _split(asked) == split]
    generator(seed, "search-tasks", split).shuffle(own)
    return [_task(number, asked, split) for number, asked in own[:count]]


def _split(asked: Asked) -> str:
    return split_of("search", _group(asked))


def _group(asked: Asked) -> str:
    return f"bridge:{asked.bridge}"


def _task(number: int, asked: Asked, split: str) -> Task:
    name = f"ms-se-{number:04d}"
    trace = [["search", asked.start], ["search", asked.bridge], ["answer", asked.answer]]
    return Task(
        gym="search",
        id=name,
        split=split,
        groups=(_group(asked),),
        public={"question": asked.text},
        hidden={
            "answer": asked.answer,
            "aliases": list(asked.aliases),
            "support": list(asked.support),
            "oracle_trace": trace,
            "scenario": {"id": name, "goal": "none", "meta": {"profile": "asked"}},
        },
        meta={"source": "mimesim", "license": "Apache-2.0", "schema": 1},
    )
