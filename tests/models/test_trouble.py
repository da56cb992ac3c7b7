"""Which failure passes, which does not, and what each is called."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mimesim.errors import ContextExceeded, EnvironmentFault, InfraError
from mimesim.models.trouble import Trouble, cleaned, from_body, retry_after


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529, None])
def test_transport_trouble_passes(status: int | None) -> None:
    assert Trouble("x", status).passing


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422])
def test_a_wrong_request_does_not_pass(status: int) -> None:
    assert not Trouble("x", status).passing


def test_a_quota_that_is_used_up_does_not_pass() -> None:
    assert not Trouble("x", 429, "insufficient_quota").passing


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (400, "context_length_exceeded", ""),
        (
            400,
            "",
            "This model's maximum context length is 4096 tokens. However, you requested 5000",
        ),
        (400, "", "'max_tokens' is too large: 9. This model's maximum context length is 8 tokens"),
        (400, "", "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "", "Input is too long for requested model."),
        (400, "", "The input token count (9000) exceeds the maximum number of tokens allowed"),
        (400, "", "Please reduce the length of the messages or completion."),
        (400, "exceed_context_size_error", "the request exceeds the available context size"),
        (500, "", "the request exceeds the available context size"),
        (422, "", "inputs tokens + max_new_tokens must be <= 2048; reduce the length of the input"),
        (400, "", "The prompt (total length 9000) is longer than the maximum model length of 2048"),
        (413, "", "Payload too large"),
    ],
)
def test_usual_wordings_of_a_full_context(status: int, code: str, message: str) -> None:
    trouble = Trouble(f"HTTP {status}", status, code, message)
    assert not trouble.passing
    error = trouble.error(url="http://h/v1", model="m", words="")
    assert isinstance(error, ContextExceeded)
    assert message not in str(error) or not message


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Unsupported parameter: seed"),
        (400, "max_tokens must be at least 16"),
        (429, "Request too large for tokens per minute"),
        (401, "context length"),
    ],
)
def test_other_refusals_are_no_full_context(status: int, message: str) -> None:
    assert not Trouble("x", status, "", message).context_full


def test_errors_by_status() -> None:
    told = {"url": "http://h/v1", "model": "m", "words": "no"}
    for status in (401, 403, 404):
        error = Trouble(f"HTTP {status}", status).error(**told)
        assert isinstance(error, EnvironmentFault)
        assert str(status) in str(error)
        assert "\n" not in str(error)
    refused = Trouble("HTTP 400", 400).error(**told)
    assert isinstance(refused, InfraError)
    assert not refused.retryable


def test_a_message_that_quotes_the_conversation_is_withheld() -> None:
    asked = "My account number is 8841-22,\nplease help."
    assert cleaned("invalid text 'account number is 8841-22'", asked) == ""
    assert cleaned("unsupported\n parameter", asked) == "unsupported parameter"
    assert cleaned("", asked) == ""
    assert len(cleaned("x" * 900, asked)) == 200


def test_codes_are_shown_only_when_they_look_like_codes() -> None:
    assert Trouble("HTTP 429", code="rate_limit").label() == "HTTP 429 (rate_limit)"
    assert Trouble("HTTP 500", code="my pin is 4711").label() == "HTTP 500"


def test_error_bodies_in_the_shapes_that_servers_use() -> None:
    openai = from_body({"error": {"message": "m", "code": "c"}}, 400, {})
    assert (openai.status, openai.code, openai.message) == (400, "c", "m")
    assert from_body({"message": "m", "type": "t"}, 400, {}).code == "t"
    assert from_body({"error": "plain"}, 500, {}).message == "plain"
    assert from_body("<html>", 502, {}).message == "<html>"
    assert from_body(None, 502, {}).passing
    wrapped = from_body({"error": {"message": "m", "code": 429}}, 200, {})
    assert wrapped.throttled
    assert from_body({"error": {"message": "m"}}, 200, {}).passing


def test_retry_after_forms() -> None:
    assert retry_after({"retry-after": "2"}) == 2
    assert retry_after({"retry-after": "0.25"}) == 0.25
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after({"retry-after-ms": "x", "retry-after": "9"}) == 9
    assert retry_after({}) is None
    for unusable in ("soon", "inf", "nan", ""):
        assert retry_after({"retry-after": unusable}) is None
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 55 < (retry_after({"retry-after": later}) or 0) <= 60
    assert retry_after({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}) == 0
