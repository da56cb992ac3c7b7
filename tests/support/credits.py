"""Token advantages of samples, straight from the credit module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mimesim.train.credit import NOT_AGENT, CreditConfig, Rollout, assign
from mimesim.train.grpo import Sample


def credit_of(samples: Sequence[Sample], config: CreditConfig | None = None) -> dict[Any, Any]:
    """Return the token advantages of every sample, by its tokens."""
    rollouts = []
    for sample in samples:
        assert sample.tokens is not None
        turns = [NOT_AGENT] * len(sample.tokens.completion_ids)
        for index, span in enumerate(sample.tokens.spans):
            turns[span.start : span.end] = [index] * (span.end - span.start)
        rollouts.append(Rollout(sample.group, sample.rewards, turns, sample.valid))
    found = assign(rollouts, config or CreditConfig())
    return {s.tokens: row for s, row in zip(samples, found.tokens, strict=True)}
