"""Score records: all that training and scoring hand to the report, as JSON on disk.

A `RunRecord` is one whole result (demo, study): every field but `title` and `verdict` has a
default, and a section of the report appears as soon as its field is filled. Rates and rewards are
fractions (0.35, not 35); the report turns them into percent and points. An interval made by
`stats` enters through `Estimate.of(interval)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

from mimesim.errors import DataError
from mimesim.jsonio import read_json, write_json

SCHEMA = "mimesim.record/1"


@dataclass(frozen=True, slots=True)
class Score:
    """A verdict that could be had.

    Attributes:
        value: the score; `direction` says which way is better.
        scorer: who scored, e.g. `rule`. version: of its rubric.
    """

    value: float
    scorer: str = ""
    version: str = ""
    direction: Literal["higher", "lower", "nearer"] = "higher"


@dataclass(frozen=True, slots=True)
class Unscored:
    """A verdict that could not be had; never 0.

    Attributes:
        reason: short, public. raw: what the scorer wrote, for logs.
        state: failed (broken verdict), refused, or skipped (not asked for).
    """

    reason: str
    raw: str = ""
    state: Literal["failed", "refused", "skipped"] = "failed"
    scorer: str = ""
    version: str = ""


class IntervalLike(Protocol):
    """What an `Estimate` is made from; `stats.Interval` is one."""

    @property
    def value(self) -> float | None:
        """Return the point value, None when unknown."""
        ...

    @property
    def low(self) -> float | None:
        """Return the lower 95 % bound, None when unknown."""
        ...

    @property
    def high(self) -> float | None:
        """Return the upper 95 % bound, None when unknown."""
        ...

    @property
    def n(self) -> int:
        """Return the observations behind the value."""
        ...

    @property
    def method(self) -> str:
        """Return how the interval was made."""
        ...


@dataclass(frozen=True, slots=True)
class Estimate:
    """A recorded value with its 95 % interval; None = unknown, never 0."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    method: str = ""

    @classmethod
    def of(cls, interval: IntervalLike) -> Estimate:
        """Record an interval of `stats`."""
        return cls(interval.value, interval.low, interval.high, interval.n, interval.method)

    @property
    def resolved(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def brief(self) -> dict[str, Any]:
        """Return `{"mean", "ci95", "n"}`, the shape of `--json` output."""
        bounds = None if self.low is None or self.high is None else [self.low, self.high]
        return {"mean": self.value, "ci95": bounds, "n": self.n}


UNKNOWN = Estimate(None)


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric of one subject, e.g. words per turn of the role-play user.

    Attributes:
        metric: name of the metric; rows of equal name stand side by side.
        subject: what was measured; `human` is the reference column.
        unit: e.g. "words", "nats/token"; "%" shows the fraction as percent.
        direction: which way is better; `nearer` = near the human value.
    """

    metric: str
    subject: str
    value: Estimate
    unit: str = ""
    direction: Literal["higher", "lower", "nearer"] = "nearer"
    note: str = ""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One cell of the matrix: an arm against a user.

    Attributes:
        arm: training arm, the row label. agent: door name of the agent.
        user: column label. n: counted episodes.
        success, reward: over counted episodes. success_strict: over all, failures as misses.
        invalid_rate: share of episodes that are not counted.
        ends: share of each stop reason among the counted.
        note: short remark shown with the cell.
    """

    arm: str
    user: str
    success: Estimate
    agent: str = ""
    judge: str = "rule"
    gym: str = ""
    profile: str = ""
    n: int = 0
    seeds: tuple[int, ...] = ()
    reward: Estimate = UNKNOWN
    success_strict: float | None = None
    invalid_rate: float = 0.0
    ends: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def brief(self) -> dict[str, Any]:
        """Return the row of `eval agents --json`."""
        return {
            "arm": self.arm,
            "agent": self.agent,
            "user": self.user,
            "judge": self.judge,
            "gym": self.gym,
            "profile": self.profile,
            "n": self.n,
            "seeds": list(self.seeds),
            "reward": self.reward.brief(),
            "success": self.success.brief(),
            "success_strict": self.success_strict,
            "invalid_rate": self.invalid_rate,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired comparison `arm - baseline` on the same tasks.

    Attributes:
        value: in fractions; shown as percentage points.
        headline: drawn strongly; the claims of the run.
        per_seed: the value under each seed, e.g. {"SFT 0, RL 1": 0.21}.
    """

    arm: str
    baseline: str
    value: Estimate
    measure: str = "held-out success"
    headline: bool = False
    per_seed: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a training chart; curves of equal `metric` share a chart, of equal `arm` a color.

    Attributes:
        y: may hold None where a step logged nothing.
    """

    arm: str
    seed: int
    metric: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    x_label: str = "step"


@dataclass(frozen=True, slots=True)
class SampleReply:
    """What one user says in a given situation. `thought` is private and shown as such."""

    user: str
    text: str
    thought: str = ""


@dataclass(frozen=True, slots=True)
class UserSample:
    """One situation and what each user says in it.

    Attributes:
        context: (speaker, text) lines before the reply, speaker `user` or `agent`.
        situation: what the user is after, one sentence.
        replies: one per user; a real person's is named `human`.
    """

    context: tuple[tuple[str, str], ...]
    replies: tuple[SampleReply, ...]
    situation: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation to show: a native episode (`mimesim.episode/1`) as JSON values."""

    episode: Mapping[str, Any]
    title: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tile:
    """A big number at the top. `value` is shown as it is written."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage cost, in seconds; `resumed` = taken over from an earlier start."""

    name: str
    wall_s: float
    cpu_s: float | None = None
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a result comes from.

    Attributes:
        versions: package to version. hashes: artefact to hash.
        identities: role to who played it (`dialogue.types.Identity` as JSON values).
        machine: e.g. {"cpu": "...", "cores": 2, "memory_gb": 8, "platform": "..."}.
        settings: the resolved configuration that matters, flat.
        command: how to repeat it.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    identities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()
    wall_s: float | None = None
    cpu_s: float | None = None
    command: str = ""
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A whole result, from which the report is made.

    Attributes:
        title: e.g. "MimeSim demo".
        verdict: one sentence: what came out.
        kind: demo, study, quick (plumbing check, no claims) or eval.
        tiles: big numbers at the top, four at most look best.
        rows: the matrix, one per arm and held-out user.
        averages: one per arm, over all held-out users.
        differences: paired comparisons, in the order to show.
        distortion: one fixed agent (or several) under users of growing difficulty.
        curves: training curves.
        user_samples, user_metrics: the trained user beside the role-play user and people.
        conversations: whole episodes, private side included.
        limits: honest sentences on what this result does not show.
        seeds: stage to seeds, e.g. {"SFT": (0, 1), "RL": (0, 1, 2)}.
        notes: section to one sentence shown under its heading; keys are the names of the fields
            above.
    """

    title: str
    verdict: str
    kind: Literal["demo", "study", "quick", "eval"] = "demo"
    tiles: tuple[Tile, ...] = ()
    rows: tuple[MatrixRow, ...] = ()
    averages: tuple[MatrixRow, ...] = ()
    differences: tuple[Difference, ...] = ()
    distortion: tuple[MatrixRow, ...] = ()
    curves: tuple[Curve, ...] = ()
    user_samples: tuple[UserSample, ...] = ()
    user_metrics: tuple[MetricRow, ...] = ()
    conversations: tuple[Conversation, ...] = ()
    limits: tuple[str, ...] = ()
    seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    provenance: Provenance = Provenance()

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, `schema` first."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, value: Any, where: str = "record") -> RunRecord:
        """Read JSON values; unknown keys are ignored.

        Raises:
            DataError: another schema, a missing key or a value of the wrong type.
        """
        schema = value.get("schema") if isinstance(value, dict) else None
        if schema != SCHEMA:
            raise DataError(
                f"not a run record: schema {schema!r}", where=where, expected=repr(SCHEMA)
            )
        record: RunRecord = _check(value, where)
        return record

    def write(self, path: Path | str) -> None:
        """Replace the file `path` atomically."""
        write_json(path, self.to_json())

    @classmethod
    def read(cls, path: Path | str) -> RunRecord:
        """Read a file made by `write`.

        Raises:
            DataError: missing, damaged or another kind of file.
        """
        return cls.from_json(read_json(path), where=str(path))


def _check(value: Mapping[str, Any], where: str) -> Any:
    from pydantic import ValidationError  # heavy: only where a file enters

    try:
        return _reader().validate_python({k: v for k, v in value.items() if k != "schema"})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise DataError(
            f"{place}: {first['msg']}", where=where, expected=f"the fields of {SCHEMA}"
        ) from error


@cache
def _reader() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(RunRecord)
