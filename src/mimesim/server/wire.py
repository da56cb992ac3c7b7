"""What a caller sends, checked and turned round: whose words are whose, and who is to answer.

Two ways of sending a conversation exist, and the caller says which; nothing is guessed.

| role in the request      | `flipped`                     | `natural`                        |
|--------------------------|-------------------------------|----------------------------------|
| `user`                   | the agent's words             | the user's earlier words         |
| `assistant`              | the user's earlier words      | the agent's words                |
| `system`, `developer`    | the user's private prompt     | the agent's prompt, never shown  |
| `tool`, `function`       | left out                      | left out                         |

Only the fields read here steer anything; the words of a message never do, whatever stands in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mimesim import config, jsonio
from mimesim.dialogue.stop import (
    DIALECTS,
    MARKERS,
    UserAction,
    mentions_marker,
    read_marker,
    usable_marker,
)
from mimesim.dialogue.thinking import is_blank, split, split_agent
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.errors import ConfigError
from mimesim.server.settings import Refusal, Roles, ServeSettings
from mimesim.users.guards import clean

_SIDES: Mapping[Roles, Mapping[str, Role | None]] = {
    "flipped": {"user": Role.AGENT, "assistant": Role.USER, "tool": None, "function": None},
    "natural": {"user": Role.USER, "assistant": Role.AGENT, "tool": None, "function": None},
}
_PROMPTS = ("system", "developer")
_WORDS = ("text", "input_text", "output_text")
_SOUND = ("input_audio", "audio")
_KNOWN = {
    *("model", "messages", "stream", "stream_options", "temperature", "top_p", "max_tokens"),
    *("max_completion_tokens", "stop", "seed", "n", "user", "metadata", "mimesim", "tools"),
    *("tool_choice", "parallel_tool_calls", "functions", "function_call", "logprobs"),
    *("top_logprobs", "response_format", "modalities", "audio", "store"),
}
_FROM_METADATA = "mimesim_"
_MOST_ENTRIES, _LONGEST_TEXT, _DEEPEST = 512, 2**15, 32
"""Bounds of a scenario that comes over the network: of one list, of one text, of nesting."""
_MOST_ENTRIES_IN_ALL = 4096
_LONGEST_NAME = 128


@dataclass(frozen=True, slots=True)
class Asked:
    """The field `mimesim` of a request: what no chat client has a field for.

    Attributes:
        roles: flipped or natural.
        episode: name of the conversation; calls of one conversation share it.
        scenario: whom to play, as a scenario; `scenario_id` names one that the server knows.
        instructions: the user's whole private prompt, in place of a scenario.
        behavior: id or name of a behavior to play on top of the scenario.
        dialect: how the caller reads that the user leaves.
        tokens: the caller's own markers by action (end, transfer, out_of_scope).
        end: deliver_then_stop sends words and marker in two replies, together in one.
    """

    roles: str = ""
    episode: str = ""
    scenario: Mapping[str, Any] = field(default_factory=dict)
    scenario_id: str = ""
    instructions: str = ""
    behavior: str = ""
    dialect: str = ""
    tokens: Mapping[str, str] = field(default_factory=dict)
    end: str = ""


@dataclass(frozen=True, slots=True)
class Draws:
    """How the caller wants it sampled; None = as the user's own settings say."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One request, read.

    Attributes:
        model: the name that was asked for, as it stands.
        history: the public transcript, in strict turns, no reasoning and no tool traffic in it.
        prompt: the caller's system text.
        markers: how the caller reads each way of leaving; empty = from the field only.
        flags: soft findings for the reply's record, e.g. `agent_marker`.
        warnings: what was accepted and had no effect, for the caller to see.
    """

    model: str
    asked: Asked
    history: tuple[PublicMessage, ...]
    prompt: str
    draws: Draws
    markers: Mapping[UserAction, str]
    stream: bool = False
    with_usage: bool = False
    flags: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def agent_text(self) -> str:
        """What the agent said last; "" = nobody has spoken yet."""
        return self.history[-1].content if self.history else ""

    @property
    def turn(self) -> int:
        """The number of the message that is asked for, counted from 0."""
        return sum(message.role is Role.USER for message in self.history)


def read_body(raw: bytes) -> dict[str, Any]:
    """Parse the body of a request.

    Raises:
        Refusal: 400, it is no JSON object.
    """
    try:
        body = jsonio.loads(raw.decode("utf-8"))
    except RecursionError:
        raise Refusal(400, "the body is nested too deeply", "invalid_json") from None
    except ValueError as error:  # of the text; it is not quoted, for it is a conversation
        kind = "no UTF-8" if isinstance(error, UnicodeDecodeError) else "no JSON"
        raise Refusal(400, f"the body is {kind}", "invalid_json") from None
    if not isinstance(body, dict):
        raise _bad("the body is no JSON object", "body")
    return body


def read_asked(body: Mapping[str, Any], headers: Mapping[str, str], episode: str) -> Asked:
    """Read the field `mimesim`; the body counts more than its metadata, then headers, then the path.

    Raises:
        Refusal: 400, an unknown key or an unusable value.
    """
    told: dict[str, Any] = {"episode": episode} if episode else {}
    for name in ("episode", "roles", "dialect", "scenario_id", "behavior", "end"):
        value = headers.get(f"x-mimesim-{name.replace('_', '-')}", "")
        told |= {name: value} if value else {}
    metadata = _object(body, "metadata")
    for name, value in metadata.items():
        if isinstance(name, str) and name.startswith(_FROM_METADATA):
            told[name.removeprefix(_FROM_METADATA)] = value
    told |= _object(body, "mimesim")
    for name in ("scenario", "tokens"):
        check_size(told.get(name), f"mimesim.{name}")
    try:
        asked = config.from_options(Asked, told, where="mimesim")
    except ConfigError as error:
        raise _bad(str(error), "mimesim") from None
    for name, choices in (
        ("roles", ("flipped", "natural")),
        ("dialect", tuple(DIALECTS)),
        ("end", ("deliver_then_stop", "together")),
    ):
        value = {"roles": asked.roles, "dialect": asked.dialect, "end": asked.end}[name]
        if value and value not in choices:
            raise _bad(f"{name} is {value!r}; expected one of {', '.join(choices)}", "mimesim")
    if asked.episode and not good_name(asked.episode):
        raise _bad("episode is no name: letters, digits, and . _ - in it, 128 at most", "mimesim")
    return asked


def check_size(value: Any, what: str) -> None:
    """Refuse JSON values that would keep the server busy, whatever they say.

    Raises:
        Refusal: 400, too many entries, too long a text, or nested too deeply.
    """
    waiting, seen = [(value, 0)], 0
    while waiting:
        one, depth = waiting.pop()
        if isinstance(one, str) and len(one) > _LONGEST_TEXT:
            raise _bad(f"{what} holds a text of more than {_LONGEST_TEXT} characters", "mimesim")
        if not isinstance(one, Mapping | list):
            continue
        seen += len(one)
        if len(one) > _MOST_ENTRIES or seen > _MOST_ENTRIES_IN_ALL:
            told = f"{_MOST_ENTRIES} entries in one place, or {_MOST_ENTRIES_IN_ALL} in all"
            raise _bad(f"{what} holds more than {told}", "mimesim")
        if depth >= _DEEPEST:
            raise _bad(f"{what} is nested more than {_DEEPEST} times", "mimesim")
        inside = [*one, *one.values()] if isinstance(one, Mapping) else one
        waiting += [(entry, depth + 1) for entry in inside]


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _bad(f"{name} is no object", name)
    return value


def good_name(name: str) -> bool:
    """Tell whether a name of an episode can be used: short, and no sign that means anything."""
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    return 0 < len(name) <= _LONGEST_NAME and plain.isascii() and plain.isalnum()


def read_call(body: Mapping[str, Any], asked: Asked, roles: Roles, settings: ServeSettings) -> Call:
    """Read the rest of a request.

    Raises:
        Refusal: 400, something is missing, unusable, or nothing we can do.
    """
    warnings: list[str] = [f"{key} has no effect here" for key in sorted(set(body) - _KNOWN)]
    _refuse_what_nobody_does(body, roles, warnings)
    markers = _markers(asked, settings)
    rows = _rows(body, settings)
    if not rows and roles == "flipped":
        raise _bad(
            "messages is empty: send the user's prompt as system, or the agent's first words as user",
            "messages",
        )
    known = {**MARKERS, **{marker: action for action, marker in markers.items()}}
    talk = _Talk(roles, known)
    for number, row in enumerate(rows):
        talk.take(row, f"messages[{number}]")
    history = talk.history()
    if talk.prompts and roles == "natural":
        warnings.append("system is the agent's in natural roles and was not shown to the user")
        talk.prompts.clear()
    options = _object(body, "stream_options")
    stream = False if body.get("stream") is None else body["stream"]
    if not isinstance(stream, bool):
        raise _bad("stream is neither true nor false", "stream")
    return Call(
        model=str(body.get("model", "")),
        asked=asked,
        history=history,
        prompt="\n\n".join(talk.prompts),
        draws=_draws(body),
        markers=markers,
        stream=stream,
        with_usage=bool(options.get("include_usage")),
        flags=tuple(talk.flags),
        warnings=(*warnings, *talk.warnings),
    )


class _Talk:
    """Takes messages one by one and keeps what the user may see of them."""

    def __init__(self, roles: Roles, markers: Mapping[str, UserAction]) -> None:
        self.prompts: list[str] = []
        self.flags: list[str] = []
        self.warnings: list[str] = []
        self._sides = _SIDES[roles]
        self._markers = markers
        self._turns: list[PublicMessage] = []
        self._silent_agent = False

    def take(self, row: Any, where: str) -> None:
        """Take in one message.

        Raises:
            Refusal: 400, it is no message.
        """
        if not isinstance(row, Mapping):
            raise _bad(f"{where} is no object", where)
        role = row.get("role")
        if not isinstance(role, str) or role not in (*self._sides, *_PROMPTS):
            known = ", ".join((*_PROMPTS, *self._sides))
            raise _bad(f"{where}.role is {role!r}; expected one of {known}", f"{where}.role")
        if role in _PROMPTS:
            text = self._words(row.get("content"), where)
            self.prompts += [] if is_blank(text) else [text]
            return
        side = self._sides[role]
        if side is None:
            return
        text = self._words(row.get("content"), where)
        if side is Role.USER:
            text = read_marker(split(text).text, self._markers).text
        else:
            text = split_agent(text).text
            self.flags += ["agent_marker"] if mentions_marker(text, self._markers) else []
        self._silent_agent = side is Role.AGENT and is_blank(text)
        if not is_blank(text):
            self._add(PublicMessage(side, text.strip()))

    def history(self) -> tuple[PublicMessage, ...]:
        """Return the transcript.

        Raises:
            Refusal: 400, it ends with the user's own words.
        """
        if self._turns and self._turns[-1].role is Role.USER:
            if self._silent_agent:
                raise _bad("the agent's last message is empty", "messages", "empty_agent_message")
            raise _bad(
                "the last words are the user's own, so there is nothing to answer (see roles)",
                "messages",
                "nothing_to_answer",
            )
        return tuple(self._turns)

    def _add(self, message: PublicMessage) -> None:
        last = self._turns[-1] if self._turns else None
        if last is not None and last.role is message.role:
            self._turns[-1] = PublicMessage(last.role, f"{last.content}\n\n{message.content}")
        else:
            self._turns.append(message)

    def _words(self, content: Any, where: str) -> str:
        """Return the words of a content: a text, or parts of which some are text."""
        if content is None:
            return ""
        if isinstance(content, str):
            return clean(content)[0]
        if not isinstance(content, list):
            raise _bad(f"{where}.content is neither a text nor a list of parts", where)
        said, silent = [], []
        for part in content:
            kind = "text" if isinstance(part, str) else _kind(part)
            text = part if isinstance(part, str) else _text(part, kind)
            if text is not None:
                said.append(clean(text)[0])
            elif kind in _SOUND:
                silent.append("audio")
            else:
                raise _bad(f"{where} holds a part of kind {kind!r}; expected text", where)
        if silent and all(map(is_blank, said)):
            raise _bad("audio content without text", where)
        self.warnings += ["audio was left out, the text beside it was read"] if silent else []
        return "\n".join(said)


def _kind(part: Any) -> str:
    return str(part.get("type", "?"))[:40] if isinstance(part, Mapping) else type(part).__name__


def _text(part: Any, kind: str) -> str | None:
    if not isinstance(part, Mapping) or kind not in (*_WORDS, "refusal"):
        return None
    text = part.get("refusal" if kind == "refusal" else "text")
    return text if isinstance(text, str) else None


def _rows(body: Mapping[str, Any], settings: ServeSettings) -> Sequence[Any]:
    rows = body.get("messages")
    if not isinstance(rows, list):
        raise _bad("messages is no list", "messages")
    if len(rows) > settings.max_messages:
        told = f"{len(rows)} messages, at most {settings.max_messages}"
        raise _bad(told, "messages", "too_many_messages")
    return rows


def _refuse_what_nobody_does(body: Mapping[str, Any], roles: Roles, warnings: list[str]) -> None:
    """Refuse what would change the answer and cannot be had."""
    form = body.get("response_format")
    kind = form.get("type", "text") if isinstance(form, Mapping) else "text"
    modalities = body.get("modalities") or []
    if not isinstance(modalities, list):
        raise _bad("modalities is no list", "modalities")
    wanted = {
        "n": body.get("n") not in (None, 1) or isinstance(body.get("n"), bool),
        "logprobs": bool(body.get("logprobs")) or bool(body.get("top_logprobs")),
        "response_format": kind != "text" or not isinstance(form, Mapping | None),
        "audio": bool(body.get("audio")) or "audio" in modalities,
        "tools": bool(body.get("tools") or body.get("functions")),
    }
    reasons = {
        "n": "one reply a request",
        "logprobs": "a user has no log-probabilities",
        "response_format": "a user writes plain text; take a general model for structured answers",
        "audio": "a user writes plain text",
        "tools": "this user owns no tools",
    }
    if wanted["tools"] and roles == "natural":
        warnings.append("tools are the agent's in natural roles and were not shown to the user")
        wanted["tools"] = False
    for name, given in wanted.items():
        if given:
            raise _bad(f"{name}: {reasons[name]}", name, "unsupported_parameter")


def _markers(asked: Asked, settings: ServeSettings) -> Mapping[UserAction, str]:
    markers = dict(DIALECTS[asked.dialect or settings.dialect])
    for name, marker in asked.tokens.items():
        if name not in ("end", "transfer", "out_of_scope"):
            raise _bad(f"tokens names {name!r}; expected end, transfer, out_of_scope", "mimesim")
        if not usable_marker(marker):
            raise _bad(f"the token of {name} could occur in ordinary text", "mimesim")
        markers[UserAction(name)] = marker
    return markers


def _draws(body: Mapping[str, Any]) -> Draws:
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    stop = body.get("stop")
    stops = [] if stop is None else [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or not all(isinstance(s, str) and s for s in stops):
        raise _bad("stop is no text and no list of texts", "stop")
    return Draws(
        temperature=_number(body, "temperature", 0.0, 2.0),
        top_p=_number(body, "top_p", 0.0, 1.0),
        max_tokens=_whole(most, "max_tokens", 1),
        seed=_whole(body.get("seed"), "seed", -(2**63)),
        stop=tuple(stops),
    )


def _number(body: Mapping[str, Any], name: str, low: float, high: float) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise _bad(f"{name} is no number from {low:g} to {high:g}", name)
    return float(value)


def _whole(value: Any, name: str, low: int) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not low <= value < 2**63:
        raise _bad(f"{name} is no whole number" + (f" from {low} on" if low > 0 else ""), name)
    return int(value)


def _bad(message: str, param: str, code: str = "invalid_value") -> Refusal:
    return Refusal(400, message, code, param=param)
