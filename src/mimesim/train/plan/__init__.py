"""What a training would cost before it is started: time, memory, tokens, calls and money.

A first-principles model without torch and without a fitted constant: shapes of models, data sheets
of machines, one table of assumptions with reasons (`assumptions`), the workload that a recipe
describes. Every result is a range from all assumptions at their fast end to all at their slow end.
"""

from __future__ import annotations

from mimesim.train.plan.machines import MACHINES
from mimesim.train.plan.money import Prices
from mimesim.train.plan.recipe import Asked
from mimesim.train.plan.shapes import SHAPES
from mimesim.train.plan.whole import Plan, plan_recipe

__all__ = ["MACHINES", "SHAPES", "Asked", "Plan", "Prices", "plan_recipe"]
