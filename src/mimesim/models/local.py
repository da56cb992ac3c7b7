"""A Hugging Face chat model in this process: a folder, a hub id, or the embedded model.

Calls that arrive together are answered together, in one left-padded batch per step. Each call draws
from a generator of its own, made from its seed, so what it says does not depend on which calls are
its neighbours (up to rounding: padding moves logits by about 1e-6 in fp32, more in bf16; with
`batch_size=1` not at all). The checkpoint's own chat template is used, so a simulator trained here
is served with the text it was trained on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from mimesim import jsonio, seeds
from mimesim.dialogue.types import Identity, Usage
from mimesim.errors import CallerError, ConfigError, ContextExceeded, EnvironmentFault, UsageError
from mimesim.models import templates
from mimesim.models.base import ChatMessage, Completion, Sampling
from mimesim.models.codec import kept_tokens
from mimesim.models.sampler import RowDraw, generate
from mimesim.registry import closest

_DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
_MANIFEST = "mimesim.json"
_CONFIGS = ("config.json", "adapter_config.json")


class Loaded(NamedTuple):
    """A causal language model in evaluation mode, and its tokenizer."""

    model: Any
    tokenizer: Any


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Settings of a local chat model.

    Attributes:
        dtype: precision of the weights.
        device: `auto` takes a GPU where there is one.
        threads: CPU threads while generating; 0 = torch's own choice.
        batch_size: calls answered together at most.
        context: tokens of prompt and reply; 0 = what the model was made for.
        wait_ms: how long the first call waits for others to join its batch, in milliseconds.
    """

    dtype: Literal["bf16", "fp32"] = "bf16"
    device: Literal["cpu", "auto"] = "cpu"
    threads: int = 0
    batch_size: int = 16
    context: int = 0
    wait_ms: int = 5

    @classmethod
    def read(cls, options: Mapping[str, Any], where: str) -> LocalOptions:
        """Check settings that come from outside.

        Raises:
            ConfigError: an unknown name or an unusable value.
        """
        known = [field.name for field in fields(cls)]
        for name, value in options.items():
            if name not in known:
                raise ConfigError(
                    f"unknown option {name!r}{closest(name, known)}",
                    where=where,
                    expected="one of " + ", ".join(known),
                )
            _check(name, value, where)
        return cls(**options)


def make_local(path_or_id: str, options: Mapping[str, Any] | None = None) -> LocalChatModel:
    """Return the chat model in a folder or behind a hub id; it is loaded at once.

    Raises:
        EnvironmentFault: it cannot be loaded.
        ConfigError: an unknown or unusable option.
    """
    name = f"hf:{path_or_id}"
    read = LocalOptions.read(options or {}, name)
    loaded = load_pretrained(path_or_id, dtype=read.dtype)
    identity = local_identity(name, Path(path_or_id), read)
    return LocalChatModel(loaded, read, identity, end_marker=_end_marker(Path(path_or_id)))


def local_identity(name: str, folder: Path, options: LocalOptions) -> Identity:
    """Name a local model; the revision is that of the checkpoint's own manifest."""
    manifest = folder / _MANIFEST
    revision = ""
    if manifest.is_file():
        revision = seeds.fingerprint(jsonio.canonical(jsonio.read_json(manifest)))
    return Identity(
        kind="llm",
        name=name,
        model=name.removeprefix("hf:"),
        revision=revision,
        sampling={"dtype": options.dtype},
    )


def _end_marker(folder: Path) -> str:
    """Return the end marker that the checkpoint's manifest names, if any."""
    manifest = folder / _MANIFEST
    return str(jsonio.read_object(manifest).get("end_marker", "")) if manifest.is_file() else ""


def _holds_model(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _CONFIGS)


def load_pretrained(path_or_id: str, *, dtype: str = "bf16") -> Loaded:
    """Load model and tokenizer from a folder or the hub (offline: its cache).

    Raises:
        EnvironmentFault: there is no such model, or it is damaged.
    """
    place = Path(path_or_id).expanduser()
    looks_local = (
        path_or_id.startswith((".", "/", "~"))
        or path_or_id.count("/") != 1
        or place.parent.is_dir()  # "out/user" is a mistyped folder here, no owner of the hub
    )
    if looks_local and not place.is_dir():
        raise EnvironmentFault(
            "no such model folder",
            where=path_or_id,
            expected="a folder with config.json and weights, or a hub id owner/name",
        )
    if place.is_dir() and not _holds_model(place):
        inside = place / "policy"  # where a training leaves what it made
        raise EnvironmentFault(
            "no model in this folder",
            where=path_or_id,
            expected="config.json and weights",
            mend=f"take {inside}"
            if _holds_model(inside)
            else "a training that was stopped leaves none; start its command again, it goes on",
        )
    source = str(place) if place.is_dir() else path_or_id
    try:
        with quiet_loading():
            tokenizer = AutoTokenizer.from_pretrained(source)
            model, told = AutoModelForCausalLM.from_pretrained(
                source, dtype=_DTYPES[dtype], output_loading_info=True
            )
    except Exception as error:  # weights, configs and hub each raise their own kinds
        raise EnvironmentFault(
            f"the model cannot be loaded: {str(error).strip().partition(chr(10))[0]}",
            where=path_or_id,
            expected="a causal language model with a fast tokenizer",
            mend="check the path or the id; a hub id needs a network or a filled cache",
        ) from error
    absent = sorted(told["missing_keys"])
    if absent:  # transformers fills them with random numbers, and says so in a log only
        raise EnvironmentFault(
            f"the checkpoint lacks {len(absent)} of the model's weights, {absent[0]!r} first",
            where=path_or_id,
            expected="weights for every part of a causal language model",
            mend="for a checkpoint with a vision tower: mimesim train convert",
        )
    return Loaded(model.eval(), tokenizer)


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Keep transformers from drawing bars and writing advice to the terminal."""
    level = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()


class LocalChatModel:
    """A `ChatModel` on weights in this process.

    Response schemas are not enforced here; the caller's check of the answer decides. Special tokens
    are left out of the text, end markers are not: a checkpoint may have one of its own.
    """

    def __init__(
        self, loaded: Loaded, options: LocalOptions, identity: Identity, *, end_marker: str = ""
    ) -> None:
        self._tokenizer = loaded.tokenizer
        self._kept = kept_tokens(loaded.tokenizer, end_marker)
        self._facts = templates.check_serving(loaded.tokenizer)
        device = "cuda" if options.device == "auto" and torch.cuda.is_available() else "cpu"
        self._model: Any = loaded.model.to(device)
        self._options = options
        self._identity = identity
        self._context = options.context or int(loaded.model.config.max_position_embeddings)
        self._waiting: list[_Call] = []
        self._worker: asyncio.Task[None] | None = None
        self._unseeded = 0
        self._pool = ThreadPoolExecutor(1, "mimesim-local", _set_threads, (options.threads,))

    @property
    def identity(self) -> Identity:
        """Who answers."""
        return self._identity

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        sampling: Sampling,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        response_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Answer `messages`.

        Raises:
            ContextExceeded: the prompt leaves no room for a reply.
            UsageError: native tools were asked for.
            EnvironmentFault: the chat template refuses the messages.
            CallerError: the model was closed.
        """
        if self._model is None:
            raise CallerError("this local model was closed")
        if tools:
            raise UsageError(
                "a local model takes no native tools",
                where=self._identity.name,
                expected="tools described in the prompt (an action format)",
            )
        del response_schema
        ids = self._prompt_ids(messages, sampling)
        loop = asyncio.get_running_loop()
        call = _Call(self._draw(sampling, ids), loop.create_future(), time.monotonic())
        self._waiting.append(call)
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work())
        try:
            return await call.future
        finally:
            call.row.dropped = True  # without effect unless the caller gave up early

    async def aclose(self) -> None:
        """Stop generating and release the weights; twice is harmless."""
        worker, self._worker = self._worker, None
        if worker is not None and not worker.done():
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
        for call in self._waiting:
            call.future.cancel()
        self._waiting.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._model = None

    def _prompt_ids(self, messages: Sequence[ChatMessage], sampling: Sampling) -> list[int]:
        shaped = self._facts.shape(messages)
        known = {} if sampling.thinking is None else {"enable_thinking": sampling.thinking}
        ids = templates.render_ids(self._tokenizer, shaped, add_generation_prompt=True, **known)
        if len(ids) >= self._context:
            raise ContextExceeded(
                f"the prompt has {len(ids)} tokens, the context of {self._identity.name} "
                f"{self._context}",
                party="agent",
            )
        return ids

    def _draw(self, sampling: Sampling, ids: list[int]) -> RowDraw:
        defaults = self._model.generation_config
        seed = sampling.seed
        if seed is None:
            self._unseeded += 1
            seed = seeds.derive(self._unseeded, "unseeded")
        return RowDraw(
            prompt_ids=ids,
            room=min(sampling.max_tokens, self._context - len(ids)),
            temperature=_first(sampling.temperature, defaults.temperature, 1.0),
            top_p=_first(sampling.top_p, defaults.top_p, 1.0),
            top_k=int(_first(sampling.top_k, 0)),
            stop=sampling.stop,
            random=seeds.generator(seed, "local-model"),
        )

    async def _work(self) -> None:
        """Answer batches until nobody waits."""
        await asyncio.sleep(self._options.wait_ms / 1000)
        while self._waiting:
            size = self._options.batch_size
            batch, self._waiting = self._waiting[:size], self._waiting[size:]
            batch = [call for call in batch if not call.future.done()]
            if not batch:
                continue
            try:
                rows = [call.row for call in batch]
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(
                    self._pool, generate, self._model, self._tokenizer, rows, self._kept
                )
            except BaseException as error:
                for call in batch:
                    if not call.future.done():
                        if isinstance(error, asyncio.CancelledError):
                            call.future.cancel()
                        else:
                            call.future.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                continue
            for call in batch:
                if not call.future.done():
                    call.future.set_result(_completion(call))


@dataclass(frozen=True, slots=True)
class _Call:
    row: RowDraw
    future: asyncio.Future[Completion]
    since: float


def _completion(call: _Call) -> Completion:
    row = call.row
    return Completion(
        text=row.text,
        finish_reason=row.finish_reason,
        usage=Usage(
            prompt_tokens=len(row.prompt_ids), completion_tokens=row.drawn, calls=1, cost=0.0
        ),
        latency_s=time.monotonic() - call.since,
    )


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)


def _set_threads(count: int) -> None:
    """Runs inside the generating thread, for the setting belongs to a thread."""
    if count:
        torch.set_num_threads(count)


def _check(name: str, value: Any, where: str) -> None:
    choices = {"dtype": ("bf16", "fp32"), "device": ("cpu", "auto")}.get(name)
    if choices is not None:
        good, expected = value in choices, " or ".join(choices)
    else:
        low = 1 if name == "batch_size" else 0
        good = isinstance(value, int) and not isinstance(value, bool) and value >= low
        expected = f"a whole number from {low} on"
    if not good:
        raise ConfigError(f"option {name!r} is {value!r}", where=where, expected=expected)
