"""A language model that only looks at the last token: a policy whose behavior a test can write.

    Bigram(tokenizer, {"assistant": {"act": 0.4, "what": 0.6}, "act": {"deny": 1}, ...})

Token `<end>` closes the reply. It is a plain torch module that the local token model can sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

END = "<end>"


class Bigram(torch.nn.Module):
    """Next-token probabilities by last token; a word without an entry ends the reply."""

    def __init__(self, tokenizer: Any, table: Mapping[str, Mapping[str, float]]) -> None:
        super().__init__()
        self.config = SimpleNamespace(max_position_embeddings=4096, model_type="bigram")
        size = len(tokenizer)
        logits = torch.full((size, size), -60.0)
        logits[:, tokenizer.eos_token_id] = 0.0
        for word, following in table.items():
            row = tokenizer.convert_tokens_to_ids(word)
            logits[row] = -60.0
            for successor, share in following.items():
                end = successor == END
                column = (
                    tokenizer.eos_token_id if end else tokenizer.convert_tokens_to_ids(successor)
                )
                logits[row, column] = math.log(share) if share else -60.0
        self.logits = torch.nn.Parameter(logits)

    def forward(self, input_ids: torch.Tensor, **_: Any) -> Any:
        """Return the logits (rows, columns, vocabulary)."""
        return SimpleNamespace(logits=self.logits[input_ids])


def desk_policy(tokenizer: Any, *, acts: float = 0.4) -> Bigram:
    """Ask for the order number, or deny a random order; sometimes write nonsense that is refused."""
    return Bigram(
        tokenizer,
        {
            "assistant": {"act": acts, "what": 0.9 - acts, "hello": 0.1},
            "what": {"number": 0.5, "help": 0.5},
            "act": {"deny": 0.8, "order": 0.2},
            "deny": {"order": 1.0},
            "order": {"101": 0.5, "102": 0.5},
        },
    )
