"""The application: routes, and what becomes of everything that can go wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import mimesim
from mimesim import seeds
from mimesim.errors import (
    ContextExceeded,
    EnvironmentFault,
    InfraError,
    MissingExtraError,
    UserError,
)
from mimesim.models.load import preflight
from mimesim.server import writing
from mimesim.server.answering import Answer, Answering
from mimesim.server.gate import Gate
from mimesim.server.metrics import Metrics
from mimesim.server.people import People, model_name
from mimesim.server.settings import Refusal, ServeSettings
from mimesim.server.wire import Call, good_name, read_asked, read_body, read_call
from mimesim.users.base import UserSource
from mimesim.users.load import make_user

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route
except ModuleNotFoundError as error:
    raise MissingExtraError.for_extra("a server", "serve") from error

Log = Callable[[Mapping[str, Any]], None]
"""Takes one line of the log."""
_JSON = "application/json"
_REFUSED = "the model behind the user refuses to work for this server"
_LEFT = Refusal(499, "the client went away", "gone")
"""What the log tells of a request whose client went away; nobody reads it as an answer."""
_BODY_S = 20.0
"""How long a body may take, well below the time that a server waits before it goes down."""


class Service:
    """The users of one server and everything that is kept for them.

    Attributes:
        ready: the users are loaded.
        failure: why they are not, and never will be.
    """

    def __init__(
        self, users: Mapping[str, str | UserSource], settings: ServeSettings, *, log: Log | None
    ) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.gate = Gate(settings)
        self.answering = Answering(settings)
        self.ready = False
        self.failure: Exception | None = None
        self.people: People | None = None
        self.since = int(time.time())
        self._users = users
        self._log = log
        self._number = 0
        self._boot = time.time_ns()

    async def load(self) -> None:
        """Load the users; what goes wrong is kept in `failure`."""
        try:
            sources = {name: await self._loaded(who) for name, who in self._users.items()}
            self.people = await asyncio.to_thread(People, sources, self.settings)
        except Exception as error:  # noqa: BLE001 - told by whoever started the server
            self.failure = error
        else:
            self.ready = True

    async def aclose(self) -> None:
        """Release the users."""
        if self.people is not None:
            await self.people.aclose()

    async def _loaded(self, who: str | UserSource) -> UserSource:
        source = who
        if isinstance(source, str):
            source = await asyncio.to_thread(make_user, source, options=self._options(source))
        await preflight(source)
        return source

    def _options(self, door: str) -> Mapping[str, Any]:
        """Return the options of a user; a network model takes as many calls as the server."""
        given = dict(self.settings.user_options)
        if "@http" in door or door.startswith(("http:", "https:")):
            own = given.get("model_options", {})
            given["model_options"] = {"concurrency": self.settings.max_active, **own}
        return given

    # -- one reply -------------------------------------------------------------------------

    async def chat(self, request: Request) -> Response:
        """Answer `/v1/chat/completions`."""
        started = time.perf_counter()
        line: dict[str, Any] = {}
        try:
            async with asyncio.timeout(min(self.settings.timeout_s, _BODY_S)):
                body = await self._body(request)
        except Refusal as refusal:
            return self._refused("chat", refusal, line)
        except TimeoutError:
            late = Refusal(408, f"the body did not come within {_BODY_S:g} s", "timeout")
            return self._refused("chat", late, line)
        except ClientDisconnect:
            return self._refused("chat", _LEFT, line)
        try:
            call, answer = await _unless_gone(request, self._answered(request, body, line))
        except Refusal as refusal:
            return self._refused("chat", refusal, line)
        except ClientDisconnect:
            return self._refused("chat", _LEFT, line)
        seconds = time.perf_counter() - started
        self.metrics.reply(answer, seconds)
        self._tell("chat", 200, {**line, **self._noted(call, answer), "ms": round(seconds * 1000)})
        written = writing.Written(self._next_number(), call, answer)
        if call.stream:
            headers = {**written.headers(), "cache-control": "no-cache"}
            return Response(written.events(), headers=headers, media_type="text/event-stream")
        return Response(written.body(), headers=written.headers(), media_type=_JSON)

    async def _answered(
        self, request: Request, raw: bytes, line: dict[str, Any]
    ) -> tuple[Call, Answer]:
        if self.people is None:
            raise Refusal(503, "the user is still being loaded", "loading", retry_after=1)
        body = read_body(raw)
        said = read_asked(body, request.headers, request.path_params.get("episode", ""))
        meant = self.people.meant(body.get("model"), said)
        line |= {"model": meant.name, "episode": said.episode or None}
        call = read_call(body, meant.asked, self.people.roles(meant.asked), self.settings)
        person = self.people.person(meant, call)
        try:
            async with asyncio.timeout(self.settings.timeout_s), self.gate.place():
                answer = await self.answering.answer(person, call)
                self.people.met(meant, call, person, answer.content)
                return call, answer
        except TimeoutError:
            told = f"no reply within {self.settings.timeout_s:g} s"
            raise Refusal(504, told, "timeout", retry_after=1) from None
        except UserError as error:
            raise Refusal(500, error.detail, "simulator_error") from None
        except ContextExceeded:
            told = "the conversation does not fit the model behind the user"
            raise Refusal(400, told, "context_length_exceeded", param="messages") from None
        except InfraError as error:
            line["trouble"] = error.detail
            if not error.retryable:  # the same request would be refused again
                raise Refusal(500, _REFUSED, "backend_refused") from None
            told = "the model behind the user cannot be reached"
            raise Refusal(503, told, "backend_unavailable", retry_after=2) from None
        except EnvironmentFault as error:
            line["trouble"] = error.what
            raise Refusal(500, _REFUSED, "backend_refused") from None

    async def _body(self, request: Request) -> bytes:
        self.gate.admit(request.headers.get("authorization", ""))
        self.gate.count(request.client.host if request.client else "")
        most = self.settings.max_body
        told = Refusal(413, f"the body is longer than {most} bytes", "body_too_large")
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > most:
            raise told
        raw = bytearray()
        async for part in request.stream():
            raw += part
            if len(raw) > most:
                raise told
        return bytes(raw)

    # -- everything else -------------------------------------------------------------------

    async def models(self, request: Request) -> Response:
        """Answer `/v1/models`."""
        self.gate.admit(request.headers.get("authorization", ""))
        names = self.people.names if self.people else []
        return Response(writing.model_list(names, self.since), media_type=_JSON)

    async def private(self, request: Request) -> Response:
        """Answer with the thoughts of an episode."""
        self.gate.admit_to_thoughts(request.headers.get("authorization", ""))
        episode = str(request.path_params["episode"])
        told = self.answering.diary.read(episode) if good_name(episode) else None
        if told is None:
            raise Refusal(404, "no such episode", "not_found")
        headers = {"cache-control": "no-store"}
        return Response(writing.json_body(told), headers=headers, media_type=_JSON)

    async def health(self, request: Request) -> Response:
        """Tell that the process is up."""
        return Response(writing.json_body({"status": "ok"}), media_type=_JSON)

    async def is_ready(self, request: Request) -> Response:
        """Tell whether the users are loaded."""
        if not self.ready:
            raise Refusal(503, "the user is still being loaded", "loading", retry_after=1)
        return Response(writing.json_body({"status": "ready"}), media_type=_JSON)

    async def version(self, request: Request) -> Response:
        """Tell which version this is."""
        return Response(writing.json_body({"version": mimesim.__version__}), media_type=_JSON)

    async def counts(self, request: Request) -> Response:
        """Answer `/metrics`."""
        self.gate.admit(request.headers.get("authorization", ""))
        text = self.metrics.text(active=self.gate.active, waiting=self.gate.waiting)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    def guarded(self, name: str, serve: Callable[[Request], Awaitable[Response]]) -> Any:
        """Return a route that tells refusals and bugs in the shape of an error, and is counted."""

        async def route(request: Request) -> Response:
            try:
                answer = await serve(request)
            except Refusal as refusal:
                return self._refused(name, refusal, {})
            except Exception as error:  # noqa: BLE001 - a bug costs one request, never the server
                bug = Refusal(500, "a bug of the server", "internal_error")
                return self._refused(name, bug, {"trouble": type(error).__name__})
            if name != "chat":
                self.metrics.request(name, answer.status_code)
            return answer

        return route

    def refused(self, request: Request, error: Exception) -> Response:
        """Answer where no route is."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        told = {404: "no such page", 405: "not with this method"}.get(status, "not possible")
        return self._refused("none", Refusal(status, told, "not_found"), {})

    def _refused(self, route: str, refusal: Refusal, line: Mapping[str, Any]) -> Response:
        self._tell(route, refusal.status, {**line, "code": refusal.code})
        wait = refusal.retry_after
        headers = {"retry-after": str(wait)} if wait is not None else {}
        if refusal.status == 401:
            headers["www-authenticate"] = "Bearer"
        body = writing.error_body(refusal)
        return Response(body, status_code=refusal.status, headers=headers, media_type=_JSON)

    def _tell(self, route: str, status: int, line: Mapping[str, Any]) -> None:
        self.metrics.request(route, status)
        if self._log is not None:
            self._log({"at": round(time.time(), 3), "route": route, "status": status, **line})

    def _noted(self, call: Call, answer: Answer) -> dict[str, Any]:
        """Return what stands in the log of a reply: no words, unless asked for."""
        line: dict[str, Any] = {
            "turn": answer.turn,
            "action": answer.action.value,
            "guards": list(answer.guards),
            "usage": writing.usage(answer.usage),
        }
        if self.settings.log_text:
            line |= {"agent": call.agent_text, "user": answer.content}
        return line

    def _next_number(self) -> str:
        self._number += 1
        return "chatcmpl-" + seeds.fingerprint(f"{self._boot} {self._number}", 24)


async def _unless_gone(
    request: Request, work: Awaitable[tuple[Call, Answer]]
) -> tuple[Call, Answer]:
    """Do some work, and stop when the client goes away.

    Raises:
        ClientDisconnect: it did.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def make_app(
    users: str | UserSource | Sequence[str | UserSource] | Mapping[str, str | UserSource],
    settings: ServeSettings | None = None,
    *,
    log: Log | None = None,
    on_loaded: Callable[[Service], None] | None = None,
) -> Starlette:
    """Build the application; the users are loaded when it starts.

    Args:
        users: door names or sources; the first one is also called `user`. A map names them.
        settings: of the server.
        log: takes one mapping for each request; no words of a conversation and no thought in it.
        on_loaded: called once the users are loaded, or could not be (`Service.failure`).

    Raises:
        MissingExtraError: on import of this module, without the extra `serve`.
    """
    service = Service(_named(users), settings or ServeSettings(), log=log)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        loading = asyncio.ensure_future(service.load())
        if on_loaded is not None:
            loading.add_done_callback(lambda _: on_loaded(service))
        try:
            yield
        finally:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
            await service.aclose()

    app = Starlette(
        routes=_routes(service),
        lifespan=lifespan,
        exception_handlers={404: service.refused, 405: service.refused, 500: service.refused},
    )
    app.state.service = service
    return app


def _routes(service: Service) -> list[Route]:
    chat = service.guarded("chat", service.chat)
    models = service.guarded("models", service.models)
    private = service.guarded("private", service.private)
    return [
        Route("/v1/chat/completions", chat, methods=["POST"]),
        Route("/ep/{episode}/v1/chat/completions", chat, methods=["POST"]),
        Route("/v1/models", models),
        Route("/ep/{episode}/v1/models", models),
        Route("/v1/episodes/{episode}/private", private),
        Route("/ep/{episode}/private", private),
        Route("/health", service.guarded("health", service.health)),
        Route("/ready", service.guarded("ready", service.is_ready)),
        Route("/version", service.guarded("version", service.version)),
        Route("/metrics", service.guarded("metrics", service.counts)),
    ]


def _named(
    users: str | UserSource | Sequence[str | UserSource] | Mapping[str, str | UserSource],
) -> dict[str, str | UserSource]:
    """Return the users by model name; of two with one name the second is numbered."""
    if isinstance(users, Mapping):
        return dict(users)
    several = users if isinstance(users, Sequence) and not isinstance(users, str) else [users]
    named: dict[str, str | UserSource] = {}
    for who in several:
        name = model_name(who if isinstance(who, str) else who.identity.name)
        named[name if name not in named else f"{name}-{len(named) + 1}"] = who
    return named
