"""The half-duplex user."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class UserState(BaseModel):
    system_messages: list[Any]
    messages: list[Any]


class HalfDuplexUser:
    def __init__(self, instructions: str | None = None, tools: list[Any] | None = None) -> None:
        self.instructions = instructions
        self.tools = tools

    def get_init_state(self, message_history: list[Any] | None = None) -> Any:
        raise NotImplementedError

    def generate_next_message(self, message: Any, state: Any) -> Any:
        raise NotImplementedError

    def stop(self, message: Any = None, state: Any = None) -> None:
        return None

    def set_seed(self, seed: int) -> None:
        raise NotImplementedError
