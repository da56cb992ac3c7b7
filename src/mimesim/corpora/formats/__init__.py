"""One file per source format: how its raw values become dialogues, and its terms."""

from __future__ import annotations
