"""Scripted customers at the door: kinds, characters, which script plays."""

from __future__ import annotations

import pytest

from mimesim.errors import ConfigError, DataError, UnknownNameError
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.compact import compose_scenario
from mimesim.scenarios.compose import compose
from mimesim.scenarios.rows import row_to_scenario
from mimesim.seeds import generator
from mimesim.users.scripted import KINDS, make
from mimesim.users.scripted.compact import CompactUser
from mimesim.users.scripted.full import FullUser
from mimesim.users.scripted.kinds import BEHAVIORS, CHARACTERS, Authored, character, plays
from mimesim.users.scripted.moods import MOODS
from mimesim.users.scripted.talk import phrase_bank

MANUAL = manuals.load()
SCENARIO = row_to_scenario(compose(MANUAL, seed=1, count=1).rows[0], MANUAL).to_json()


def test_every_kind_can_be_made_and_names_itself() -> None:
    expected = {"cooperative", "easy", "neutral", "realistic", "hostile"}
    expected |= {f"heldout-{n}" for n in range(1, 8)} | set(BEHAVIORS)
    assert set(KINDS) == expected
    for kind in KINDS:
        source = make(kind)
        assert source.identity.name == f"scripted:{kind}"
        assert source.identity.kind == "scripted"
        assert isinstance(source.start(SCENARIO, seed=1), FullUser)


def test_an_unknown_kind_and_options_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'neutral'"):
        make("neutrl")
    with pytest.raises(ConfigError, match="temperature"):
        make("neutral", options={"temperature": 1})


def test_the_compact_profile_has_its_own_script() -> None:
    user = make("neutral").start(compose_scenario(1, "train", 0), seed=1)
    assert isinstance(user, CompactUser)


def test_volunteering_follows_the_ruling() -> None:
    shares = {kind: CHARACTERS[kind].volunteers for kind in ("cooperative", "easy", "neutral")}
    assert shares == {"cooperative": 1.0, "easy": 0.8, "neutral": 0.35}


def test_realistic_plays_what_the_scenario_says() -> None:
    rng = generator(1)
    assert character("realistic", Authored(True, ()), rng) == CHARACTERS["neutral"]
    assert character("realistic", Authored(True, ("B7",)), rng).behaviors == ("B7",)
    assert character("B2", Authored(True, ("B7",)), rng).behaviors == ("B2",)


def test_realistic_draws_where_the_scenario_leaves_it_open() -> None:
    drawn = [character("realistic", Authored(False, ()), generator(n)) for n in range(900)]
    neutral = sum(d == CHARACTERS["neutral"] for d in drawn)
    assert 250 < neutral < 350
    assert {d.behaviors for d in drawn} == {(), *((b,) for b in BEHAVIORS)}


def test_held_out_customers_speak_in_words_of_their_own() -> None:
    main, held_out = phrase_bank("main"), phrase_bank("heldout")
    assert {s: set(main[s]) for s in main} == {s: set(held_out[s]) for s in held_out}
    ours = {line for section in main.values() for lines in section.values() for line in lines}
    theirs = {line for section in held_out.values() for lines in section.values() for line in lines}
    assert not ours & theirs
    assert all(CHARACTERS[f"heldout-{n}"].bank == "heldout" for n in range(1, 8))


def test_every_behavior_has_a_mood() -> None:
    assert set(MOODS) == set(BEHAVIORS)


def test_the_bank_has_an_issue_for_every_request_type() -> None:
    for bank in (phrase_bank("main"), phrase_bank("heldout")):
        assert {r.name for r in MANUAL.request_types} <= set(bank["issue"])
        assert {f.name for f in MANUAL.flows} <= set(bank["vague"])
        for request in MANUAL.request_types:
            for name in request.required:
                assert name in bank["give"] or f"{name}_yes" in bank["give"]


def test_a_script_plays_no_behavior_of_somebody_else() -> None:
    authored = Authored(decides=True, behaviors=("B91",))
    with pytest.raises(DataError, match=r"'B91'.*roleplay"):
        character("realistic", authored, generator(0, "x"))
    assert character("B9", authored, generator(0, "x")).behaviors == ("B9",)
    assert not plays("realistic", ["B91"])
