"""What the reply of a token server may hold: checked before it becomes part of a training row.

A server that answers with other tokens than the policy's (another model, a lost flag, an aborted
request) would train on noise without a sign of it, so such an answer is damaged, never repaired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mimesim.models.base import Continuation
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
        opening: begins the message of another speaker, which the policy must not write; None = no
            single token does.
    """

    size: int | None = None
    end_id: int | None = None
    opening: int | None = None

    def fields(self) -> dict[str, Any]:
        """Return fields of a request that save tokens which would be cut off here."""
        return {} if self.opening is None else {"stop_token_ids": [self.opening]}

    def read(self, answer: Mapping[str, Any], cap: int) -> Continuation | None:
        """Read an answer to a request for at most `cap` tokens; None = it has no token ids.

        A reply ends with its end token. One that its cap ended has none, and one that goes on as
        another speaker is cut before that.

        Raises:
            Damaged: the answer cannot be a sample of this policy; the words say why.
        """
        reply = read_tokens(answer)
        if reply is None:
            return None
        if not reply.ids:
            raise Damaged("no token was sampled")
        if len(reply.ids) > cap:
            raise Damaged(f"{len(reply.ids)} tokens for max_tokens {cap}")
        if self.size is not None and max(reply.ids) >= self.size:
            raise Damaged(
                f"token id {max(reply.ids)} in a vocabulary of {self.size}: another model"
            )
        if any(score > 0 for score in reply.logprobs or ()):
            raise Damaged("a log-prob above 0")
        if reply.finish_reason not in _ENDS:
            raise Damaged(f"finish_reason {reply.finish_reason!r:.20}")
        return self._cut(reply)

    def _cut(self, reply: Continuation) -> Continuation:
        """Return the reply up to its first end token, or to where another speaker begins."""
        size = len(reply.ids)
        for place, token in enumerate(reply.ids):
            if token == self.end_id:
                size = place + 1
            elif token == self.opening:
                size = max(1, place)  # a reply has a token; alone it decodes to no words
            else:
                continue
            break
        if size == len(reply.ids):
            return reply
        scores = None if reply.logprobs is None else reply.logprobs[:size]
        return replace(reply, ids=reply.ids[:size], logprobs=scores, finish_reason="stop")
