"""What went wrong with one attempt at an endpoint, and what that means: retry, or which error.

The verdict is the same for every back-end: transport trouble may pass (408, 409, 425, 429, 5xx,
no connection, time-out, a damaged answer); a full context, a wrong key or a wrong request does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from mimesim.errors import ContextExceeded, EnvironmentFault, InfraError, MimesimError

_PASSING = frozenset({408, 409, 425, 429})
_CONTEXT_FULL = re.compile(
    r"context[_ ](?:length|window|size)"
    r"|max(?:imum)?[_ ](?:model|context|sequence|input|prompt)[_ ]?(?:len|length|size|tokens)"
    r"|(?:prompt|input|request|messages?)\b.{0,40}\b(?:too (?:long|large)|exceeds?)"
    r"|too many (?:input |prompt |total )?tokens"
    r"|reduce the length of",
    re.IGNORECASE | re.DOTALL,
)
_QUOTE_WINDOW = 12
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Trouble:
    """One failed attempt.

    Attributes:
        status: HTTP status; None = no usable answer came.
        kind: short public words, e.g. `HTTP 429` or `no connection`.
        code: the server's own code, e.g. `context_length_exceeded`.
        message: the server's words; may quote keys and the conversation, so never shown raw.
        retry_after: seconds that the server asked to wait.
    """

    kind: str
    status: int | None = None
    code: str = ""
    message: str = ""
    retry_after: float | None = None

    @property
    def throttled(self) -> bool:
        """Whether the server asked all callers to slow down."""
        return self.status == 429 or (self.status == 503 and self.retry_after is not None)

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        if self.context_full or self.code == "insufficient_quota":
            return False
        return self.status is None or self.status in _PASSING or self.status >= 500

    @property
    def context_full(self) -> bool:
        """Whether the prompt did not fit."""
        if self.status is None or self.status in (401, 403, 404, *_PASSING):
            return False
        return self.status == 413 or bool(_CONTEXT_FULL.search(f"{self.code} {self.message}"))

    def label(self) -> str:
        """Return kind and code, which hold nothing private."""
        code = self.code if re.fullmatch(r"[A-Za-z_.-]{1,40}", self.code) else ""
        return f"{self.kind} ({code})" if code else self.kind

    def error(self, *, url: str, model: str, words: str) -> MimesimError:
        """Return the error of trouble that does not pass.

        A full context is told as the agent's; the user or judge that called tells it as its own.

        Args:
            url: public address of the endpoint.
            model: model name asked for.
            words: the server's message, cleaned by `cleaned`.
        """
        if self.context_full:
            return ContextExceeded(f"the prompt does not fit the context of {model}", party="agent")
        told = f"{self.label()}: {words}" if words else self.label()
        if self.status in (401, 403):
            return EnvironmentFault(
                f"the endpoint refused the key ({told})",
                where=url,
                expected=f"a key that may use {model!r}",
                mend="correct the key in the environment variable that api_key_env names",
            )
        if self.status == 404:
            return EnvironmentFault(
                f"the endpoint does not know {model!r} or the address ({told})",
                where=url,
                expected="a model that the server lists under /models, and a base URL ending in /v1",
                mend="correct the model name or the address",
            )
        return InfraError(f"{url} refused the request ({told})")


def cleaned(message: str, asked: str) -> str:
    """Return a server's message cut to a line, or "" when it quotes the conversation `asked`."""
    line = " ".join(message.split())[:_SHOWN]
    spoken = " ".join(asked.split())
    last = max(1, len(line) - _QUOTE_WINDOW + 1)
    if any(line[i : i + _QUOTE_WINDOW] in spoken for i in range(last) if line):
        return ""
    return line


def from_body(body: Any, status: int | None, headers: Mapping[str, str]) -> Trouble:
    """Read the error body of an answer, in the shapes that servers use."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    code, message = "", inner if isinstance(inner, str) else ""
    if isinstance(inner, Mapping):
        code = str(inner.get("code") or inner.get("type") or "")
        message = str(inner.get("message") or inner.get("detail") or "")
        if status == 200 and type(inner.get("code")) is int:
            status = inner["code"]  # gateways wrap an upstream error into a 200
    kind = "error in a 200 answer" if status == 200 else f"HTTP {status}"
    return Trouble(kind, None if status == 200 else status, code, message, retry_after(headers))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that `Retry-After` (or its millisecond form) asks for."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
