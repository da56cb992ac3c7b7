"""From a door name such as `openai:<model>@<base_url>` to a model; the only way to the network.

Every kind is named by a string and imported when it is asked for: a run with scripted users loads
neither torch nor a network client.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from mimesim.errors import ConfigError, EnvironmentFault, MissingExtraError, UsageError
from mimesim.models.base import ChatModel, TokenModel
from mimesim.models.cache import Cached, CacheStore
from mimesim.models.endpoint import Address, EndpointOptions, redact
from mimesim.models.scripted import Echo, Replay, Scripted
from mimesim.registry import Registry, closest, unknown_name

R = TypeVar("R")

CHAT = Registry(
    "model",
    {
        "embedded": "mimesim.models.embedded:make_embedded",
        "hf": "mimesim.models.local:make_local",
        "openai": "mimesim.models.load:make_openai",
        "scripted": "mimesim.models.load:make_scripted",
    },
)
"""Kinds of chat models. A factory takes the words after the colon and the options."""

TOKEN = Registry(
    "token model",
    {
        "tiny": "mimesim.models.tiny:make_tiny_token_model",
        "policy": "mimesim.models.tiny:make_tiny_token_model",
        "openai": "mimesim.models.load:make_openai_tokens",
    },
)
"""Kinds of token models, made the same way."""

_CODEC = Registry(
    "tokenizer",
    {
        "tokenizer": "transformers:AutoTokenizer",
        "codec": "mimesim.models.codec:TemplateCodec",
    },
)
_SHAPES = {
    "hf": "hf:<path or id>, e.g. hf:HuggingFaceTB/SmolLM2-135M-Instruct",
    "openai": "openai:<model>@<base_url>, e.g. openai:qwen3@http://127.0.0.1:8000/v1",
    "scripted": "scripted:<name>, e.g. scripted:echo",
    "tiny": "tiny:<path>, e.g. tiny:out/policy",
    "policy": "policy:<path>, e.g. policy:out/policy",
}
_NEEDS_TORCH = ("embedded", "hf", "tiny", "policy")
_SCRIPTS = ("echo", "replay", "replies")


@runtime_checkable
class Reachable(Protocol):
    """A model, or a party that speaks through one, that can be checked before a run."""

    async def preflight(self) -> None:
        """Check them.

        Raises:
            EnvironmentFault: they are not fit; one line.
        """
        ...


async def preflight(model: object) -> None:
    """Check a model or party before a run, if it is `Reachable`; nothing else needs a check.

    Raises:
        EnvironmentFault: no server there, wrong key, or unknown model; one line.
    """
    inner = model.model if isinstance(model, Cached) else model
    if isinstance(inner, Reachable):
        await inner.preflight()


def check_ready(name: str, options: Mapping[str, Any] | None = None) -> None:
    """Check what a chat model needs before it is made, without network and without loading it.

    Raises:
        UnknownNameError: no such kind.
        UsageError: a malformed address.
        EnvironmentFault: the key of an endpoint is not set, or a model folder is not there.
    """
    kind, _, rest = name.partition(":")
    if "." not in kind:
        CHAT.target(kind)
    if kind == "openai":
        given = {key: value for key, value in (options or {}).items() if key != "cache"}
        url = _address(rest)[1]
        Address.read(url, name).key(EndpointOptions.read(given, redact(name)))
    elif kind == "hf" and rest.startswith((".", "/", "~")) and not Path(rest).expanduser().is_dir():
        raise EnvironmentFault(f"no model folder {rest!r}", expected="a folder with a model")


class JSONService(Protocol):
    """A server that is no model, e.g. a search engine."""

    async def ask(
        self, fields: Mapping[str, Any], *, method: str, read: Callable[[Any], R], asked: str
    ) -> R:
        """Send one request until it is answered, and return what `read` makes of the answer.

        Args:
            fields: parameters of the address (GET) or of the JSON body (POST).
            method: GET or POST.
            read: raises ValueError for a damaged answer, which is asked for again.
            asked: the words of the request; server messages that quote them are withheld.

        Raises:
            InfraError: the budget is spent, or the server refused this request.
            EnvironmentFault: wrong key or address.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections; twice is harmless."""
        ...


class ModelParty:
    """A party that speaks through one chat model, which it owns: judge, partner, player, agent."""

    def __init__(
        self, model: ChatModel, name: str, *, prompt_hash: str, sampling: Mapping[str, Any]
    ) -> None:
        self._model = model
        self.identity = replace(
            model.identity,
            kind="llm",
            name=name or f"model:{model.identity.name}",
            prompt_hash=prompt_hash,
            sampling=sampling,
        )

    async def preflight(self) -> None:
        """Check the endpoint of the model, if it has one.

        Raises:
            EnvironmentFault: it is not fit; one line.
        """
        await preflight(self._model)

    async def aclose(self) -> None:
        """Close the model; twice is harmless."""
        await self._model.aclose()


def make_chat_model(name: str, *, options: Mapping[str, Any] | None = None) -> ChatModel:
    """Make the chat model that `name` says.

    Args:
        name: `embedded`, `hf:<path or id>`, `openai:<model>@<base_url>`, `scripted:<name>`, or the
            name of an extension.
        options: settings of that kind (`models.endpoint.EndpointOptions` for endpoints), and for
            every kind `cache`: a file that keeps finished answers.

    Raises:
        UnknownNameError: no such kind or script.
        UsageError: the name is incomplete or malformed.
        ConfigError: an unknown or unusable option.
        MissingExtraError: the kind needs an extra that is not installed.
    """
    given = _table(options, name)
    file = given.pop("cache", None)
    model = cast(ChatModel, _make(CHAT, name, given))
    if file is None:
        return model
    if not isinstance(file, str) or not file:
        raise ConfigError(
            "option 'cache' is not a file name", expected="a path, e.g. out/answers.db"
        )
    return Cached(model, CacheStore(file))


def make_token_model(name: str, *, options: Mapping[str, Any] | None = None) -> TokenModel:
    """Make the token model that `name` says: `tiny:<path>`, `policy:<path>` or `openai:…`.

    An endpoint needs the option `tokenizer`: the policy's tokenizer, or its path or id.

    Raises:
        UnknownNameError, UsageError, ConfigError, MissingExtraError: as `make_chat_model`.
    """
    return cast(TokenModel, _make(TOKEN, name, _table(options, name)))


def make_openai(rest: str, options: Mapping[str, Any]) -> ChatModel:
    """Make the chat model behind `<model>@<base_url>`."""
    from mimesim.models.openai import OpenAIChat

    model, url = _address(rest)
    return OpenAIChat(model, url, EndpointOptions.read(options, f"openai:{model}"))


def make_openai_tokens(rest: str, options: Mapping[str, Any]) -> TokenModel:
    """Make the token model behind `<model>@<base_url>`, a vLLM server."""
    from mimesim.models.openai import VLLMTokens
    from mimesim.models.token_bounds import TokenBounds

    model, url = _address(rest)
    given = dict(options)
    tokenizer = given.pop("tokenizer", None)
    if not tokenizer:
        raise ConfigError(
            "a token model behind an endpoint needs the option 'tokenizer'",
            where=f"openai:{model}",
            expected="path or id of the policy's tokenizer",
        )
    settings = EndpointOptions.read(given, f"openai:{model}")
    _need_torch("tokenizer")
    if isinstance(tokenizer, str):
        tokenizer = _CODEC.load("tokenizer").from_pretrained(tokenizer)
    codec = _CODEC.load("codec")(tokenizer)
    bounds = TokenBounds(codec.size, codec.end_id)
    return VLLMTokens(model, url, settings, codec=codec, bounds=bounds)


def make_json_service(url: str, options: Mapping[str, Any]) -> JSONService:
    """Make the client of a server that is no model; nothing is connected yet.

    Args:
        url: where requests go.
        options: `key_header`, the header that carries the key, and what an endpoint takes
            (`models.endpoint.EndpointOptions`); without `api_key_env` no key is sent.

    Raises:
        UsageError: the address is malformed.
        ConfigError: an unknown or unusable option.
    """
    from mimesim.models.openai import JSONEndpoint

    given = {"api_key_env": "", **options}
    header = given.pop("key_header", "")
    if not isinstance(header, str):
        raise ConfigError("option 'key_header' is no text", where=redact(url))
    return JSONEndpoint(url, EndpointOptions.read(given, redact(url)), key_header=header)


def make_scripted(rest: str, options: Mapping[str, Any]) -> ChatModel:
    """Make `echo`, `replay` (option `turns`) or `replies` (option `replies`)."""
    if rest not in _SCRIPTS:
        raise unknown_name("script", rest, list(_SCRIPTS))
    wanted = {"echo": None, "replay": "turns", "replies": "replies"}[rest]
    known = [wanted] if wanted else []
    for key in options:
        if key not in known:
            raise ConfigError(
                f"unknown option {key!r}{closest(key, known)}",
                where=f"scripted:{rest}",
                expected=f"only {wanted!r}" if wanted else "none",
            )
    if wanted is None:
        return Echo()
    lines = options.get(wanted)
    if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
        raise ConfigError(
            f"option {wanted!r} is missing or unusable",
            where=f"scripted:{rest}",
            expected="a list of texts",
        )
    return Replay(lines) if rest == "replay" else Scripted(tuple(lines))


def _table(options: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError("the options are no table", where=redact(name), expected="name = value")
    return dict(options or {})


def _make(registry: Registry, name: str, options: Mapping[str, Any]) -> Any:
    kind, colon, rest = name.partition(":")
    if "." in kind:  # an outside object, package.module:attribute
        return registry.make(name, "", options, needs=("identity", "aclose"))
    if kind not in registry.names():
        raise unknown_name(registry.kind, kind, registry.names())
    if kind in _SHAPES and not rest:
        raise UsageError(f"{registry.kind} {name!r} is incomplete", expected=_SHAPES[kind])
    if kind not in _SHAPES and kind in registry.builtin and colon:
        raise UsageError(
            f"{registry.kind} {redact(name)!r} is malformed", expected=f"{kind!r} alone"
        )
    if kind in _NEEDS_TORCH:
        _need_torch(f"{registry.kind} {name!r}")
    rests = () if kind == "embedded" else (rest,)
    return registry.make(kind, *rests, options, needs=("identity", "aclose"))


def _need_torch(part: str) -> None:
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
        raise MissingExtraError.for_extra(part, "train")


def _address(rest: str) -> tuple[str, str]:
    """Split `<model>@<base_url>`; model names may hold an @ or a colon, URLs begin with http."""
    for scheme in ("@https://", "@http://"):
        model, found, tail = rest.partition(scheme)
        if found and model:
            return model, scheme[1:] + tail
    raise UsageError(f"model {redact('openai:' + rest)!r} is malformed", expected=_SHAPES["openai"])
