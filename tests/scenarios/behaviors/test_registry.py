"""The registry of behaviors and what every behavior owns."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.errors import DataError, UnknownNameError, UsageError
from mimesim.scenarios import behaviors
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.behaviors import Behavior, Situation, Taxon, base, closing
from mimesim.scenarios.compose import compose, with_behavior
from mimesim.scenarios.fields import says
from mimesim.seeds import generator

MANUAL = manuals.load()
NEUTRAL = compose(MANUAL, seed=21, count=200, neutral_share=1).rows
COUNTS = [285, 94, 78, 4, 17, 62, 50, 38, 26, 16, 15, 9, 6]
MIN_TURNS = [2, 2, 2, 2, 2, 2, 2, 1, 1, 2, 2, 1, 1]


def test_the_13_are_there_under_id_and_code_name() -> None:
    assert behaviors.ids() == tuple(f"B{n}" for n in range(1, 14))
    for behavior in behaviors.everything():
        assert behaviors.get(behavior.name) is behaviors.get(behavior.id) is behavior
    assert behaviors.get("clarification_noncooperation").id == "B3"


def test_the_taxonomy_carries_the_annotated_counts() -> None:
    everything = behaviors.everything()
    assert [b.annotated for b in everything] == COUNTS
    assert sum(COUNTS) == 700
    assert [b.min_turns for b in everything] == MIN_TURNS
    assert [b.id for b in everything if b.judge_sees_thoughts] == ["B1", "B5"]
    checked = {"B3", "B4", "B7", "B8", "B9", "B10", "B11", "B12"}
    assert {b.id for b in everything if b.has_check} == checked


def test_neighbors_are_known_and_never_oneself() -> None:
    for behavior in behaviors.everything():
        assert behavior.neighbors
        assert behavior.id not in behavior.neighbors
        assert all(behaviors.get(name) for name in behavior.neighbors)


@pytest.mark.parametrize("name", ["B14", "self_contradicton", ""])
def test_an_unknown_behavior_is_named(name: str) -> None:
    with pytest.raises(UnknownNameError, match="unknown behavior"):
        behaviors.get(name)


def test_an_id_may_be_written_small() -> None:
    assert behaviors.get("b8") is behaviors.get("B8")


class Mine(Behavior):
    id = "B97"
    taxon = Taxon("mine", "Mine.", 1, {"B4": "Mine is mine, not theirs."})

    def derive_params(self, case: Situation, rng: Any) -> dict[str, Any]:
        return {"x": case.row.record["y"]}

    def directive(self, params: Any) -> str:
        return closing()


class Bare(Behavior):
    id = "B98"


MINE, BARE = Mine(), Bare()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (f"{__name__}:Mine", "NAME = Mine()"),
        (f"{__name__}:BARE", "taxon = Taxon(...) in its class"),
        ("theirs:MINE", "with a dot"),
    ],
)
def test_what_is_no_behavior_is_told(name: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        behaviors.judged(behaviors.get(name))
    assert told in str(caught.value)


def test_what_an_own_behavior_raises_is_one_line_that_names_it() -> None:
    with pytest.raises(UsageError, match="behavior 'B97' raised KeyError: 'y'"):
        compose(MANUAL, seed=1, count=2, neutral_share=0, behaviors=[f"{__name__}:MINE"])


def test_a_registry_that_disagrees_with_the_taxonomy_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short = {key: value for key, value in base.taxonomy().items() if key != "B7"}
    monkeypatch.setattr(behaviors, "taxonomy", lambda: short)
    behaviors.builtin_ids.cache_clear()
    with pytest.raises(DataError, match="B7"):
        behaviors.builtin_ids()
    behaviors.builtin_ids.cache_clear()


@pytest.mark.parametrize("behavior", behaviors.everything(), ids=lambda b: b.id)
def test_a_behavior_plays_wherever_it_applies(behavior: Any) -> None:
    played = 0
    for row in NEUTRAL:
        case = Situation(row, MANUAL)
        if not behavior.applicable(case):
            continue
        played += 1
        first = with_behavior(case, behavior, generator(1, "x"))
        assert first == with_behavior(case, behavior, generator(1, "x"))
        assert set(behavior.told) <= {*first.params, "constraint"}
        assert first.directive.count("\n") == 1, "the directive and the common closing"
        for word in behavior.words(first.params).values():
            assert says(first.directive, str(word))
    assert played >= 10


def test_a_behavior_without_a_check_gives_no_score() -> None:
    case = Situation(NEUTRAL[0], MANUAL)
    for behavior in behaviors.everything():
        if not behavior.has_check:
            assert behavior.check([], case, {}) is None


def test_params_differ_between_draws() -> None:
    for name in ("B1", "B2", "B3", "B5", "B6", "B8", "B11", "B12", "B13"):
        behavior = behaviors.get(name)
        drawn = set()
        for position, row in enumerate(NEUTRAL):
            case = Situation(row, MANUAL)
            if behavior.applicable(case):
                drawn.add(str(behavior.derive_params(case, generator(position))))
        assert len(drawn) >= 3, name
