"""A whole evaluation: play the matrix of a configuration and write its record."""

from __future__ import annotations

from mimesim.bench.cells import play_matrix
from mimesim.bench.config import EvaluationConfig, OnCell
from mimesim.bench.record import build_record
from mimesim.results import RunRecord
from mimesim.rollout.engine import wait

RECORD = "record.json"


def evaluate(config: EvaluationConfig, on_cell: OnCell | None = None) -> RunRecord:
    """Run (or go on with) the matrix and return its record, which is written to `out` too.

    A cell that cannot be finished is told in the record (`lost`) and costs the others nothing.

    Raises:
        UsageError: an unknown gym, agent, user or judge, or a folder that belongs to another matrix.
        EnvironmentFault: a key or checkpoint is missing, an endpoint is not fit, or no cell at all
            could be finished.
    """
    cells, lost = wait(play_matrix(config, on_cell))
    record = build_record(config, cells, lost)
    record.write(config.out / RECORD)
    return record
