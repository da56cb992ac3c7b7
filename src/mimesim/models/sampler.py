"""Sampling of a batch of replies, each row with settings and a generator of its own.

Transformers runs the loop and the cache; the choice of every token is ours: a processor draws it
for each row and leaves only that one possible. The temperature scales logits first, then top-k and
top-p cut the distribution, then one uniform number picks from it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from mimesim.models.codec import kept_tokens, visible

_TAIL = 24  # tokens looked back at for a stop string


@dataclass(slots=True)
class RowDraw:
    """One reply in the making.

    Attributes:
        room: most tokens that may be drawn.
        temperature: 0 = greedy. top_k: 0 = off. top_p: 1 = off.
        ids: tokens drawn so far, without the token that ended the reply (an end marker stays).
        drawn: tokens drawn, that one included.
        dropped: set from outside when nobody waits for the reply any more; it then ends at once.
    """

    prompt_ids: list[int]
    room: int
    temperature: float
    top_p: float
    top_k: int
    stop: tuple[str, ...]
    random: random.Random
    ids: list[int] = field(default_factory=list)
    drawn: int = 0
    text: str = ""
    finish_reason: str = ""
    dropped: bool = False


def generate(
    model: Any, tokenizer: Any, rows: Sequence[RowDraw], kept: Mapping[int, str] | None = None
) -> None:
    """Draw one reply per row and store it in the row.

    Args:
        model: a causal language model.
        tokenizer: its tokenizer.
        rows: the replies to draw.
        kept: special tokens that stay in the text; None = the known end markers.
    """
    kept = kept_tokens(tokenizer) if kept is None else kept
    longest = max(len(row.prompt_ids) for row in rows)
    ids_BT = torch.zeros(len(rows), longest, dtype=torch.long)
    mask_BT = torch.zeros(len(rows), longest, dtype=torch.long)
    for i, row in enumerate(rows):
        ids_BT[i, longest - len(row.prompt_ids) :] = torch.tensor(row.prompt_ids)
        mask_BT[i, longest - len(row.prompt_ids) :] = 1
    ends = _end_ids(model, tokenizer)
    with torch.inference_mode():
        model.generate(
            input_ids=ids_BT.to(model.device),
            attention_mask=mask_BT.to(model.device),
            generation_config=GenerationConfig(
                do_sample=False,
                max_new_tokens=max(row.room for row in rows),
                eos_token_id=ends,
                pad_token_id=ends[0],
            ),
            logits_processor=LogitsProcessorList([_Chooser(rows, tokenizer, ends, kept)]),
        )
    for row in rows:
        row.finish_reason = row.finish_reason or "length"
        row.text = _cut(visible(tokenizer, row.ids, kept), row.stop)


class _Chooser(LogitsProcessor):
    """Draws the next token of every row and forbids all others."""

    def __init__(
        self, rows: Sequence[RowDraw], tokenizer: Any, ends: list[int], kept: Mapping[int, str]
    ) -> None:
        self._rows = rows
        self._tokenizer = tokenizer
        self._ends = ends
        self._kept = kept

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return scores (B, V) that leave one token per row."""
        del input_ids
        chosen = [self._next(row, scores[i]) for i, row in enumerate(self._rows)]
        only = torch.full_like(scores, float("-inf"))
        only[torch.arange(len(chosen)), chosen] = 0.0
        return only

    def _next(self, row: RowDraw, logits: Any) -> int:
        if not row.finish_reason and row.dropped:
            row.finish_reason = "dropped"
        if not row.finish_reason and len(row.ids) >= row.room:
            row.finish_reason = "length"
        if not row.finish_reason and self._stopped(row):
            row.finish_reason = "stop"
        if row.finish_reason:
            return self._ends[0]
        token = draw(logits, row)
        row.drawn += 1
        if token in self._ends:
            row.finish_reason = "stop"
        if token not in self._ends or token in self._kept:
            row.ids.append(token)
        return token

    def _stopped(self, row: RowDraw) -> bool:
        if not row.stop:
            return False
        tail = visible(self._tokenizer, row.ids[-_TAIL:], self._kept)
        return any(word in tail for word in row.stop)


def draw(logits: Any, row: RowDraw) -> int:
    """Draw one token from `logits` (V,) with the settings and the generator of `row`."""
    if row.temperature <= 0:
        return int(logits.argmax())
    scaled = logits.double() / row.temperature
    if 0 < row.top_k < scaled.numel():
        scaled[scaled < scaled.topk(row.top_k).values[-1]] = float("-inf")
    probs = scaled.softmax(0)
    if row.top_p < 1:
        ordered, index = probs.sort(descending=True)
        probs[index[ordered.cumsum(0) - ordered >= row.top_p]] = 0.0
    heights = probs.cumsum(0)
    point = torch.tensor(row.random.random(), dtype=heights.dtype) * heights[-1].cpu()
    token = int(torch.searchsorted(heights, point.to(heights.device), right=True))
    return min(token, int(probs.nonzero()[-1]))


def _end_ids(model: Any, tokenizer: Any) -> list[int]:
    """Return the ids that end a reply, the tokenizer's own first."""
    configured = model.generation_config.eos_token_id
    known = configured if isinstance(configured, list) else [configured]
    found = [tokenizer.eos_token_id, *known]
    return list(dict.fromkeys(int(token) for token in found if token is not None))


def _cut(text: str, stop: Sequence[str]) -> str:
    places = [text.index(word) for word in stop if word in text]
    return text[: min(places)] if places else text
