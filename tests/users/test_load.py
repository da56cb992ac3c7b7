"""Door names of users: which family, which model, and clear lines for wrong ones."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mimesim import jsonio
from mimesim.errors import ConfigError, EnvironmentFault, UnknownNameError, UsageError
from mimesim.models.load import preflight
from mimesim.users.base import UserRequest, UserSource
from mimesim.users.guards import Mode
from mimesim.users.load import make_user
from mimesim.users.settings import read_settings
from tests import tiny
from tests.support.stub_server import StubServer


async def _first_words(source: UserSource) -> str:
    user = source.start({"id": "s", "goal": "send a teapot back"}, seed=1)
    try:
        return (await user.respond(UserRequest("chat", (), "", 1))).utterance
    finally:
        await source.aclose()


def test_unknown_family_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'roleplay'"):
        make_user("roleply:embedded")


def test_scripted_alone_is_the_neutral_one() -> None:
    assert make_user("scripted").identity == make_user("scripted:neutral").identity


@pytest.mark.parametrize("name", ["roleplay:", "trained", "http:"])
def test_incomplete_names_show_an_example(name: str) -> None:
    with pytest.raises(UsageError, match=r"incomplete; expected .*e\.g\."):
        make_user(name)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"thinkin": True}, "did you mean 'thinking'"),
        ({"guards": "enforced"}, "guards"),
        ({"max_regen": -1}, "0 or more"),
        ({"max_tokens": "many"}, "max_tokens"),
    ],
)
def test_unusable_options_are_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_user("roleplay:scripted:echo", options=options)


def test_settings_have_the_defaults_of_their_family() -> None:
    assert read_settings(None, where="x").guards is Mode.ENFORCE
    assert read_settings(None, where="x", thinking=True).thinking is True
    assert read_settings({"thinking": False}, where="x", thinking=True).thinking is False


def test_served_user_is_an_endpoint_with_a_model_name() -> None:
    for name in ("http:{}", "{}"):
        with StubServer(["hello"], models=("mira",)) as server:
            source = make_user(name.format(server.url), options={"model": "mira"})
            assert asyncio.run(_first_words(source)) == "hello"
            assert server.generations[0].body["model"] == "mira"


def test_a_dead_endpoint_is_found_before_the_run() -> None:
    with StubServer() as server:
        url = server.url
    source = make_user(f"roleplay:openai:stub@{url}")

    async def check() -> None:
        try:
            await preflight(source)
        finally:
            await source.aclose()

    with pytest.raises(EnvironmentFault):
        asyncio.run(check())


def test_logins_in_addresses_are_not_recorded() -> None:
    source = make_user("roleplay:openai:stub@http://me:hunter22@127.0.0.1:9/v1")
    assert "hunter22" not in repr(source.identity)
    asyncio.run(source.aclose())


def test_a_trained_user_keeps_to_the_length_it_learnt(tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / "user")
    card = {"thinking": False, "system_template": "user/midtrain", "max_tokens": 48}
    jsonio.write_json(folder / "mimesim.json", card)
    plain = make_user(f"trained:{folder}")
    longer = make_user(f"trained:{folder}", options={"max_tokens": 90})
    assert plain.identity.sampling["max_tokens"] == 48
    assert plain.identity.sampling["thinking"] is False
    assert longer.identity.sampling["max_tokens"] == 90
