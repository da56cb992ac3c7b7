"""UserRL's FunctionGym: `[{"id", "rule", "test_case": [4 ints], "expected_result"}]`."""

from __future__ import annotations

from fractions import Fraction

from mimesim.envs.base import Task
from mimesim.envs.gyms.function import rules
from mimesim.envs.userrl.base import Record, Source, listed, made, text
from mimesim.errors import DataError

_NOWHERE = rules.signature(rules.parse("1 / 0"))
"""The signature of rules that have no value at any of the points that are compared."""


def task(record: Record) -> Task:
    """Return the task of a record; rules that mean the same share a group.

    Raises:
        DataError: its rule cannot be read, or its value is no number.
    """
    rule = text(record.value, "rule", record.key)
    value = record.value.get("expected_result")
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise DataError(f"expected_result is {value!r:.40}", where=record.key, expected="a number")
    whole = int(value) if value == int(value) else value
    return made(
        "function",
        record,
        groups=[_meaning(rule)],
        public={"intro": "The rule is set."},
        hidden={
            "rule": rule,
            "test_case": record.value.get("test_case"),
            "expected": whole,
            "oracle_trace": [["search", "test"], ["answer", rules.spell(Fraction(whole))]],
        },
    )


def _meaning(rule: str) -> str:
    name = rules.signature(rules.parse(rule))
    return f"rule:{rule}" if name == _NOWHERE else name


SOURCE = Source(
    gym="function",
    group="a rule that means the same",
    files=("gyms/FunctionGym/functiongym/data/functions.json",),
    folders=("data/function_multiturn",),
    records=listed,
    task=task,
)
