"""Texts of models have any length: every reader of them must get by in linear time.

A stub model once stopped a whole run with one long message: a pattern with two neighboring runs of
white space, or one that scans to the end from every place, is quadratic.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from mimesim.corpora import filters
from mimesim.corpora.cleaning import pii
from mimesim.dialogue import loops, stop, thinking
from mimesim.envs.gyms.support_desk import reading
from mimesim.models import structured
from mimesim.scenarios import fields
from mimesim.scenarios.records import load_pools
from mimesim.users import guards

POOLS = load_pools("company")
SCENE = guards.Situation(
    opening=True,
    goal="get a refund for the blue kettle",
    withheld={"order_id": "55127"},
    prompt="you are a person " * 300,
    agent_text="Could you tell me your full name please",
)
PIECES = (
    "word ",
    "x",
    "5",
    "5-",
    "555-",
    "1234 ",
    "1234 a st, b",
    "a.b@c-",
    "<think>",
    "</think>",
    "<",
    "[",
    "{a}",
    "where should ",
    "my ",
    "'",
    "\n",
    " ",
)
READERS: dict[str, Callable[[str], Any]] = {
    "split": lambda text: thinking.split(text, thinking=True),
    "guards": lambda text: guards.check(text, SCENE),
    "parrot": lambda text: guards.check(text, guards.Situation(agent_text=text)),
    "marker": stop.read_marker,
    "courtesy": loops.is_courtesy,
    "asked": fields.asked_fields,
    "values": lambda text: reading.read_values(text, "", POOLS),
    "filter": filters.problem,
    "scrub": lambda text: pii.scrub(text, Counter()),
    "toxicity": filters.toxicity,
    "json": structured.balanced_objects,
}
SMALL, TIMES = 4_000, 8
"""Eightfold text: a linear reader takes about 8 times as long, a quadratic one 64 times."""
_LIMIT = 30
_NOISE_S = 0.05


def seconds(read: Callable[[str], Any], text: str) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        read(text)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("prefix", ["", "<", "my"])
@pytest.mark.parametrize("name", READERS)
def test_long_texts_are_read_in_linear_time(name: str, prefix: str) -> None:
    read = READERS[name]
    for piece in PIECES:
        short = (prefix + piece * SMALL)[:SMALL]
        long = (prefix + piece * SMALL * TIMES)[: SMALL * TIMES]
        took = seconds(read, long)
        assert took < _NOISE_S or took < _LIMIT * seconds(read, short), repr(prefix + piece)
