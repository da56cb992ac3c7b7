"""What tests of RL runs share: a start that ends its messages, and the weights and curve of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from mimesim.models.tiny import TinyConfig, build_model, load_policy


def save_start(folder: Path, words: PreTrainedTokenizerFast, shape: TinyConfig) -> None:
    """Write a random policy that leans towards ending its messages."""
    model = build_model(words, 5, shape)
    with torch.no_grad():
        weight = model.get_input_embeddings().weight
        weight[:, 0] = 0.5
        weight[words.eos_token_id, 0] += 0.8
    model.save_pretrained(folder)
    words.save_pretrained(folder)


def parameters(folder: Path) -> dict[str, torch.Tensor]:
    """Return the trained weights of a run."""
    model, _ = load_policy(folder / "policy")
    return dict(model.named_parameters())


def moved(start: Path, folder: Path) -> float:
    """Return how far the weight that moved most is from where it started."""
    before, _ = load_policy(start)
    after = parameters(folder)
    return max(float((after[n] - p).abs().max()) for n, p in before.named_parameters())


def curve(result: dict[str, Any], *without: str) -> list[dict[str, float]]:
    """Return the curve of a run without its times, which no two runs share."""
    left_out = {"step_time", *without}
    return [{k: v for k, v in row.items() if k not in left_out} for row in result["curve"]]
