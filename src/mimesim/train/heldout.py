"""Held-out loss of the human turns: nats per learnt token, conversation by conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from mimesim import stats
from mimesim.models import templates
from mimesim.train.rows import TrainRow


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Negative log-likelihood of every learnt token, by conversation id, in nats."""

    nll: Mapping[str, tuple[float, ...]]

    def summary(self, seed: int = 0) -> dict[str, Any]:
        """Return the mean per token with its interval, conversations being the clusters."""
        values = [value for tokens in self.nll.values() for value in tokens]
        names = [name for name, tokens in self.nll.items() for _ in tokens]
        found = stats.mean_ci(values, names, seed)
        return {
            "nll": found.value,
            "ci95": [found.low, found.high],
            "n_tokens": len(values),
            "n_conversations": len(self.nll),
        }

    def gain(self, later: HeldOut, seed: int = 0) -> dict[str, Any]:
        """Return how much lower `later` is on the same tokens, as `summary` does."""
        return HeldOut(
            {
                name: tuple(a - b for a, b in zip(tokens, later.nll[name], strict=True))
                for name, tokens in self.nll.items()
            }
        ).summary(seed)


def held_out_nll(model: Any, rows: Sequence[TrainRow], *, batch_size: int = 4) -> HeldOut:
    """Score `rows` by teacher forcing, without gradients; log-probs are taken in fp32."""
    model.eval()
    by_length = sorted(rows, key=lambda row: (len(row.input_ids), row.id))
    found: dict[str, tuple[float, ...]] = {}
    for start in range(0, len(by_length), batch_size):
        batch = by_length[start : start + batch_size]
        for row, tokens in zip(batch, _score(model, batch), strict=True):
            found[row.id] = tokens
    return HeldOut({row.id: found[row.id] for row in rows})


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch is not followed by the checker
def _score(model: Any, batch: Sequence[TrainRow]) -> list[tuple[float, ...]]:
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
