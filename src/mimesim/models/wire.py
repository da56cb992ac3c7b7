"""Requests and answers in the wire form of OpenAI-compatible servers; pure, without a client.

Readers raise `ValueError` for an answer that is no answer, so that the retry loop can tell a
damaged one from a good one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.types import Role, Thought, ToolCall, Usage
from mimesim.errors import DataError
from mimesim.models.base import ChatMessage, Completion, Continuation, Sampling
from mimesim.models.endpoint import EndpointOptions, Price
from mimesim.models.structured import parse_object

LONGEST = 200_000
"""Characters of one text; a server that sends more has run away from its own token limit."""
_SPOKEN = frozenset({"text", "output_text"})
_REASONING = re.compile("think|thought|reason|summary", re.IGNORECASE)
_REASONING_FIELDS = ("text", "thinking", "reasoning", "summary", "content")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FINISH = {"": "stop", "eos": "stop", "stop_sequence": "stop", "function_call": "tool_calls"}


class Damaged(ValueError):
    """An answer that is none; its words are our own, so they may be shown."""


def chat_body(
    model: str, messages: Sequence[ChatMessage], sampling: Sampling, options: EndpointOptions
) -> dict[str, Any]:
    """Return the fields of a chat request; what was not asked for is not sent."""
    extra: dict[str, Any] = {**options.extra_body, **sampling.extra}
    if sampling.top_k is not None:
        extra.setdefault("top_k", sampling.top_k)
    if sampling.thinking is not None:
        asked = {"enable_thinking": sampling.thinking}
        extra["chat_template_kwargs"] = {**asked, **extra.get("chat_template_kwargs", {})}
    fields = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop": list(sampling.stop) or None,
        "seed": sampling.seed if options.send_seed else None,
        options.max_tokens_field: sampling.max_tokens,
    }
    return {
        "model": model,
        "messages": [_message(message) for message in messages],
        **{key: value for key, value in fields.items() if value is not None},
        "extra_body": extra,
    }


def schema_format(schema: Mapping[str, Any], options: EndpointOptions) -> dict[str, Any]:
    """Return the `response_format` field for a JSON schema, as the server takes it."""
    if options.response_format == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema)}}


def token_body(
    model: str, prompt: Sequence[int], sampling: Sampling, options: EndpointOptions
) -> dict[str, Any]:
    """Return the fields of a token request.

    Every sampling field is sent, since a vLLM server fills gaps from the model's own defaults.
    """
    extra = {
        "top_k": sampling.top_k or 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "return_token_ids": True,
        **({"stop_token_ids": list(sampling.ends)} if sampling.ends else {}),
    }
    body = {
        "model": model,
        "prompt": list(prompt),
        "temperature": 1.0 if sampling.temperature is None else sampling.temperature,
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "n": 1,
        "logprobs": 0,
        "extra_body": {**extra, **options.extra_body, **sampling.extra},
    }
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    return body


def read_chat(answer: Any, price: Price | None) -> Completion:
    """Read the answer to a chat request.

    Raises:
        ValueError: there is no choice with a message.
    """
    choice = _first_choice(answer)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise ValueError("a choice without a message")
    finish = str(choice.get("finish_reason") or "")
    told = _thought(message.get("reasoning_content")) or _thought(message.get("reasoning"))
    reasoning = "\n\n".join(words for words in (told, _beside(message.get("content"))) if words)
    refusal = _text(message.get("refusal"))
    return Completion(
        text=_text(message.get("content")) or refusal,
        finish_reason="content_filter" if refusal else _FINISH.get(finish, finish),
        reasoning=Thought(reasoning) if reasoning else None,
        tool_calls=tuple(_tool_call(call) for call in _list_of_objects(message, "tool_calls")),
        usage=count_usage(answer.get("usage"), price),
    )


def read_tokens(answer: Any) -> Continuation | None:
    """Read the answer to a token request; None = the server returned text only.

    Raises:
        ValueError: there is no choice.
        Damaged: ids and log-probs do not fit together.
    """
    choice = _first_choice(answer)
    ids = choice.get("token_ids")
    if not isinstance(ids, list):
        return None
    if not all(type(one) is int and one >= 0 for one in ids):
        raise Damaged("token ids that are none")
    held = choice.get("logprobs")
    scores = held.get("token_logprobs") if isinstance(held, Mapping) else None
    if scores is not None and (not isinstance(scores, list) or len(scores) != len(ids)):
        raise Damaged(f"{len(ids)} token ids without a log-prob each")
    return Continuation(
        ids=tuple(ids),
        logprobs=None if scores is None else tuple(_score(one) for one in scores),
        finish_reason=str(choice.get("finish_reason") or "stop"),
    )


def listed_models(answer: Any) -> list[str]:
    """Return the model names of a `/models` answer; empty when it is no such list."""
    entries = answer.get("data") if isinstance(answer, Mapping) else None
    return [str(one.get("id")) for one in entries or () if isinstance(one, Mapping)]


def count_usage(reported: Any, price: Price | None) -> Usage:
    """Return usage and cost of one call from the server's `usage` field; unknown stays None."""
    usage = reported if isinstance(reported, Mapping) else {}
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    cached = _count(usage.get("prompt_tokens_details"), "cached_tokens")
    cost = None
    if price is not None and prompt is not None and completion is not None:
        saved = min(cached or 0, prompt)
        asked = (prompt - saved) * price.prompt + saved * price.cached
        cost = (asked + completion * price.completion) / 1e6
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        reasoning_tokens=_count(usage.get("completion_tokens_details"), "reasoning_tokens"),
        cached_tokens=cached,
        calls=1,
        cost=cost,
        unknown_cost_calls=int(cost is None),
    )


def _count(table: Any, key: str) -> int | None:
    value = table.get(key) if isinstance(table, Mapping) else None
    return value if type(value) is int and value >= 0 else None


def _first_choice(answer: Any) -> Mapping[str, Any]:
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    raise ValueError("an answer without a choice")


def _message(message: ChatMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": _encodable(message.content)}
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _encodable(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 does not have."""
    return _SURROGATE.sub("\ufffd", text)


def _text(content: Any) -> str:
    """Return the words of a content field: text, or a list of parts of which some are spoken."""
    if isinstance(content, list):
        return "".join(_plain(part.get("text")) for part in content if _is_spoken(part))
    return _plain(content)


def _is_spoken(part: Any) -> bool:
    """Tell whether a part is speech; what does not say so is none (`thought` is Gemini's mark)."""
    return isinstance(part, Mapping) and part.get("type") in _SPOKEN and not part.get("thought")


def _beside(content: Any) -> str:
    """Return the reasoning among the parts of a content field."""
    parts = content if isinstance(content, list) else ()
    held = [part for part in parts if isinstance(part, Mapping) and not _is_spoken(part)]
    return _thought([p for p in held if p.get("thought") or _REASONING.search(str(p.get("type")))])


def _thought(content: Any) -> str:
    """Return the words of reasoning: a text, or parts that hold it under the names in use."""
    if not isinstance(content, list):
        return _plain(content)
    parts = [part for part in content if isinstance(part, Mapping)]
    fields = [part.get(name) for part in parts for name in _REASONING_FIELDS]
    inner = [one for held in fields if isinstance(held, list) for one in held]
    fields += [one.get("text") for one in inner if isinstance(one, Mapping)]
    return "".join(_plain(words) for words in fields if isinstance(words, str))


def _plain(content: Any) -> str:
    if content is None:
        return ""
    if not isinstance(content, str):
        raise ValueError(f"content of type {type(content).__name__}")
    if len(content) > LONGEST:
        raise ValueError(f"a text of {len(content)} characters")
    return content


def _list_of_objects(message: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    entries = message.get(key) or []
    if not isinstance(entries, list) or not all(isinstance(one, Mapping) for one in entries):
        raise ValueError(f"{key} is no list of objects")
    return entries


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function") or {}
    if not isinstance(function, Mapping):
        raise ValueError("a tool call whose function is no object")
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else jsonio.dumps(arguments or {})
    problem = None
    try:
        parse_object(text)
    except DataError as error:
        problem = error.what
    name = str(function.get("name") or "")
    return ToolCall(str(call.get("id") or ""), name, text, Role.AGENT, problem)


def _score(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
