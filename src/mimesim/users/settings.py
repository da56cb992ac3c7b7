"""What can be set on a model-backed user, and how options become settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mimesim import jsonio
from mimesim.config import from_options
from mimesim.config.ranges import COUNT, NATURAL, SHARE, check_ranges
from mimesim.dialogue.stop import END_MARKER, LEAST_MARKER, MARKERS, usable_marker
from mimesim.errors import ConfigError, DataError
from mimesim.users.guards import Mode

TRAINED = "user/trained"
"""Prompt template of trained users that do not name another."""
INTENT = "user/intent"
"""Prompt template of foreign user models that were told an intent and nothing else."""
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
_TEMPLATE_FILES = ("chat_template.jinja", "tokenizer_config.json")
_OPENED = re.compile(r"\b(user|assistant)\b", re.IGNORECASE)


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
        trim: leave out the oldest messages of a conversation that no longer fits the model, instead
            of failing; the prompt stays, and the record says so (`trimmed`).
        end_marker: what it writes to end a conversation; a scenario may name others.
        speaks_as: the role of its own messages on the wire. Chat models write the assistant's;
            some user models were trained to write the user's.
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
    trim: bool = False
    end_marker: str = END_MARKER
    speaks_as: Literal["assistant", "user"] = "assistant"
    model: str = "user"
    model_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that no model takes, and a marker that could be plain text.

        Raises:
            ConfigError: naming the option.
        """
        check_ranges(self, NATURAL, "max_regen", "temperature")
        check_ranges(self, COUNT, "max_tokens", "max_chars")
        check_ranges(self, SHARE, "top_p")
        if not usable_marker(self.end_marker):
            raise ConfigError(
                f"'end_marker' is {self.end_marker!r}, which could occur in ordinary text",
                expected=LEAST_MARKER,
            )


@dataclass(frozen=True, slots=True)
class TrainedAs:
    """How a checkpoint was trained, for serving text and training text must be the same.

    Attributes:
        template: prompt template of its system text.
        thinking: whether it learnt to think before a message.
        max_tokens: how long its messages get; None = it does not say.
        end_marker: what it learnt to end a conversation with.
        speaks_as: the role whose messages it learnt to write.
    """

    template: str = TRAINED
    thinking: bool = True
    max_tokens: int | None = None
    end_marker: str = END_MARKER
    speaks_as: str = "assistant"


def trained_as(path: str) -> TrainedAs:
    """Return what the `mimesim.json` of a checkpoint says; without one, what its tokenizer tells.

    Raises:
        DataError: the file is damaged.
    """
    card = Path(path) / "mimesim.json"
    if not card.is_file():
        return _foreign(Path(path))
    said = jsonio.read_object(card)
    marker = str(said.get("end_marker", END_MARKER))
    if not usable_marker(marker):
        raise DataError(
            f"end_marker is {marker!r}, which could occur in ordinary text",
            where=str(card),
            expected=LEAST_MARKER,
        )
    return TrainedAs(
        template=str(said.get("system_template", TRAINED)),
        thinking=bool(said.get("thinking", True)),
        max_tokens=said.get("max_tokens"),
        end_marker=marker,
        speaks_as=str(said.get("speaks_as", "assistant")),
    )


def _foreign(folder: Path) -> TrainedAs:
    """Return how a checkpoint that is not ours wants to be served.

    A user model of others is known by an end marker among its special tokens, or by a chat template
    that lets it write the user's messages: it was told an intent and learnt no private block. Any
    other folder is an ordinary chat model.
    """
    added = "\n".join(_read(folder / name) for name in _TOKENIZER_FILES)
    named = "".join(_read(folder / "added_tokens.json").split())
    markers = [m for m in MARKERS if _added(m).search(added) or f"{jsonio.dumps(m)}:" in named]
    as_user = _writes_as_user("\n".join(_read(folder / name) for name in _TEMPLATE_FILES))
    if not markers and not as_user:
        return TrainedAs()
    return TrainedAs(
        template=INTENT,
        thinking=False,
        end_marker=markers[0] if markers else END_MARKER,
        speaks_as="user" if as_user else "assistant",
    )


def _added(marker: str) -> re.Pattern[str]:
    """Return what finds `marker` among the tokens that were added to a vocabulary."""
    return re.compile(rf'"content"\s*:\s*{re.escape(jsonio.dumps(marker))}')


def _writes_as_user(template: str) -> bool:
    """Tell whether a chat template opens a message of the user for the model to write."""
    _, _, rest = template.rpartition("add_generation_prompt")
    opened = _OPENED.search(rest.partition("endif")[0])
    return opened is not None and opened.group(1).lower() == "user"


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def read_settings(
    options: Mapping[str, Any] | None, *, where: str, thinking: bool | None = None
) -> Settings:
    """Return settings from options; `thinking` is the family's own default.

    Raises:
        ConfigError: an unknown key or an unusable value.
    """
    return from_options(Settings, {"thinking": thinking, **(options or {})}, where=where)
