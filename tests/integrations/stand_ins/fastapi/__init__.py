"""Stands where FastAPI would."""

from __future__ import annotations

from typing import Any


class Request:
    def __init__(self, session: dict[str, Any]) -> None:
        self.session = session


class HTTPException(Exception):
    def __init__(self, status_code: int, detail: str) -> None:
        self.status_code = status_code
        super().__init__(detail)
