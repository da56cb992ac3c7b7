"""Held-out loss of the human turns: nats per content token, conversation by conversation.

Content and end of turn are told apart: how well a model foresees that a person is done is another
question than which words come. Where several corpora are held out, the mean over corpora (macro)
stands beside the one over all tokens, so that no corpus wins by its size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from mimesim import stats
from mimesim.models import templates
from mimesim.train.rows import TrainRow


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Negative log-likelihoods in nats, by conversation id.

    Attributes:
        nll: of every learnt content token.
        end: of every learnt end of turn.
        sources: the corpus of a conversation; absent = one corpus without a name.
    """

    nll: Mapping[str, tuple[float, ...]]
    end: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def summary(self, seed: int = 0) -> dict[str, Any]:
        """Return means per token with intervals, conversations being the clusters.

        Returns:
            nll, perplexity, ci95, n_tokens, n_conversations; end_nll and n_ends; with several
            corpora, `macro` (the mean over them, resampled inside each) and `sources` (the same
            figures of each).
        """
        found = self._figures(seed)
        if found["nll"] is not None:
            found["perplexity"] = math.exp(found["nll"])
        return {**found, **self._by_source(seed)}

    def gain(self, later: HeldOut, seed: int = 0) -> dict[str, Any]:
        """Return how much lower `later` is on the same tokens: the figures of `summary`."""
        lower = HeldOut(
            _differences(self.nll, later.nll), _differences(self.end, later.end), self.sources
        )
        return {**lower._figures(seed), **lower._by_source(seed)}

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values; `read` is the inverse."""
        return {"nll": dict(self.nll), "end": dict(self.end), "sources": dict(self.sources)}

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> HeldOut:
        """Take over what `as_dict` gave."""
        return cls(_tuples(stored["nll"]), _tuples(stored["end"]), dict(stored["sources"]))

    def _by_source(self, seed: int) -> dict[str, Any]:
        names = sorted(set(self.sources.values()))
        if len(names) < 2:
            return {}
        parts = {name: self._only(name) for name in names}
        macro = stats.macro_mean_ci([part._tokens() for part in parts.values()], seed)
        return {
            "macro": {
                "nll": macro.value,
                "ci95": [macro.low, macro.high],
                "n_sources": len(parts),
                "method": macro.method,
            },
            "sources": {name: part._figures(seed) for name, part in parts.items()},
        }

    def _only(self, source: str) -> HeldOut:
        kept = {name for name, found in self.sources.items() if found == source}
        return HeldOut(
            {name: values for name, values in self.nll.items() if name in kept},
            {name: values for name, values in self.end.items() if name in kept},
        )

    def _tokens(self) -> tuple[list[float], list[str]]:
        """Return the content tokens and the conversation of each."""
        values = [value for tokens in self.nll.values() for value in tokens]
        names = [name for name, tokens in self.nll.items() for _ in tokens]
        return values, names

    def _figures(self, seed: int) -> dict[str, Any]:
        values, names = self._tokens()
        found = stats.mean_ci(values, names, seed)
        ends = [value for tokens in self.end.values() for value in tokens]
        return {
            "nll": found.value,
            "ci95": [found.low, found.high],
            "n_tokens": len(values),
            "n_conversations": len(self.nll),
            "end_nll": math.fsum(ends) / len(ends) if ends else None,
            "n_ends": len(ends),
        }


def held_out_nll(model: Any, rows: Sequence[TrainRow], *, batch_size: int = 4) -> HeldOut:
    """Score `rows` by teacher forcing, without gradients; log-probs are taken in fp32."""
    model.eval()
    by_length = sorted(rows, key=lambda row: (len(row.input_ids), row.id))
    found: dict[str, tuple[float, ...]] = {}
    for start in range(0, len(by_length), batch_size):
        batch = by_length[start : start + batch_size]
        for row, tokens in zip(batch, _score(model, batch), strict=True):
            found[row.id] = tokens
    return HeldOut(
        {row.id: _picked(found[row.id], row.ends, end=False) for row in rows},
        {row.id: _picked(found[row.id], row.ends, end=True) for row in rows},
        {row.id: row.source for row in rows if row.source},
    )


def _picked(values: Sequence[float], ends: Sequence[bool], *, end: bool) -> tuple[float, ...]:
    return tuple(value for value, is_end in zip(values, ends, strict=True) if is_end is end)


def _differences(
    first: Mapping[str, tuple[float, ...]], second: Mapping[str, tuple[float, ...]]
) -> dict[str, tuple[float, ...]]:
    return {
        name: tuple(a - b for a, b in zip(tokens, second[name], strict=True))
        for name, tokens in first.items()
    }


def _tuples(stored: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    return {name: tuple(values) for name, values in stored.items()}


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch is not followed by the checker
def _score(model: Any, batch: Sequence[TrainRow]) -> list[tuple[float, ...]]:
    """Return the loss of every learnt token of each row."""
    longest = max(len(row.input_ids) for row in batch)
    ids_BT = torch.zeros(len(batch), longest, dtype=torch.long)
    labels_BT = torch.full((len(batch), longest), templates.IGNORED)
    mask_BT = torch.zeros(len(batch), longest, dtype=torch.long)
    for i, row in enumerate(batch):
        ids_BT[i, : len(row.input_ids)] = torch.tensor(row.input_ids)
        labels_BT[i, : len(row.labels)] = torch.tensor(row.labels)
        mask_BT[i, : len(row.input_ids)] = 1
    device = model.device
    logits = model(
        input_ids=ids_BT.to(device), attention_mask=mask_BT.to(device), use_cache=False
    ).logits
    answers = []
    for i in range(len(batch)):
        wanted = labels_BT[i, 1:]
        learnt = wanted != templates.IGNORED
        # Only learnt positions are turned into fp32: a vocabulary is wide.
        logps = torch.log_softmax(logits[i, :-1][learnt.to(device)].float(), dim=-1)
        picked = logps.gather(1, wanted[learnt].to(device)[:, None])[:, 0]
        answers.append(tuple((-picked).tolist()))
    return answers
