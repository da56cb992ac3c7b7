"""The embedded policy: a word-level ChatML tokenizer and a Llama of about 0.8 M parameters.

Both are ordinary Hugging Face classes, so that TRL takes them as they are (design ruling 14).
White space separates words and is no token, so plain ChatML costs three tokens a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from mimesim.config.ranges import COUNT, check_ranges
from mimesim.errors import ConfigError
from mimesim.models.codec import TemplateCodec
from mimesim.models.local import load_pretrained
from mimesim.models.local_tokens import LocalTokenModel
from mimesim.models.templates import install

SPECIALS = ("<|pad|>", "<|unk|>", "<|im_start|>", "<|im_end|>", "system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class TinyConfig:
    """Shape of the embedded policy.

    Attributes:
        hidden: width of the residual stream.
        layers: decoder blocks.
        heads: attention heads (as many key-value heads).
        inner: width of the gated feed-forward layer.
        context: longest row in tokens.
    """

    hidden: int = 128
    layers: int = 3
    heads: int = 4
    inner: int = 352
    context: int = 1024

    def __post_init__(self) -> None:
        """Refuse numbers that make no model.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "hidden", "layers", "heads", "inner", "context")
        if self.hidden % (2 * self.heads):
            raise ConfigError(
                f"'hidden' cannot be {self.hidden}", expected=f"a multiple of {2 * self.heads}"
            )


def build_tokenizer(words: Iterable[str]) -> PreTrainedTokenizerFast:
    """Build the word-level tokenizer over `words`, sorted, with the ChatML template inside."""
    vocabulary = [*SPECIALS, *sorted(set(words) - set(SPECIALS))]
    core = Tokenizer(WordLevel({w: i for i, w in enumerate(vocabulary)}, unk_token=SPECIALS[1]))
    core.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=SPECIALS[0],
        unk_token=SPECIALS[1],
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
        clean_up_tokenization_spaces=False,
    )
    install(tokenizer)
    return tokenizer


def build_model(
    tokenizer: PreTrainedTokenizerFast, seed: int, config: TinyConfig | None = None
) -> LlamaForCausalLM:
    """Build a freshly initialised policy; the same seed gives the same weights."""
    shape = config or TinyConfig()
    llama = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=shape.context,
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
        tie_word_embeddings=True,
        attention_dropout=0.0,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)
        model = LlamaForCausalLM(llama)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    return model.float()


def load_policy(path: Path | str) -> tuple[Any, Any]:
    """Load (model, tokenizer) of a saved policy in fp32.

    Raises:
        EnvironmentFault: no checkpoint there, or a damaged one.
    """
    loaded = load_pretrained(str(Path(path).absolute()), dtype="fp32")
    return loaded.model, loaded.tokenizer


def make_tiny_token_model(path: str, options: Mapping[str, Any] | None = None) -> LocalTokenModel:
    """Load a saved policy as a `TokenModel` (door name `policy:<path>`)."""
    model, tokenizer = load_policy(path)
    return token_model(model, tokenizer, name=f"policy:{path}")


def token_model(model: Any, tokenizer: Any, *, name: str) -> LocalTokenModel:
    """Wrap a model in this process as a `TokenModel`."""
    return LocalTokenModel(
        model, codec=TemplateCodec(tokenizer), pad_id=tokenizer.pad_token_id, name=name
    )
