"""Mixtures of frozen users: who is drawn, and which tables are refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from mimesim.errors import ConfigError, EnvironmentFault, UnknownNameError
from mimesim.users.mixture import Mixture, UserShare, make_mixture
from tests.support.stub_server import StubServer

NEUTRAL, B3, LATE = "scripted:neutral", "scripted:B3", "scripted:B7"


def mixture(seed: int = 3) -> Mixture:
    return make_mixture([UserShare(NEUTRAL, 3.0), UserShare(B3), UserShare(LATE, 4.0, 5)], seed)


def drawn(made: Mixture, batch: int, tasks: int = 400) -> list[str]:
    return [made.draw(f"task-{n}", batch).identity.name for n in range(tasks)]


def test_a_draw_depends_on_seed_batch_and_task_only() -> None:
    first = drawn(mixture(), 7)
    again = mixture()
    drawn(again, 2)
    assert drawn(again, 7) == first
    assert drawn(again, 8) != first
    assert drawn(mixture(4), 7) != first


def test_shares_are_relative_to_those_who_are_there() -> None:
    early, late = Counter(drawn(mixture(), 4)), Counter(drawn(mixture(), 5))
    assert set(early) == {NEUTRAL, B3}
    assert 0.68 < early[NEUTRAL] / 400 < 0.82
    assert 0.42 < late[LATE] / 400 < 0.58


def test_a_user_is_made_once() -> None:
    made = mixture()
    assert {id(made.draw(f"t{n}", 9)) for n in range(50)} == {id(s) for s in made.sources}


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ([{"name": NEUTRAL, "from_batch": 1}], "first batch"),
        ([{"name": NEUTRAL}, {"name": NEUTRAL}], "twice"),
        ([{"name": NEUTRAL, "weight": 0.0}], "'weight' cannot be 0"),
        ([{"name": NEUTRAL, "from_batch": -1}], "'from_batch' cannot be -1"),
        ([{"name": NEUTRAL, "options": {"x": 1}}], "no option 'x'"),
    ],
)
def test_a_table_that_makes_no_mixture(shares: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make_mixture([UserShare(**share) for share in shares], 0)


def test_an_unknown_user_is_named() -> None:
    with pytest.raises(UnknownNameError, match="neutrl"):
        make_mixture([UserShare("scripted:neutrl")], 0)


def test_the_check_before_a_run_reaches_every_user() -> None:
    with StubServer() as server:
        gone = server.url
    share = UserShare(
        f"roleplay:openai:stub@{gone}",
        options={"model_options": {"preflight_s": 0.2, "backoff_s": 0.01}},
    )
    made = make_mixture([UserShare(NEUTRAL), share], 0)

    async def check() -> None:
        try:
            await made.preflight()
        finally:
            await made.aclose()

    with pytest.raises(EnvironmentFault, match="user roleplay"):
        asyncio.run(check())
