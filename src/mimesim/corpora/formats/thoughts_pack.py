"""The project's own conversations with private thoughts: canonical rows inside the package.

Invented, so they show that the thought training runs, and nothing about people. What is in the
file, and its terms, stands in `corpora.packs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mimesim.corpora import rows
from mimesim.corpora.base import Format, HumanDialogue
from mimesim.corpora.packs import INFO


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    del options
    return [rows.from_row(value, INFO.name)]


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("schema") == rows.SCHEMA


FORMAT = Format(info=INFO, convert=_convert, claims=_claims)
