"""Named users: the paper's nine, how each becomes a user, and what is missing, in one line."""

from __future__ import annotations

import asyncio

import pytest

from mimesim.errors import ConfigError, EnvironmentFault, UnknownNameError
from mimesim.models.load import preflight
from mimesim.users.base import UserRequest
from mimesim.users.catalog import catalog, describe
from mimesim.users.load import make_user
from mimesim.users.presets import presets, resolve
from tests.support.stub_server import StubServer

NINE = [
    "gpt-5.6",
    "claude-opus-5",
    "claude-sonnet-5",
    "gemini-3.8-flash",
    "kimi-k3",
    "ditto-8b",
    "osim-8b",
    "humanlm-8b",
    "sotopia-7b",
]


def test_the_nine_of_the_paper_come_first() -> None:
    assert list(presets())[:9] == NINE
    assert all(one.source and one.tags for one in presets().values())


@pytest.mark.parametrize("name", [n for n in presets() if presets()[n].url])
def test_every_preset_becomes_a_user_without_a_call(name: str) -> None:
    user = make_user(f"preset:{name}")
    assert user.identity.name == f"preset:{name}"
    assert user.identity.model == presets()[name].model
    assert user.identity.endpoint_host


def test_a_missing_key_names_the_preset_and_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(EnvironmentFault) as caught:
        asyncio.run(preflight(make_user("preset:claude-opus-5")))
    said = str(caught.value)
    assert "preset:claude-opus-5" in said
    assert "ANTHROPIC_API_KEY" in said
    assert "\n" not in said


def test_an_unknown_preset_and_wrong_options() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'gpt-5\.6'"):
        make_user("preset:gpt-5.5")
    with pytest.raises(ConfigError, match="'url' is no text"):
        resolve("gpt-5.6", {"url": 3})
    with pytest.raises(ConfigError, match="did you mean 'thinking'"):
        make_user("preset:gpt-5.6", options={"thinkin": True})


def test_options_and_the_environment_move_a_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve("osim-8b")[0] == "trained:openai:osim-8b@http://127.0.0.1:8102/v1"
    monkeypatch.setenv("MIMESIM_OSIM_8B_URL", "http://far:1/v1")
    assert resolve("osim-8b")[0] == "trained:openai:osim-8b@http://far:1/v1"
    door, options = resolve(
        "osim-8b", {"url": "http://near:2/v1", "model": "o", "model_options": {"budget_s": 1.0}}
    )
    assert door == "trained:openai:o@http://near:2/v1"
    assert options["model_options"] == {"api_key_env": "", "budget_s": 1.0}
    assert options["thinking"] is False


def test_a_preset_speaks_through_its_endpoint() -> None:
    async def first_words(url: str) -> str:
        source = make_user("preset:ditto-8b", options={"url": url})
        try:
            user = source.start({"id": "s", "goal": "send a teapot back"}, seed=1)
            return (await user.respond(UserRequest("chat", (), "", 1))).utterance
        finally:
            await source.aclose()

    with StubServer(["It arrived cracked."]) as server:
        assert asyncio.run(first_words(server.url)) == "It arrived cracked."
        assert server.requests[0].body["model"] == "ditto-8b"


def test_presets_are_listed_and_shown() -> None:
    assert "preset:kimi-k3" in {entry.name for entry in catalog()}
    shown = describe("preset:kimi-k3")
    assert shown["key_from"] == "MOONSHOT_API_KEY"
    assert shown["address_from"] == "MIMESIM_KIMI_K3_URL"
