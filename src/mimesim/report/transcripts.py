"""A conversation to look at: public lines, and beside each what only one side knew.

Everything private becomes a `Private` remark; nothing of it is ever part of a public line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mimesim.dialogue.episode import Episode, Turn
from mimesim.dialogue.stop import Status
from mimesim.dialogue.types import ToolCall
from mimesim.jsonio import loads
from mimesim.report.figures import UNKNOWN, number, plain, words

LONG = 900
"""Characters after which a text is folded."""

_SHORT = 120
SPEAKERS = {"user": "User", "agent": "Agent", "tool": "Tool", "note": "Note"}
_HIDDEN_FACTS = ("goal", "persona", "behavior", "facts", "withhold", "unknown", "success")
_OWNERS = {"thoughts": "Thought", "agent_reasoning": "Agent's reasoning", "notes": "Coach's note"}


@dataclass(frozen=True, slots=True)
class Private:
    """A remark only one side or the record-keeper could see; `kind` colors it."""

    kind: str
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as text; `arguments` is readable, `raw` as it was written."""

    name: str
    arguments: str
    raw: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One entry of the private scenario; `fold` = long, shown on demand."""

    label: str
    text: str
    fold: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One row: a public message (`role` empty = nothing was said) and its private remarks.

    Attributes:
        marks: public events at this point, e.g. a guard that fired.
        fold: whether the text is long enough to be folded.
    """

    role: str
    speaker: str
    text: str
    calls: tuple[Call, ...] = ()
    marks: tuple[str, ...] = ()
    private: tuple[Private, ...] = ()
    fold: bool = False


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation, ready to show.

    Attributes:
        tone: good, bad, neutral or void (not counted).
        verdict: one or two words for the badge.
        brief: the private scenario.
    """

    id: str
    title: str
    note: str
    tone: str
    verdict: str
    status: str
    stop: str
    ending: str
    user: str
    agent: str
    reward: str
    user_turns: int
    system: str
    brief: tuple[Fact, ...]
    lines: tuple[Line, ...]
    preview: str


def transcript(episode: Episode, title: str = "", note: str = "") -> Transcript:
    """Arrange an episode for the page."""
    outcome = episode.outcome
    tone, verdict = _badge(episode)
    said = next((t.content for t in episode.turns if t.role == "user" and t.content), "")
    return Transcript(
        id=episode.id,
        title=title or episode.task.id,
        note=note,
        tone=tone,
        verdict=verdict,
        status=outcome.status.value,
        stop=episode.stop.reason.value,
        ending=_ending(episode),
        user=episode.user.name if episode.user else UNKNOWN,
        agent=episode.agent.name,
        reward=number(outcome.reward),
        user_turns=episode.turns_used,
        system=episode.system,
        brief=_brief(episode.private or {}),
        lines=_lines(episode),
        preview=said[:140],
    )


def _badge(episode: Episode) -> tuple[str, str]:
    if not episode.counted:
        return "void", words(episode.outcome.status.value)
    if episode.outcome.success is None:
        return "neutral", words(episode.outcome.status.value)
    if episode.outcome.success:
        return "good", "success"
    cut = episode.outcome.status is Status.TRUNCATED
    return "bad", "cut off" if cut else "failed"


def _ending(episode: Episode) -> str:
    stop = episode.stop
    limit = f", limit {number(stop.limit)}" if stop.limit is not None else ""
    detail = f": {stop.detail}" if stop.detail else ""
    return f"{words(stop.reason.value)} (by {stop.by.value}{limit}){detail}"


def behavior_name(private: Mapping[str, Any] | None) -> str:
    """Return the ids of the behaviors a user was given, joined by `+`; `neutral` without one."""
    if not private or not ("behavior" in private or "goal" in private):
        return ""
    return " + ".join(_names(private.get("behavior"))) or "neutral"


def _names(behavior: Any) -> list[str]:
    if isinstance(behavior, list | tuple):
        return [name for part in behavior for name in _names(part)]
    if isinstance(behavior, Mapping):
        return _names(behavior.get("id"))
    return [str(behavior)] if behavior else []


def _brief(private: Mapping[str, Any]) -> tuple[Fact, ...]:
    found: list[Fact] = []
    for key in _HIDDEN_FACTS:
        value = private.get(key)
        if not value:
            continue
        if key == "behavior":
            found.append(Fact(key, behavior_name(private)))
            found += _directives(value)
        else:
            text = _listed(value)
            found.append(Fact(words(key), text, fold="\n" in text or len(text) > _SHORT))
    return tuple(found)


def _directives(behavior: Any) -> list[Fact]:
    """Return what a user was told to do, and the parameters of each behavior."""
    parts = behavior if isinstance(behavior, list | tuple) else [behavior]
    found = []
    for part in parts:
        extra = part if isinstance(part, Mapping) else {}
        if extra.get("directive"):
            found.append(Fact("told to", str(extra["directive"]), fold=True))
        rest = {k: v for k, v in extra.items() if k not in ("id", "directive") and v}
        if rest:
            found.append(Fact("parameters", plain(rest)))
    return found


def _listed(value: Any) -> str:
    """Return a mapping or a list of mappings as lines, anything else as one."""
    if isinstance(value, Mapping):
        return "\n".join(f"{words(str(key))}: {plain(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple) and any(isinstance(part, Mapping) for part in value):
        return "\n".join(plain(part) for part in value)
    return plain(value)


def _lines(episode: Episode) -> tuple[Line, ...]:
    remarks = _remarks(episode)
    marks: dict[int, list[str]] = {}
    for guard in episode.guards:
        text = f"guard {words(str(guard.get('guard', '')))}: {guard.get('action', '')}"
        marks.setdefault(_turn(guard), []).append(text)
    for error in episode.errors:
        text = f"{error.get('type', 'error')}: {error.get('message', '')}"
        marks.setdefault(_turn(error), []).append(text)
    lines = [_line(turn, marks.pop(turn.i, []), remarks.pop(turn.i, [])) for turn in episode.turns]
    for place in sorted({*marks, *remarks}):  # beside no message, e.g. a silent departure
        events, private = tuple(marks.get(place, ())), tuple(remarks.get(place, ()))
        lines.append(Line("", "", "", marks=events, private=private))
    return tuple(lines)


def _line(turn: Turn, marks: list[str], private: list[Private]) -> Line:
    if not turn.delivered:
        marks = ["never delivered", *marks]
    return Line(
        role=turn.role.value,
        speaker=turn.name or SPEAKERS[turn.role.value],
        text=turn.content,
        calls=tuple(_call(call) for call in turn.tool_calls),
        marks=tuple(marks),
        private=tuple(private),
        fold=len(turn.content) > LONG,
    )


def _call(call: ToolCall) -> Call:
    try:
        readable = plain(loads(call.arguments))
    except ValueError:  # what a model wrote need not be JSON
        readable = call.arguments
    return Call(call.name, readable, call.arguments)


def _remarks(episode: Episode) -> dict[int, list[Private]]:
    private = episode.private or {}
    found: dict[int, list[Private]] = {}
    for key, label in _OWNERS.items():
        for entry in _entries(private.get(key)):
            if str(entry.get("text", "")).strip():
                remark = Private(key, label, str(entry["text"]))
                found.setdefault(_turn(entry), []).append(remark)
    for turn, text in _changed_wishes(_entries(private.get("wishes"))):
        found.setdefault(turn, []).append(Private("wishes", "Wish changed", text))
    for step in episode.steps if episode.private is not None else ():
        if step.reward:
            remark = Private("reward", "Reward", number(step.reward))
            found.setdefault(step.turn, []).append(remark)
        if step.problem:
            found.setdefault(step.turn, []).append(
                Private("reward", "Invalid action", step.problem)
            )
    return found


def _changed_wishes(entries: Iterable[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """Return (turn, wish) where the user's private wish is another than before."""
    out: list[tuple[int, str]] = []
    before: Any = None
    for entry in entries:
        wish = entry.get("wish")
        core = {k: v for k, v in wish.items() if k != "missing"} if isinstance(wish, dict) else wish
        if before is not None and core != before:
            out.append((_turn(entry), plain(core)))
        before = core
    return out


def _entries(value: Any) -> list[Mapping[str, Any]]:
    return [e for e in value if isinstance(e, Mapping)] if isinstance(value, list | tuple) else []


def _turn(entry: Mapping[str, Any]) -> int:
    turn = entry.get("turn", -1)
    return turn if isinstance(turn, int) else -1
