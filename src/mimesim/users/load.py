"""From a door name such as `roleplay:openai:qwen3@http://host/v1` to a `UserSource`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mimesim.errors import UsageError
from mimesim.registry import Registry
from mimesim.users.base import UserSource

REGISTRY = Registry(
    "user",
    {
        "scripted": "mimesim.users.scripted:make",
        "roleplay": "mimesim.users.roleplay:make",
        "trained": "mimesim.users.sources:make_trained",
        "http": "mimesim.users.sources:make_served",
        "preset": "mimesim.users.presets:make",
    },
)
"""Families of users. A factory takes the words after the colon and the options."""

_NEEDS = ("identity", "start", "aclose")
_SHAPES = {
    "roleplay": "roleplay:<model>, e.g. roleplay:embedded",
    "trained": "trained:<path>, e.g. trained:out/user",
    "http": "http:<url>, e.g. http://127.0.0.1:8000/v1",
    "preset": "preset:<name>, e.g. preset:gpt-5.6",
}

_USUAL = {"scripted": "neutral"}
"""What a family means that is named without more."""


def is_scripted(name: str) -> bool:
    """Tell whether a door name means a scripted user."""
    return name.partition(":")[0] == "scripted"


def make_user(name: str, *, options: Mapping[str, Any] | None = None) -> UserSource:
    """Make the kind of user that `name` says.

    Args:
        name: `scripted:<kind>` (`scripted` alone is the neutral one), `roleplay:<model>`,
            `trained:<path>`, `http:<url>`, `preset:<name>` or the name of an extension.
        options: settings of that family (`users.settings.Settings` for model-backed ones).

    Raises:
        UnknownNameError: no such family, kind or model.
        ConfigError: an unknown or unusable option.
    """
    if name.startswith(("http://", "https://")):
        family, rest = "http", name
    else:
        family, _, rest = name.partition(":")
    if "." in family:  # an outside object, package.module:attribute
        return cast(UserSource, REGISTRY.make(name, "", options=options, needs=_NEEDS))
    rest = rest or _USUAL.get(family, "")
    if not rest and family in _SHAPES:
        raise UsageError(f"user {name!r} is incomplete", expected=_SHAPES[family])
    return cast(UserSource, REGISTRY.make(family, rest, options=options, needs=_NEEDS))
