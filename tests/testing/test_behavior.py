"""The conformance suite for behaviors: it passes the 13 and catches each kind of fault."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.errors import UnknownNameError
from mimesim.scenarios import behaviors
from mimesim.scenarios.behaviors import Behavior, Situation, Taxon, closing
from mimesim.testing.behavior import Dialogue, check_behavior
from tests.support.behaviors import dialogues

TAXON = Taxon(
    name="reading_aloud",
    definition="The customer reads everything aloud.",
    min_turns=1,
    contrasts={"B12": "Reading aloud wants nothing; overloading wants everything."},
    params={"what": "what is read", "secret": "what is not told"},
)


class Reading(Behavior):
    """A sound behavior; every fault below is one change of it."""

    id = "B14"
    taxon = TAXON
    told = ("what",)
    has_check = True

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        return {"what": rng.choice(["the label", "the bill"]), "secret": "the hidden word"}

    def directive(self, params: Mapping[str, Any]) -> str:
        return f"You read {params['what']} out.\n{closing()}"

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        return float(any(params["what"] in m.content for m in turns if m.role is Role.USER))


def wrong(behavior: Behavior, *played: Dialogue) -> dict[str, str]:
    return {f.name: f.told for f in check_behavior(behavior, dialogues=played) if not f.ok}


@pytest.mark.parametrize("behavior", behaviors.everything(), ids=lambda b: b.id)
def test_the_built_in_ones_pass(behavior: Behavior) -> None:
    assert wrong(behavior) == {}


def test_a_sound_one_passes_without_being_installed() -> None:
    assert wrong(Reading()) == {}
    with pytest.raises(UnknownNameError):
        behaviors.get("B14")


def taxon(**changes: Any) -> type[Behavior]:
    return type("Changed", (Reading,), {"taxon": replace(TAXON, **changes)})


def method(name: str, function: Any) -> type[Behavior]:
    return type("Changed", (Reading,), {name: function})


def restless() -> type[Behavior]:
    """Return a behavior that answers differently each time."""
    rng = random.Random(1)
    return method("derive_params", lambda s, c, r: {"what": str(rng.random()), "secret": "x"})


def moody() -> type[Behavior]:
    rng = random.Random(1)
    return method("check", lambda s, t, c, p: rng.random() * len(t) / 100)


FAULTS = [
    (taxon(name="Reading Aloud"), "description", "not snake_case"),
    (taxon(definition="Reads"), "description", "no sentence"),
    (taxon(min_turns=0), "description", "below 1"),
    (taxon(contrasts={}), "description", "no neighbor"),
    (taxon(contrasts={"B14": "It is itself, really."}), "description", "its own neighbor"),
    (taxon(contrasts={"B77": "Nobody knows that one."}), "description", "B77"),
    (taxon(contrasts={"B3": "other"}), "description", "says nothing"),
    (taxon(params={"what": "x"}), "parameters", "does not explain ['secret']"),
    (method("applicable", lambda s, c: False), "applicability", "applies to 0"),
    (method("applicable", lambda s, c: 1 / 0), "applicability", "ZeroDivisionError"),
    (restless(), "parameters", "gives other parameters"),
    (
        method("derive_params", lambda s, c, r: {"what": ("a",), "secret": "x"}),
        "parameters",
        "JSON",
    ),
    (method("derive_params", lambda s, c, r: {"secret": "x"}), "parameters", "no parameters"),
    (method("directive", lambda s, p: f"You read {p['what']} out."), "directive", "does not end"),
    (method("directive", lambda s, p: f"You read.\n{closing()}"), "directive", "does not tell"),
    (
        method("directive", lambda s, p: f"{p['what']}, reading aloud.\n{closing()}"),
        "directive",
        "names the behavior",
    ),
    (
        method("directive", lambda s, p: f"{p['what']}, {p['secret']}.\n{closing()}"),
        "directive",
        "tells secret",
    ),
    (method("problems", lambda s, c: ["the label is unreadable"]), "directive", "unreadable"),
    (method("check", lambda s, t, c, p: 2.0), "rule check", "score of 2.0"),
    (method("check", lambda s, t, c, p: None), "rule check", "never scores"),
    (method("check", lambda s, t, c, p: len(t) / 100), "rule check", "said nothing"),
    (moody(), "rule check", "differently twice"),
    (type("Changed", (Reading,), {"has_check": False}), "rule check", "has_check is false"),
]


@pytest.mark.parametrize(
    ("kind", "check", "told"), FAULTS, ids=lambda x: x if isinstance(x, str) else ""
)
def test_each_fault_is_found_and_named(kind: type[Behavior], check: str, told: str) -> None:
    found = wrong(kind())
    assert told in found[check]


def test_dialogues_with_another_value_are_named() -> None:
    one = dialogues("B3")[0]
    right = Dialogue(one.id, one.case, one.params, one.generated, one.expected["score"])
    assert wrong(behaviors.get("B3"), right) == {}
    for value in (0.25, None):
        told = wrong(behaviors.get("B3"), replace(right, expected=value))
        assert told == {"dialogues": f"B3-01: 1.0 instead of {value!r}"}
