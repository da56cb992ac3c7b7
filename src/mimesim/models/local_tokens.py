"""A token model in this process: lock-step batches with a cache that lives across turns.

Every open session waits in `extend`; when all of them wait, one batch is sampled. New text is
appended as a block of columns, left-padded inside the block, so one key-value cache serves rows of
any length (padding columns are masked, positions are counted per row). Finished conversations are
dropped from the cache. Each row draws from a generator of its own, so its sample depends on its
own seed, not on its neighbours.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import DynamicCache

from mimesim.dialogue.types import Identity
from mimesim.errors import CallerError, ContextExceeded
from mimesim.models.base import ChatCodec, Continuation, Sampling
from mimesim.seeds import generator


@dataclass
class _Row:
    """One conversation: how many tokens the cache holds, and the turn it waits for."""

    key: str
    fed: int = 0
    new_ids: list[int] = field(default_factory=list)
    sampling: Sampling = Sampling()
    future: asyncio.Future[Continuation] | None = None
    closed: bool = False


@dataclass
class _Cohort:
    """Rows that share one cache. Tensors: `mask` (rows, columns), `lengths` (rows,)."""

    rows: list[_Row]
    cache: DynamicCache
    mask: torch.Tensor
    lengths: torch.Tensor

    def drop_closed(self) -> None:
        """Forget the rows whose conversation ended."""
        keep = [i for i, row in enumerate(self.rows) if not row.closed]
        if len(keep) == len(self.rows):
            return
        index = torch.tensor(keep, dtype=torch.long)
        self.rows = [self.rows[i] for i in keep]
        self.mask, self.lengths = self.mask[index], self.lengths[index]
        if keep:
            self.cache.batch_select_indices(index)


class LocalTokenModel:
    """A Hugging Face causal LM as a `TokenModel`.

    Args:
        model: in eval mode, fp32 for exact log-probs.
        codec: its chat template; `codec.end_id` ends a reply.
        pad_id: fills padding columns.
        name: the door name, for records.
    """

    def __init__(self, model: Any, *, codec: ChatCodec, pad_id: int, name: str) -> None:
        self._model = model
        self.codec = codec
        self._stop = codec.end_id
        self._pad = pad_id
        self._name = name
        self._context = int(model.config.max_position_embeddings)
        self._open: set[int] = set()
        self._waiting: list[_Row] = []
        self._cohorts: list[_Cohort] = []
        self._scheduled = False

    @property
    def identity(self) -> Identity:
        """Who answers."""
        return Identity(kind="policy", name=self._name, model=self._model.config.model_type)

    def session(self, key: str) -> LocalTokenSession:
        """Open a conversation; rows of a batch are ordered by `key`."""
        row = _Row(key)
        self._open.add(id(row))
        return LocalTokenSession(self, row)

    def wait(
        self, row: _Row, ids: Sequence[int], sampling: Sampling
    ) -> asyncio.Future[Continuation]:
        """Queue a row's next turn and sample when all open conversations wait."""
        if row.closed or row.future is not None:
            raise CallerError("a token session takes one turn at a time, until it is closed")
        row.new_ids, row.sampling = list(ids), sampling
        row.future = asyncio.get_running_loop().create_future()
        self._waiting.append(row)
        self._schedule()
        return row.future

    def leave(self, row: _Row) -> None:
        """Close a row; the others may now be complete."""
        row.closed = True
        self._open.discard(id(row))
        # A cancelled turn still stands in the queue; counted there, it would start a batch early.
        self._waiting = [other for other in self._waiting if other is not row]
        self._schedule()

    def _schedule(self) -> None:
        if self._scheduled or not self._waiting or len(self._waiting) < len(self._open):
            return
        self._scheduled = True
        asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if not self._waiting or len(self._waiting) < len(self._open):
            return  # somebody joined in between
        rows, self._waiting = sorted(self._waiting, key=lambda r: r.key), []
        try:
            cohorts = self._assemble([row for row in rows if not row.closed and self._fits(row)])
        except Exception as error:  # noqa: BLE001 - a row that hears nothing waits for ever
            for row in rows:
                _settle(row, error=error)
            return
        for cohort in cohorts:
            try:
                with torch.inference_mode():
                    self._sample(cohort)
            except Exception as error:  # noqa: BLE001 - every waiting row must hear of it
                for row in cohort.rows:
                    _settle(row, error=error)

    def _fits(self, row: _Row) -> bool:
        total = row.fed + len(row.new_ids) + row.sampling.max_tokens
        if total <= self._context:
            return True
        row.closed = True
        self._open.discard(id(row))
        _settle(row, error=ContextExceeded(f"{total} tokens > {self._context}", party="agent"))
        return False

    def _assemble(self, rows: list[_Row]) -> list[_Cohort]:
        """Reuse the caches of rows that have one; start one cohort for the new rows."""
        for cohort in self._cohorts:
            cohort.drop_closed()
        self._cohorts = [c for c in self._cohorts if c.rows]
        known = {id(row) for cohort in self._cohorts for row in cohort.rows}
        fresh = [row for row in rows if id(row) not in known]
        if fresh:
            empty = torch.zeros(len(fresh), 0, dtype=torch.long)
            lengths = torch.zeros(len(fresh), dtype=torch.long)
            self._cohorts.append(_Cohort(fresh, DynamicCache(), empty, lengths))
        return list(self._cohorts)

    def _sample(self, cohort: _Cohort) -> None:
        """Feed the new text and sample one reply for every row of the cohort."""
        rows = cohort.rows
        limit = max(row.sampling.max_tokens for row in rows)
        generators = [generator(row.sampling.seed or 0, "tokens") for row in rows]
        out: list[list[int]] = [[] for _ in rows]
        logprobs: list[list[float]] = [[] for _ in rows]
        live = [True] * len(rows)
        logits = self._feed(cohort, [row.new_ids for row in rows])
        for step in range(limit):
            tokens, scores = _draw(logits, rows, generators)
            for i, row in enumerate(rows):
                if live[i]:
                    out[i].append(tokens[i])
                    logprobs[i].append(scores[i])
                    ended = tokens[i] == self._stop or tokens[i] in row.sampling.ends
                    live[i] = not ended and len(out[i]) < row.sampling.max_tokens
            if step + 1 == limit or not any(live):
                break
            logits = self._feed(cohort, [[out[i][-1]] if live[i] else [] for i in range(len(rows))])
        for i, row in enumerate(rows):
            last = out[i][-1]
            reason = "stop" if last == self._stop or last in row.sampling.ends else "length"
            # The last token sampled has not been fed; the next turn feeds it with its text.
            row.fed += len(row.new_ids) + len(out[i]) - 1
            _settle(row, result=Continuation(tuple(out[i]), tuple(logprobs[i]), reason))

    def _feed(self, cohort: _Cohort, blocks: list[list[int]]) -> torch.Tensor:
        """Append a left-padded block of columns; return the logits (rows, vocabulary) after it."""
        width = max(len(block) for block in blocks)
        ids = torch.full((len(blocks), width), self._pad, dtype=torch.long)
        mask = torch.zeros(len(blocks), width, dtype=torch.long)
        for i, block in enumerate(blocks):
            if block:
                ids[i, width - len(block) :] = torch.tensor(block)
                mask[i, width - len(block) :] = 1
        positions = (cohort.lengths[:, None] + mask.cumsum(1) - 1).clamp(min=0)
        cohort.lengths = cohort.lengths + mask.sum(1)
        cohort.mask = torch.cat([cohort.mask, mask], dim=1)
        output = self._model(
            input_ids=ids,
            attention_mask=cohort.mask,
            position_ids=positions,
            past_key_values=cohort.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1].float()


class LocalTokenSession:
    """One conversation with a `LocalTokenModel`."""

    def __init__(self, model: LocalTokenModel, row: _Row) -> None:
        self._model = model
        self._row = row
        self._unfed: list[int] = []

    async def extend(self, new_ids: Sequence[int], sampling: Sampling) -> Continuation:
        """Append `new_ids` and sample one reply.

        Raises:
            ContextExceeded: context plus reply would not fit.
        """
        future = self._model.wait(self._row, [*self._unfed, *new_ids], sampling)
        try:
            result = await future
        finally:
            self._row.future = None
        self._unfed = [result.ids[-1]]
        return result

    def close(self) -> None:
        """Leave the model; twice is harmless."""
        if not self._row.closed:
            self._model.leave(self._row)


def _settle(
    row: _Row, result: Continuation | None = None, error: BaseException | None = None
) -> None:
    if row.future is None or row.future.done():
        return
    if error is not None:
        row.future.set_exception(error)
    elif result is not None:
        row.future.set_result(result)


def _draw(
    logits: torch.Tensor, rows: list[_Row], generators: list[random.Random]
) -> tuple[list[int], list[float]]:
    """Sample one token a row by inverse CDF; temperature 0 = greedy. Logits (rows, vocabulary)."""
    heat = torch.tensor([_temperature(row) for row in rows])
    greedy = heat == 0
    scaled = logits / torch.where(greedy, torch.ones_like(heat), heat)[:, None]
    scores = scaled.log_softmax(-1)
    uniform = torch.tensor([g.random() for g in generators], dtype=torch.float64)
    cumulative = scores.double().exp().cumsum(-1)
    target = (uniform * cumulative[:, -1])[:, None]
    drawn = torch.searchsorted(cumulative, target).squeeze(1).clamp(max=logits.shape[1] - 1)
    tokens = torch.where(greedy, logits.argmax(-1), drawn)
    picked = scores.gather(1, tokens[:, None]).squeeze(1)
    return tokens.tolist(), picked.tolist()


def _temperature(row: _Row) -> float:
    return 1.0 if row.sampling.temperature is None else row.sampling.temperature
