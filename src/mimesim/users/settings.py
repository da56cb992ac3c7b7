"""What can be set on a model-backed user, and how options become settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.config import from_options
from mimesim.config.ranges import COUNT, NATURAL, SHARE, check_ranges
from mimesim.users.guards import Mode

TRAINED = "user/trained"
"""Prompt template of trained users that do not name another."""


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

    def __post_init__(self) -> None:
        """Refuse numbers that no model takes.

        Raises:
            ConfigError: naming the option.
        """
        check_ranges(self, NATURAL, "max_regen", "temperature")
        check_ranges(self, COUNT, "max_tokens", "max_chars")
        check_ranges(self, SHARE, "top_p")


@dataclass(frozen=True, slots=True)
class TrainedAs:
    """How a checkpoint was trained, for serving text and training text must be the same.

    Attributes:
        template: prompt template of its system text.
        thinking: whether it learnt to think before a message.
        max_tokens: how long its messages get; None = it does not say.
    """

    template: str = TRAINED
    thinking: bool = True
    max_tokens: int | None = None


def trained_as(path: str) -> TrainedAs:
    """Return what the `mimesim.json` of a checkpoint says; without one, the defaults.

    Raises:
        DataError: the file is damaged.
    """
    card = Path(path) / "mimesim.json"
    if not card.is_file():
        return TrainedAs()
    said = jsonio.read_object(card)
    return TrainedAs(
        template=str(said.get("system_template", TRAINED)),
        thinking=bool(said.get("thinking", True)),
        max_tokens=said.get("max_tokens"),
    )


def read_settings(
    options: Mapping[str, Any] | None, *, where: str, thinking: bool | None = None
) -> Settings:
    """Return settings from options; `thinking` is the family's own default.

    Raises:
        ConfigError: an unknown key or an unusable value.
    """
    return from_options(Settings, {"thinking": thinking, **(options or {})}, where=where)
