"""A tiny chat model made in memory, so that tests of trainers and samplers take seconds.

A byte-level BPE tokenizer of about 320 tokens with ChatML specials, and a random Qwen3 model of two
layers and width 32. The tokenizer carries the project's own chat template.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from mimesim.models import templates

_TEXT = (
    "hello there, how are you today? i am fine, thank you. where is my order? "
    "what do you like to do on the weekend? i like to read and to walk by the river. "
    "do you have the number? yes, it is four seven two. please send it back to me. "
)


@cache
def _backend() -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|pad|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([_TEXT] * 4, trainer)
    return tokenizer.to_str()


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a fresh tokenizer with the project's template installed."""
    made = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_backend()),
        eos_token="<|im_end|>",
        pad_token="<|pad|>",
        additional_special_tokens=["<|im_start|>"],
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )
    templates.install(made)
    return made


def model(seed: int = 0, *, context: int = 2048) -> Qwen3ForCausalLM:
    """Return a random model for `tokenizer()`, in fp32 and evaluation mode."""
    words = tokenizer()
    config = Qwen3Config(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        attention_dropout=0.0,
        bos_token_id=None,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(config).eval()


def talker(seed: int = 0, *, context: int = 8192, lean: float = 0.7) -> Qwen3ForCausalLM:
    """Return a random model that ends its replies by itself after a few tokens.

    One dimension of the residual stream is made constant, and the end token leans on it.
    """
    made = model(seed, context=context)
    with torch.no_grad():
        weight = made.get_input_embeddings().weight
        weight[:, 0] = 0.5
        weight[tokenizer().eos_token_id, 0] += lean
        if lean < 0:  # the token that opens a message ends a reply, too
            weight[tokenizer().convert_tokens_to_ids("<|im_start|>"), 0] += lean
    return made


def save(folder: Path, seed: int = 0, *, context: int = 2048) -> Path:
    """Write model and tokenizer to `folder` and return it."""
    model(seed, context=context).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder
