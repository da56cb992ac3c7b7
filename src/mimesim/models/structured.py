"""Text of a model -> JSON -> typed value: the only reader of JSON that a model wrote.

Tiers, recorded with every value: 0 the server constrained the decoding, 1 the whole
text is the object, 2 it stands in a fence or in prose, 3 it was repaired, 4 it came on a re-ask.
Reading is strict: extra keys are ignored, a missing key, a string for a boolean, a cut object or a
value out of range is a failure. Nothing is ever evaluated, and no answer is never an answer.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from mimesim import jsonio, prompts, seeds
from mimesim.dialogue.thinking import is_blank, split
from mimesim.dialogue.types import Usage
from mimesim.errors import DataError
from mimesim.models.base import ChatMessage, ChatModel, Completion, Sampling

T = TypeVar("T", bound=BaseModel)

_FENCE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\n?(.*?)```", re.DOTALL)
_FENCED = re.compile(r"\s*```(?:json|python)?\s*(.*?)\s*```\s*", re.DOTALL)
_REASK = "models/reask"
_SHOWN_PROBLEM = 300


class UnreadableError(DataError):
    """A model's text is not the JSON that was asked for; `what` says why, without the text."""


@dataclass(frozen=True, slots=True)
class ParsedObject:
    """A JSON object read from text. `tier` is 1, 2 or 3."""

    value: dict[str, Any]
    tier: int


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """A typed value read from text. `tier` is 0 to 4; 3 means the JSON was repaired."""

    value: T
    tier: int

    @property
    def repaired(self) -> bool:
        """Whether the JSON was damaged and mended."""
        return self.tier == 3


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """Outcome of `ask`.

    Attributes:
        parsed: the value, or None when no attempt could be read.
        raw: text of the last attempt as the model wrote it; private.
        problem: why the last attempt could not be read; "" on success.
        attempts: model calls made.
        finish_reason: of the last attempt.
        usage: of all attempts together.
    """

    parsed: Parsed[T] | None
    raw: str
    problem: str
    attempts: int
    finish_reason: str
    usage: Usage
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Asking:
    """How a value is asked for.

    Attributes:
        constrain: whether the server is asked to constrain the decoding to the schema.
        reasks: how often an answer of the wrong form is asked for again.
        last: see `parse_object`.
    """

    constrain: bool = True
    reasks: int = 2
    last: bool = False


def visible(completion: Completion) -> str:
    """Return the public part of an answer, reasoning removed; "" when it is not whole."""
    parts = split(
        completion.text, finish_reason=completion.finish_reason, reasoning=completion.reasoning
    )
    return parts.text if parts.complete else ""


def balanced_objects(text: str) -> list[str]:
    """Return the outermost balanced `{...}` pieces; braces inside double quotes do not count.

    A piece that is never closed swallows the rest, so that the inner part of a cut object is
    never taken for the whole.
    """
    pieces: list[str] = []
    depth = start = 0
    quoted = escaped = False
    for position, sign in enumerate(text):
        if quoted:
            quoted = escaped or sign != '"'
            escaped = sign == "\\" and not escaped
        elif sign == '"':
            quoted = depth > 0
        elif sign == "{":
            start = position if depth == 0 else start
            depth += 1
        elif sign == "}" and depth:
            depth -= 1
            if depth == 0:
                pieces.append(text[start : position + 1])
    return pieces


def parse_object(text: str, *, last: bool = False) -> ParsedObject:
    """Read the first JSON object of `text`: whole, fenced or in prose, repaired at last.

    Args:
        text: what the model said.
        last: whether the last object counts instead; then no earlier one stands in for it, e.g. an
            example before a damaged answer.

    Raises:
        UnreadableError: there is none, or it was cut.
    """
    if is_blank(text):
        raise UnreadableError("the answer is empty")
    whole = _strict(text)
    if whole is not None:
        return ParsedObject(whole, 1)
    pieces = [piece for block in _FENCE.findall(text) for piece in balanced_objects(block)]
    pieces = (balanced_objects(text) or pieces)[-1:] if last else pieces + balanced_objects(text)
    for piece in pieces:
        value = _strict(piece)
        if value is not None:
            return ParsedObject(value, 2)
    for piece in pieces:
        value = _repaired(piece)
        if value is not None:
            return ParsedObject(value, 3)
    raise UnreadableError("the answer holds no complete JSON object")


def parse_literal(text: str) -> dict[str, Any]:
    """Read the whole text, a fence around it taken off, as a Python dictionary of JSON values.

    No reader of ours but that of others whom a compat mode follows: reasoning, words around the
    object and JSON's own `null`, `true` and `false` are failures.

    Raises:
        UnreadableError: it is none.
    """
    fenced = _FENCED.fullmatch(text)
    try:
        value = ast.literal_eval(fenced.group(1) if fenced else text.strip())
        if isinstance(value, dict):
            return dict(json.loads(jsonio.dumps(value)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise UnreadableError(f"no Python literal of JSON values: {type(error).__name__}") from None
    raise UnreadableError("no Python dictionary")


def parse(
    text: str, schema: type[T], *, constrained: bool = False, last: bool = False
) -> Parsed[T]:
    """Read `text`, reasoning already removed, as one value of `schema`.

    Args:
        text: what the model said.
        schema: pydantic model; booleans, numbers and strings are not converted into one another.
        constrained: whether the server was asked to constrain the decoding to the schema.
        last: see `parse_object`.

    Raises:
        UnreadableError: not JSON, or JSON of another form.
    """
    found = parse_object(text, last=last)
    tier = 0 if constrained and found.tier == 1 else found.tier
    return Parsed(validate(found.value, schema), tier)


def validate(value: Mapping[str, Any], schema: type[T]) -> T:
    """Check a JSON object strictly against `schema`; labels match regardless of case, `_` and `-`.

    Raises:
        UnreadableError: naming the keys that are wrong.
    """
    shape = _shape(schema)
    labelled = _with_labels(dict(value), shape, shape.get("$defs", {}))
    try:
        return schema.model_validate_json(_clean(jsonio.dumps(labelled)), strict=True)
    except ValidationError as error:
        problems = [
            f"{'.'.join(str(part) for part in one['loc']) or 'the object'}: {one['msg']}"
            for one in error.errors(include_url=False, include_input=False)
        ]
        raise UnreadableError("; ".join(problems)[:_SHOWN_PROBLEM]) from None


@lru_cache(maxsize=256)
def _shape(schema: type[BaseModel]) -> dict[str, Any]:
    return schema.model_json_schema()


def parse_choice(text: str, choices: Sequence[str]) -> str:
    """Read an answer that had to be exactly one of `choices`, alone or after "Answer:".

    Case, outer blanks, brackets and a closing full stop do not matter; prose around it does.

    Raises:
        UnreadableError: anything else; a letter inside a sentence is no answer.
    """
    lines = text.strip().splitlines() or [""]
    last = re.sub(r"^\W*(?:final )?answer\W*:\W*", "Answer: ", lines[-1], flags=re.IGNORECASE)
    if len(lines) > 1 and not last.startswith("Answer: "):
        raise UnreadableError("the answer does not end with one line 'Answer: <choice>'")
    said = last.removeprefix("Answer: ").strip().strip("()[]*`\"' .").casefold()
    for choice in choices:
        if said == choice.casefold():
            return choice
    raise UnreadableError(f"the answer is none of {', '.join(choices)}")


async def ask(
    model: ChatModel,
    messages: Sequence[ChatMessage],
    schema: type[T],
    sampling: Sampling,
    how: Asking | None = None,
) -> Answer[T]:
    """Ask for one value of `schema`, and again while the answer cannot be read.

    An answer that was cut or stayed empty is asked for once more with twice the tokens; one of the
    wrong form up to `reasks` times with the problem named. Every further attempt draws from a seed
    of its own.

    Raises:
        InfraError, ContextExceeded, EnvironmentFault: as `ChatModel.chat`.
    """
    how = how or Asking()
    shape, reasks = schema.model_json_schema() if how.constrain else None, how.reasks
    asked, limits = list(messages), sampling
    widened, usage, attempts = False, Usage(), 0
    while True:
        attempts += 1
        completion = await model.chat(asked, limits, response_schema=shape)
        usage += completion.usage
        said = visible(completion)
        try:
            parsed = parse(said, schema, constrained=how.constrain, last=how.last)
        except UnreadableError as error:
            problem = error.what
        else:
            parsed = replace(parsed, tier=4) if len(asked) > len(messages) else parsed
            return _answer(parsed, completion, "", attempts, usage)
        cut = completion.finish_reason == "length" or is_blank(said)
        refused = completion.finish_reason == "content_filter"
        if refused or (cut and widened) or (not cut and reasks <= 0):
            return _answer(None, completion, problem, attempts, usage)
        if cut:
            widened, limits = True, replace(limits, max_tokens=2 * limits.max_tokens)
        else:
            reasks -= 1
            asked += [
                ChatMessage("assistant", said),
                ChatMessage("user", prompts.render(_REASK, problem=problem)),
            ]
        if sampling.seed is not None:
            limits = replace(limits, seed=seeds.derive(sampling.seed, "attempt", attempts))


def _answer(
    parsed: Parsed[T] | None, last: Completion, problem: str, attempts: int, usage: Usage
) -> Answer[T]:
    return Answer(
        parsed, last.text, problem, attempts, last.finish_reason, usage, cached=last.cached
    )


def _strict(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _repaired(text: str) -> dict[str, Any] | None:
    from json_repair import loads  # rarely needed

    try:
        value = loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value else None


def _clean(text: str) -> str:
    """Replace escaped lone surrogates, which the strict reader refuses."""
    return re.sub(r"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}", r"\1\\ufffd", text)


def _with_labels(value: Any, shape: Mapping[str, Any], defs: Mapping[str, Any]) -> Any:
    """Return `value` with every enumerated string in the spelling of the schema."""
    if "$ref" in shape:
        shape = defs.get(str(shape["$ref"]).rpartition("/")[2], {})
    if isinstance(value, str):
        labels = [label for part in _branches(shape, defs) for label in part.get("enum", ())]
        labels += [part["const"] for part in _branches(shape, defs) if "const" in part]
        near = [x for x in labels if isinstance(x, str) and _fold(x) == _fold(value)]
        return near[0] if len(near) == 1 else value
    if isinstance(value, dict):
        for part in _branches(shape, defs):
            inner = part.get("properties", {})
            value = {k: _with_labels(v, inner.get(k, {}), defs) for k, v in value.items()}
        return value
    if isinstance(value, list):
        for part in _branches(shape, defs):
            value = [_with_labels(v, part.get("items", {}), defs) for v in value]
    return value


def _branches(shape: Mapping[str, Any], defs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    parts = [shape, *shape.get("anyOf", ()), *shape.get("oneOf", ())]
    return [
        defs.get(str(part["$ref"]).rpartition("/")[2], {}) if "$ref" in part else part
        for part in parts
    ]


def _fold(label: str) -> str:
    return " ".join(re.sub(r"[_-]", " ", label.strip().casefold()).split())
