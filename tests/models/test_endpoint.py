"""Options, addresses and secrets of endpoints."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.errors import ConfigError, EnvironmentFault, UsageError
from mimesim.models.endpoint import Address, EndpointOptions, Price, redact

SECRET = "sk-test-SECRET123"


def test_defaults_and_known_options() -> None:
    assert EndpointOptions.read(None, "x") == EndpointOptions()
    prices = {"m": {"prompt": 1, "completion": 2.5}}
    options = EndpointOptions.read({"timeout_s": 3, "prices": prices}, "x")
    assert options.timeout_s == 3
    assert options.price("m") == Price(1, 2.5, 1)
    assert options.price("other") is None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeout": 3}, "did you mean 'timeout_s'"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"budget_s": "long"}, "budget_s"),
        ({"backoff_s": True}, "backoff_s"),
        ({"concurrency": 1.5}, "concurrency"),
        ({"send_seed": 1}, "send_seed"),
        ({"response_format": "xml"}, "json_schema or json_object or none"),
        ({"max_tokens_field": "tokens"}, "max_completion_tokens"),
        ({"prices": {"m": {"prompt": 1}}}, "dollars per million"),
        ({"prices": {"m": {"prompt": 1, "completion": -1}}}, "dollars per million"),
        ({"extra_body": []}, "extra_body"),
        ({"api_key_env": None}, "api_key_env"),
        ({"seed": "a"}, "seed"),
    ],
)
def test_unusable_options_are_named(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        EndpointOptions.read(options, "openai:m")
    assert str(caught.value).startswith("openai:m: ")


def test_a_key_among_the_options_is_refused_and_not_quoted() -> None:
    with pytest.raises(ConfigError, match="api_key_env") as caught:
        EndpointOptions.read({"api_key": SECRET}, "openai:m")
    assert "SECRET123" not in str(caught.value)


def test_user_information_stays_out_of_everything_shown() -> None:
    address = Address.read("https://user:pw@host.example:8443/v1/", "x")
    assert (address.url, address.host) == ("https://host.example:8443/v1", "host.example:8443")
    assert "pw" not in repr(address)
    assert address.headers() == {"Authorization": "Basic dXNlcjpwdw=="}
    assert address.key(EndpointOptions()) == ""  # the user information is the key
    told = redact("user:pw failed, pw, dXNlcjpwdw==, https://user:pw@host/v1", address.secrets())
    assert "pw" not in told
    assert "dXNlcjpwdw" not in told


@pytest.mark.parametrize(
    "url",
    [
        "host/v1",
        "ftp://host/v1",
        "http://",
        "http://h:port/v1",
        "http://h/v1?key=pw",
        "http://h/v1#x",
    ],
)
def test_malformed_addresses_are_refused_without_secrets(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Address.read(url, "openai:m")
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://127.8.8.8/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://localhost/v1", True),
        ("http://127.0.0.1.example.com/v1", False),
        ("http://192.168.0.7/v1", False),
    ],
)
def test_only_this_machine_needs_no_key(
    url: str, loopback: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Address.read(url, "x")
    assert address.loopback is loopback
    if loopback:
        assert address.key(EndpointOptions()) == ""
    else:
        with pytest.raises(EnvironmentFault, match="OPENAI_API_KEY"):
            address.key(EndpointOptions())
    assert address.key(EndpointOptions(api_key_env="")) == ""
    monkeypatch.setenv("MY_KEY", SECRET)
    assert address.key(EndpointOptions(api_key_env="MY_KEY")) == SECRET


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {SECRET}",
        f"Authorization: Bearer {SECRET}",
        f'{{"api_key": "{SECRET}"}}',
        f"https://h/v1?api-key={SECRET}&x=1",
        f"https://u:{SECRET}@h/v1",
        "sk-test-*********T123 SECRET123".replace(" SECRET123", ""),
    ],
)
def test_redaction_by_shape(text: str) -> None:
    told = redact(text)
    assert "SECRET123" not in told
    assert "T123" not in told


def test_redaction_by_value_and_harmless_text() -> None:
    assert redact("the plainword is out", ("plainword",)) == "the *** is out"
    assert redact("a%2Bb%3D", ("a+b=",)) == "***"
    assert redact("upward", ("pw",)) == "upward"
    text = "model qwen3-8b at http://127.0.0.1:8000/v1 answered 503"
    assert redact(text, ("",)) == text
