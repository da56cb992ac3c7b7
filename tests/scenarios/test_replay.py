"""The identity check that was said before: what it tells, where it is cut, how it ends."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from mimesim.dialogue.types import Role
from mimesim.errors import ConfigError
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.compose import compose
from mimesim.scenarios.fields import says
from mimesim.scenarios.replay import disclosed_fields, identity_fields, replayed
from mimesim.scenarios.rows import row_to_scenario
from mimesim.scenarios.types import Row

MANUAL = manuals.load()
ROWS = compose(MANUAL, seed=12, count=150, neutral_share=1, replay="identity").rows


def row_of(subflow: str, **changes: object) -> Row:
    return replace(next(r for r in ROWS if r.subflow == subflow), **changes)  # type: ignore[arg-type]


def test_nothing_is_replayed_where_asking_is_the_agents_work() -> None:
    assert replayed(row_of("order_cancel", replay="none"), MANUAL) == ()


def test_the_whole_check_is_said_and_confirmed() -> None:
    for row in ROWS:
        turns = replayed(row, MANUAL)
        given = disclosed_fields(row, MANUAL)
        assert given == identity_fields(row, MANUAL) != ()
        said = [t.content for t in turns if t.role is Role.USER]
        for name in given:
            assert any(says(text, str(row.record[name])) for text in said), name
        assert [t.role for t in turns[:2]] == [Role.USER, Role.AGENT]
        assert MANUAL.request(row.subflow).title.lower() in turns[0].content
        assert turns[-1].role is Role.AGENT
        assert "verified" in turns[-1].content
        assert len(turns) == 6, "issue, first field, the rest, confirmation"
        assert all(a.role is not b.role for a, b in pairwise(turns))


@pytest.mark.parametrize(
    ("withheld", "given"),
    [
        (["customer_name"], ()),
        (["email"], ("customer_name", "order_id")),
        (["refund_target"], ("customer_name", "order_id", "email")),
    ],
)
def test_a_cut_check_stops_before_the_field_that_is_kept_back(
    withheld: list[str], given: tuple[str, ...]
) -> None:
    row = row_of("order_cancel", replay="cut", behavior="B3", params={"withheld_fields": withheld})
    assert disclosed_fields(row, MANUAL) == given
    turns = replayed(row, MANUAL)
    said = " ".join(t.content for t in turns if t.role is Role.USER)
    assert not says(said, str(row.record[withheld[0]]))
    assert turns[-1].role is Role.AGENT
    assert ("verified" in turns[-1].content) is (len(given) == 3)
    if len(given) < 3:
        assert "e-mail address" in turns[-1].content


def test_the_replay_is_the_history_of_the_scenario() -> None:
    row = row_of("order_cancel")
    assert row_to_scenario(row, MANUAL).history == replayed(row, MANUAL)
    bare = row_to_scenario(replace(row, replay="none"), MANUAL)
    assert bare.history == ()


def test_a_procedure_that_starts_otherwise_replays_nothing() -> None:
    request = MANUAL.request("order_cancel")
    later = replace(request, procedure=request.procedure[2:])
    manual = replace(MANUAL, request_types=(later,))
    assert replayed(row_of("order_cancel"), manual) == ()


def test_tools_of_other_names_identify_by_their_kind(tmp_path: Path) -> None:
    text = (manuals.PACKS / "company" / "manual.toml").read_text("utf-8")
    for old, new in {
        "pull-up-account": "open-file",
        "verify-identity": "check-who",
        "validate-purchase": "look-up",
    }.items():
        text = text.replace(old, new)
    path = tmp_path / "own.toml"
    path.write_text(text, "utf-8")
    own = manuals.load(str(path))
    for row in ROWS:
        assert identity_fields(row, own) == identity_fields(row, MANUAL)


def test_a_replay_of_nothing_is_refused(tmp_path: Path) -> None:
    text = (manuals.PACKS / "company" / "manual.toml").read_text("utf-8")
    text = text.replace('kind = "identity"', 'kind = "check"').replace("identifies = true\n", "")
    path = tmp_path / "blind.toml"
    path.write_text(text, "utf-8")
    blind = manuals.load(str(path))
    assert compose(blind, seed=1, count=3).rows
    with pytest.raises(ConfigError, match="begins with an identity check"):
        compose(blind, seed=1, count=3, replay="identity")
