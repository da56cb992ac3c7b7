"""The record of a whole result, and the parts of it that are no cells of a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from mimesim.jsonio import read_json, write_json
from mimesim.results.matrix import Difference, GymAverages, LostCell, MatrixRow, Reference
from mimesim.results.reading import read_record
from mimesim.results.values import Estimate

SCHEMA = "mimesim.record/1"


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
        gym_averages: where `rows` are of several gyms: one per arm and user.
        arm_averages: the same, one per arm, over all its users and training seeds.
        references: published rows to read beside `arm_averages`.
        lost: cells of the matrix that could not be finished.
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
    gym_averages: tuple[GymAverages, ...] = ()
    arm_averages: tuple[GymAverages, ...] = ()
    references: tuple[Reference, ...] = ()
    lost: tuple[LostCell, ...] = ()
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

    def brief(self) -> dict[str, Any]:
        """Return the tables of an evaluation as JSON values, as `eval agents --json` prints them."""
        return {
            "rows": [row.brief() for row in self.rows],
            "averages": [one.brief() for one in self.gym_averages or self.averages],
            "arms": [one.brief() for one in self.arm_averages],
            "differences": [one.brief() for one in self.differences],
            "references": [asdict(one) for one in self.references],
            "lost": [asdict(one) for one in self.lost],
            "limits": list(self.limits),
        }

    @classmethod
    def from_json(cls, value: Any, where: str = "record") -> RunRecord:
        """Read JSON values; unknown keys are ignored.

        Raises:
            DataError: another schema, a missing key or a value of the wrong type.
        """
        return read_record(cls, value, SCHEMA, what="run record", where=where)

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
