"""Shapes of models: parameters, work per token and bytes of cache, from a table or a `config.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.errors import DataError, UnknownNameError
from mimesim.registry import closest

_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A dense decoder, its layers with attention or with a gated delta rule.

    Attributes:
        layers: all of them. attending: those with attention and a cache that grows.
        gated: the query projection is twice as wide, for a gate on the output.
        state_keys, state_values: width of keys and values of a layer without attention.
        state_heads: its value heads.
        source: where the numbers come from.
    """

    name: str
    hidden: int
    inner: int
    layers: int
    attending: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    gated: bool = False
    state_keys: int = 0
    state_values: int = 0
    state_heads: int = 0
    source: str = ""

    @property
    def queries(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head_dim

    @property
    def keys(self) -> int:
        """Width of all key heads."""
        return self.kv_heads * self.head_dim

    @property
    def layer_parameters(self) -> float:
        """Matrix parameters of a mean layer."""
        attention = self.hidden * (self.queries * (3 if self.gated else 2) + 2 * self.keys)
        states = self.hidden * (2 * self.state_keys + 3 * self.state_values + 2 * self.state_heads)
        mixed = self.attending * attention + (self.layers - self.attending) * states
        return mixed / self.layers + 3 * self.hidden * self.inner

    @property
    def parameters(self) -> float:
        """All parameters; norms and convolutions (below 0.1 %) are left out."""
        tables = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * self.layer_parameters + tables

    def forward_flops(self, context: float) -> float:
        """Return the work of one token in a forward pass, with `context` tokens before it."""
        matrices = 2 * (self.layers * self.layer_parameters + self.vocabulary * self.hidden)
        attention = self.attending * 4 * context * self.queries
        per_head = self.state_keys / self.state_heads if self.state_heads else 0.0
        states = (self.layers - self.attending) * 6 * self.state_values * per_head
        return matrices + attention + states

    @property
    def cache_bytes(self) -> float:
        """Bytes of cache per token in bf16."""
        return self.attending * 2 * self.keys * 2

    @property
    def state_bytes(self) -> float:
        """Bytes per conversation that do not grow, in fp32."""
        if not self.state_heads:
            return 0.0
        per_head = self.state_keys / self.state_heads
        return (self.layers - self.attending) * self.state_values * per_head * 4

    def kept_bytes(self, width: int) -> float:
        """Return bytes per token and layer kept for the backward pass, `width` bytes a number.

        Inputs of two norms, of projections and of both halves; queries, keys, values and what
        attention gives; the gate, the rise, their product and its input.
        """
        mixing = 3 * self.queries + 2 * self.keys
        return width * (6 * self.hidden + mixing + 4 * self.inner)


def _qwen35(name: str, hidden: int, inner: int, source: str, *, tied: bool) -> Shape:
    return Shape(
        name=name,
        hidden=hidden,
        inner=inner,
        layers=32,
        attending=8,
        heads=16,
        kv_heads=4,
        head_dim=256,
        vocabulary=248_320,
        tied=tied,
        gated=True,
        state_keys=2048,
        state_values=4096,
        state_heads=32,
        source=source,
    )


SHAPES = {
    shape.name: shape
    for shape in (
        _qwen35("qwen3.5-9b", 4096, 12288, "transformers, Qwen3_5TextConfig", tied=False),
        _qwen35("qwen3.5-4b", 2560, 9216, "model card of Qwen3.5-4B", tied=True),
        Shape(
            name="qwen3-8b",
            hidden=4096,
            inner=12288,
            layers=36,
            attending=36,
            heads=32,
            kv_heads=8,
            head_dim=128,
            vocabulary=151_936,
            tied=False,
            source="config.json of Qwen3-8B",
        ),
        Shape(
            name="smollm2-135m",
            hidden=576,
            inner=1536,
            layers=30,
            attending=30,
            heads=9,
            kv_heads=3,
            head_dim=64,
            vocabulary=49_152,
            tied=True,
            source="config.json of SmolLM2-135M-Instruct",
        ),
        Shape(
            name="tiny",
            hidden=128,
            inner=352,
            layers=3,
            attending=3,
            heads=4,
            kv_heads=4,
            head_dim=32,
            vocabulary=1024,
            tied=True,
            source="models.tiny; the vocabulary is that of the demonstrations, some hundred words",
        ),
    )
}
_ALIASES = {"embedded": "smollm2-135m", "smollm2": "smollm2-135m"}


def shape_of(name: str, folders: Sequence[Path] = (), *, where: str = "--model") -> Shape:
    """Return the shape that a name or path means.

    A folder with a `config.json` is read, seen from here or from one of `folders`; else the name, or the last part of a path, has to be in
    the table or begin with a name that is (`out/qwen3.5-9b-text`).

    Raises:
        UnknownNameError: nothing of that name is known.
        DataError: a `config.json` that describes no dense decoder.
    """
    for folder in (Path(), *folders):
        written = folder / name / "config.json"
        if written.is_file():
            return read_shape(written)
    last = name.rstrip("/").rpartition("/")[2].lower()
    last = _ALIASES.get(last, last)
    for known, shape in SHAPES.items():
        if last == known or last.startswith(f"{known}-"):
            return shape
    raise UnknownNameError(
        f"the shape of the model {name!r} is not known{closest(last, list(SHAPES))}",
        where=where,
        expected="one of " + ", ".join([*SHAPES, *_ALIASES]) + ", or a folder with config.json",
        mend="name it with --model",
    )


def read_shape(path: Path) -> Shape:
    """Read the shape from a `config.json` of Hugging Face.

    Raises:
        DataError: a key is missing, or the model is no dense decoder.
    """
    whole = jsonio.read_object(path)
    values: Mapping[str, Any] = {**whole, **(whole.get("text_config") or {})}
    if any(values.get(key) for key in _EXPERTS):
        raise DataError(
            "a mixture of experts is not planned for", where=str(path), expected="a dense decoder"
        )
    try:
        return _shape(str(path.parent), values)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise DataError(
            f"the shape cannot be read: {error}",
            where=str(path),
            expected="hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, "
            "vocab_size",
        ) from error


def _shape(name: str, values: Mapping[str, Any]) -> Shape:
    layers, heads = int(values["num_hidden_layers"]), int(values["num_attention_heads"])
    hidden = int(values["hidden_size"])
    kinds = values.get("layer_types") or []
    every = int(values.get("full_attention_interval") or 1)
    plain = sum(kind != "linear_attention" for kind in kinds) if kinds else layers // every
    value_heads = int(values.get("linear_num_value_heads") or 0)
    if plain < layers and not value_heads:
        raise ValueError("layers without attention, and no word about their state")
    return Shape(
        name=name,
        hidden=hidden,
        inner=int(values["intermediate_size"]),
        layers=layers,
        attending=plain,
        heads=heads,
        kv_heads=int(values.get("num_key_value_heads") or heads),
        head_dim=int(values.get("head_dim") or hidden // heads),
        vocabulary=int(values["vocab_size"]),
        tied=bool(values.get("tie_word_embeddings", True)),
        gated=plain < layers,
        state_keys=int(values.get("linear_num_key_heads") or 0)
        * int(values.get("linear_key_head_dim") or 0),
        state_values=value_heads * int(values.get("linear_value_head_dim") or 0),
        state_heads=value_heads,
        source=f"{name}/config.json",
    )
