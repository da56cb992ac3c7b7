"""The two costs that the paper gives, and how far this model is off.

The recipes of `recipes/paper` are planned with what is published of the runs; where something is
not, it is said. Nothing in the model was changed after these numbers were seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from mimesim.config import recipes
from mimesim.train.plan.assumptions import SIDES
from mimesim.train.plan.estimate import Estimate, sketch
from mimesim.train.plan.recipe import Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """One published cost beside the estimate of it, in seconds.

    Attributes:
        off: point over published, minus 1.
        inside: whether the published one lies between the two ends.
    """

    what: str
    published: float
    fast: float
    point: float
    slow: float
    off: float
    inside: bool


@dataclass(frozen=True, slots=True)
class _Cost:
    what: str
    seconds: float
    recipe: str
    overrides: tuple[str, ...]
    gpus: int
    per_batch: bool


_COSTS: dict[str, _Cost] = {
    "mid-training": _Cost(
        "mid-training of 9B: 4.8 days on 32 A100",
        4.8 * 86_400,
        "midtrain-9b",
        # the recipe's budget is what fits into memory; the published run read everything
        ("token_budget=0",),
        32,
        per_batch=False,
    ),
    "user RL": _Cost(
        "a step of user RL of 9B: 350 s on 16 GPUs (taken as A100, which is not published)",
        350.0,
        "rl-9b",
        (),
        16,
        per_batch=True,
    ),
}


@cache
def error(stage: str) -> Error | None:
    """Return how far the model is off the published cost of a stage, None where there is none.

    Raises:
        UsageError: the recipe of the stage cannot be planned.
    """
    cost = _COSTS.get(stage)
    if cost is None:
        return None
    asked = Asked(gpu="a100-80gb", gpus=cost.gpus, engine="vllm", overrides=cost.overrides)
    sides = sketch(recipes.find(cost.recipe, "user"), asked).sides
    found = {side: _seconds(sides[side], cost) for side in SIDES}
    return Error(
        what=cost.what,
        published=cost.seconds,
        off=found["point"] / cost.seconds - 1,
        inside=found["fast"] <= cost.seconds <= found["slow"],
        **found,
    )


def _seconds(side: Estimate, cost: _Cost) -> float:
    return side.batch.whole if cost.per_batch and side.batch is not None else side.seconds
