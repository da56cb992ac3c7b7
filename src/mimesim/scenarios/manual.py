"""Loads a manual from its TOML file and checks that it holds together.

A manual that loads has known tools, slots, fields and limits everywhere, and for every request
type at least two required fields, two steps, and identity among the required fields.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mimesim.errors import DataError
from mimesim.registry import Registry, closest, unknown_name
from mimesim.scenarios import reading
from mimesim.scenarios.limits import bounds, reads_of
from mimesim.scenarios.types import (
    DENIED,
    ESCALATED,
    Flow,
    Limit,
    Manual,
    RequestType,
    Step,
    Tool,
)

PACKS = Path(__file__).parent / "packs"
TOOL_KINDS = ("identity", "check", "record", "detail", "handover", "deliver", "change")
ENV_KEYS = (
    *("as_of", "oracle", "days", "receipt", "clearance", "locked", "flag"),
    *("disputed_amount", "info_source"),
)
"""What the support side knows of a case beside the customer's record."""
READERS = Registry(
    "manual reader", {"abcd": "mimesim.scenarios.abcd.world:open_world"}, group="manuals"
)
"""Readers of foreign manuals: `reader(rest)` returns a `scenarios.worlds.World`."""


@cache
def load(name: str = "company") -> Manual:
    """Load a manual: a shipped pack, a TOML file given by path, or `reader:place`.

    Raises:
        UnknownNameError: no such pack or reader.
        DataError: a file is damaged or does not hold together.
    """
    if is_foreign(name):
        manual: Manual = read_world(name).manual
        return manual
    if name.endswith(".toml"):
        return parse(read_toml(Path(name)), name, source=name)
    path = pack_file(name, "manual.toml")
    if not path.exists():
        known = sorted(p.parent.name for p in PACKS.glob("*/manual.toml"))
        others = [*(f"{reader}:…" for reader in READERS.names()), "FILE.toml"]
        raise unknown_name("manual", name, [*known, *others])
    return parse(read_toml(path), str(path), source=name)


def is_foreign(name: str) -> bool:
    """Tell whether a manual is read by one of `READERS` (`reader:place`)."""
    return not name.endswith(".toml") and ":" in name


@cache
def read_world(name: str) -> Any:
    """Return the world that a reader makes of `reader:place`.

    Raises:
        UnknownNameError: no such reader.
        DataError: the place does not hold what the reader needs.
    """
    reader, _, place = name.partition(":")
    return READERS.make(reader, place, needs=("manual", "draw", "values", "address", "customer"))


def pack_file(name: str, file: str) -> Path:
    """Return the place of a file of a pack, or beside a manual given by path."""
    return Path(name).with_name(file) if name.endswith(".toml") else PACKS / name / file


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        DataError: missing or damaged.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(
            "file not found", where=str(path), expected="a TOML file", mend="check the path"
        ) from error
    except ValueError as error:
        raise DataError(f"not valid TOML: {error}", where=str(path)) from error


def parse(obj: Mapping[str, Any], where: str, source: str = "company") -> Manual:
    """Build a manual from its parsed file; `source` is what `load` was given.

    Raises:
        DataError: unknown key, missing text, a name that nothing bears, or no request type.
    """
    keys = ("name", "company", "license", "general", "flows", "tools", "limits", "requests")
    raw = reading.known_keys(obj, keys, where=where, what="manual")
    reading.refuse_markers(raw, (), where=where)
    manual = Manual(
        name=reading.text(raw, "name", where=where),
        company=reading.text(raw, "company", where=where),
        general=reading.texts(raw, "general", where=where),
        flows=tuple(_flow(e, where) for e in raw.get("flows", ())),
        tools=tuple(_tool(e, where) for e in raw.get("tools", ())),
        limits=tuple(_limit(e, where) for e in raw.get("limits", ())),
        request_types=tuple(_request(e, where) for e in raw.get("requests", ())),
        source=source,
        license=reading.text(raw, "license", where=where, default="Apache-2.0"),
    )
    if not manual.request_types:
        raise DataError("no request type", where=where, expected="[[requests]], at least one")
    for group in (manual.flows, manual.tools, manual.limits, manual.request_types):
        _unique([member.name for member in group], where)
    for request in manual.request_types:
        _check(request, manual, f"{where}: {request.name}")
    return manual


def policy_lines(manual: Manual, subflow: str) -> tuple[str, ...]:
    """Return the policy an agent is given for a request type: general lines, its own, limits."""
    request = manual.request(subflow)
    limits = tuple(limit.text for limit in manual.limits_of(subflow))
    return tuple(dict.fromkeys((*manual.general, *request.instructions, *limits)))


def _flow(entry: Any, where: str) -> Flow:
    raw = reading.known_keys(
        entry, ("name", "title", "description", "fields"), where=where, what="flow"
    )
    return Flow(
        name=reading.text(raw, "name", where=where),
        title=reading.text(raw, "title", where=where),
        description=reading.text(raw, "description", where=where),
        fields=reading.texts(raw, "fields", where=where),
    )


def _tool(entry: Any, where: str) -> Tool:
    keys = ("name", "kind", "summary", "slots", "returns", "identifies")
    raw = reading.known_keys(entry, keys, where=where, what="tool")
    name = reading.text(raw, "name", where=where)
    where = f"{where}: tool {name!r}"
    kind = reading.choice(raw.get("kind"), TOOL_KINDS, key="kind", where=where)
    return Tool(
        name=name,
        kind=kind,
        summary=reading.text(raw, "summary", where=where),
        slots=reading.texts(raw, "slots", where=where),
        returns=reading.texts(raw, "returns", where=where),
        identifies=reading.flag(raw, "identifies", where=where) or kind == "identity",
    )


def _limit(entry: Any, where: str) -> Limit:
    keys = ("name", "outcome", "request", "text", "reads", "when", "aside")
    raw = reading.known_keys(entry, keys, where=where, what="limit")
    name = reading.text(raw, "name", where=where)
    when = conditions(raw.get("when"), f"{where}: limit {name!r}")
    return Limit(
        name=name,
        outcome=reading.choice(raw.get("outcome"), (DENIED, ESCALATED), key="outcome", where=where),
        request=reading.text(raw, "request", where=where),
        text=reading.text(raw, "text", where=where),
        reads=reading.texts(raw, "reads", where=where) or reads_of(when),
        when=when,
        aside=reading.flag(raw, "aside", where=where),
    )


def conditions(value: Any, where: str) -> tuple[Mapping[str, Any], ...]:
    """Read the ways in which a limit stands.

    Raises:
        DataError: no list of maps, or a condition that is neither values nor a comparison.
    """
    if not isinstance(value, list | tuple) or not value:
        raise DataError(f"when is {value!r}", where=where, expected='such as [{ days = ">45" }]')
    ways = []
    for entry in value:
        way = reading.mapping({"when": entry}, "when", where=where)
        for key, wanted in way.items():
            if isinstance(wanted, str):
                bounds(wanted)
            else:
                way[key] = reading.texts(way, key, where=where)
        ways.append(way)
    return tuple(ways)


def _request(entry: Any, where: str) -> RequestType:
    keys = ("name", "flow", "title", "goal", "required", "identity", "procedure", "instructions")
    more = ("limits", "wishes", "traits", "held_out", "only")
    raw = reading.known_keys(entry, keys + more, where=where, what="request type")
    return RequestType(
        name=reading.text(raw, "name", where=where),
        flow=reading.text(raw, "flow", where=where),
        title=reading.text(raw, "title", where=where),
        goal=reading.text(raw, "goal", where=where),
        required=reading.texts(raw, "required", where=where),
        identity=reading.texts(raw, "identity", where=where),
        procedure=tuple(_step(s, where) for s in raw.get("procedure", ())),
        instructions=reading.texts(raw, "instructions", where=where),
        limits=reading.texts(raw, "limits", where=where),
        wishes=reading.texts(raw, "wishes", where=where),
        traits=reading.texts(raw, "traits", where=where),
        held_out=reading.flag(raw, "held_out", where=where),
        only={k: tuple(v) for k, v in reading.mapping(raw, "only", where=where).items()},
    )


def _step(entry: Any, where: str) -> Step:
    raw = reading.known_keys(entry, ("tool", "slots", "sources", "fixed"), where=where, what="step")
    return Step(
        tool=reading.text(raw, "tool", where=where),
        slots=reading.texts(raw, "slots", where=where),
        sources=reading.mapping(raw, "sources", where=where),
        fixed=reading.mapping(raw, "fixed", where=where),
    )


def _unique(names: Sequence[str], where: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{name!r} is defined twice", where=where, expected="unique names")


def _check(request: RequestType, manual: Manual, where: str) -> None:
    _among([request.flow], [flow.name for flow in manual.flows], "flow", where)
    _among(request.limits, [limit.name for limit in manual.limits], "limit", where)
    if len(request.required) < 2 or len(request.procedure) < 2:
        raise DataError("too thin", where=where, expected="2 required fields and 2 steps or more")
    _among(request.identity, request.required, "identity field", where)
    _among(request.wishes, request.required, "wish", where)
    used = [name for step in request.procedure for name in step.fields]
    _among(request.required, used, "required field", where)
    for step in request.procedure:
        _among([step.tool], [tool.name for tool in manual.tools], "tool", where)
        tool = manual.tool(step.tool)
        _among(step.slots, tool.slots, f"slot of {tool.name}", where)
        _among([*step.sources, *step.fixed], step.slots, f"slot of {tool.name}", where)


def _among(names: Sequence[str], allowed: Sequence[str], what: str, where: str) -> None:
    for name in names:
        if name not in allowed:
            raise DataError(
                f"{what} {name!r} has no place here{closest(name, list(allowed))}",
                where=where,
                expected="one of " + ", ".join(dict.fromkeys(allowed)),
            )
