"""The user's side of the contract."""

from __future__ import annotations

import abc
from typing import Any


class BaseUserSimulationEnv(abc.ABC):
    @abc.abstractmethod
    def reset(self, instruction: str | None = None) -> str: ...

    @abc.abstractmethod
    def step(self, content: str) -> str: ...

    @abc.abstractmethod
    def get_total_cost(self) -> float: ...


def load_user(user_strategy: Any, model: str | None = "", provider: str | None = None) -> Any:
    raise NotImplementedError("the stock users need a model")
