"""Door names of judges."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mimesim.errors import ConfigError, EnvironmentFault, UnknownNameError, UsageError
from mimesim.judges.load import make_judge
from mimesim.judges.rubric import RubricJudge
from mimesim.judges.rule import RuleJudge
from mimesim.models.load import preflight
from tests.support.stub_server import StubServer


def test_names() -> None:
    assert isinstance(make_judge("rule"), RuleJudge)
    assert make_judge("rule-heldout").identity.name == "rule-heldout"
    judge = make_judge("model:scripted:echo", options={"temperature": 0.5, "model": {}})
    assert isinstance(judge, RubricJudge)
    assert judge.identity.name == "model:scripted:echo"
    assert judge.identity.sampling["temperature"] == 0.5


@pytest.mark.parametrize(
    ("name", "options", "kind", "told"),
    [
        ("rul", {}, UnknownNameError, "did you mean 'rule'"),
        ("rule:x", {}, UsageError, "rule alone"),
        ("rule", {"a": 1}, UsageError, "rule alone"),
        ("rule-heldout", {"a": 1}, UsageError, "rule-heldout alone"),
        ("model:", {}, UsageError, "model:<model>"),
        ("model:gpt", {}, UnknownNameError, "unknown model 'gpt'"),
        ("model:scripted:echo", {"temprature": 1}, ConfigError, "did you mean 'temperature'"),
        ("model:scripted:echo", {"reasks": "often"}, ConfigError, "'reasks'"),
        ("model:openai:m@http://h/v1", {"model": {"timeout": 1}}, ConfigError, "timeout_s"),
    ],
)
def test_wrong_names_are_one_clear_line(
    name: str, options: dict[str, Any], kind: type[UsageError], told: str
) -> None:
    with pytest.raises(kind) as caught:
        make_judge(name, options=options)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_preflight_of_a_judge_reaches_its_endpoint() -> None:
    with StubServer(api_key="right") as server:

        async def run() -> None:
            judge = make_judge(f"model:openai:stub@{server.url}")
            try:
                await preflight(judge)
            finally:
                await judge.aclose()

        with pytest.raises(EnvironmentFault, match="refused the key"):
            asyncio.run(run())
    asyncio.run(preflight(make_judge("rule")))
