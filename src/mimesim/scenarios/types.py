"""The shapes of scenarios, manuals and composed rows.

A `Scenario` is what one user is and hides; a `Manual` is a company's policy:
tools, request types with their procedures, hard limits; a `Row` is one composed case, the flat
form that `scenarios compose` writes. `scenarios.rows` turns a row into a scenario and back.
Nothing here draws, judges or renders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from mimesim.dialogue.stop import LEAST_MARKER, usable_marker
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.errors import DataError
from mimesim.registry import closest, unknown_name
from mimesim.scenarios import reading
from mimesim.scenarios.checks import checked

GRANTED, DENIED, ESCALATED = "granted", "denied", "escalated"
VERDICTS = (GRANTED, DENIED, ESCALATED)
SPLITS = ("train", "validation", "test")
REPLAYS = ("none", "identity", "cut")


# ------------------------------------------------------------------------------------ scenarios


@dataclass(frozen=True, slots=True)
class Withhold:
    """A fact that is told late. `until` says when, in words; `asked` = when asked for it."""

    fact: str
    until: str = "asked"


@dataclass(frozen=True, slots=True)
class BehaviorUse:
    """One behavior of a scenario: id (B1..B13), its parameters, the rendered directive."""

    id: str
    params: Mapping[str, Any] = field(default_factory=dict)
    directive: str = ""


@dataclass(frozen=True, slots=True)
class EndRule:
    """How the user ends: extra markers, grace (one_turn, ask_user, none), stopping condition."""

    markers: tuple[str, ...] = ()
    grace: str = "one_turn"
    on: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One user: goal, facts, what is withheld, behavior, style, and how success is judged.

    Attributes:
        facts: everything the user knows. `withhold` names the facts told only when asked.
        unknown: what the user does not know.
        behavior: at most a few behaviors; empty = neutral.
        opening: exact first message, sent verbatim.
        script: exact messages of a scripted user, no model.
        success: for scorers only, never shown to the user.
        agent_context: keyword arguments for the agent side only.
        meta: bookkeeping (`profile`, `row`, ...), never shown to anyone in the conversation.
    """

    id: str
    goal: str
    persona: str | Mapping[str, Any] = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    withhold: tuple[Withhold, ...] = ()
    unknown: tuple[str, ...] = ()
    behavior: tuple[BehaviorUse, ...] = ()
    style: Mapping[str, Any] = field(default_factory=dict)
    opening: str | None = None
    history: tuple[PublicMessage, ...] = ()
    script: tuple[str, ...] = ()
    tools: tuple[Any, ...] = ()
    end: EndRule = EndRule()
    success: Mapping[str, Any] = field(default_factory=dict)
    agent_context: Mapping[str, Any] = field(default_factory=dict)
    max_turns: int | None = None
    tags: tuple[str, ...] = ()
    source: str = ""
    license: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    may_state_goal: bool = False

    @classmethod
    def from_json(cls, obj: Any, where: str) -> Scenario:
        """Read one scenario strictly; `where` is `file:line` for messages.

        Raises:
            DataError: unknown key, wrong type, a withheld fact that is no fact, an end marker.
        """
        names = [f.name for f in fields(cls)]
        raw = reading.known_keys(obj, names, where=where, what="scenario")
        end = _end(raw.get("end"), where)
        reading.refuse_markers(
            {k: v for k, v in raw.items() if k != "end"}, end.markers, where=where
        )
        persona = raw.get("persona") or ""
        if not isinstance(persona, str | Mapping):
            raise DataError(f"persona is {persona!r}", where=where, expected="a text or a map")
        facts = reading.mapping(raw, "facts", where=where)
        return cls(
            id=reading.text(raw, "id", where=where),
            goal=reading.text(raw, "goal", where=where),
            persona=persona,
            facts=facts,
            withhold=_withhold(raw.get("withhold"), facts, where),
            unknown=reading.texts(raw, "unknown", where=where),
            behavior=_behavior(raw.get("behavior"), where),
            style=reading.mapping(raw, "style", where=where),
            opening=reading.optional_text(raw, "opening", where=where),
            history=_history(raw.get("history"), where),
            script=reading.texts(raw, "script", where=where),
            tools=_tools(raw.get("tools"), where),
            end=end,
            success=checked(reading.mapping(raw, "success", where=where), where),
            agent_context=reading.mapping(raw, "agent_context", where=where),
            max_turns=_max_turns(raw.get("max_turns"), where),
            tags=reading.texts(raw, "tags", where=where),
            source=reading.text(raw, "source", where=where, default=""),
            license=reading.text(raw, "license", where=where, default=""),
            meta=reading.mapping(raw, "meta", where=where),
            may_state_goal=_flag(raw.get("may_state_goal", False), where),
        )

    def to_json(self) -> dict[str, Any]:
        """Return JSON values that `from_json` reads back; empty fields are left out."""
        out: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        out["withhold"] = [{"fact": w.fact, "until": w.until} for w in self.withhold]
        out["behavior"] = [
            {"id": b.id, "params": dict(b.params), "directive": b.directive} for b in self.behavior
        ]
        out["history"] = [{"role": m.role.value, "content": m.content} for m in self.history]
        out["end"] = (
            {"markers": list(self.end.markers), "grace": self.end.grace, "on": self.end.on}
            if self.end != EndRule()
            else None
        )
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in out.items()}
        return {k: v for k, v in plain.items() if v or k in ("id", "goal")}


def _withhold(value: Any, facts: Mapping[str, Any], where: str) -> tuple[Withhold, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise DataError(f"withhold is {value!r}", where=where, expected="a list of fact keys")
    out = []
    for entry in value:
        if isinstance(entry, str):
            one = Withhold(entry)
        else:
            raw = reading.known_keys(entry, ("fact", "until"), where=where, what="withhold")
            one = Withhold(
                reading.text(raw, "fact", where=where),
                reading.text(raw, "until", where=where, default="asked"),
            )
        if one.fact not in facts:
            raise DataError(
                f"withhold names {one.fact!r}, which is not in facts"
                + closest(one.fact, list(facts)),
                where=where,
                expected="keys of facts: " + (", ".join(facts) or "(none)"),
            )
        out.append(one)
    return tuple(out)


def _behavior(value: Any, where: str) -> tuple[BehaviorUse, ...]:
    if value is None:
        return ()
    out = []
    for entry in value if isinstance(value, list | tuple) else [value]:
        if isinstance(entry, str):
            out.append(BehaviorUse(entry))
            continue
        raw = reading.known_keys(entry, ("id", "params", "directive"), where=where, what="behavior")
        out.append(
            BehaviorUse(
                reading.text(raw, "id", where=where),
                reading.mapping(raw, "params", where=where),
                reading.text(raw, "directive", where=where, default=""),
            )
        )
    return tuple(out)


def _history(value: Any, where: str) -> tuple[PublicMessage, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise DataError(f"history is {value!r}", where=where, expected="a list of messages")
    out = []
    for entry in value:
        raw = reading.known_keys(entry, ("role", "content"), where=where, what="history")
        role = reading.choice(raw.get("role"), ("user", "agent"), key="history role", where=where)
        out.append(PublicMessage(Role(role), reading.text(raw, "content", where=where)))
    return tuple(out)


def _tools(value: Any, where: str) -> tuple[Any, ...]:
    if value is not None and not isinstance(value, list | tuple):
        raise DataError(f"tools is {value!r}", where=where, expected="a list of tools")
    return tuple(value or ())


def _end(value: Any, where: str) -> EndRule:
    if value is None:
        return EndRule()
    raw = reading.known_keys(value, ("markers", "grace", "on"), where=where, what="end")
    markers = reading.texts(raw, "markers", where=where)
    for marker in markers:
        if not usable_marker(marker):
            raise DataError(
                f"end marker {marker!r} could occur in ordinary text",
                where=where,
                expected=LEAST_MARKER,
            )
    grace = reading.choice(
        raw.get("grace", "one_turn"), ("one_turn", "ask_user", "none"), key="grace", where=where
    )
    return EndRule(markers, grace, reading.text(raw, "on", where=where, default=""))


def _max_turns(value: Any, where: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise DataError(f"max_turns is {value!r}", where=where, expected="a whole number >= 1")
    return value


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise DataError(f"may_state_goal is {value!r}", where=where, expected="true or false")
    return value


# -------------------------------------------------------------------------------------- manuals


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of the support agent.

    Attributes:
        kind: identity, check, record, detail, handover, deliver or change.
        slots: every argument name the tool knows.
        returns: record or env fields it hands back when it succeeds.
        identifies: whether it is part of the identity check that rows may replay.
    """

    name: str
    kind: str
    summary: str
    slots: tuple[str, ...]
    returns: tuple[str, ...] = ()
    identifies: bool = False

    @property
    def state_changing(self) -> bool:
        """Whether the tool changes orders, accounts or money."""
        return self.kind == "change"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a procedure.

    Attributes:
        slots: argument names, in order.
        sources: slot -> record field, where the two names differ.
        fixed: slot -> constant value, as the policy words it.
    """

    tool: str
    slots: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> tuple[str, ...]:
        """Record fields the step reads."""
        return tuple(self.sources.get(s, s) for s in self.slots if s not in self.fixed)


@dataclass(frozen=True, slots=True)
class Limit:
    """A hard rule that stands against some cases; `scenarios.limits` tells which.

    Attributes:
        outcome: denied, or escalated (hand the case over instead).
        request: what a customer must not get, in a customer's words.
        text: the policy sentence the agent is given.
        reads: record and env keys the rule looks at.
        when: ways in which it stands; each is a set of conditions that must all be met.
        aside: it refuses something beside the errand, which itself can still be granted.
    """

    name: str
    outcome: str
    request: str
    text: str
    reads: tuple[str, ...]
    when: tuple[Mapping[str, Any], ...] = ()
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Flow:
    """A family of request types; `fields` are the record fields its cases hold."""

    name: str
    title: str
    description: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestType:
    """One errand (subflow) with its procedure.

    Attributes:
        goal: the customer's goal; `{field}` stands for record values.
        required: fields the agent must get hold of and use.
        identity: the part of `required` that verifies the customer.
        procedure: gold steps of a granted case, in order.
        instructions: policy lines.
        limits: names of limits that apply.
        wishes: fields that only the customer decides (a new address, a refund target).
        traits: refund, return, shipping, account, ...: what behaviors ask about.
        held_out: occurs in the test split only.
        only: record field -> the values that make sense for this errand.
    """

    name: str
    flow: str
    title: str
    goal: str
    required: tuple[str, ...]
    identity: tuple[str, ...]
    procedure: tuple[Step, ...]
    instructions: tuple[str, ...]
    limits: tuple[str, ...]
    wishes: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    held_out: bool = False
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_Named = TypeVar("_Named", Flow, Tool, Limit, RequestType)


@dataclass(frozen=True, slots=True)
class Manual:
    """A company's manual: what `scenarios.manual.load` returns, already checked.

    Attributes:
        general: policy lines that hold for every request type.
        source: what `scenarios.manual.load` takes to get this manual again.
        license: under which rows composed from it may be passed on.
        skipped: what could not be used when it was read -> how often.
        compat: it follows the original task, flaws included; `infeasible` are then the subflows
            in which it has customers insist.
    """

    name: str
    company: str
    general: tuple[str, ...]
    flows: tuple[Flow, ...]
    tools: tuple[Tool, ...]
    limits: tuple[Limit, ...]
    request_types: tuple[RequestType, ...]
    source: str = "company"
    license: str = "Apache-2.0"
    skipped: Mapping[str, int] = field(default_factory=dict)
    compat: bool = False
    infeasible: tuple[str, ...] = ()

    def request(self, name: str) -> RequestType:
        """Return the request type (subflow) called `name`.

        Raises:
            UnknownNameError: there is none.
        """
        return _named("request type", name, self.request_types)

    def flow(self, name: str) -> Flow:
        """Return the flow called `name`.

        Raises:
            UnknownNameError: there is none.
        """
        return _named("flow", name, self.flows)

    def tool(self, name: str) -> Tool:
        """Return the tool called `name`.

        Raises:
            UnknownNameError: there is none.
        """
        return _named("tool", name, self.tools)

    def limit(self, name: str) -> Limit:
        """Return the limit called `name`.

        Raises:
            UnknownNameError: there is none.
        """
        return _named("limit", name, self.limits)

    def limits_of(self, subflow: str) -> tuple[Limit, ...]:
        """Return the limits that apply to a request type."""
        return tuple(self.limit(name) for name in self.request(subflow).limits)


def _named(kind: str, name: str, members: Sequence[_Named]) -> _Named:
    for member in members:
        if member.name == name:
            return member
    raise unknown_name(kind, name, [m.name for m in members])


# ----------------------------------------------------------------------------------------- rows


@dataclass(frozen=True, slots=True)
class Row:
    """One composed case: a flat, JSON-ready record with at most one behavior.

    Attributes:
        record: what the company holds and the customer knows (flat; strings, lists of products).
        env: what only the support side knows (`as_of`, `oracle`, `days`, ...).
        behavior: B1..B13, None = neutral; `params` and `directive` belong to it.
        seed: the row's own seed; index: its place in the composed set.
        source: composed, or abcd for a record of the ABCD corpus.
        turn_budget: user messages the conversation may take.
        replay: how much of the identity check was said before, see `scenarios.replay`.
    """

    record: Mapping[str, Any]
    env: Mapping[str, Any]
    flow: str
    subflow: str
    behavior: str | None
    params: Mapping[str, Any]
    directive: str
    seed: int
    index: int
    source: str = "composed"
    turn_budget: int = 8
    split: str | None = None
    replay: str = "none"

    @classmethod
    def from_json(cls, obj: Any, where: str) -> Row:
        """Read one row strictly.

        Raises:
            DataError: unknown or missing key, wrong type, or an end marker inside.
        """
        names = [f.name for f in fields(cls)]
        raw = reading.known_keys(obj, names, where=where, what="row")
        reading.refuse_markers(raw, (), where=where)
        split = raw.get("split")
        return cls(
            record=reading.mapping(raw, "record", where=where),
            env=reading.mapping(raw, "env", where=where),
            flow=reading.text(raw, "flow", where=where),
            subflow=reading.text(raw, "subflow", where=where),
            behavior=reading.optional_text(raw, "behavior", where=where),
            params=reading.mapping(raw, "params", where=where),
            directive=reading.text(raw, "directive", where=where, default=""),
            seed=_whole(raw, "seed", where),
            index=_whole(raw, "index", where),
            source=reading.text(raw, "source", where=where, default="composed"),
            turn_budget=_max_turns(raw.get("turn_budget", 8), where) or 8,
            split=split and reading.choice(split, SPLITS, key="split", where=where),
            replay=reading.choice(raw.get("replay", "none"), REPLAYS, key="replay", where=where),
        )

    def to_json(self) -> dict[str, Any]:
        """Return JSON values in a fixed key order."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def _whole(raw: Mapping[str, Any], key: str, where: str) -> int:
    value = raw.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DataError(f"{key} is {value!r}", where=where, expected="a whole number")
    return value
