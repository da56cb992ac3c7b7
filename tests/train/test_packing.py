"""Rows are packed only where no state leaks from one into the next."""

from __future__ import annotations

from importlib.machinery import ModuleSpec

import pytest
from transformers import (
    Gemma3TextConfig,
    JambaConfig,
    LlamaConfig,
    MambaConfig,
    PretrainedConfig,
    Qwen3_5Config,
    Qwen3_5TextConfig,
)

from mimesim.train import packing
from tests import tiny


@pytest.mark.parametrize("config", [LlamaConfig(), Gemma3TextConfig()])
def test_attention_may_be_packed(config: PretrainedConfig) -> None:
    assert packing.packing_allowed(config) == ""
    assert packing.packing_allowed(tiny.model().config) == ""


@pytest.mark.parametrize("config", [Qwen3_5TextConfig(), Qwen3_5Config()])
@pytest.mark.parametrize(
    ("installed", "missing"),
    [
        ((), "flash-linear-attention and causal-conv1d"),
        (("fla",), "causal-conv1d"),
        (("causal_conv1d",), "flash-linear-attention"),
        (("fla", "causal_conv1d"), ""),
    ],
)
def test_linear_attention_needs_its_kernels(
    monkeypatch: pytest.MonkeyPatch,
    config: PretrainedConfig,
    installed: tuple[str, ...],
    missing: str,
) -> None:
    monkeypatch.setattr(
        packing, "find_spec", lambda name: ModuleSpec(name, None) if name in installed else None
    )
    reason = packing.packing_allowed(config)
    assert reason.endswith(missing)
    assert bool(reason) == bool(missing)


@pytest.mark.parametrize("config", [MambaConfig(), JambaConfig()])
def test_other_layers_with_a_state_are_refused(config: PretrainedConfig) -> None:
    assert "may carry a state" in packing.packing_allowed(config)
