"""Users by a short name, `preset:<name>`: which model, where it is served, how it becomes a user.

The presets stand in `presets.toml`, the nine evaluation users of the MIMESIS paper first. A preset
is resolved to an ordinary door name and its options, so everything that takes a user takes one.
Paper: MIMESIS, agent evaluation.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from mimesim.config import from_options
from mimesim.errors import ConfigError
from mimesim.registry import unknown_name
from mimesim.users.base import UserSource
from mimesim.users.roleplay import make as make_roleplay
from mimesim.users.sources import SimulatorSource, make_trained

PREFIX = "preset:"
_OWN = ("url", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One named user.

    Attributes:
        title: the name as tables print it.
        plays: whether the model is told to play the person or was trained to be one.
        model: name at the endpoint; without `url` a model name of `models.load`.
        key: environment variable with the API key; "" = none is needed.
        weights: where the weights of a model to be served come from.
        tags: part -> published, derived, not published or ours.
    """

    name: str
    title: str
    plays: Literal["roleplay", "trained"]
    model: str
    url: str = ""
    key: str = ""
    weights: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    note: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def variable(self) -> str:
        """The environment variable that overrides the address."""
        name = "".join(c if c.isalnum() else "_" for c in self.name.upper())
        return f"MIMESIM_{name}_URL"


@cache
def presets() -> Mapping[str, Preset]:
    """Return all presets by name, in the order of the file."""
    text = files("mimesim.users").joinpath("presets.toml").read_text("utf-8")
    rows = [from_options(Preset, row, where="presets.toml") for row in _rows(text)]
    return {row.name: row for row in rows}


def find(name: str) -> Preset:
    """Return the preset `name`, with or without the word `preset:` before it.

    Raises:
        UnknownNameError: there is none.
    """
    short = name.removeprefix(PREFIX)
    if short not in presets():
        raise unknown_name("user preset", short, list(presets()))
    return presets()[short]


def resolve(name: str, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    """Return the door name and the options that `preset:<name>` stands for.

    Args:
        name: of the preset.
        options: `url` and `model` replace the preset's, everything else is a setting of the user
            laid over the preset's; `model_options` is merged.

    Raises:
        UnknownNameError: no such preset.
        ConfigError: an address or a model that is no text.
    """
    preset, given = find(name), dict(options or {})
    for key in _OWN:
        if not isinstance(given.get(key, ""), str):
            raise ConfigError(f"option {key!r} is no text", where=f"{PREFIX}{preset.name}")
    url = given.pop("url", "") or os.environ.get(preset.variable, "").strip() or preset.url
    model = given.pop("model", "") or preset.model
    behind = dict(preset.model_options)
    if url:
        model = f"openai:{model}@{url}"
        behind = {"api_key_env": preset.key, **behind}
    own = {**behind, **given.pop("model_options", {})}
    return f"{preset.plays}:{model}", {**preset.settings, **given, "model_options": own}


def make(rest: str, *, options: Mapping[str, Any] | None = None) -> UserSource:
    """Make `preset:<name>`; records name the preset, the model and its host.

    Raises:
        UnknownNameError: no such preset.
        ConfigError: an unknown or unusable option.
    """
    door, settings = resolve(rest, options)
    family, _, model = door.partition(":")
    source = (make_roleplay if family == "roleplay" else make_trained)(model, options=settings)
    assert isinstance(source, SimulatorSource)
    return replace(source, identity=replace(source.identity, name=f"{PREFIX}{find(rest).name}"))


def _rows(text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(text)["preset"]
    return rows
