"""Where the gym `search` looks things up: nowhere, in the own corpus, or at somebody's endpoint.

A back end is named by a string, as models and users are; outsiders add one by path or by an entry
point in `mimesim.searches`. The network is reached through `models.load` only. What a server fails
to answer is an `InfraError`, never an empty list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

from mimesim.envs.gyms.search.index import Index, read_documents
from mimesim.envs.gyms.search.world import the_world
from mimesim.errors import ConfigError, UsageError
from mimesim.models.load import JSONService, make_json_service
from mimesim.registry import Registry, closest

SHOWN = 5
"""Results of one search."""

REGISTRY = Registry(
    "search back end",
    {
        "closed": "mimesim.envs.gyms.search.backends:make_closed",
        "static": "mimesim.envs.gyms.search.backends:make_static",
        "http": "mimesim.envs.gyms.search.backends:make_http",
    },
    group="searches",
)
"""Kinds of back ends. A factory takes the words after the colon and the options."""
_NEEDS = ("mode", "search", "aclose")
_HTTP = {"method": "GET", "query": "q", "count": "count", "results": "results"} | {
    "title": "title",
    "text": "snippet",
}
"""Options of `http` with their defaults: how a server is asked, and where its answer has what."""


@dataclass(frozen=True, slots=True)
class Found:
    """One result, as the agent reads it."""

    title: str
    text: str


class SearchBackend(Protocol):
    """Answers queries.

    Attributes:
        mode: written into every result; results of two modes are never averaged.
    """

    mode: str

    async def search(self, query: str) -> list[Found] | None:
        """Return what was found, best first; None = nothing can be looked up here.

        Raises:
            InfraError: the server did not answer after all retries.
            EnvironmentFault: it refuses the key, or is not there.
        """
        ...

    async def aclose(self) -> None:
        """Release what it holds; twice is harmless."""
        ...


def make_backend(name: str, options: Mapping[str, Any]) -> SearchBackend:
    """Make the back end that `name` says; nothing is connected or read yet but an own corpus.

    Args:
        name: `closed`, `static`, `http:<url>`, or `package.module:attribute`.
        options: `static` takes `corpus` (a file with one document per line), `http` the fields
            method, query, count, results, title and text, and those of
            `models.endpoint.EndpointOptions`.

    Raises:
        UnknownNameError: no such back end.
        UsageError, ConfigError: the name or an option cannot be used.
        DataError: a damaged corpus.
    """
    kind, _, rest = name.partition(":")
    asked, rest = (name, "") if "." in kind else (kind, rest)
    return cast(SearchBackend, REGISTRY.make(asked, rest, dict(options), needs=_NEEDS))


class Closed:
    """There is no search: the agent answers from what it knows (closed book)."""

    mode = "closed"

    async def search(self, query: str) -> list[Found] | None:
        """Return None."""
        return None

    async def aclose(self) -> None:
        """Release nothing."""


class Static:
    """A small corpus on this machine, by default the invented country of `world`."""

    mode = "static"

    def __init__(self, corpus: str = "") -> None:
        self._index = Index(read_documents(corpus)) if corpus else None

    async def search(self, query: str) -> list[Found] | None:
        """Return the best documents by BM25."""
        index = self._index or _own_index()
        return [Found(one.title, one.text) for one in index.search(query, SHOWN)]

    async def aclose(self) -> None:
        """Release nothing."""


class Http:
    """Somebody's search server, asked with one request per query."""

    mode = "http"

    def __init__(self, service: JSONService, fields: Mapping[str, str]) -> None:
        self._service = service
        self._fields = fields

    async def search(self, query: str) -> list[Found] | None:
        """Ask the server; see `SearchBackend`."""
        fields: dict[str, Any] = {self._fields["query"]: query}
        if self._fields["count"]:
            fields[self._fields["count"]] = SHOWN
        return await self._service.ask(
            fields, method=self._fields["method"], read=self._read, asked=query
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._service.aclose()

    def _read(self, answer: Any) -> list[Found]:
        """Read an answer; whatever has another shape is damaged, never "nothing found"."""
        for key in self._fields["results"].split("."):
            if not isinstance(answer, Mapping) or key not in answer:
                raise ValueError(f"no {key!r}")
            answer = answer[key]
        if not isinstance(answer, list):
            raise ValueError("no list of results")
        return [self._result(one) for one in answer[:SHOWN]]

    def _result(self, value: Any) -> Found:
        if not isinstance(value, Mapping):
            raise ValueError("a result is no object")
        title, text = (value.get(self._fields[key]) for key in ("title", "text"))
        if not isinstance(title, str) or not isinstance(text, str):
            raise ValueError("a result without title or text")
        return Found(title, text)


def make_closed(rest: str, options: Mapping[str, Any]) -> SearchBackend:
    """Make the back end without search; it takes neither a name nor options."""
    _only("closed", rest, options, ())
    return Closed()


def make_static(rest: str, options: Mapping[str, Any]) -> SearchBackend:
    """Make the search in a corpus on this machine."""
    _only("static", rest, options, ("corpus",))
    corpus = options.get("corpus", "")
    if not isinstance(corpus, str):
        raise ConfigError("option 'corpus' is no path", where="search back end 'static'")
    return Static(corpus)


def make_http(rest: str, options: Mapping[str, Any]) -> SearchBackend:
    """Make the search at an endpoint; `rest` is its whole address."""
    where = "search back end 'http'"
    if not rest:
        raise UsageError(
            "the back end 'http' is incomplete",
            where=where,
            expected="http:<url>, e.g. http:http://127.0.0.1:8080/search",
        )
    fields = dict(_HTTP)
    for key in _HTTP:
        fields[key] = options.get(key, _HTTP[key])
        if not isinstance(fields[key], str):
            raise ConfigError(f"option {key!r} is no text", where=where)
    if fields["method"] not in ("GET", "POST"):
        raise ConfigError(
            f"option 'method' is {fields['method']!r}", where=where, expected="GET or POST"
        )
    terms = {key: value for key, value in options.items() if key not in _HTTP}
    return Http(make_json_service(rest, terms), fields)


def _only(name: str, rest: str, options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    if rest:
        raise UsageError(f"the back end {name!r} takes no {rest!r}", expected=f"{name} alone")
    for key in options:
        if key not in known:
            raise ConfigError(
                f"unknown option {key!r}{closest(key, list(known))}",
                where=f"search back end {name!r}",
                expected=", ".join(known) or "none",
            )


@cache
def _own_index() -> Index:
    return Index(the_world().documents)
