"""The prompted role-play user: any chat model told to play the person, the usual control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.models.load import make_chat_model
from mimesim.users.base import UserSource
from mimesim.users.settings import read_settings
from mimesim.users.sources import make_source

TEMPLATE = "user/roleplay"


def make(model: str, *, options: Mapping[str, Any] | None = None) -> UserSource:
    """Make `roleplay:<model>`.

    Raises:
        ConfigError: an unknown or unusable option.
    """
    name = f"roleplay:{model}"
    settings = read_settings(options, where=name)
    backed = make_chat_model(model, options=settings.model_options)
    return make_source(name, backed, template=TEMPLATE, settings=settings)
