"""Alarms of an RL run: what a batch's numbers say about a policy that is about to be lost.

Pure numbers, no engine. An alarm is told once when it begins and once more when it comes back. It
may end the run, with a checkpoint. Batches of which no episode could be counted always end it after
a while: nobody is there to talk to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mimesim.config.ranges import COUNT, POSITIVE, check_ranges
from mimesim.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmConfig:
    """When a run calls for attention.

    Attributes:
        action: `warn` tells, `stop` ends the run with a checkpoint, `off` looks at nothing but
            failed batches.
        entropy: range of the policy's entropy, as multiples of that of the first batch.
        gate: range of the mean gate of CSD; outside it the gate tells nothing apart.
        ratio: range of the mean importance ratio; 1 = the weights that sampled.
        flat_batches: batches in a row in which every group has one and the same reward.
        cut: share of replies without their end token from which on it is told.
        failed_batches: batches in a row without any counted episode that end the run.
    """

    action: Literal["warn", "stop", "off"] = "warn"
    entropy: tuple[float, float] = (0.05, 5.0)
    gate: tuple[float, float] = (0.02, 0.98)
    ratio: tuple[float, float] = (0.5, 2.0)
    flat_batches: int = 5
    cut: float = 0.9
    failed_batches: int = 3

    def __post_init__(self) -> None:
        """Refuse ranges that hold nothing.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "flat_batches", "failed_batches")
        check_ranges(self, POSITIVE, "cut")
        for key, (low, high) in (
            ("entropy", self.entropy),
            ("gate", self.gate),
            ("ratio", self.ratio),
        ):
            if not 0 <= low < high:
                raise ConfigError(
                    f"'{key}' cannot be [{low}, {high}]", expected="a low and a higher end, from 0"
                )


@dataclass(slots=True)
class Alarms:
    """The alarms of a run; `see` takes every batch in order.

    Attributes:
        told: all that was told, with its batch.
    """

    config: AlarmConfig
    told: list[dict[str, Any]] = field(default_factory=list)
    _entropy: float | None = None
    _flat: int = 0
    _failed: int = 0
    _ringing: set[str] = field(default_factory=set)

    def see(self, batch: int, values: Mapping[str, float]) -> tuple[list[str], str]:
        """Look at a batch; return what to tell, and why the run must end (empty = it goes on)."""
        self._failed = 0 if values.get("credit/valid", 1) else self._failed + 1
        if self._failed:
            why = _failures(values)
            lines = [f"no episode of this batch could be counted{why}; nothing was learnt"]
            self._note(batch, "failed", lines[0])
            if self._failed < self.config.failed_batches:
                return lines, ""
            return lines, f"no episode of the last {self._failed} batches could be counted{why}"
        if self.config.action == "off":
            return [], ""
        ringing = dict(self._alarms(values))
        lines = [text for name, text in ringing.items() if name not in self._ringing]
        for name, text in ringing.items():
            if name not in self._ringing:
                self._note(batch, name, text)
        self._ringing = set(ringing)
        return lines, lines[0] if lines and self.config.action == "stop" else ""

    def state(self) -> dict[str, Any]:
        """Return all that was seen, as JSON values."""
        return {
            "told": self.told,
            "entropy": self._entropy,
            "flat": self._flat,
            "failed": self._failed,
            "ringing": sorted(self._ringing),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        self.told = list(state["told"])
        self._entropy = state["entropy"]
        self._flat, self._failed = int(state["flat"]), int(state["failed"])
        self._ringing = set(state["ringing"])

    def _note(self, batch: int, name: str, text: str) -> None:
        self.told.append({"batch": batch, "alarm": name, "text": text})

    def _alarms(self, values: Mapping[str, float]) -> Iterator[tuple[str, str]]:
        spoilt, dropped = values.get("credit/not_finite", 0), values.get("update/not_finite", 0)
        if spoilt:
            yield "rewards", f"{spoilt:.0f} rollouts have a reward that is no number; not counted"
        if dropped:
            yield (
                "loss",
                f"{dropped:.0%} of the updates had a gradient that is not finite; left out",
            )
        yield from self._entropy_alarm(values.get("entropy"))
        yield from _outside(
            "gate", "the mean gate of CSD", values, "csd/gate_mean", self.config.gate
        )
        yield from _outside(
            "ratio", "the mean importance ratio", values, "ratio/mean", self.config.ratio
        )
        groups = values.get("credit/groups", 0)
        flat = groups > 0 and values.get("credit/flat_groups", 0) >= groups
        self._flat = self._flat + 1 if flat else 0
        if self._flat >= self.config.flat_batches:
            yield (
                "flat",
                (
                    f"all rewards of a group are equal, in every group of {self._flat} batches: "
                    "GRPO learns nothing"
                ),
            )
        cut = values.get("episode/cut", 0.0)
        if cut >= self.config.cut:
            yield (
                "cut",
                f"{cut:.0%} of the replies have no end: cut at policy.max_tokens, or a forged turn",
            )

    def _entropy_alarm(self, entropy: float | None) -> Iterator[tuple[str, str]]:
        if entropy is None or not math.isfinite(entropy):
            return
        if self._entropy is None:
            self._entropy = entropy
        low, high = (factor * self._entropy for factor in self.config.entropy)
        if entropy < low:
            yield (
                "entropy",
                (f"the entropy collapsed: {entropy:.3g} nats, {self._entropy:.3g} at the start"),
            )
        elif entropy > high:
            yield (
                "entropy",
                (f"the entropy exploded: {entropy:.3g} nats, {self._entropy:.3g} at the start"),
            )


def _outside(
    name: str, what: str, values: Mapping[str, float], key: str, span: Sequence[float]
) -> Iterator[tuple[str, str]]:
    value = values.get(key)
    if value is not None and not span[0] <= value <= span[1]:
        yield name, f"{what} is {value:.3g}, outside {span[0]:g} to {span[1]:g}"


def _failures(values: Mapping[str, float]) -> str:
    """Return why episodes failed, in words, from the counts of a batch."""
    found = {
        k.removeprefix("failed/"): n for k, n in values.items() if k.startswith("failed/") and n
    }
    if not found:
        return ""
    return (
        " (" + ", ".join(f"{n:.0f} {k.replace('_', ' ')}" for k, n in sorted(found.items())) + ")"
    )
