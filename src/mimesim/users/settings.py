"""What can be set on a model-backed user, and how options become settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from mimesim.errors import ConfigError
from mimesim.registry import closest
from mimesim.users.guards import Mode


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one kind of user.

    Attributes:
        thinking: whether it writes a private block before each message and keeps it in its own
            history; None = nothing is said about it, and blocks that come anyway are taken off.
        prefilled: the model's chat template writes the opener of the block.
        guards: enforce (run, serve), flag (the user itself is being trained) or off.
        max_regen: redraws of one message before the user counts as failed.
        max_tokens: cap of one message, thought included; twice that after an incomplete draw.
        max_chars: length from which a message is recorded as too long.
        show_agent_tools: tell the user neutrally that the agent used a tool.
        model: name of the model behind an `http:` endpoint.
        model_options: what `models.load.make_chat_model` takes, e.g. `cache`.
    """

    thinking: bool | None = None
    prefilled: bool = False
    guards: Mode = Mode.ENFORCE
    max_regen: int = 3
    max_tokens: int = 2048
    max_chars: int = 2000
    temperature: float | None = None
    top_p: float | None = None
    show_agent_tools: bool = False
    model: str = "user"
    model_options: Mapping[str, Any] = field(default_factory=dict)


def read_settings(
    options: Mapping[str, Any] | None, *, where: str, thinking: bool | None = None
) -> Settings:
    """Return settings from options; `thinking` is the family's own default.

    Raises:
        ConfigError: an unknown key or an unusable value.
    """
    given = {"thinking": thinking, **(options or {})}
    names = [entry.name for entry in fields(Settings)]
    for key in given:
        if key not in names:
            raise ConfigError(
                f"unknown option {key!r}{closest(key, names)}",
                where=where,
                expected="options among " + ", ".join(names),
            )
    from pydantic import TypeAdapter, ValidationError  # a border: values come from the outside

    try:
        settings = TypeAdapter(Settings).validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(
            f"option {first['loc'][0]} is {first['input']!r}", where=where, expected=first["msg"]
        ) from error
    _check_ranges(settings, where)
    return settings


def _check_ranges(settings: Settings, where: str) -> None:
    low = {"max_regen": 0, "max_tokens": 1, "max_chars": 1}
    values = asdict(settings)
    for key, least in low.items():
        if values[key] < least:
            raise ConfigError(
                f"option {key} is {values[key]}", where=where, expected=f"at least {least}"
            )
