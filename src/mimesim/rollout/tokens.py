"""The token record of one conversation: append-only ids, log-probs, masks and turn spans.

Token in, token out: ids that were sampled are kept as they are and never made again from text.
No trainer and no torch here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mimesim.errors import CallerError


@dataclass(frozen=True, slots=True)
class TurnSpan:
    """One reply of the policy: the half-open range [start, end) in `completion_ids`.

    Attributes:
        header: how many tokens right before `start` are the template's assistant header.
    """

    start: int
    end: int
    header: int


@dataclass(frozen=True, slots=True)
class TokenRollout:
    """A finished record. The three lists have equal length.

    Attributes:
        prompt_ids: tokens before the first reply, assistant header included.
        completion_ids: everything after, ending on the policy's last token.
        env_mask: 1 = sampled by the policy, 0 = user, tool or template token.
        logprobs: of the sampling distribution; 0.0 where `env_mask` is 0.
        spans: the replies in order.

    Raises:
        CallerError: an invariant of the record is broken.
    """

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    env_mask: tuple[int, ...]
    logprobs: tuple[float, ...]
    spans: tuple[TurnSpan, ...]

    def __post_init__(self) -> None:
        """Check the invariants."""
        size = len(self.completion_ids)
        inside = [0] * size
        for span in self.spans:
            inside[span.start : span.end] = [1] * (span.end - span.start)
        if len(self.env_mask) != size or len(self.logprobs) != size:
            raise CallerError("ids, mask and log-probs differ in length")
        if list(self.env_mask) != inside:
            raise CallerError("the mask must be 1 exactly inside the turn spans")
        if not self.spans or self.spans[-1].end != size:
            raise CallerError("a record ends on the policy's last token")

    def turn_tokens(self) -> list[int]:
        """Return the number of sampled tokens of each turn."""
        return [span.end - span.start for span in self.spans]


@dataclass(slots=True)
class TokenRecord:
    """A record being written.

    Args:
        prompt_ids: tokens before the first reply, assistant header included.
        header: how many of the last prompt tokens are the assistant header.
    """

    prompt_ids: tuple[int, ...]
    header: int
    _ids: list[int] = field(default_factory=list)
    _mask: list[int] = field(default_factory=list)
    _logprobs: list[float] = field(default_factory=list)
    _spans: list[TurnSpan] = field(default_factory=list)

    @property
    def replies(self) -> int:
        """How many replies the policy has given."""
        return len(self._spans)

    def add_context(self, ids: Sequence[int], header: int) -> None:
        """Append tokens that the policy did not sample; `header` as in the constructor."""
        self._ids += ids
        self._mask += [0] * len(ids)
        self._logprobs += [0.0] * len(ids)
        self.header = header

    def add_reply(self, ids: Sequence[int], logprobs: Sequence[float] | None) -> None:
        """Append a sampled reply, its stop token included if one was sampled.

        Raises:
            CallerError: nothing was sampled.
        """
        if not ids:
            raise CallerError("a reply has at least one token")
        start = len(self._ids)
        self._ids += ids
        self._mask += [1] * len(ids)
        self._logprobs += logprobs if logprobs is not None else [float("nan")] * len(ids)
        self._spans.append(TurnSpan(start, start + len(ids), self.header))

    def finish(self) -> TokenRollout:
        """Return the record, cut after the policy's last token.

        Raises:
            CallerError: the policy never spoke.
        """
        if not self._spans:
            raise CallerError("a record needs at least one reply")
        end = self._spans[-1].end
        return TokenRollout(
            tuple(self.prompt_ids),
            tuple(self._ids[:end]),
            tuple(self._mask[:end]),
            tuple(self._logprobs[:end]),
            tuple(self._spans),
        )
