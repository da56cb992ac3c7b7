"""What the reply of a token server may hold: checked before it becomes part of a training row.

A server that answers with other tokens than the policy's (another model, a lost flag, an aborted
request) would train on noise without a sign of it, so such an answer is damaged, never repaired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mimesim.models.base import Continuation, Sampling
from mimesim.models.wire import Damaged, read_tokens

FLAG = "return_token_ids"
"""The field of a request to which vLLM's `/v1/completions` answers with ids."""
_ENDS = ("stop", "length")


@dataclass(frozen=True, slots=True)
class TokenBounds:
    """The tokens of one policy.

    Attributes:
        size: ids are below it; None = not known.
        end_id: ends a reply; None = not known.
    """

    size: int | None = None
    end_id: int | None = None

    def read(self, answer: Mapping[str, Any], sampling: Sampling) -> Continuation | None:
        """Read an answer to a request; None = it has no token ids.

        A reply ends with its end token or one of `sampling.ends`, which belongs to it as in a local
        model. One that its cap ended has none of them.

        Raises:
            Damaged: the answer cannot be a sample of this policy; the words say why.
        """
        reply = read_tokens(answer)
        if reply is None:
            return None
        if not reply.ids:
            raise Damaged("no token was sampled")
        if len(reply.ids) > sampling.max_tokens:
            raise Damaged(f"{len(reply.ids)} tokens for max_tokens {sampling.max_tokens}")
        if self.size is not None and max(reply.ids) >= self.size:
            raise Damaged(
                f"token id {max(reply.ids)} in a vocabulary of {self.size}: another model"
            )
        if any(score > 0 for score in reply.logprobs or ()):
            raise Damaged("a log-prob above 0")
        if reply.finish_reason not in _ENDS:
            raise Damaged(f"finish_reason {reply.finish_reason!r:.20}")
        return self._cut(reply, {self.end_id, *sampling.ends})

    def _cut(self, reply: Continuation, ends: set[int | None]) -> Continuation:
        size = next((i + 1 for i, token in enumerate(reply.ids) if token in ends), 0)
        if not size:
            return reply
        scores = None if reply.logprobs is None else reply.logprobs[:size]
        return replace(reply, ids=reply.ids[:size], logprobs=scores, finish_reason="stop")
