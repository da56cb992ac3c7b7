"""Intervals, paired comparisons, calibration and text statistics: the only statistics in MimeSim.

Every result says how many observations it rests on and by which method it was made. An interval
that cannot be known (nothing observed, or one cluster only) is None, never a number.
"""

from __future__ import annotations

from mimesim.stats.intervals import (
    DRAWS,
    Hierarchical,
    Interval,
    PairedRun,
    SeedValue,
    hierarchical_paired,
    macro_mean_ci,
    mean_ci,
    paired_difference,
    rate_ci,
    t_interval,
    t_quantile,
    wilson,
)
from mimesim.stats.nulls import (
    NULL_RANGE,
    Design,
    NullEce,
    null_ece,
    outcome_table,
    swapped_ece,
)
from mimesim.stats.panels import Panel, holm, panel_means, sign_flip
from mimesim.stats.scores import (
    CUTS,
    Calibration,
    difficulty_bin,
    ece,
    pass_k,
)
from mimesim.stats.texts import (
    TextProfile,
    distinct_n,
    hdd,
    mattr,
    text_profile,
    words,
    yule_k,
)

__all__ = [
    "CUTS",
    "DRAWS",
    "NULL_RANGE",
    "Calibration",
    "Design",
    "Hierarchical",
    "Interval",
    "NullEce",
    "PairedRun",
    "Panel",
    "SeedValue",
    "TextProfile",
    "difficulty_bin",
    "distinct_n",
    "ece",
    "hdd",
    "hierarchical_paired",
    "holm",
    "macro_mean_ci",
    "mattr",
    "mean_ci",
    "null_ece",
    "outcome_table",
    "paired_difference",
    "panel_means",
    "pass_k",
    "rate_ci",
    "sign_flip",
    "swapped_ece",
    "t_interval",
    "t_quantile",
    "text_profile",
    "wilson",
    "words",
    "yule_k",
]
