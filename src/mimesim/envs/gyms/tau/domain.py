"""What the gym `tau` needs of a domain, and a database that is copied only where it is touched.

A domain has shared tables, tools that read and change them, and a policy. An episode keeps the calls
it made; its database is what they make of the shared one, so a snapshot needs no database, and a
step that fails leaves nothing behind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from mimesim import jsonio
from mimesim.seeds import fingerprint


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the call as agents write it."""
        return {"name": self.tool, "arguments": self.arguments}


@dataclass(frozen=True, slots=True)
class Tool:
    """What agents are told of a tool; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments."""
        return tuple(self.parameters.get("properties", {}))

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the arguments that every call needs."""
        return tuple(self.parameters.get("required", ()))


class Records(dict[str, Any]):
    """A table whose records are copied when they are first asked for; the shared ones stay.

    Attributes:
        shared: the table that it starts from.
    """

    def __init__(self, shared: Mapping[str, Any]) -> None:
        super().__init__(shared)
        self.shared = shared
        self._own: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        if key not in self._own and key in self:
            self[key] = copied(super().__getitem__(key))
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._own.add(key)
        super().__setitem__(key, value)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a record of one's own."""
        if key not in self:
            return default
        return self[key]

    def values(self) -> list[Any]:  # type: ignore[override]
        """Return all records, one's own."""
        return [self[key] for key in self]

    def items(self) -> list[tuple[str, Any]]:  # type: ignore[override]
        """Return all records with their keys, one's own."""
        return [(key, self[key]) for key in self]

    def changes(self) -> dict[str, Any]:
        """Return the records that differ from the shared ones; None = gone."""
        gone = {key: None for key in self.shared if key not in self}
        own = {key: self[key] for key in sorted(self._own) if key in self}
        absent = object()
        return gone | {k: v for k, v in own.items() if self.shared.get(k, absent) != v}


Tables = dict[str, Any]
"""Name of a table -> its records."""


class Domain(Protocol):
    """A shop, an airline: what there is to look up and to change.

    Attributes:
        policy: the rules, as the agent reads them.
        endings: tools that end the conversation.
        whole_words: required outputs count on word borders only.
        heavy: its work goes to a thread.
    """

    name: str
    policy: str
    tools: Mapping[str, Tool]
    endings: frozenset[str]
    whole_words: bool
    heavy: bool

    def __hash__(self) -> int:
        """Stand for itself in a cache."""
        ...

    def tables(self, ref: str) -> Tables:
        """Return the shared tables that a task starts from; nobody may change them."""
        ...

    def use(self, tables: Tables, call: Call) -> str:
        """Carry out a call and return what the tool says; trouble is told, never raised."""
        ...


class Books:
    """The database of one episode: the shared tables after some calls.

    Args:
        domain: whose tables these are.
        ref: which of its tables.
    """

    def __init__(self, domain: Domain, ref: str) -> None:
        self._domain = domain
        self._ref = ref
        self._held: tuple[tuple[Call, ...], Tables] | None = None

    def use(self, made: tuple[Call, ...], call: Call) -> str:
        """Carry out `call` after the calls in `made`."""
        tables = self._after(made)
        said = self._domain.use(tables, call)
        self._held = ((*made, call), tables)
        return said

    def digest(self, made: tuple[Call, ...]) -> str:
        """Return one name for the database after the calls in `made`."""
        tables = self._after(made)
        self._held = (made, tables)
        return digest(tables)

    def _after(self, made: tuple[Call, ...]) -> Tables:
        """Take the tables out, so that nobody else changes them meanwhile; replay if needed."""
        held, self._held = self._held, None
        if held is not None and held[0] == made:
            return held[1]
        tables = opened(self._domain.tables(self._ref))
        for call in made:
            self._domain.use(tables, call)
        return tables


def opened(shared: Tables) -> Tables:
    """Return tables of one's own that start from `shared`."""
    return {
        name: Records(table) if isinstance(table, Mapping) else copied(table)
        for name, table in shared.items()
    }


def copied(value: Any) -> Any:
    """Return a deep copy of JSON values."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [copied(inner) for inner in value]
    return value


def digest(tables: Tables) -> str:
    """Return a hash of all that differs from the shared tables; equal databases have equal ones."""
    changed = {
        name: table.changes() if isinstance(table, Records) else table
        for name, table in tables.items()
    }
    return fingerprint(jsonio.canonical({name: part for name, part in changed.items() if part}))


def gold_digest(domain: Domain, ref: str, actions: Sequence[Call]) -> str:
    """Return the hash of the database after the calls that a task asks for."""
    return _gold_digest(domain, ref, jsonio.canonical([call.to_json() for call in actions]))


@lru_cache(maxsize=4096)
def _gold_digest(domain: Domain, ref: str, actions: str) -> str:
    calls = [Call(one["name"], one["arguments"]) for one in jsonio.loads(actions)]
    made = tuple(call for call in calls if call.tool not in domain.endings)
    return Books(domain, ref).digest(made)


def told(output: str, texts: Sequence[str], *, whole_words: bool) -> bool:
    """Tell whether a required output stands in one of the agent's messages.

    Case does not matter, and commas of the messages are taken out first, as tau-bench does.
    """
    wanted = output.lower()
    said = [text.lower().replace(",", "") for text in texts]
    if not whole_words:
        return any(wanted in text for text in said)
    pattern = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
    return any(pattern.search(text) for text in said)
