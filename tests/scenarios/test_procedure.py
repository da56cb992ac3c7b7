"""Verdict, gold steps and required fields of a case."""

from __future__ import annotations

import pytest

from mimesim.scenarios import manual as manuals
from mimesim.scenarios import procedure
from mimesim.scenarios.compose import compose
from mimesim.scenarios.types import DENIED, ESCALATED, GRANTED, Row

MANUAL = manuals.load()
ROWS = compose(MANUAL, seed=5, count=400, neutral_share=1).rows


def row(verdict: str, subflow: str) -> Row:
    wanted = (r for r in ROWS if r.subflow == subflow and procedure.verdict(r, MANUAL) == verdict)
    return next(wanted)


def changed(
    base: Row, *, record: dict[str, str] | None = None, env: dict[str, str] | None = None
) -> Row:
    parts = base.to_json()
    parts["record"] = {**base.record, **(record or {})}
    parts["env"] = {**base.env, **(env or {})}
    return Row(**parts)


def test_a_refusal_outranks_a_handover() -> None:
    base = row(GRANTED, "order_cancel")
    both = changed(base, record={"amount": "200", "shipping_status": "delivered"})
    assert procedure.verdict(both, MANUAL) == DENIED
    assert procedure.verdict(changed(base, record={"amount": "200"}), MANUAL) == ESCALATED
    assert [m.name for m in procedure.limits_holding(both, MANUAL)] == ["shipped", "high_value"]


def test_a_granted_case_runs_the_whole_procedure_with_the_records_values() -> None:
    base = row(GRANTED, "billing_unknown_fee")
    steps = procedure.gold(base, MANUAL)
    assert [tool for tool, _ in steps] == [s.tool for s in MANUAL.request(base.subflow).procedure]
    assert steps[-1][1] == {
        "amount": base.record["fee"],
        "refund_target": base.record["refund_target"],
    }


@pytest.mark.parametrize("verdict", [DENIED, ESCALATED])
def test_nothing_is_changed_in_a_case_that_is_not_granted(verdict: str) -> None:
    for base in ROWS:
        if procedure.verdict(base, MANUAL) != verdict:
            continue
        steps = procedure.gold(base, MANUAL)
        kinds = [MANUAL.tool(tool).kind for tool, _ in steps]
        assert "change" not in kinds
        assert "deliver" not in kinds
        assert "identity" in kinds
        assert "record" in kinds
        assert (kinds[-1] == "handover") is (verdict == ESCALATED)


def test_every_case_is_worth_playing() -> None:
    for base in ROWS:
        steps, required = procedure.gold(base, MANUAL), procedure.required_fields(base, MANUAL)
        assert len(steps) >= 2
        assert len(required) >= 2
        values = [value for _, slots in steps for value in slots.values()]
        assert all(base.record[name] in values for name in required)


def test_a_moved_wish_moves_the_gold_step() -> None:
    base = row(GRANTED, "order_cancel")
    steps = procedure.gold(base, MANUAL, {"refund_target": "a sack of coins", "topic": "x"})
    assert steps[-1][1]["refund_target"] == "a sack of coins"
