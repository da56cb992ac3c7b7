"""Messages: a user's holds text or tool calls, and says what it cost."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class _Message(BaseModel):
    role: str
    content: str | None = None
    tool_calls: list[Any] | None = None
    cost: float | None = None
    raw_data: dict[str, Any] | None = None


class AssistantMessage(_Message):
    pass


class UserMessage(_Message):
    pass


class ToolMessage(_Message):
    requestor: str = "assistant"
