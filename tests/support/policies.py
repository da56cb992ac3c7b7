"""Small random policies for tests of samplers and trainers, and the naive scorer they must equal.

`Biased` is a Llama whose logits lean towards the end of a reply and away from the special tokens,
so that a random model gives short, readable replies, some of them cut by their cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from mimesim.models.tiny import TinyConfig, build_model, build_tokenizer

SMALL = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=512)
WORDS = [
    "act",
    "refund",
    "deny",
    "order",
    "to",
    "card",
    "what",
    "is",
    "the",
    "number",
    "?",
    "i",
    "want",
    "101",
    "102",
    "103",
    "help",
    "zip",
]


class Biased(LlamaForCausalLM):
    """Adds a constant to the logits."""

    bias: torch.Tensor

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model and lean its logits."""
        output = super().forward(*args, **kwargs)
        output.logits = output.logits + self.bias
        return output


def tokenizer(words: Sequence[str] = WORDS) -> PreTrainedTokenizerFast:
    """Return a word-level tokenizer."""
    return build_tokenizer(words)


def random_policy(
    words: PreTrainedTokenizerFast,
    seed: int = 0,
    config: TinyConfig = SMALL,
    *,
    sharpness: float = 12.0,
) -> LlamaForCausalLM:
    """Return a random model; at the default sharpness its distribution is far from uniform."""
    model = build_model(words, seed, config).eval()
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(sharpness)
    return model


def talkative(
    words: PreTrainedTokenizerFast,
    seed: int = 0,
    *,
    end: float = 0.0,
    sharpness: float = 12.0,
    config: TinyConfig = SMALL,
) -> Biased:
    """Return a random policy that says plain words only; `end` leans to the end of a reply."""
    plain = random_policy(words, seed, config, sharpness=sharpness)
    model = Biased(plain.config).eval()
    model.load_state_dict(plain.state_dict())
    model.generation_config.eos_token_id = words.eos_token_id
    bias = torch.zeros(len(words))
    bias[: words.convert_tokens_to_ids("assistant") + 1] = -60.0
    bias[words.eos_token_id] = end
    model.bias = bias
    return model


@torch.no_grad()
def naive_logprobs(model: Any, prompt: Sequence[int], completion: Sequence[int]) -> torch.Tensor:
    """Score a completion in one unpadded forward without a cache: the reference."""
    ids = torch.tensor([[*prompt, *completion]])
    logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
    return logits.log_softmax(-1).gather(1, ids[0, len(prompt) :, None]).squeeze(1)
