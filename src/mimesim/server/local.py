"""Running a server: in this process for as long as a command lasts, or in a thread for tests."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from mimesim.errors import ConfigError, EnvironmentFault, MissingExtraError
from mimesim.server.app import Log, Service, make_app
from mimesim.server.settings import ServeSettings
from mimesim.users.base import UserSource

try:
    import uvicorn
except ModuleNotFoundError as error:
    raise MissingExtraError.for_extra("a server", "serve") from error

Users = str | UserSource | Sequence[str | UserSource] | Mapping[str, str | UserSource]
_GRACE_S = 30
_BACKLOG = 2048


@contextmanager
def serving(
    user: Users, *, port: int = 0, log: Log | None = None, **settings: Any
) -> Iterator[str]:
    """Serve on 127.0.0.1 in a thread, and give the base URL (it ends in /v1).

        with serving("scripted:neutral", dialect="tau2") as base_url:
            ...

    Args:
        user: as in `app.make_app`.
        port: 0 = a free one.
        log: as in `app.make_app`.
        settings: fields of `ServeSettings`.

    Raises:
        UsageError: the user cannot be loaded, or a setting is not usable.
    """
    loaded = threading.Event()
    kept: list[Service] = []

    def note(service: Service) -> None:
        kept.append(service)
        loaded.set()

    app = make_app(user, ServeSettings(**settings), log=log, on_loaded=note)
    with _listening("127.0.0.1", port) as sockets:
        server = uvicorn.Server(_config(app, grace_s=1))
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[sockets])), daemon=True
        )
        thread.start()
        try:
            while not loaded.wait(0.1):
                if not thread.is_alive():
                    raise EnvironmentFault("the server did not start", where=f"port {port}")
            if kept[0].failure is not None:
                raise kept[0].failure
            yield f"http://127.0.0.1:{sockets.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            thread.join()


def run(
    users: Users, settings: ServeSettings, *, host: str, port: int, insecure: bool, log: Log
) -> None:
    """Serve until asked to stop (SIGTERM, Ctrl-C); replies in the making are finished first.

    Raises:
        ConfigError: an open address without a token.
        EnvironmentFault: the address cannot be had.
        UsageError: a user cannot be loaded.
    """
    check_address(host, settings, insecure=insecure)
    failed: list[Exception] = []

    def note(service: Service) -> None:
        if service.failure is not None:
            failed.append(service.failure)
            server.should_exit = True
        elif service.ready:
            log({"serving": f"http://{shown}:{sockets.getsockname()[1]}/v1"})

    shown = f"[{host}]" if ":" in host else host
    app = make_app(users, settings, log=log, on_loaded=note)
    with _listening(host, port) as sockets:
        server = uvicorn.Server(_config(app, grace_s=_GRACE_S))
        with suppress(KeyboardInterrupt):  # told again by uvicorn once everything has ended
            server.run(sockets=[sockets])
    if failed:
        raise failed[0]


def check_address(host: str, settings: ServeSettings, *, insecure: bool) -> None:
    """Refuse an address that others can reach where no token is asked for.

    Raises:
        ConfigError: so it is.
    """
    if settings.token or insecure or _is_loopback(host):
        return
    raise ConfigError(
        "others can reach this address, and no token is asked for",
        where=f"--host {host}",
        expected="a token: MIMESIM_API_KEY or --token-file",
        mend="set one, serve on 127.0.0.1, or say --insecure",
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # with the protocol named, asyncio sends small answers at once; else each waits 40 ms
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise EnvironmentFault(
            f"cannot listen: {error.strerror or error}",
            where=f"{host}:{port}",
            expected="an address of this machine and a free port",
            mend="take another --port",
        ) from error
    with listener:
        yield listener


def _config(app: Any, *, grace_s: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=grace_s,
        server_header=False,
        proxy_headers=False,  # else callers could say who they are
        ws="none",
        lifespan="on",
    )
