"""Prices of remote models: dated defaults that age, and a file of one's own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from mimesim import config as configs
from mimesim.config.ranges import NATURAL, check_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """US dollars per million tokens. cached: prompt tokens from the provider's cache; None = as others."""

    prompt: float
    completion: float
    cached: float | None = None

    def __post_init__(self) -> None:
        """Refuse negative prices.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, NATURAL, "prompt", "completion", "cached")

    def of(self, prompt: float, completion: float, cached: float) -> float:
        """Return dollars for tokens, `cached` = share of the prompt that was cheaper."""
        cheap = self.prompt if self.cached is None else self.cached
        return (
            prompt * ((1 - cached) * self.prompt + cached * cheap) + completion * self.completion
        ) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of models and machines.

    Attributes:
        date: of the prices. model: name -> price.
        gpu_hour: machine -> dollars an hour; none are given by default.
    """

    date: str = ""
    model: Mapping[str, TokenPrice] = field(default_factory=dict)
    gpu_hour: Mapping[str, float] = field(default_factory=dict)


def default_prices() -> Prices:
    """Return the prices of the package."""
    text = files("mimesim.train.plan").joinpath("prices.toml").read_text("utf-8")
    return configs.from_options(Prices, tomllib.loads(text), where="prices.toml")


def read_prices(path: Path) -> Prices:
    """Read a price file; what it says is laid over the defaults.

    Raises:
        ConfigError: it cannot be read, or holds something else.
    """
    own = configs.load(Prices, [path], env={})
    first = default_prices()
    return Prices(
        date=own.date or first.date,
        model={**first.model, **own.model},
        gpu_hour={**first.gpu_hour, **own.gpu_hour},
    )


def price_of(prices: Prices, model: str) -> TokenPrice | None:
    """Return the price of a model by its name, without a maker in front of it."""
    return prices.model.get(model) or prices.model.get(model.rpartition("/")[2])
