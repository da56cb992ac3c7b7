"""Verdicts on which open details a question of the gym `intention` asks for."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, field_validator


class Coverage(BaseModel):
    """Which open details a question asks for: indices into the list that the judge was shown."""

    is_task_related: bool
    covered: list[int]

    @field_validator("covered", mode="before")
    @classmethod
    def _digits(cls, value: Any) -> Any:
        """Take whole numbers written as text."""
        if not isinstance(value, list):
            return value
        return [int(v) if isinstance(v, str) and is_index(v) else v for v in value]


class AnyCoverage(BaseModel):
    """The same as the original reads it: what is no index is passed over."""

    is_task_related: bool
    covered: list[Any]


def is_index(text: str) -> bool:
    """Tell whether `text` is a whole number that could count something."""
    return len(text) < 10 and text.strip().isdecimal()


def counts(value: Any) -> bool:
    """Tell whether the original takes `value` for an index."""
    return type(value) is int or (isinstance(value, str) and is_index(value))
