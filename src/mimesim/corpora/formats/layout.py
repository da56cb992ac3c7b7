"""What the place of a raw value says: the split that its file, folder or list is named after."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mimesim.corpora import places
from mimesim.corpora.base import Record, Unfit
from mimesim.corpora.formats.normalized import is_normalized, split_of

_HUB_SPLIT = re.compile(r"@([\w.-]+)$")


def part_of(where: str) -> str:
    """Return the source's own name of the split that a record stands in; empty = none.

    It is looked for in the name of the list (`abcd.json#train/3`), of the hub's split, of the file
    (`casino_train.json`) and of its folder, in this order.
    """
    list_name, slash, _ = places.entry(where).rpartition("/")
    path = places.file_of(where)
    member = where.rpartition("#")[0].rpartition("!")[2]
    on_hub = _HUB_SPLIT.search(where.rpartition("#")[0])
    candidates = (
        list_name if slash else "",
        on_hub.group(1) if on_hub else "",
        *(
            re.split(r"[_.-]", name.rpartition("/")[2].partition(".")[0])[-1]
            for name in (member, path.name)
        ),
        path.parent.name,
    )
    return next((name for name in candidates if split_of(name)), "")


def with_part(records: Iterator[Record]) -> Iterator[Record]:
    """Add `part`, the name of the split, to every value that is an upstream object."""
    for record in records:
        part = part_of(record.where)
        if part and isinstance(record.value, Mapping) and not is_normalized(record.value):
            yield record._replace(value={**record.value, "part": part})
        else:
            yield record


def speech(
    entries: Any, key: str, *, speaker: str, text: str, roles: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return a list of utterances in the normalized shape; speakers are read without case.

    Args:
        entries: the value under `key`.
        key: what the list is called, for messages.
        speaker: the key of an utterance that says who speaks.
        text: the key that says what.
        roles: speaker, in lower case -> role.

    Raises:
        Unfit: `no_conversation`, `missing_role`, `unknown_role`.
    """
    if not isinstance(entries, list):
        raise Unfit("no_conversation", f"no conversation here: {key!r} is not a list")
    return [
        {"role": role_of(entry, key, speaker, roles), "text": entry.get(text)} for entry in entries
    ]


def role_of(entry: Any, key: str, speaker: str, roles: Mapping[str, str]) -> str:
    """Return the role of one utterance.

    Raises:
        Unfit: `missing_role`, `unknown_role`.
    """
    name = entry.get(speaker) if isinstance(entry, Mapping) else None
    if not isinstance(name, str):
        raise Unfit("missing_role", f"an entry of {key!r} has no {speaker!r}")
    role = roles.get(name.strip().lower())
    if role is None:
        raise Unfit("unknown_role", f"the {speaker} {name[:40]!r} of {key!r}")
    return role


def named(parts: Iterable[Any]) -> str:
    """Return an id from its parts, empty ones left out."""
    return "/".join(str(part) for part in parts if part not in (None, ""))
