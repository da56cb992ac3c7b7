"""The list of users: complete, and nothing behind it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim import jsonio
from mimesim.errors import UnknownNameError
from mimesim.users.catalog import catalog, describe


def test_every_kind_of_the_design_is_listed() -> None:
    names = {entry.name for entry in catalog()}
    scripted = ["cooperative", "easy", "neutral", "realistic", "hostile"]
    scripted += [f"heldout-{n}" for n in range(1, 8)] + [f"B{n}" for n in range(1, 14)]
    assert {f"scripted:{kind}" for kind in scripted} <= names
    assert {"roleplay:<model>", "trained:<path>", "http:<url>"} <= names


def test_scripted_kinds_are_those_that_exist() -> None:
    from mimesim.users.scripted import KINDS

    listed = {e.name.partition(":")[2] for e in catalog() if e.name.startswith("scripted:")}
    assert listed == set(KINDS)


def test_model_backed_users_show_their_prompt(tmp_path: Path) -> None:
    shown = describe("trained:anything")
    assert "<think>" in shown["example_prompt"]
    assert shown["template"] == "user/trained"
    chat = {"thinking": False, "system_template": "user/midtrain"}
    jsonio.write_json(tmp_path / "mimesim.json", chat)
    shown = describe(f"trained:{tmp_path}")
    assert shown["template"] == "user/midtrain"
    assert "<think>" not in shown["example_prompt"]
    assert describe("scripted:B3")["summary"] == "clarification non-cooperation"


def test_unknown_kind() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'scripted:neutral'"):
        describe("scripted:neutrl")
