"""What every composed row must satisfy: V1 to V12 on one row, V13 on two runs of one seed.

Each invariant is a function that returns the problems it found (empty = holds). `compose` runs
them on every row; the tests show that each of them can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mimesim import jsonio
from mimesim.scenarios import behaviors
from mimesim.scenarios.behaviors import Situation
from mimesim.scenarios.behaviors.claims import told_value
from mimesim.scenarios.behaviors.withholding import given_away_by
from mimesim.scenarios.fields import PHRASED, fold, says
from mimesim.scenarios.limits import holds
from mimesim.scenarios.manual import ENV_KEYS, policy_lines
from mimesim.scenarios.rows import CUSTOMER_KNOWS, customer_facts, fill
from mimesim.scenarios.types import Row

Invariant = Callable[[Situation], list[str]]

_DISTINCTIVE = 4
"""Characters from which an env value is looked for in prose (yes and no are everywhere)."""


def v1_withheld_fields(case: Situation) -> list[str]:
    """Every withheld field is in the record, required, askable, and nothing gives it away."""
    problems = []
    for name in case.row.params.get("withheld_fields", ()) if case.row.behavior == "B3" else ():
        if name not in case.row.record:
            problems.append(f"withheld {name!r} is not in the record")
        elif given_away_by(name, case):
            problems.append(f"withheld {name!r} is part of another required field")
        if name not in case.required:
            problems.append(f"withheld {name!r} is not required")
        if name not in PHRASED:
            problems.append(f"nobody has words to ask for {name!r}")
        if case.disclosed(name):
            problems.append(f"withheld {name!r} was already said")
    return problems


def v2_infeasible_request(case: Situation) -> list[str]:
    """An infeasible request meets a limit that holds for this record and that the agent knows."""
    if case.row.behavior != "B4":
        return []
    for limit in case.manual.limits_of(case.row.subflow):
        if limit.name == case.row.params.get("limit"):
            problems = []
            if not holds(limit, case.row.record, case.row.env):
                problems.append(f"limit {limit.name!r} does not stand against this record")
            if limit.text not in policy_lines(case.manual, case.row.subflow):
                problems.append(f"the agent is not told limit {limit.name!r}")
            if case.row.params.get("blocked_action") != limit.request:
                problems.append("the blocked action is not what the limit refuses")
            return problems
    return [f"limit {case.row.params.get('limit')!r} is none of this request type"]


def v3_false_premise(case: Situation) -> list[str]:
    """A false premise differs from the record, and the true value was not yet said."""
    if case.row.behavior != "B8":
        return []
    field, params = str(case.row.params.get("field")), case.row.params
    true = case.row.record.get(field)
    problems = []
    if true is None or fold(str(params.get("true_value"))) != fold(str(true)):
        problems.append("true_value is not the record's")
    if fold(str(params.get("false_value"))) == fold(str(true)):
        problems.append("the false value is true")
    if case.disclosed(field):
        problems.append("the true value was already said")
    return problems


def v4_contradiction(case: Situation) -> list[str]:
    """Both values are concrete, the first is the record's, the second another one."""
    if case.row.behavior != "B11":
        return []
    params = case.row.params
    first, second = (fold(str(params.get(key) or "")) for key in ("value_a", "value_b"))
    problems = []
    if not first or not second:
        problems.append("a value is missing")
    if first != fold(str(case.row.record.get(str(params.get("field")), ""))):
        problems.append("value_a is not the record's")
    if first == second:
        problems.append("both values are the same")
    return problems


def v5_hidden_criterion(case: Situation) -> list[str]:
    """The hidden standard refers to a field of the record that fits the request type."""
    if case.row.behavior != "B1":
        return []
    fitting = behaviors.get("B1").fitting(case)
    field = case.row.params.get("field")
    return [] if field in fitting else [f"a standard about {field!r} does not fit"]


def v6_moved_goal(case: Situation) -> list[str]:
    """A shifted goal is new, another errand is another one, an omitted detail is possible."""
    row = case.row
    if row.behavior == "B2":
        value = fold(str(row.params.get("value") or ""))
        held = {fold(str(v)) for k, v in row.record.items() if k != "amount" and isinstance(v, str)}
        held |= {fold(str(v)) for v in row.record.get("product_names", ())}
        if row.params.get("constraint_kind") == "price_ceiling":
            held = {str(row.record.get("amount"))}
        return [f"the shifted goal {value!r} is what the record says"] if value in held else []
    option = {"B5": "detail", "B6": "topic"}.get(row.behavior or "")
    if option is None:
        return []
    fitting = behaviors.get(str(row.behavior)).fitting(case)
    chosen = row.params.get(option)
    return [] if chosen in fitting else [f"{option} {chosen!r} does not fit the record"]


def v7_options(case: Situation) -> list[str]:
    """The number of requests and the register are from their lists."""
    params, row = case.row.params, case.row
    if row.behavior == "B12" and params.get("n_requests") not in (3, 4, 5):
        return [f"n_requests is {params.get('n_requests')!r}"]
    registers = behaviors.get("B13").options.values()
    if row.behavior == "B13" and params.get("register") not in registers:
        return [f"register is {params.get('register')!r}"]
    return []


def v8_grounded(case: Situation) -> list[str]:
    """The request type exists, belongs to the flow, and the record holds what it requires."""
    known = {r.name: r for r in case.manual.request_types}
    request = known.get(case.row.subflow)
    if request is None:
        return [f"request type {case.row.subflow!r} is not in the manual"]
    problems = [f"required {n!r} is missing" for n in request.required if n not in case.row.record]
    if request.flow != case.row.flow:
        problems.append(f"{request.name!r} does not belong to flow {case.row.flow!r}")
    return problems


def v9_directive(case: Situation) -> list[str]:
    """The directive is the behavior's own and holds the parameters it may tell, no others."""
    if case.row.behavior is None:
        return []
    behavior = behaviors.get(case.row.behavior)
    if case.row.directive != behavior.directive(case.row.params):
        return ["the directive is not the one of these parameters"]
    text = case.row.directive
    words = map(str, behavior.words(case.row.params).values())
    problems = [f"the directive lacks {word!r}" for word in words if not says(text, word)]
    secret = case.row.params.get("true_value")
    if secret is not None and says(text, told_value(str(case.row.params.get("field")), secret)):
        problems.append("the directive tells the true value")
    return problems + [
        f"the directive tells env {key}"
        for key, value in case.row.env.items()
        if len(str(value)) >= _DISTINCTIVE and says(text, str(value))
    ]


def v10_turn_budget(case: Situation) -> list[str]:
    """The conversation is long enough for the behavior."""
    needed = behaviors.get(case.row.behavior).min_turns + 1 if case.row.behavior else 1
    return [] if case.row.turn_budget >= needed else [f"turn_budget is below {needed}"]


def v11_neutral(case: Situation) -> list[str]:
    """A neutral row has no directive and no parameters."""
    extra = case.row.behavior is None and (case.row.directive or case.row.params)
    return ["a neutral row carries a directive or parameters"] if extra else []


def v12_env_is_private(case: Situation) -> list[str]:
    """Nothing of env reaches the customer except what a real customer knows."""
    facts = customer_facts(case.row)
    problems = [
        f"the customer knows env {key}"
        for key in facts
        if key in ENV_KEYS and key not in CUSTOMER_KNOWS
    ]
    goal = fill(case.request.goal, facts)
    prose = " ".join([goal, str(case.row.record["customer_name"]), case.row.directive])
    for key, value in case.row.env.items():
        if (
            key not in CUSTOMER_KNOWS
            and len(str(value)) >= _DISTINCTIVE
            and says(prose, str(value))
        ):
            problems.append(f"the customer is told env {key}")
    return problems


def v13_same_bytes(first: Sequence[Row], second: Sequence[Row]) -> list[str]:
    """The same seed gives the same bytes."""
    lines = [[jsonio.dumps(row.to_json()) for row in rows] for rows in (first, second)]
    if len(lines[0]) != len(lines[1]):
        return ["the runs differ in length"]
    return [f"row {i} differs" for i, (a, b) in enumerate(zip(*lines, strict=True)) if a != b]


ROW_INVARIANTS: dict[str, Invariant] = {
    "V1": v1_withheld_fields,
    "V2": v2_infeasible_request,
    "V3": v3_false_premise,
    "V4": v4_contradiction,
    "V5": v5_hidden_criterion,
    "V6": v6_moved_goal,
    "V7": v7_options,
    "V8": v8_grounded,
    "V9": v9_directive,
    "V10": v10_turn_budget,
    "V11": v11_neutral,
    "V12": v12_env_is_private,
}


_NOT_IN_THE_ORIGINAL = ("V1", "V2", "V3")
"""What rows of the original task do not keep: a compat manual is held to the others."""


def broken(case: Situation) -> dict[str, Any]:
    """Return the invariants that `case` breaks, with their problems; V8 shields the others.

    What an extension's behavior finds wrong with its own parameters stands under its id.
    """
    if problems := v8_grounded(case):
        return {"V8": problems}
    left_out = _NOT_IN_THE_ORIGINAL if case.manual.compat else ()
    behavior = behaviors.get(case.row.behavior) if case.row.behavior else None
    with behaviors.blamed(behavior):
        found = {
            name: check(case) for name, check in ROW_INVARIANTS.items() if name not in left_out
        }
        if behavior is not None:
            found[behavior.id] = behavior.problems(case)
    return {name: problems for name, problems in found.items() if problems}
