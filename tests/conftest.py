"""What holds for every test: no network, no plug-ins, one thread, fixed seeds.

Real data is found through `MIMESIM_TEST_DATA`; a test that needs it asks for `test_data`.
"""

from __future__ import annotations

import inspect
import os
import random
import signal
import socket
import sys
from pathlib import Path
from typing import Any

# Set before anything imports torch, transformers or the registries.
os.environ.update(
    MIMESIM_DISABLE_PLUGINS="1",
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    TRL_EXPERIMENTAL_SILENCE="1",
    TOKENIZERS_PARALLELISM="false",
    OMP_NUM_THREADS="1",
    NO_COLOR="1",
)
for _name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
    os.environ.pop(_name, None)  # a key of the developer must not make a test pass

import pytest
from hypothesis import settings

settings.register_profile("mimesim", deadline=None, derandomize=True, database=None)
settings.load_profile("mimesim")

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_ORIGINALS = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex")}


def _guarded(name: str) -> Any:
    original = _ORIGINALS[name]

    def connect(self: socket.socket, address: Any) -> Any:
        local = self.family == socket.AF_UNIX or address[0] in _LOOPBACK
        if not local:
            raise RuntimeError(
                f"a test tried to reach {address!r}; use a server on 127.0.0.1 (tests/support)"
            )
        return original(self, address)

    return connect


def pytest_configure(config: pytest.Config) -> None:
    """Close the network for this process, and let Ctrl-C through.

    A suite started in the background inherits ignored signals, and so would the programs that
    the tests start and interrupt.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup: go on, but not in children
        signal.signal(signal.SIGHUP, lambda number, frame: None)
    for name in _ORIGINALS:
        setattr(socket.socket, name, _guarded(name))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Open it again, for programs that embed pytest."""
    for name, original in _ORIGINALS.items():
        setattr(socket.socket, name, original)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse async test functions: without a plug-in they would pass without running."""
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            raise pytest.UsageError(f"{item.nodeid} is async; use asyncio.run inside a plain test")


@pytest.fixture(autouse=True)
def _fixed_seeds() -> None:
    """Seed the global generators that third parties use, and hold torch to one thread."""
    random.seed(0)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)
        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def test_data() -> Path:
    """Return the folder of public corpora, or skip."""
    place = os.environ.get("MIMESIM_TEST_DATA", "")
    if not place or not Path(place).is_dir():
        pytest.skip("MIMESIM_TEST_DATA does not name a folder with the public corpora")
    return Path(place)


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return Path(__file__).resolve().parent.parent
