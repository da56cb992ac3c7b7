"""Conversations that were written for this project and travel inside the package.

`thoughts.jsonl` holds invented people who ask an assistant for help and say what they think; it
lets the thought training run without a download. It is no evidence about people.
"""

from __future__ import annotations

from pathlib import Path

from mimesim.corpora.base import CorpusInfo

__all__ = ["INFO", "THOUGHTS"]

THOUGHTS = Path(__file__).with_name("thoughts.jsonl")
"""Canonical rows (`corpora.rows`), one conversation each."""

INFO = CorpusInfo(
    name="thoughts-pack",
    license="Apache-2.0",
    redistributable="yes",
    training_allowed="yes",
    citation="invented for MimeSim; no real people",
    moderated=True,
    simulated=True,
)
