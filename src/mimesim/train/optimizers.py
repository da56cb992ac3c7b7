"""Muon for the matrices, AdamW for the rest: what the embedded policy's warm start uses.

A policy of under a million parameters learns to copy values from the conversation in well under
half the steps of AdamW alone (`docs/lab-notes.md`). Both halves are torch's own optimizers; this
class only lets a trainer, a scheduler and a checkpoint treat them as one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.optim import AdamW, Muon, Optimizer


class MuonAdamW(Optimizer):
    """Two optimizers behind one face. Embeddings, norms and heads go to AdamW.

    Args:
        model: its parameters that need gradients are taken.
        lr: of the AdamW half. muon_lr: of the Muon half, in AdamW's scale.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float,
        muon_lr: float,
        betas: tuple[float, float],
        decay: float,
    ) -> None:
        # No call of the base constructor: it would build groups and state of its own.
        matrices: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                plain = parameter.ndim == 2 and "embed" not in name and "lm_head" not in name
                (matrices if plain else others).append(parameter)
        self._muon = Muon(
            matrices, lr=muon_lr, momentum=0.95, weight_decay=decay, adjust_lr_fn="match_rms_adamw"
        )
        self._adamw = AdamW(others, lr=lr, betas=betas, weight_decay=decay)
        self.defaults: dict[str, Any] = {}

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The groups of both halves, live: a scheduler writes its rates into them."""
        return [*self._muon.param_groups, *self._adamw.param_groups]

    @property
    def state(self) -> dict[Any, Any]:
        """The state of both halves."""
        return {**self._muon.state, **self._adamw.state}

    def step(self, closure: Callable[[], float] | None = None) -> None:
        """Make one update of both halves; a closure is not supported."""
        self._muon.step()
        self._adamw.step()

    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: FBT001 - torch's own
        """Forget the gradients."""
        self._muon.zero_grad(set_to_none)
        self._adamw.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of both halves for a checkpoint."""
        return {"muon": self._muon.state_dict(), "adamw": self._adamw.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state from `state_dict`."""
        self._muon.load_state_dict(state_dict["muon"])
        self._adamw.load_state_dict(state_dict["adamw"])
