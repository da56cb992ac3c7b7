"""Score records: all that training and scoring hand to the report, as JSON on disk.

A `RunRecord` is one whole result (demo, study): every field but `title` and `verdict` has a
default, and a section of the report appears as soon as its field is filled. Rates and rewards are
fractions (0.35, not 35); the report turns them into percent and points. An interval made by
`stats` enters through `Estimate.of(interval)`.
"""

from __future__ import annotations

from mimesim.results.matrix import (
    Counting,
    Difference,
    Floor,
    GymAverages,
    LostCell,
    MatrixRow,
    Reference,
)
from mimesim.results.record import (
    SCHEMA,
    Conversation,
    Curve,
    MetricRow,
    Provenance,
    RunRecord,
    SampleReply,
    Stage,
    Tile,
    UserSample,
)
from mimesim.results.values import (
    UNKNOWN,
    Estimate,
    IntervalLike,
    Score,
    Unscored,
)

__all__ = [
    "SCHEMA",
    "UNKNOWN",
    "Conversation",
    "Counting",
    "Curve",
    "Difference",
    "Estimate",
    "Floor",
    "GymAverages",
    "IntervalLike",
    "LostCell",
    "MatrixRow",
    "MetricRow",
    "Provenance",
    "Reference",
    "RunRecord",
    "SampleReply",
    "Score",
    "Stage",
    "Tile",
    "Unscored",
    "UserSample",
]
