"""Derived seeds: one run seed makes every random stream, by name (design law 4).

Nothing else in MimeSim makes randomness; no global generator is read or written.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_BITS = 63  # fits a signed 64-bit field of any API


def derive(root: int, *names: str | int) -> int:
    """Return the seed in [0, 2**63) of the stream `names` under `root`.

    The result depends on the identity of the stream, never on the order of calls.
    """
    text = "\x1f".join([str(int(root)), *(f"{type(n).__name__[0]}:{n}" for n in names)])
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _BITS)


def generator(root: int, *names: str | int) -> random.Random:
    """Return a fresh generator for the stream `names` under `root`."""
    return random.Random(derive(root, *names))


def plain(seed: int) -> random.Random:
    """Return the standard generator of `seed` itself, for streams that others have published."""
    return random.Random(seed)


def state_of(rng: random.Random) -> list[Any]:
    """Return the state of a generator as JSON values."""
    version, internal, gauss = rng.getstate()
    return [version, list(internal), gauss]


def from_state(state: Sequence[Any]) -> random.Random:
    """Return a generator that goes on from a state of `state_of`."""
    version, internal, gauss = state
    rng = random.Random(0)
    rng.setstate((version, tuple(internal), gauss))
    return rng


def fingerprint(text: str, length: int = 16) -> str:
    """Return the first `length` hex digits of the SHA-256 of `text` (identity, not randomness)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def file_fingerprint(path: Path, length: int = 16) -> str:
    """Return the first `length` hex digits of the SHA-256 of a file, e.g. of frozen weights."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:length]
