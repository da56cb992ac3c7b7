"""What is assumed where nothing is known: one table, each entry with its two ends and its reason.

The ends are set for the reasons given and are not adjusted to any published cost. A point estimate
takes the geometric mean of the two ends, always.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Side = Literal["fast", "point", "slow"]
SIDES: tuple[Side, ...] = ("fast", "point", "slow")


class Span(NamedTuple):
    """A quantity between what makes a run fast and what makes it slow."""

    fast: float
    slow: float

    def at(self, side: Side) -> float:
        """Return an end, or the geometric mean between them."""
        if side == "point":
            return math.sqrt(self.fast * self.slow)
        return self.fast if side == "fast" else self.slow


class Assumption(NamedTuple):
    """One line of the table."""

    span: Span
    unit: str
    why: str


ASSUMPTIONS: dict[str, Assumption] = {
    "training_mfu": Assumption(
        Span(0.50, 0.25),
        "of peak FLOPs",
        "forward and backward: tuned trainers of dense models report 40 to 60 %; sharding over "
        "nodes, short rows and unfused layers cost up to half of that",
    ),
    "forward_mfu": Assumption(
        Span(0.60, 0.30),
        "of peak FLOPs",
        "prefill and teacher passes: no gradient traffic, else as above",
    ),
    "decode_bandwidth": Assumption(
        Span(0.80, 0.50),
        "of peak bandwidth",
        "reading weights and cache token by token: large reads reach 80 %, small ones half",
    ),
    "vllm_step": Assumption(
        Span(0.003, 0.010),
        "seconds a token",
        "scheduling and launches of a serving engine with captured graphs, whatever the model",
    ),
    "hf_step": Assumption(
        Span(0.0005, 0.0015),
        "seconds a token and layer",
        "ten to twenty kernels of a layer launched one by one from Python; also on a CPU",
    ),
    "padding": Assumption(
        Span(1.05, 1.30),
        "computed over real tokens",
        "rows are sorted by length before they are put together",
    ),
    "call": Assumption(
        Span(2.0, 10.0),
        "seconds a call",
        "answer of a remote model to one message: queue, network, a few hundred tokens",
    ),
    "around": Assumption(
        Span(1.05, 1.25),
        "whole over the parts",
        "sending weights to the sampler, checkpoints, validation, waiting for one another",
    ),
    "reserve": Assumption(
        Span(1.05, 1.20), "held over used memory", "fragmentation of the allocator"
    ),
    "context": Assumption(Span(1e9, 3e9), "bytes", "CUDA context, kernels, communication buffers"),
    "head_chunk": Assumption(
        Span(256, 2048), "tokens", "how many rows of logits exist at once: the loss is chunked"
    ),
    "instructions": Assumption(
        Span(300, 1500),
        "tokens",
        "role, brief or rubric that a user, judge or coach reads before the dialogue",
    ),
    "verdict": Assumption(
        Span(20, 300), "tokens", "what a judge writes: a verdict, perhaps with its reasons"
    ),
    "thought": Assumption(
        Span(20, 200),
        "tokens",
        "what a user thinks before a message; people's own thoughts are a sentence or two",
    ),
    "cached": Assumption(
        Span(0.5, 0.1),
        "of prompt tokens",
        "what a provider finds in its cache: the history grows, so much of it repeats",
    ),
}
"""The assumptions of every plan; `mimesim plan --assumptions` prints them."""


def assumed(name: str, side: Side) -> float:
    """Return an assumption at one side."""
    return ASSUMPTIONS[name].span.at(side)
