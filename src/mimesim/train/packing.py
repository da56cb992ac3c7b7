"""Whether the rows of a batch may be laid end to end: only where no state leaks between them.

Attention keeps packed rows apart by their positions. Linear attention carries a state from token to
token, and in transformers without its kernels that state runs on into the next row: Qwen3.5 logits
then move by several hundredths. Only the kernels take the borders of rows.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

KERNELS = {"fla": "flash-linear-attention", "causal_conv1d": "causal-conv1d"}
"""Module -> package; with all of them linear attention respects the borders of packed rows."""

_SEPARABLE = {"full_attention", "sliding_attention", "chunked_attention"}
_OF_A_STATE = re.compile(r"mamba|rwkv|ssm|(^|_)state_size$")
"""Config keys of models that carry a state without listing the kinds of their layers."""


def packing_allowed(model_config: Any) -> str:
    """Return why rows must not be packed for a model of this config; empty = they may.

    Args:
        model_config: a transformers config; of a model with a vision tower its text part counts.
    """
    text = model_config.get_text_config()
    known = text.to_dict()
    kinds = set(known.get("layer_types") or ()) - _SEPARABLE
    kinds |= {key for key in known if _OF_A_STATE.search(key)}
    if not kinds:
        return ""
    if kinds != {"linear_attention"}:
        named = sorted(kinds - {"linear_attention"})[0]
        return f"{text.model_type} may carry a state from row to row ({named})"
    missing = [package for module, package in KERNELS.items() if find_spec(module) is None]
    if not missing:
        return ""
    return (
        f"linear attention of {text.model_type} carries its state from row to row "
        f"without {' and '.join(missing)}"
    )
