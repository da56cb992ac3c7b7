"""Stands where NeMo-Gym would: its names and signatures, nothing of its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel


class BaseResourcesServerConfig(BaseModel):
    name: str = ""


class BaseSeedSessionRequest(BaseModel):
    pass


class BaseSeedSessionResponse(BaseModel):
    pass


class BaseVerifyRequest(BaseModel):
    responses_create_params: dict[str, Any]
    response: dict[str, Any]


class BaseVerifyResponse(BaseVerifyRequest):
    reward: float


class App:
    def __init__(self) -> None:
        self.routes: dict[str, Callable[..., Any]] = {}

    def post(self, path: str) -> Callable[[Any], Any]:
        return lambda handler: self.routes.setdefault(path, handler)


class SimpleResourcesServer(BaseModel):
    config: BaseResourcesServerConfig

    def setup_webserver(self) -> App:
        app = App()
        app.post("/seed_session")(self.seed_session)
        app.post("/verify")(self.verify)
        return app

    async def seed_session(self, *given: Any) -> Any:
        raise NotImplementedError

    async def verify(self, *given: Any) -> Any:
        raise NotImplementedError
