"""A customer by rule for the behavior task: what the oracle says, line by line.

It plays every behavior once or twice, where it fits, and answers otherwise; under the agent by rule it
shows where the top of the scale is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mimesim.dialogue.stop import END_MARKER
from mimesim.envs.tasks.base import POLICY, Line
from mimesim.scenarios.behaviors import cues
from mimesim.scenarios.fields import asked_fields, fold
from mimesim.scenarios.rows import row_to_scenario
from mimesim.scenarios.types import Manual, Row
from mimesim.users.first_person import first_person

_LINES = {
    "B1": ("hm. if you say so", "not really what i had in mind"),
    "B3": ("why do you need that, its in your system", "what for, just look it up"),
    "B4": ("are you sure? cant you make an exception", "then let me speak to your supervisor"),
    "B7": ("i have no printer here and my car is broken", "my phone wont work either"),
    "B9": ("come on, hurry up", "still waiting, get moving"),
    "B13": ("do you even know how this works", "what a genius you are"),
}
"""What a behavior says, first and second time."""
_ON_QUESTIONS = ("B3", "B9", "B13")
"""Behaviors that can show where a field is asked for; the others wait for an offer or an answer."""


class _Moment(NamedTuple):
    row: Row
    facts: dict[str, Any]
    goal: str
    number: int
    asked: tuple[str, ...]
    said: tuple[str, ...]
    refused: bool

    @property
    def used(self) -> int:
        """How often the behavior has shown, where its lines are known."""
        return sum(text in _LINES.get(self.row.behavior or "", ()) for text in self.said)


def customer_line(row: Row, manual: Manual, lines: Sequence[Line], number: int) -> str:
    """Return what the customer says after `lines` in its turn `number`; it ends on the end marker."""
    heard = lines[-1].text if lines else ""
    said = tuple(line.text for line in lines if line.by == POLICY)
    scenario = row_to_scenario(row, manual)
    asked = tuple(name for name in asked_fields(heard) if name in scenario.facts)
    refused = bool(cues.REFUSAL.search(fold(heard)))
    goal = first_person(scenario.goal)
    moment = _Moment(row, dict(scenario.facts), goal, number, asked, said, refused)
    return _special(moment) or _plain(moment)


def _special(now: _Moment) -> str:
    """Return the line of the behavior, or nothing where it is not its moment."""
    params, behavior = now.row.params, now.row.behavior
    if behavior in _LINES:
        return _from_table(now, behavior)
    if behavior == "B12" and now.number == 0:
        return (
            f"i want to {now.goal}, also tell me when it is done, and send me the invoice, and "
            "please check my last order, and change my phone number"
        )
    if behavior == "B10" and now.number == 1:
        return f"you know what, forget it. im off {END_MARKER}"
    if behavior == "B8" and now.number in (0, 1):
        claim = _claim(params["field"], params["false_value"])
        return f"hi, i want to {now.goal}. {claim}" if now.number == 0 else f"as i said, {claim}"
    if behavior == "B11" and now.number == 0:
        return f"hi, i want to {now.goal}. {_claim(params['field'], params['value_a'])}"
    if behavior == "B6" and now.number == 1:
        return f"wait, something else. {params['target_topic']}, what about that"
    return _late(now) if not now.asked and now.number > 0 else ""


def _from_table(now: _Moment, behavior: str) -> str:
    if now.number == 0 or now.used >= 2:
        return ""
    if behavior == "B3" and not set(now.asked) & set(now.row.params["withheld_fields"]):
        return ""
    if now.asked and (behavior not in _ON_QUESTIONS or now.used == 1):
        return ""
    if behavior == "B4" and not now.refused:
        return ""
    return _LINES[behavior][now.used]


def _late(now: _Moment) -> str:
    """Return the line of a behavior that shows once something was settled or turned down."""
    params, behavior = now.row.params, now.row.behavior
    line = ""
    if behavior == "B2" and "yes please" in now.said:
        line = f"good. oh and {params['constraint']}"
    elif behavior == "B5":
        blame = f"no, {params['omitted_detail']}, you should have asked"
        line = "well, anybody would have thought of that" if blame in now.said else blame
    elif behavior == "B11":
        line = f"well, {_claim(params['field'], params['value_b'])}"
    return "" if line in now.said else line


def _plain(now: _Moment) -> str:
    if now.number == 0:
        return f"hi, i want to {now.goal}"
    if now.asked:
        given = ", ".join(_claim(name, now.facts[name]) for name in now.asked)
        return f"again, {given}" if given in now.said else given
    agreed = "yes please" in now.said
    return f"ok, thanks {END_MARKER}" if agreed or now.refused else "yes please"


def _claim(field: str, value: Any) -> str:
    """Word a value as a statement that says what it is about."""
    spoken = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    worded = {
        "packaging": "yes the packaging is still there"
        if spoken == "yes"
        else "the packaging is gone, no box",
        "receipt": "yes i have the receipt" if spoken == "yes" else "no receipt any more",
        "member_level": f"im a {spoken} member",
        "payment_method": f"i paid with {spoken}",
        "num_products": f"i ordered {spoken} items",
        "city": f"i live in {spoken}",
        "days": f"it is {spoken} days",
        "purchase_date": f"i bought it on {spoken}",
    }
    return worded.get(field, f"its {spoken}")
