"""OpenAI-compatible endpoints: the one network door, with the one retry loop.

`OpenAIChat` answers messages; `VLLMTokens` continues token ids through vLLM's `/v1/completions`;
`JSONEndpoint` asks any other server that speaks JSON. All call through `_Endpoint`, which pauses, retries and gives up inside a wall-clock budget; the
retries of the SDK are off. Nothing an endpoint says on failure becomes an answer, and no key,
password or private text stands in an error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import openai
from openai import AsyncOpenAI

from mimesim import jsonio, seeds
from mimesim.dialogue.types import Identity
from mimesim.errors import EnvironmentFault, InfraError, MimesimError
from mimesim.models.base import ChatCodec, ChatMessage, Completion, Continuation, Sampling
from mimesim.models.endpoint import Address, EndpointOptions, redact
from mimesim.models.limiter import limiter_for
from mimesim.models.token_bounds import FLAG, TokenBounds
from mimesim.models.trouble import Trouble, cleaned, from_body
from mimesim.models.wire import (
    Damaged,
    chat_body,
    listed_models,
    read_chat,
    schema_format,
    token_body,
)

R = TypeVar("R")
Send = Callable[[AsyncOpenAI], Awaitable[Any]]
"""Makes one call of the SDK and returns its raw response."""

_NO_KEY = "none"  # the SDK insists on a key; servers without one ignore it
_LONG_SECRET = 8  # characters; a shorter one may stand in any text by chance
_LONGEST_HINT_S = 60.0  # a server that asks for more is asked again before: it may be well by then
_NO_LIST = frozenset({400, 404, 405, 501})  # answers of servers without `/models`


class _AttemptFailed(Exception):
    """One attempt failed; never leaves this module."""

    def __init__(self, trouble: Trouble) -> None:
        self.trouble = trouble
        super().__init__(trouble.kind)


class _Refused(Exception):
    """The server will not answer this request, now or later; never leaves this module."""

    def __init__(self, trouble: Trouble, attempts: int) -> None:
        self.trouble = trouble
        self.attempts = attempts
        super().__init__(trouble.kind)


class _Endpoint:
    """One server as one model sees it: client, limiter and the retry loop."""

    def __init__(self, model: str, base_url: str, options: EndpointOptions) -> None:
        self.model = model
        self.address = Address.read(base_url, f"openai:{model}")
        self.options = options
        self._jitter = seeds.generator(options.seed, "back-off", self.address.url, model)
        self._client: AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._secrets = self.address.secrets()

    @property
    def identity(self) -> Identity:
        """Who answers; every option that changes a request stands in `sampling`."""
        options = self.options
        sampling: dict[str, Any] = {"response_format": options.response_format}
        if options.extra_body:
            sampling["extra_body"] = dict(options.extra_body)
        if not options.send_seed:
            sampling["send_seed"] = False
        name = f"openai:{self.model}@{self.address.url}"
        return Identity("llm", name, self.model, endpoint_host=self.address.host, sampling=sampling)

    async def ask(self, send: Send, read: Callable[[Any], R], asked: str) -> R:
        """Send one request until it is answered, and return what `read` makes of the answer.

        Args:
            send: the call.
            read: raises ValueError for a damaged answer, which is asked for again.
            asked: text of the conversation; server messages that quote it are withheld.

        Raises:
            InfraError: the budget is spent, or the server refused this request.
            ContextExceeded: the prompt does not fit.
            EnvironmentFault: wrong key, model or address.
        """
        try:
            return await self._persist(send, read, self.options.budget_s)
        except _Refused as refusal:
            raise self._error(refusal, asked) from None

    async def lists_model(self) -> bool:
        """Return whether `/models` names the model; False = the list does not tell.

        Raises:
            EnvironmentFault: no server there, or it refused the key.
        """
        try:
            names = await self._persist(
                lambda client: client.models.with_raw_response.list(),
                listed_models,
                self.options.preflight_s,
            )
        except _Refused as refusal:
            if refusal.trouble.status in _NO_LIST:
                return False
            raise self._unfit(self._error(refusal, "")) from None
        except InfraError as error:
            raise self._unfit(error) from None
        return self.model in names

    async def try_out(self, send: Send, read: Callable[[Any], R]) -> R:
        """Make one call that must work before a run, and return what `read` makes of the answer.

        Raises:
            EnvironmentFault: it does not.
        """
        try:
            return await self._persist(send, read, self.options.preflight_s)
        except _Refused as refusal:
            raise self._unfit(self._error(refusal, "")) from None
        except InfraError as error:
            raise self._unfit(error) from None

    async def aclose(self) -> None:
        """Close the connections; twice is harmless."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()

    async def _persist(self, send: Send, read: Callable[[Any], R], budget_s: float) -> R:
        """The retry loop; the budget runs once a place is free, pauses included."""
        limiter = limiter_for(self.address.url, self.options.concurrency)
        loop = asyncio.get_running_loop()
        async with limiter.slot():
            deadline = loop.time() + budget_s
            trouble, attempts = Trouble("no answer in time"), 0
            while True:
                try:
                    async with limiter.turn(deadline):
                        attempts += 1
                        return await self._attempt(send, read, deadline - loop.time())
                except TimeoutError:  # the budget is spent, in a pause or in an attempt
                    raise self._spent(trouble, budget_s, attempts) from None
                except _AttemptFailed as failure:
                    trouble = failure.trouble
                if not trouble.passing:
                    raise _Refused(trouble, attempts)
                pause = self._pause(trouble, max(attempts, limiter.failed_probes), budget_s)
                if trouble.throttled:
                    limiter.throttle(pause)  # the next turn waits, for all callers
                elif loop.time() + pause >= deadline:
                    raise self._spent(trouble, budget_s, attempts)
                else:
                    await asyncio.sleep(pause)

    async def _attempt(self, send: Send, read: Callable[[Any], R], left_s: float) -> R:
        client = self._connected()
        try:
            async with asyncio.timeout(min(self.options.timeout_s, left_s)):
                response = await send(client)
            text = response.text
            if "\ufffd" in text:
                text = response.content.decode("utf-8")  # else damaged bytes would be spoken
            self._refuse_echo(text)
            answer = jsonio.loads(text)
            if isinstance(answer, Mapping) and answer.get("error"):
                raise _AttemptFailed(from_body(answer, 200, response.headers))
            return read(answer)
        except (TimeoutError, openai.APITimeoutError):
            if left_s <= self.options.timeout_s:
                raise TimeoutError from None
            raise _AttemptFailed(Trouble("time-out")) from None
        except openai.APIConnectionError:
            raise _AttemptFailed(Trouble("no connection")) from None
        except openai.APIStatusError as error:
            body = error.response.text if error.body is None else error.body
            trouble = from_body(body, error.status_code, error.response.headers)
            raise _AttemptFailed(trouble) from None
        except Damaged as error:
            raise _AttemptFailed(Trouble(f"damaged answer ({error})")) from None
        except (ValueError, openai.APIError):
            raise _AttemptFailed(Trouble("damaged answer")) from None

    def _connected(self) -> AsyncOpenAI:
        """Return the client of the running loop; connections of another loop are of no use."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            key = self.address.key(self.options)
            self._secrets = (*self.address.secrets(), key)
            self._loop = loop
            self._client = AsyncOpenAI(
                api_key=key or _NO_KEY,
                base_url=self.address.url,
                max_retries=0,
                timeout=self.options.timeout_s,
                default_headers=self.address.headers(),
                # a proxy of the environment cannot reach this machine's own servers
                http_client=openai.DefaultAsyncHttpxClient(trust_env=not self.address.loopback),
            )
        return self._client

    def _refuse_echo(self, text: str) -> None:
        """Refuse an answer that quotes our key: it would stand in an utterance and in files."""
        if any(len(secret) >= _LONG_SECRET and secret in text for secret in self._secrets):
            raise _AttemptFailed(Trouble("an answer that quotes the key", 200))

    def _pause(self, trouble: Trouble, failures: int, budget_s: float) -> float:
        longest = min(self.options.backoff_max_s, self.options.backoff_s * 2.0 ** (failures - 1))
        own = longest * self._jitter.uniform(0.5, 1.0)
        if trouble.retry_after is None:
            return own
        # All callers keep this pause, so no hint may last beyond what one of them would wait.
        hint = min(trouble.retry_after, _LONGEST_HINT_S, budget_s)
        # A first hint is believed; whoever is refused again after it waits longer by himself.
        return hint if failures == 1 else max(hint, own)

    def _spent(self, trouble: Trouble, budget_s: float, attempts: int) -> InfraError:
        return InfraError(
            f"{self.address.url}: {trouble.label()}, given up after {attempts} attempts "
            f"and at most {budget_s:g} s",
            retryable=True,
            attempts=attempts,
        )

    def _error(self, refusal: _Refused, asked: str) -> MimesimError:
        words = cleaned(redact(refusal.trouble.message, self._secrets), asked)
        error = refusal.trouble.error(url=self.address.url, model=self.model, words=words)
        if isinstance(error, InfraError):
            error.attempts = refusal.attempts
        return error

    def _unfit(self, error: MimesimError) -> EnvironmentFault:
        if isinstance(error, EnvironmentFault):
            return error
        told = str(error).removeprefix(f"{self.address.url}: ")
        return EnvironmentFault(
            f"the endpoint does not serve {self.model!r}: {told}",
            where=self.address.url,
            expected="an OpenAI-compatible server that answers",
            mend="start the server, or correct the address in openai:<model>@<base_url>",
        )


class JSONEndpoint:
    """A server that is no model, e.g. a search engine: the same retries, limits and secrets.

    Args:
        url: where requests go, as it stands.
        options: `extra_body` holds further fields of every request.
        key_header: header that carries the key; "" = `Authorization: Bearer`.
    """

    def __init__(self, url: str, options: EndpointOptions, *, key_header: str = "") -> None:
        self._endpoint = _Endpoint("service", url, options)
        self._options = options
        self._key_header = key_header

    async def ask(
        self, fields: Mapping[str, Any], *, method: str, read: Callable[[Any], R], asked: str
    ) -> R:
        """Send one request until it is answered; see `models.load.JSONService`."""
        url = self._endpoint.address.url
        given = {**self._options.extra_body, **fields}

        async def send(client: AsyncOpenAI) -> Any:
            kind = openai.HttpxBinaryResponseContent
            # a redirect would carry the key to another host
            terms: Any = {"headers": self._auth(client), "follow_redirects": False}
            if method == "GET":
                terms["params"] = given
                got = await client.get(url, cast_to=kind, options=terms)
            else:
                got = await client.post(url, cast_to=kind, body=given, options=terms)
            return got.response

        try:
            return await self._endpoint._persist(send, read, self._options.budget_s)
        except _Refused as refusal:
            trouble = refusal.trouble
            words = cleaned(redact(trouble.message, self._endpoint._secrets), asked)
            told = f"{trouble.label()}: {words}" if words else trouble.label()
            if trouble.status in (401, 403, 404):
                raise EnvironmentFault(
                    f"the server refused ({told})",
                    where=url,
                    expected="an address that it knows and a key that it takes",
                    mend="correct the address, or the key in the variable of api_key_env",
                ) from None
            raise InfraError(
                f"{url} refused the request ({told})", attempts=refusal.attempts
            ) from None

    async def aclose(self) -> None:
        """Close the connections; twice is harmless."""
        await self._endpoint.aclose()

    def _auth(self, client: AsyncOpenAI) -> dict[str, Any]:
        if client.api_key != _NO_KEY and self._key_header:
            return {"Authorization": openai.Omit(), self._key_header: client.api_key}
        if client.api_key == _NO_KEY and not self._endpoint.address.headers():
            return {"Authorization": openai.Omit()}
        return {}


class OpenAIChat:
    """A chat model behind an OpenAI-compatible endpoint."""

    def __init__(self, model: str, base_url: str, options: EndpointOptions) -> None:
        self._endpoint = _Endpoint(model, base_url, options)
        self._model = model
        self._options = options
        self.identity = self._endpoint.identity

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        sampling: Sampling,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        response_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Answer `messages`; see `models.base.ChatModel`."""
        body = chat_body(self._model, messages, sampling, self._options)
        if tools:
            body["tools"] = [dict(tool) for tool in tools]
        if response_schema is not None and self._options.response_format != "none":
            body["response_format"] = schema_format(response_schema, self._options)
        price = self._options.price(self._model)
        started = time.perf_counter()
        completion = await self._endpoint.ask(
            lambda client: client.chat.completions.with_raw_response.create(**body),
            lambda answer: read_chat(answer, price),
            "\n".join(message.content for message in messages),
        )
        return replace(completion, latency_s=time.perf_counter() - started)

    async def preflight(self) -> None:
        """Check that the server is there, takes the key and knows the model.

        Raises:
            EnvironmentFault: it is not so; one line.
        """
        if await self._endpoint.lists_model():
            return
        greeting = [ChatMessage("user", "hi")]
        body = chat_body(self._model, greeting, Sampling(max_tokens=1), self._options)
        await self._endpoint.try_out(
            lambda client: client.chat.completions.with_raw_response.create(**body),
            lambda answer: answer,
        )

    async def aclose(self) -> None:
        """Close the connections; twice is harmless."""
        await self._endpoint.aclose()


class VLLMTokens:
    """A token model behind vLLM's `/v1/completions`: ids in, ids and log-probs out."""

    def __init__(
        self,
        model: str,
        base_url: str,
        options: EndpointOptions,
        *,
        codec: ChatCodec,
        bounds: TokenBounds | None = None,
    ) -> None:
        self._endpoint = _Endpoint(model, base_url, options)
        self._model = model
        self._options = options
        self.identity = self._endpoint.identity
        self.codec = codec
        self._bounds = bounds or TokenBounds()

    def session(self, key: str) -> VLLMSession:
        """Open a conversation; `key` keeps the seeds of its requests apart from others'."""
        return VLLMSession(self, key)

    async def complete(self, prompt: Sequence[int], sampling: Sampling) -> Continuation:
        """Continue `prompt` once.

        Raises:
            InfraError, ContextExceeded: as `ChatModel.chat`.
            EnvironmentFault: the same, or the server returns no token ids.
        """
        reply = await self._endpoint.ask(
            self._send(prompt, sampling), lambda answer: self._bounds.read(answer, sampling), ""
        )
        if reply is None:
            raise self._textual()
        return reply

    def _send(self, prompt: Sequence[int], sampling: Sampling) -> Send:
        body = token_body(self._model, prompt, sampling, self._options)
        return lambda client: client.completions.with_raw_response.create(
            **body, seed=sampling.seed
        )

    def _textual(self) -> EnvironmentFault:
        return EnvironmentFault(
            f"the endpoint returned no token ids for {FLAG!r}",
            where=self._endpoint.address.url,
            expected=f"a vLLM server whose /v1/completions knows {FLAG}",
            mend="serve the policy with a newer vLLM",
        )

    async def preflight(self) -> None:
        """Sample one token: the server is there, takes the key, and samples this policy in ids.

        Raises:
            EnvironmentFault: it is not so; one line.
        """
        one = Sampling(max_tokens=1, seed=0)
        send = self._send([self.codec.end_id], one)
        reply = await self._endpoint.try_out(send, lambda answer: self._bounds.read(answer, one))
        if reply is None:
            raise self._textual()

    async def aclose(self) -> None:
        """Close the connections; twice is harmless."""
        await self._endpoint.aclose()


class VLLMSession:
    """One conversation with `VLLMTokens`; the server keeps its prefix in a cache of its own."""

    def __init__(self, model: VLLMTokens, key: str) -> None:
        self._model = model
        self._key = key
        self._context: list[int] = []
        self._turns = 0

    async def extend(self, new_ids: Sequence[int], sampling: Sampling) -> Continuation:
        """Append `new_ids` and sample one reply, which joins the context too.

        Every request has a seed of its own: requests that share one may repeat one another on
        data-parallel servers. After an error the context is as before.
        """
        root = 0 if sampling.seed is None else sampling.seed
        seed = seeds.derive(root, "tokens", self._key, self._turns)
        prompt = [*self._context, *new_ids]
        reply = await self._model.complete(prompt, replace(sampling, seed=seed))
        self._context = [*prompt, *reply.ids]
        self._turns += 1
        return reply

    def close(self) -> None:
        """Forget the conversation; twice is harmless."""
        self._context.clear()
