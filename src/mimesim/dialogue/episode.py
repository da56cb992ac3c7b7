"""The one record of everything that happens in a conversation: schema `mimesim.episode/1`.

An episode is written once and read by training, scoring and the report. What
the agent must not see lies under the key `private`; without that key it is a complete public
episode. Every `turn` inside guards, thoughts and errors is the `i` of a message in `turns` (a
private text without a message, such as a bare end, bears the number the message would have had).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.shapes import Misfit, misfit
from mimesim.dialogue.stop import Party, Status, Stop, StopReason
from mimesim.dialogue.types import Identity, Role, ToolCall, Usage
from mimesim.errors import DataError

SCHEMA = "mimesim.episode/1"
"""Name and major version of the episode format."""
_REQUIRED = ("id", "task", "turns", "stop", "outcome")
_EPISODE_TIMES = ("created_at", "finished_at", "duration_s")
_INNER_TIMES = ("at", "latency_s")
SIDES = ("agent", "user", "judge")
"""Sides that use tokens and cost money."""
_PRIVATE_WORDS = ("thoughts", "raw", "agent_reasoning")
_PRIVATE_LISTS = (*_PRIVATE_WORDS, "wishes", "drafts", "grading", "judge")


@dataclass(frozen=True, slots=True)
class Turn:
    """One public message of the record.

    Attributes:
        i: position in the transcript, from 0.
        action: what the user did with the message (user messages only).
        source: generated, scripted, seeded, replayed or human.
        delivered: false for a text that was never handed over.
        at: when it was recorded, seconds since the start of the episode.
    """

    i: int
    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    owner: Role | None = None
    action: str | None = None
    source: str = "generated"
    attempts: int = 1
    finish_reason: str | None = None
    usage: Usage | None = None
    delivered: bool = True
    latency_s: float | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One agent action that the gym executed.

    Attributes:
        i: index of the step, from 0.
        turn: the `i` of the agent's message.
        text: the agent's public text as written, in its action format.
        problem: why the action was invalid; empty = it was valid.
    """

    i: int
    turn: int
    choice: str
    content: str
    text: str
    valid: bool
    reward: float
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the conversation is worth; `success` and `reward` are None when it is not counted.

    Attributes:
        scores: name -> {value or None, state, scorer, version, direction, raw_ref}.
    """

    status: Status
    success: bool | None
    reward: float | None
    scores: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskRef:
    """Which task was played: enough to find it again and to group episodes for statistics."""

    gym: str
    id: str
    profile: str = "default"
    split: str = ""
    groups: tuple[str, ...] = ()
    hash: str = ""
    public: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Episode:
    """One conversation, finished or failed.

    Attributes:
        id: known before the run, stable across resumption.
        seed: the derived seed of this attempt.
        attempt: whole-episode attempt, from 0.
        system: what the agent was told at the start.
        user, agent, judge: who took part; None = no such side.
        private: all that the agent must not see; None in a public copy.
    """

    id: str
    run_id: str
    trial: int
    seed: int
    task: TaskRef
    agent: Identity
    user: Identity | None
    turns: tuple[Turn, ...]
    steps: tuple[Step, ...]
    stop: Stop
    outcome: Outcome
    judge: Identity | None = None
    attempt: int = 0
    system: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    scenario: Mapping[str, Any] = field(default_factory=dict)
    software: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    guards: tuple[Mapping[str, Any], ...] = ()
    usage: Mapping[str, Usage] = field(default_factory=dict)
    errors: tuple[Mapping[str, Any], ...] = ()
    links: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    created_at: str = ""
    finished_at: str = ""
    duration_s: float = 0.0
    private: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def counted(self) -> bool:
        """Whether the episode enters scores."""
        return self.outcome.status.counted

    @property
    def turns_used(self) -> int:
        """User messages that reached the agent."""
        return sum(turn.role is Role.USER and turn.delivered for turn in self.turns)

    @property
    def rewards(self) -> tuple[float, ...]:
        """Reward of every executed step, in order."""
        return tuple(step.reward for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; numbers that are not finite become null and are listed."""
        body: dict[str, Any] = {"schema": SCHEMA}
        for entry in fields(self):
            if entry.name not in ("usage", "private"):
                body[entry.name] = _plain(getattr(self, entry.name))
        body["stop"]["turns_used"] = self.turns_used
        body["usage"] = {side: _tokens(usage) for side, usage in self.usage.items()}
        body["cost"] = {side: _cost(usage) for side, usage in self.usage.items()}
        if self.private is not None:
            body["private"] = _plain(self.private)
        clean, body_nonfinite = jsonio.finite(body)
        clean["nonfinite"] = body_nonfinite
        return clean  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, value: Any, *, where: str = "") -> Episode:
        """Read the JSON form; unknown keys are ignored.

        Raises:
            DataError: another schema, a newer major version, a missing key or a wrong value.
        """
        check_schema(value, where=where)
        try:
            episode = cls(**_episode_fields(value))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise DataError(
                f"not a valid episode: {error}", where=where, expected=f"the schema {SCHEMA}"
            ) from error
        wrong = misfit(episode) or _private_misfit(episode.private or {})
        if wrong is not None:
            raise DataError(
                f"not a valid episode: {wrong.place.removeprefix('.')} has a value of a wrong kind",
                where=where,
                expected=wrong.expected,
            )
        return episode


def _private_misfit(private: Mapping[str, Any]) -> Misfit | None:
    """Return the first wrong entry of the private lists that readers go through."""
    for key in _PRIVATE_LISTS:
        entries = private.get(key, [])
        if not isinstance(entries, list):
            return Misfit(f"private.{key}", "a list")
        for i, entry in enumerate(entries):
            place = f"private.{key}[{i}]"
            if not isinstance(entry, Mapping):
                return Misfit(place, "an object")
            words = type(entry.get("turn")) is int and isinstance(entry.get("text"), str)
            if key in _PRIVATE_WORDS and not words:
                return Misfit(place, "an object with the number 'turn' and the words 'text'")
    return None


def read_file(path: Path | str) -> Iterator[Episode]:
    """Yield the episodes of one file, `.gz` accepted.

    The half-written last line of a run that is still going, or was killed, is left out.

    Raises:
        DataError: missing or damaged, with the line number; or one episode stands there twice.
    """
    seen: dict[str, int] = {}
    for line in jsonio.read_jsonl(path, growing=True):
        where = f"{path}:{line.number}"
        episode = Episode.from_json(line.value, where=where)
        first = seen.setdefault(episode.id, line.number)
        if first != line.number:
            raise DataError(
                f"the episode {episode.id!r} stands in line {first} already",
                where=where,
                expected="every episode once, so that none is counted twice",
                mend="delete one of the two lines",
            )
        yield episode


def check_schema(value: Any, *, where: str = "") -> None:
    """Refuse what is not an episode of this major version.

    Raises:
        DataError: naming what is wrong.
    """
    if not isinstance(value, Mapping):
        raise DataError("not a JSON object", where=where, expected="an episode object")
    name, _, major = str(value.get("schema", "")).partition("/")
    if name != SCHEMA.partition("/")[0] or not major.partition(".")[0].isdigit():
        raise DataError(
            f"unknown schema {value.get('schema')!r}", where=where, expected=repr(SCHEMA)
        )
    if int(major.partition(".")[0]) > 1:
        raise DataError(
            f"schema {value['schema']!r} is newer than this version of mimesim",
            where=where,
            expected=repr(SCHEMA),
            mend="upgrade mimesim",
        )
    missing = [key for key in _REQUIRED if key not in value]
    if missing:
        raise DataError(f"missing key {missing[0]!r}", where=where, expected="an episode object")


def public_copy(episode: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON form of an episode without its private side."""
    return {key: value for key, value in episode.items() if key != "private"}


def without_times(episode: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON form without clock readings: equal runs give equal bytes."""
    body = {key: value for key, value in episode.items() if key not in _EPISODE_TIMES}
    for key in ("turns", "errors"):
        body[key] = [
            {name: inner for name, inner in entry.items() if name not in _INNER_TIMES}
            for entry in body.get(key, [])
        ]
    return body


def _plain(value: Any) -> Any:
    """Turn a value into JSON values; dataclasses become objects (no thought is one of them)."""
    if isinstance(value, Usage):
        return {**_tokens(value), "cost": value.cost}
    if is_dataclass(value):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _tokens(usage: Usage) -> dict[str, Any]:
    names = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")
    counts: dict[str, Any] = {name: getattr(usage, name) for name in names}
    return {**counts, "calls": usage.calls, "regen_calls": usage.regen_calls}


def _cost(usage: Usage) -> dict[str, Any]:
    return {"value": usage.cost, "unknown_calls": usage.unknown_cost_calls, "currency": "USD"}


def _known(cls: type, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r} stands where an object should ({cls.__name__.lower()})")
    names = {entry.name for entry in fields(cls)}
    return {key: inner for key, inner in value.items() if key in names}


def _usage(tokens: Mapping[str, Any] | None, cost: Mapping[str, Any] | None = None) -> Usage:
    known = _known(Usage, tokens or {})
    if cost is not None:
        known |= {"cost": cost.get("value"), "unknown_cost_calls": cost.get("unknown_calls", 0)}
    return Usage(**known)


def _identity(value: Mapping[str, Any] | None) -> Identity | None:
    return None if value is None else Identity(**_known(Identity, value))


def _call(value: Mapping[str, Any]) -> ToolCall:
    return ToolCall(**{**_known(ToolCall, value), "owner": Role(value["owner"])})


def _turn(value: Mapping[str, Any]) -> Turn:
    known = _known(Turn, value)
    if not isinstance(known["content"], str):
        raise ValueError(f"turns[{value.get('i')}].content is not a string")
    known["role"] = Role(known["role"])
    known["owner"] = Role(known["owner"]) if known.get("owner") else None
    known["tool_calls"] = tuple(_call(call) for call in value.get("tool_calls", ()))
    known["usage"] = _usage(known["usage"]) if known.get("usage") else None
    return Turn(**known)


def _episode_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    known = _known(Episode, value)
    stop, outcome, task = value["stop"], value["outcome"], value["task"]
    costs = value.get("cost", {})
    known["task"] = TaskRef(**{**_known(TaskRef, task), "groups": tuple(task.get("groups", ()))})
    known["turns"] = tuple(_turn(turn) for turn in value["turns"])
    known["steps"] = tuple(Step(**_known(Step, step)) for step in value.get("steps", ()))
    known["stop"] = Stop(
        **{
            **_known(Stop, stop),
            "reason": StopReason(stop["reason"]),
            "by": Party(stop["by"]),
        }
    )
    known["outcome"] = Outcome(**{**_known(Outcome, outcome), "status": Status(outcome["status"])})
    for side in SIDES:
        known[side] = _identity(value.get(side))
    known["usage"] = {
        side: _usage(tokens, costs.get(side))
        for side, tokens in dict(value.get("usage", {})).items()
    }
    for key in ("guards", "errors", "tools"):
        known[key] = tuple(value.get(key, ()))
    return known
