"""What a caller gets: bodies, events of a stream, errors, and the headers beside them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.types import Usage
from mimesim.server.answering import Answer
from mimesim.server.settings import Refusal
from mimesim.server.wire import Call

_WORD = re.compile(r"\s*\S+\s*$|\s*\S+")
"""Pieces of a text that joined are the text."""
_NOT_HEADER = re.compile(r"[^ -~]+")
_LONGEST_HEADER = 500
_TYPES = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "simulator_error",
    503: "service_unavailable",
    504: "timeout_error",
}


@dataclass(frozen=True, slots=True)
class Written:
    """One reply on its way out."""

    number: str
    call: Call
    answer: Answer

    def body(self) -> bytes:
        """Return the body of a reply that is not streamed."""
        message = {"role": "assistant", "content": self.answer.content, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return _json(
            {
                **self._head("chat.completion"),
                "choices": [choice],
                "usage": usage(self.answer.usage),
                "mimesim": self.told(),
            }
        )

    def events(self) -> bytes:
        """Return the events of a stream; the reply is whole before the first of them is sent."""
        rest = {"usage": None} if self.call.with_usage else {}
        head = {**self._head("chat.completion.chunk"), **rest}
        first = _event({**head, "choices": [_delta({"role": "assistant", "content": ""})]})
        # a stream has an event a word; only the word is written anew for each of them
        open_ = jsonio.dumps(head)[:-1] + ', "choices": [{"index": 0, "delta": {"content": '
        close = '}, "finish_reason": null, "logprobs": null}]}\n\n'
        words = [
            f"data: {open_}{jsonio.dumps(piece)}{close}".encode()
            for piece in _WORD.findall(self.answer.content)
        ]
        last = _event({**head, "choices": [_delta({}, "stop")], "mimesim": self.told()})
        out = [first, *words, last]
        if self.call.with_usage:
            out.append(_event({**head, "choices": [], "usage": usage(self.answer.usage)}))
        return b"".join([*out, b"data: [DONE]\n\n"])

    def headers(self) -> dict[str, str]:
        """Return what clients that drop unknown fields can still read."""
        answer = self.answer
        told = {
            "x-mimesim-action": answer.action.value,
            "x-mimesim-stop": answer.stop.reason.value if answer.stop else "",
            "x-mimesim-guards": ", ".join(answer.guards),
            "x-mimesim-warnings": "; ".join(answer.warnings),
        }
        return {
            name: _NOT_HEADER.sub("?", value)[:_LONGEST_HEADER]
            for name, value in told.items()
            if value
        }

    def told(self) -> dict[str, Any]:
        """Return the field `mimesim`: the end as a field, and what was noticed."""
        answer, stop = self.answer, self.answer.stop
        ended: dict[str, Any] | None = None
        if stop is not None:
            ended = {"reason": stop.reason.value, "by": stop.by.value, "turn": stop.turn}
            ended |= {"limit": stop.limit} if stop.limit is not None else {}
        return {
            "action": answer.action.value,
            "stop": ended,
            "turn": answer.turn,
            "episode": self.call.asked.episode or None,
            "guards": list(answer.guards),
            "warnings": list(answer.warnings),
        }

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.number,
            "object": kind,
            "created": int(time.time()),
            "model": self.call.model,
        }


def usage(spent: Usage) -> dict[str, Any] | None:
    """Return the tokens of a reply, thoughts and held back drafts included; None = unknown."""
    if spent.calls == 0:
        spent = Usage(0, 0, 0, 0)
    if spent.prompt_tokens is None or spent.completion_tokens is None:
        return None
    told: dict[str, Any] = {
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "total_tokens": spent.prompt_tokens + spent.completion_tokens,
    }
    if spent.reasoning_tokens is not None:
        told["completion_tokens_details"] = {"reasoning_tokens": spent.reasoning_tokens}
    return told


def error_body(refusal: Refusal) -> bytes:
    """Return the body of an error, in the shape that clients know."""
    kind = _TYPES.get(refusal.status, "invalid_request_error")
    inner = {
        "message": refusal.message,
        "type": kind,
        "param": refusal.param,
        "code": refusal.code,
    }
    return _json({"error": inner})


def model_list(names: list[str], since: int) -> bytes:
    """Return the list of models."""
    rows = [
        {"id": name, "object": "model", "created": since, "owned_by": "mimesim"} for name in names
    ]
    return _json({"object": "list", "data": rows})


def json_body(value: Mapping[str, Any]) -> bytes:
    """Return a small JSON answer."""
    return _json(value)


def _delta(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + _json(value) + b"\n\n"


def _json(value: Mapping[str, Any]) -> bytes:
    return jsonio.dumps(value).encode("utf-8")
