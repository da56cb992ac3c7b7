"""A checkpoint on disk that always says the same words: each token leads to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from tests import tiny


def save_speaker(
    folder: Path, text: str, *, special: tuple[str, ...] = (), template: str | None = None
) -> Path:
    """Write a model that answers everything with `text` and its end of turn.

    Args:
        folder: where to.
        text: at most 30 tokens, none of them twice.
        special: special tokens to add to the vocabulary.
        template: chat template; None = the project's own.
    """
    words = tiny.tokenizer()
    words.add_tokens(list(special), special_tokens=True)
    if template is not None:
        words.chat_template = template
    ids = [*words(text, add_special_tokens=False)["input_ids"], words.eos_token_id]
    assert len(set(ids)) == len(ids) <= 31, "every token leads to one other"
    _model(words, ids).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def _model(words: Any, ids: list[int]) -> Qwen3ForCausalLM:
    config = Qwen3Config(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )
    made = Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        layer = made.model.layers[0]
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
        seen, said = made.model.embed_tokens.weight, made.lm_head.weight
        seen.zero_()
        said.zero_()
        seen[:, 0] = 1.0
        for place, token in enumerate(ids):
            said[token, place] = 10.0
            seen[token] = 0.0
            seen[token, place + 1] = 1.0
    return made
