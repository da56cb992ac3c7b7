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
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypedDict, Unpack

from mimesim.errors import ConfigError
from mimesim.scenarios import behaviors as registry
from mimesim.scenarios import worlds
from mimesim.scenarios.behaviors import Behavior, Situation
from mimesim.scenarios.invariants import broken
from mimesim.scenarios.procedure import verdict
from mimesim.scenarios.records import Case
from mimesim.scenarios.replay import identity_check
from mimesim.scenarios.types import (
    DENIED,
    ESCALATED,
    GRANTED,
    REPLAYS,
    SPLITS,
    Manual,
    RequestType,
    Row,
)
from mimesim.seeds import derive, generator

VERDICT_MIX = {GRANTED: 0.50, DENIED: 0.35, ESCALATED: 0.15}
TURN_BUDGET = 8
REDRAWS = 12
"""Whole-row attempts before a row is dropped."""
_CASE_DRAWS = 400
"""Records drawn in search of a verdict (and of a customer in the right split)."""
_SPLIT_SHARES = (("train", 7), ("validation", 1), ("test", 2))
_CELLS = 8
"""One in so many (request type, behavior) cells occurs in the test split only."""


class Options(TypedDict, total=False):
    """What `compose` may be told beside seed and count.

    Attributes:
        neutral_share: share of rows without a behavior, met exactly; default one third.
        split: train, validation or test; held-out request types, held-out cells of request type
            and behavior, and the customers of the test split never occur in train or validation.
        behaviors: `all` (uniform over the 13), `annotated` (by annotated count), `installed`
            (those of extensions too), ids joined by commas, a list of ids, or weights by id.
        replay: none, identity or cut, see `scenarios.replay`.
        turn_budget: customer turns of a conversation.
        matched: whether a neutral row takes the case of the row before it, so that the two differ
            in the behavior alone.
    """

    neutral_share: float
    split: str | None
    behaviors: str | Sequence[str] | Mapping[str, float]
    replay: str
    turn_budget: int
    matched: bool


@dataclass(frozen=True, slots=True)
class ComposeResult:
    """Composed rows, and how many were given up for which reason."""

    rows: tuple[Row, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Plan:
    world: worlds.World
    requests: tuple[RequestType, ...]
    weights: Mapping[str, float]
    split: str | None = None
    neutral_share: Fraction = Fraction(1, 3)
    replay: str = "none"
    turn_budget: int = TURN_BUDGET
    matched: bool = False

    @property
    def manual(self) -> Manual:
        return self.world.manual


def compose(manual: Manual, *, seed: int, count: int, **options: Unpack[Options]) -> ComposeResult:
    """Compose `count` rows; dropped ones are counted, not replaced.

    Args:
        manual: the company's manual.
        seed: seed of all draws.
        count: rows wanted.
        options: see `Options`.

    Raises:
        ConfigError: a share, count, split, replay or behavior that makes no sense.
    """
    plan = _plan(manual, count, options)
    rows: list[Row] = []
    dropped: Counter[str] = Counter()
    last: Row | None = None
    for index in range(count):
        share = plan.neutral_share
        neutral = int((index + 1) * share) > int(index * share)
        place = derive(seed, "compose", plan.split or "all", index)
        if neutral and plan.matched and last is not None and last.behavior:
            rows.append(_neutral_twin(last, place, index))
            last = None
            continue
        row, reason = _row(plan, place, index, neutral=neutral)
        if row is None:
            dropped[reason] += 1
        else:
            rows.append(row)
        last = row
    return ComposeResult(tuple(rows), dict(sorted(dropped.items())))


def split_of(customer: str, request: RequestType, behavior: str | None = None) -> str:
    """Return the split a case belongs to.

    It goes by the customer; held-out request types and held-out cells are always test.
    """
    if request.held_out or (behavior and held_out_cell(request.name, behavior)):
        return "test"
    ticket = derive(0, "split", customer) % sum(share for _, share in _SPLIT_SHARES)
    for name, share in _SPLIT_SHARES:
        if ticket < share:
            return name
        ticket -= share
    return "test"


def held_out_cell(subflow: str, behavior: str) -> bool:
    """Tell whether a behavior in this request type is met in the test split only."""
    return derive(0, "cell", subflow, behavior) % _CELLS == 0


def with_behavior(case: Situation, behavior: Behavior, rng: random.Random) -> Row:
    """Return the row of `case` with `behavior`, its parameters drawn and its directive worded."""
    with registry.blamed(behavior):
        params: dict[str, Any] = behavior.derive_params(case, rng)
        directive = behavior.directive(params)
    return replace(case.row, behavior=behavior.id, params=params, directive=directive)


def _plan(manual: Manual, count: int, options: Options) -> _Plan:
    given: dict[str, Any] = dict(options)
    chosen = given.pop("behaviors", "all")
    share = given.pop("neutral_share", 1 / 3)
    if count < 0 or not 0 <= share <= 1:
        raise ConfigError(
            f"count {count!r} or neutral_share {share!r} is out of range",
            expected="count >= 0 and a share between 0 and 1",
        )
    if given.get("split") not in (None, *SPLITS):
        raise ConfigError(
            f"split is {given['split']!r}", expected=f"one of {', '.join(SPLITS)}, or none for all"
        )
    if given.get("replay", "none") not in REPLAYS:
        raise ConfigError(f"replay is {given['replay']!r}", expected="one of " + ", ".join(REPLAYS))
    open_to_all = given.get("split") in (None, "test")
    requests = tuple(r for r in manual.request_types if open_to_all or not r.held_out)
    if not requests:
        raise ConfigError(
            f"all request types of manual {manual.name!r} are held out",
            where=f"split {given['split']}",
            expected="one that is not, or the split test",
        )
    if given.get("replay", "none") != "none" and not any(
        identity_check(r, manual) for r in requests
    ):
        raise ConfigError(
            f"no procedure of manual {manual.name!r} begins with an identity check",
            where=f"replay {given['replay']}",
            expected="procedures whose first tool is of kind identity",
        )
    return _Plan(
        world=worlds.of(manual),
        requests=requests,
        weights=_weights(chosen),
        neutral_share=Fraction(share).limit_denominator(10_000),
        **given,
    )


def _weights(chosen: str | Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    if isinstance(chosen, Mapping):
        weights = {registry.get(name).id: float(weight) for name, weight in chosen.items()}
    elif chosen == "annotated":
        weights = {b.id: float(b.annotated) for b in registry.everything()}
    elif chosen in ("all", "installed"):
        known = registry.builtin_ids() if chosen == "all" else registry.ids()
        weights = dict.fromkeys(known, 1.0)
    else:
        names = chosen.split(",") if isinstance(chosen, str) else chosen
        weights = {registry.get(name.strip()).id: 1.0 for name in names if name.strip()}
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
        problems = broken(Situation.of(row, plan.manual))
        if not problems:
            return row, ""
        reason = next(iter(problems))
    return None, reason


def _bare_row(
    plan: _Plan, request: RequestType, wanted: str, place: tuple[int, int], rng: random.Random
) -> Row | None:
    ways = [
        way
        for limit in plan.manual.limits_of(request.name)
        if limit.outcome == wanted and not limit.aside
        for way in limit.when
    ]
    possible = wanted == GRANTED or bool(ways)
    for _ in range(_CASE_DRAWS):
        case = plan.world.draw(request, rng, rng.choice(ways) if ways else None)
        if case is None:
            return None
        split = split_of(plan.world.customer(case.record), request)
        if plan.split not in (None, split):
            continue
        row = _assemble(plan, case, request, place, split)
        if not possible or verdict(row, plan.manual) == wanted:
            return row
    return None


def _assemble(
    plan: _Plan, case: Case, request: RequestType, place: tuple[int, int], split: str
) -> Row:
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
        source=case.source,
        turn_budget=plan.turn_budget,
        split=split,
        replay=plan.replay,
    )


def _behaving(row: Row, plan: _Plan, rng: random.Random) -> Row | None:
    case = Situation.of(row, plan.manual)
    options = [
        behavior
        for behavior in map(registry.get, plan.weights)
        if plan.weights[behavior.id] > 0
        and not (plan.split in ("train", "validation") and held_out_cell(row.subflow, behavior.id))
        and _applies(behavior, case)
    ]
    if not options:
        return None
    chosen = rng.choices(options, [plan.weights[b.id] for b in options])[0]
    made = with_behavior(case, chosen, rng)
    split = split_of(plan.world.customer(row.record), case.request, chosen.id)
    return replace(made, split=split)


def _applies(behavior: Behavior, case: Situation) -> bool:
    with registry.blamed(behavior):
        return behavior.applicable(case)


def _neutral_twin(row: Row, seed: int, index: int) -> Row:
    return replace(row, behavior=None, params={}, directive="", seed=seed, index=index)
