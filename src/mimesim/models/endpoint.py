"""An endpoint's address, options and secrets: who is called, on which terms, and what stays hidden.

No network here. Keys are named by environment variable and read when the first call is made;
`redact` removes them, and anything shaped like one, from every text that leaves `models.openai`.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from mimesim import config
from mimesim.config import HIDDEN
from mimesim.errors import ConfigError, EnvironmentFault, UsageError
from mimesim.registry import closest

_KEYLIKE = re.compile(
    r"\b(?:sk|pk|rk|hf|gsk|xai|key)[-_][\w*-]{5,}|\b(bearer|basic)\s+[\w.~+/=*-]{4,}", re.IGNORECASE
)
_NAMED = re.compile(
    r"((?:api[-_ ]?key|token|secret|password|passwd|authorization)\"?'?\s*[:=]\s*\"?'?)[^\s\"',;}]+",
    re.IGNORECASE,
)
_CHOICES = {
    "response_format": ("json_schema", "json_object", "none"),
    "max_tokens_field": ("max_tokens", "max_completion_tokens"),
}
_PRICES = "model name -> {prompt, completion, cached}, dollars per million tokens"


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return `text` without `secrets`, user information in URLs, and whatever looks like a key."""
    for secret in sorted((s for s in secrets if s), key=len, reverse=True):
        for form in {secret, quote(secret, safe="")}:
            edges = ("(?<![A-Za-z0-9])", "(?![A-Za-z0-9])") if len(form) < 6 else ("", "")
            text = re.sub(edges[0] + re.escape(form) + edges[1], HIDDEN, text)
    text = config.redact(text)
    text = _KEYLIKE.sub(lambda m: f"{m.group(1)} {HIDDEN}" if m.group(1) else HIDDEN, text)
    return _NAMED.sub(rf"\1{HIDDEN}", text)


class Price(NamedTuple):
    """US dollars per million tokens; prompt tokens from the provider's cache may be cheaper."""

    prompt: float
    completion: float
    cached: float


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Options of an `openai:` model.

    Attributes:
        api_key_env: environment variable that holds the key; "" = the server wants none.
        timeout_s: wall clock of one attempt.
        budget_s: wall clock of one call, all attempts and pauses together.
        preflight_s: wall clock of the check before a run.
        concurrency: calls in flight at this address; the lowest of all its users holds.
        backoff_s: first pause after a failure; it doubles up to `backoff_max_s`.
        prices: model name -> {"prompt", "completion", "cached"} in dollars per million tokens.
        extra_body: further fields of every request, as the server wants them.
        response_format: how a schema is sent: json_schema, json_object or none.
        max_tokens_field: max_tokens, or max_completion_tokens for newer hosted models.
        send_seed: whether the server takes a seed.
        seed: of the jitter of pauses.
    """

    api_key_env: str = "OPENAI_API_KEY"
    timeout_s: float = 180.0
    budget_s: float = 600.0
    preflight_s: float = 5.0
    concurrency: int = 8
    backoff_s: float = 0.5
    backoff_max_s: float = 30.0
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    response_format: str = "json_schema"
    max_tokens_field: str = "max_tokens"
    send_seed: bool = True
    seed: int = 0

    @classmethod
    def read(cls, options: Mapping[str, Any] | None, where: str) -> EndpointOptions:
        """Check and take over `options`.

        Raises:
            ConfigError: unknown key or unusable value; a secret is never quoted.
        """
        given = dict(options or {})
        known = [one.name for one in fields(cls)]
        for key in given:
            if key in ("api_key", "key", "token", "password"):
                raise ConfigError(
                    f"option {key!r} would put a secret into the config",
                    where=where,
                    expected="the name of an environment variable",
                    mend="export the key and name the variable with api_key_env",
                )
            if key not in known:
                raise ConfigError(
                    f"unknown option {key!r}{closest(key, known)}",
                    where=where,
                    expected="one of " + ", ".join(known),
                )
        made = cls(**given)
        made._check(where)
        return made

    def _check(self, where: str) -> None:
        given = asdict(self)
        rules: dict[str, tuple[bool, str]] = {
            name: (_is_number(given[name]) and given[name] > 0, "seconds above 0")
            for name in ("timeout_s", "budget_s", "preflight_s", "backoff_s", "backoff_max_s")
        }
        rules |= {
            name: (given[name] in allowed, " or ".join(allowed))
            for name, allowed in _CHOICES.items()
        }
        rules |= {
            "concurrency": (type(self.concurrency) is int and self.concurrency > 0, "a count"),
            "seed": (type(self.seed) is int, "an integer"),
            "send_seed": (type(self.send_seed) is bool, "true or false"),
            "api_key_env": (isinstance(self.api_key_env, str), "the name of a variable"),
            "extra_body": (isinstance(self.extra_body, Mapping), "a table"),
            "prices": (_are_prices(self.prices), _PRICES),
        }
        for key, (usable, expected) in rules.items():
            if not usable:
                raise ConfigError(
                    f"option {key!r} has an unusable value", where=where, expected=expected
                )

    def price(self, model: str) -> Price | None:
        """Return the price of `model`, or None when it is not known."""
        row = self.prices.get(model)
        if row is None:
            return None
        return Price(row["prompt"], row["completion"], row.get("cached", row["prompt"]))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_prices(table: object) -> bool:
    return isinstance(table, Mapping) and all(
        isinstance(row, Mapping)
        and {"prompt", "completion"} <= set(row) <= {"prompt", "completion", "cached"}
        and all(_is_number(value) and value >= 0 for value in row.values())
        for row in table.values()
    )


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """Where an endpoint lives. `url` is safe to show; user information is kept apart."""

    url: str
    host: str
    loopback: bool
    _userinfo: str

    def __repr__(self) -> str:
        """Show the public part."""
        return f"Address({self.url!r})"

    @classmethod
    def read(cls, base_url: str, where: str) -> Address:
        """Take a base URL apart.

        Raises:
            UsageError: not `http(s)://host[:port]/path`.
        """
        expected = "http(s)://host[:port]/path, e.g. http://127.0.0.1:8000/v1"
        try:
            parts = urlsplit(base_url)
            port = parts.port
        except ValueError:
            raise UsageError("the base URL is malformed", where=where, expected=expected) from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"{redact(base_url)!r} is not a base URL", where=where, expected=expected
            )
        if parts.query or parts.fragment:
            raise UsageError(
                "the base URL has a query or a fragment", where=where, expected=expected
            )
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        host = name if port is None else f"{name}:{port}"
        userinfo = parts.netloc.rpartition("@")[0]
        url = f"{parts.scheme}://{host}{parts.path.rstrip('/')}"
        return cls(url, host, _is_loopback(parts.hostname), userinfo)

    def headers(self) -> dict[str, str]:
        """Return the header that user information in the URL stands for."""
        if not self._userinfo:
            return {}
        return {"Authorization": "Basic " + _base64(unquote(self._userinfo))}

    def secrets(self) -> tuple[str, ...]:
        """Return what must not be shown."""
        if not self._userinfo:
            return ()
        plain = unquote(self._userinfo)
        return (self._userinfo, _base64(plain), plain.partition(":")[2])

    def key(self, options: EndpointOptions) -> str:
        """Return the key from the environment; "" where none is needed.

        Raises:
            EnvironmentFault: the variable is not set and the host is not this machine.
        """
        key = os.environ.get(options.api_key_env, "").strip() if options.api_key_env else ""
        if key or not options.api_key_env or self.loopback or self._userinfo:
            return key
        raise EnvironmentFault(
            "no API key",
            where=self.url,
            expected=f"the key in the environment variable {options.api_key_env}",
            mend=f"export {options.api_key_env}=..., or set api_key_env (empty: no key is needed)",
        )


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8")).decode("ascii")


def _is_loopback(hostname: str) -> bool:
    try:
        return ipaddress.ip_address(hostname).is_loopback
    except ValueError:
        return hostname == "localhost" or hostname.endswith(".localhost")
