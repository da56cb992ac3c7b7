"""Composes rows: plausible cases without limit, each with at most one behavior.

A row depends on the seed, its index and the options alone. The request type is uniform, the
verdict follows `VERDICT_MIX` where the manual allows, the behavior is uniform over those that
apply. A draw that breaks an invariant is repeated a bounded number of times, then dropped and
counted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mimesim.errors import ConfigError
from mimesim.scenarios import behaviors as registry
from mimesim.scenarios import records
from mimesim.scenarios.behaviors import Behavior, Situation
from mimesim.scenarios.invariants import broken
from mimesim.scenarios.procedure import verdict
from mimesim.scenarios.types import DENIED, ESCALATED, GRANTED, SPLITS, Manual, RequestType, Row
from mimesim.seeds import derive, generator

VERDICT_MIX = {GRANTED: 0.50, DENIED: 0.35, ESCALATED: 0.15}
TURN_BUDGET = 8
REDRAWS = 12
"""Whole-row attempts before a row is dropped."""
_CASE_DRAWS = 400
"""Records drawn in search of a verdict (and of a name in the right split)."""
_SPLIT_SHARES = (("train", 7), ("validation", 1), ("test", 2))


@dataclass(frozen=True, slots=True)
class ComposeResult:
    """Composed rows, and how many were given up for which reason."""

    rows: tuple[Row, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Plan:
    manual: Manual
    requests: tuple[RequestType, ...]
    split: str | None
    weights: Mapping[str, float]


def compose(
    manual: Manual,
    *,
    seed: int,
    count: int,
    neutral_share: float = 1 / 3,
    split: str | None = None,
    behaviors: str | Sequence[str] | Mapping[str, float] = "all",
) -> ComposeResult:
    """Compose `count` rows.

    Args:
        manual: the company's manual.
        seed: seed of all draws.
        count: rows wanted; dropped ones are counted, not replaced.
        neutral_share: share of rows without a behavior, met exactly.
        split: train, validation, test, or None for all; held-out request types and the
            customers of the test split never occur in train or validation.
        behaviors: `all` (uniform), `annotated` (by annotated count), ids, or weights by id.

    Raises:
        ConfigError: a share, count, split or behavior that makes no sense.
    """
    if count < 0 or not 0 <= neutral_share <= 1:
        raise ConfigError(
            f"count {count!r} or neutral_share {neutral_share!r} is out of range",
            expected="count >= 0 and a share between 0 and 1",
        )
    if split is not None and split not in SPLITS:
        raise ConfigError(f"split is {split!r}", expected="one of " + ", ".join(SPLITS))
    requests = tuple(r for r in manual.request_types if split in (None, "test") or not r.held_out)
    plan = _Plan(manual, requests, split, _weights(behaviors))
    share = Fraction(neutral_share).limit_denominator(10_000)
    rows: list[Row] = []
    dropped: Counter[str] = Counter()
    for index in range(count):
        neutral = int((index + 1) * share) > int(index * share)
        place = derive(seed, "compose", split or "all", index)
        row, reason = _row(plan, place, index, neutral=neutral)
        if row is None:
            dropped[reason] += 1
        else:
            rows.append(row)
    return ComposeResult(tuple(rows), dict(sorted(dropped.items())))


def split_of(customer_name: str, request: RequestType) -> str:
    """Return the split a case belongs to: by customer, held-out request types always test."""
    if request.held_out:
        return "test"
    ticket = derive(0, "split", customer_name) % sum(share for _, share in _SPLIT_SHARES)
    for name, share in _SPLIT_SHARES:
        if ticket < share:
            return name
        ticket -= share
    return "test"


def _weights(chosen: str | Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    if isinstance(chosen, Mapping):
        weights = {registry.get(name).id: float(weight) for name, weight in chosen.items()}
    elif chosen in ("all", "annotated"):
        by_count = chosen == "annotated"
        weights = {b.id: float(b.annotated if by_count else 1) for b in registry.everything()}
    else:
        names = chosen.split(",") if isinstance(chosen, str) else chosen
        weights = {registry.get(name.strip()).id: 1.0 for name in names}
    if not weights or min(weights.values()) < 0 or not any(weights.values()):
        raise ConfigError(f"behaviors {chosen!r} leave nothing to draw", expected="weights above 0")
    return weights


def _row(plan: _Plan, seed: int, index: int, *, neutral: bool) -> tuple[Row | None, str]:
    reason = "no behavior applies"
    for attempt in range(REDRAWS):
        rng = generator(seed, "row", attempt)
        request = rng.choice(plan.requests)
        wanted = rng.choices(list(VERDICT_MIX), list(VERDICT_MIX.values()))[0]
        bare = _bare_row(plan, request, wanted, (seed, index), rng)
        if bare is None:
            reason = f"no case is {wanted}"
            continue
        row = bare if neutral else _behaving(bare, plan, rng)
        if row is None:
            continue
        problems = broken(Situation(row, plan.manual))
        if not problems:
            return row, ""
        reason = next(iter(problems))
    return None, reason


def _bare_row(
    plan: _Plan, request: RequestType, wanted: str, place: tuple[int, int], rng: random.Random
) -> Row | None:
    outcomes = {GRANTED, *(m.outcome for m in plan.manual.limits_of(request.name))}
    pools = records.load_pools(plan.manual.name)
    for _ in range(_CASE_DRAWS):
        case = records.draw_case(request, plan.manual, pools, rng)
        split = split_of(str(case.record["customer_name"]), request)
        if plan.split is not None and plan.split != split:
            continue
        row = _assemble(case, request, place, split)
        if wanted not in outcomes or verdict(row, plan.manual) == wanted:
            return row
    return None


def _assemble(case: records.Case, request: RequestType, place: tuple[int, int], split: str) -> Row:
    seed, index = place
    return Row(
        record=case.record,
        env=case.env,
        flow=request.flow,
        subflow=request.name,
        behavior=None,
        params={},
        directive="",
        seed=seed,
        index=index,
        turn_budget=TURN_BUDGET,
        split=split,
    )


def _behaving(row: Row, plan: _Plan, rng: random.Random) -> Row | None:
    case = Situation(row, plan.manual)
    options = [
        behavior
        for behavior in map(registry.get, plan.weights)
        if plan.weights[behavior.id] > 0 and behavior.applicable(case)
    ]
    if not options:
        return None
    chosen = rng.choices(options, [plan.weights[b.id] for b in options])[0]
    return with_behavior(case, chosen, rng)


def with_behavior(case: Situation, behavior: Behavior, rng: random.Random) -> Row:
    """Return the row of `case` with `behavior`, its parameters drawn and its directive worded."""
    params: dict[str, Any] = behavior.derive_params(case, rng)
    row = case.row
    return Row(
        **{
            **row.to_json(),
            "behavior": behavior.id,
            "params": params,
            "directive": behavior.directive(params),
        }
    )
