"""From a door name, `rule`, `rule-heldout` or `model:<model>`, to a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from mimesim.errors import ConfigError, UnknownNameError, UsageError
from mimesim.judges.base import Judge
from mimesim.judges.rubric import JudgeSettings, RubricJudge
from mimesim.judges.rule import RuleJudge
from mimesim.models.cache import CacheStore
from mimesim.models.load import make_chat_model
from mimesim.registry import Registry, closest

REGISTRY = Registry(
    "judge",
    {
        "rule": "mimesim.judges.load:make_rule",
        "rule-heldout": "mimesim.judges.load:make_held_out",
        "model": "mimesim.judges.load:make_model",
    },
)
"""Kinds of judges. A factory takes the words after the colon and the options."""


SELF = "self"
"""What a recipe calls every user's own model, where it names the judge."""
_NEEDS = ("identity", "judge", "aclose")


def make_judge(name: str, *, options: Mapping[str, Any] | None = None) -> Judge:
    """Make the judge that `name` says.

    Args:
        name: `rule`, `rule-heldout`, `model:<model>` with any model that `models.load` knows, or the name of an
            extension.
        options: for models the fields of `JudgeSettings`, `cache` (a file that keeps verdicts) and
            `model` (a table of options of the model); none for rules.

    Raises:
        UnknownNameError: no such judge or model.
        UsageError: the name is malformed.
        ConfigError: an unknown or unusable option.
    """
    kind, _, rest = name.partition(":")
    if "." in kind:  # an outside object, package.module:attribute
        return cast(Judge, REGISTRY.make(name, "", dict(options or {}), needs=_NEEDS))
    if kind not in REGISTRY.names():
        raise UnknownNameError(
            f"unknown judge {name!r}{closest(kind, REGISTRY.names())}",
            expected="rule, rule-heldout, model:<model> or package.module:attribute",
        )
    return cast(Judge, REGISTRY.make(kind, rest, dict(options or {}), needs=_NEEDS))


def with_budget(name: str, seconds: float) -> dict[str, Any]:
    """Return the options that bound one call of judge `name`; none where no endpoint is called.

    Args:
        name: door name.
        seconds: wall clock of one call, all attempts and pauses together.
    """
    return {"model": {"budget_s": seconds}} if name.startswith("model:openai:") else {}


def make_rule(rest: str, options: Mapping[str, Any]) -> Judge:
    """Make the rule judge; it takes neither a name nor options."""
    _alone("rule", rest, options)
    return RuleJudge()


def make_held_out(rest: str, options: Mapping[str, Any]) -> Judge:
    """Make the second rule judge, whose cues the first does not know; see `make_rule`."""
    _alone("rule-heldout", rest, options)
    return RuleJudge(held_out=True)


def _alone(name: str, rest: str, options: Mapping[str, Any]) -> None:
    if rest or options:
        raise UsageError(
            f"judge {name!r} takes neither {rest!r} nor options", expected=f"{name} alone"
        )


def make_model(rest: str, options: Mapping[str, Any]) -> Judge:
    """Make the judge on model `rest`."""
    where = f"model:{rest}"
    if not rest:
        raise UsageError(
            "judge 'model:' is incomplete", expected="model:<model>, e.g. model:embedded"
        )
    given = dict(options)
    known = [one.name for one in fields(JudgeSettings)]
    model_options, file = given.pop("model", {}), given.pop("cache", None)
    for key in given:
        if key not in known:
            allowed = [*known, "cache", "model"]
            raise ConfigError(
                f"unknown option {key!r}{closest(key, allowed)}",
                where=where,
                expected="one of " + ", ".join(allowed),
            )
    try:
        settings = TypeAdapter(JudgeSettings).validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(
            f"option {str(first['loc'][0])!r} has an unusable value: {first['msg']}", where=where
        ) from error
    model = make_chat_model(rest, options=model_options)
    store = None if file is None else CacheStore(file)
    return RubricJudge(model, name=where, settings=settings, store=store)
