"""The guards of `tests/conftest.py` bite."""

from __future__ import annotations

import os
import socket

import pytest


@pytest.mark.parametrize("call", ["connect", "connect_ex"])
def test_foreign_addresses_are_refused(call: str) -> None:
    with socket.socket() as client, pytest.raises(RuntimeError, match="tried to reach"):
        getattr(client, call)(("192.0.2.1", 80))


def test_loopback_is_open() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5) as client,
    ):
        assert client.getpeername() == server.getsockname()


def test_plugins_and_hubs_are_off() -> None:
    assert os.environ["MIMESIM_DISABLE_PLUGINS"] == "1"
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert "OPENAI_API_KEY" not in os.environ
