"""Paired comparisons of two scores."""

from __future__ import annotations

import pytest

from mimesim.bench.suites.paired import compare
from mimesim.errors import DataError, UsageError
from mimesim.results.suite import Metric, PerKey, SuiteScore
from mimesim.results.values import Estimate


def score(values: dict[str, float], suite: str = "s", **more: object) -> SuiteScore:
    """Return a record of metrics `m` and, noisier, `w`."""
    clusters = {key: key.partition("#")[0] for key in values}
    noisy = {key: value * (-1) ** place for place, (key, value) in enumerate(values.items())}
    fields = {"roles": {"user": "u", "agent": "a"}, **more}
    return SuiteScore(
        suite,
        tuple(Metric(name, Estimate(0.0), "%") for name in ("m", "w", "whole")),
        by_key={"m": PerKey(values, clusters), "w": PerKey(noisy, clusters)},
        **fields,
    )


TASKS = [f"t{i}#{trial}" for i in range(8) for trial in range(2)]
A = score({key: 5.0 + i % 3 for i, key in enumerate(TASKS)})
B = score({key: 3.0 + i % 3 for i, key in enumerate(TASKS)})


def test_what_a_task_does_to_both_falls_out() -> None:
    (found,) = compare({"a": A}, {"b": B}, draws=200)
    row = found.rows[0]
    assert (row.metric, row.unit) == ("m", "%")
    assert (row.value.value, row.value.low, row.value.high) == (2.0, 2.0, 2.0)
    assert row.value.n == 16
    assert row.p == pytest.approx(2 / 2**8), "all signs of 8 tasks, not of 16 conversations"
    assert row.p_holm == pytest.approx(2 * row.p)
    assert found.unpaired == ("whole",)


def test_tasks_of_one_side_only_are_counted() -> None:
    half = score(dict.fromkeys([*TASKS[:6], "other#0"], 3.0))
    (found,) = compare({"a": A}, {"b": half}, draws=50)
    assert found.rows[0].value.n == 6
    assert found.rows[0].alone == (10, 1)
    assert found.to_json()["rows"][0]["only_b"] == 1


def test_a_record_against_itself_differs_by_nothing() -> None:
    (found,) = compare({"a": A}, {"a": A}, draws=50)
    assert {(row.value.value, row.p) for row in found.rows} == {(0.0, 1.0)}


def test_nothing_in_common_is_one_line() -> None:
    with pytest.raises(DataError, match=r"the first has e.g. 't0#0', the second 'z#0'"):
        compare({"a": A}, {"b": score({"z#0": 1.0})})
    with pytest.raises(UsageError, match="no suite is common: s against t"):
        compare({"a": A}, {"b": score({"t0#0": 1.0}, "t")})
    with pytest.raises(UsageError, match="stands there twice"):
        compare({"a": A, "a2": A}, {"b": B})


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"mode": "compat"}, "mode"),
        ({"roles": {"agent": "a", "judge": "rule"}}, "judge"),
        ({"roles": {"agent": "b"}}, "agent"),
        ({"roles": {"agent": "a", "people": "others"}}, "people"),
    ],
)
def test_other_modes_judges_and_agents_are_refused(other: dict, word: str) -> None:
    unlike = score(dict.fromkeys(TASKS, 3.0), **other)
    with pytest.raises(UsageError, match=f"{word} differs between these s scores"):
        compare({"a": A}, {"b": unlike})
    (found,) = compare({"a": A}, {"b": unlike}, mixed=True, draws=50)
    assert found.mixed == (word,)
