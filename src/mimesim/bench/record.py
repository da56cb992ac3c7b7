"""From played cells to the record of an evaluation: rows, averages, comparisons, limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mimesim.bench import averages
from mimesim.bench.compare import FEW_SEEDS, SHARED, compare
from mimesim.bench.config import EvaluationConfig
from mimesim.bench.published import published, warnings
from mimesim.bench.rows import NOBODY, GymCell, averages_of, null_scores, row_of
from mimesim.results import Difference, GymAverages, LostCell, MatrixRow, RunRecord
from mimesim.users.load import is_scripted

EVERYBODY = "all users (mean)"


def build_record(
    config: EvaluationConfig, cells: Sequence[GymCell], lost: Sequence[LostCell] = ()
) -> RunRecord:
    """Return the record of a matrix; `lost` are the cells that could not be finished."""
    over_gyms = bool(config.gyms.names)
    arms = tuple(_arms(config, cells, lost)) if over_gyms else ()
    differences = tuple(compare(cells, _played(config, cells), _baseline(config, cells)))
    references = published() if config.published and over_gyms else ()
    pooled = () if over_gyms else tuple(_pooled(config, cells))
    return RunRecord(
        title="Agents in gyms" if over_gyms else "Agents under users",
        verdict=_verdict(arms, pooled, differences),
        kind="eval",
        rows=tuple(_rows(cells)),
        averages=pooled,
        gym_averages=tuple(_by_user(config, cells, lost)) if over_gyms else (),
        arm_averages=arms,
        references=references,
        lost=tuple(lost),
        differences=differences,
        limits=tuple(_limits(config, cells, arms, lost)),
        seeds=_seeds(config),
        notes={"references": "; ".join(warnings(arms, _steps(cells)))} if references else {},
    )


def _played(config: EvaluationConfig, cells: Sequence[GymCell]) -> list[str]:
    held = {cell.arm for cell in cells}
    return [label for label in config.labels if label in held]


def _baseline(config: EvaluationConfig, cells: Sequence[GymCell]) -> str:
    return config.baseline if config.baseline in _played(config, cells) else ""


def _rows(cells: Sequence[GymCell]) -> list[MatrixRow]:
    """Return one row per gym, arm and user, the training seeds of an arm together."""
    groups: dict[tuple[str, str, str], list[GymCell]] = {}
    for cell in cells:
        groups.setdefault((cell.gym, cell.arm, cell.user), []).append(cell)
    return [row_of(group, null_scores(group[0], cells)) for group in groups.values()]


def _pooled(config: EvaluationConfig, cells: Sequence[GymCell]) -> list[MatrixRow]:
    """Return one row per arm over all users."""
    found = []
    for label in _played(config, cells):
        mine = [cell for cell in cells if cell.arm == label]
        found.append(row_of(mine, {}, EVERYBODY))
    return found


def _by_user(
    config: EvaluationConfig, cells: Sequence[GymCell], lost: Sequence[LostCell]
) -> list[GymAverages]:
    found = []
    for label in config.labels:
        for user in config.users:
            mine = [c for c in cells if c.arm == label and c.user in (user, NOBODY)]
            if mine:
                gone = [one for one in lost if one.arm == label and one.user in (user, NOBODY)]
                found.append(_told(averages_of(label, user, mine), gone))
    return found


def _arms(
    config: EvaluationConfig, cells: Sequence[GymCell], lost: Sequence[LostCell]
) -> list[GymAverages]:
    """Return the report rows: one per arm, over all users and training seeds."""
    return [
        _told(
            averages_of(label, EVERYBODY, [c for c in cells if c.arm == label]),
            [one for one in lost if one.arm == label],
        )
        for label in _played(config, cells)
    ]


def _told(row: GymAverages, lost: Sequence[LostCell]) -> GymAverages:
    return replace(row, incomplete=tuple(dict.fromkeys(one.gym for one in lost)))


def _seeds(config: EvaluationConfig) -> dict[str, tuple[int, ...]]:
    training = sorted({arm.seed for arm in config.checkpoints})
    found: dict[str, tuple[int, ...]] = {"evaluation": (config.matrix.seed,)}
    if len(training) > 1:
        found["training"] = tuple(training)
    return found


def _steps(cells: Sequence[GymCell]) -> list[int]:
    return [c.settings["max_steps"] for c in cells if c.gym in averages.WEIGHTS]


def _limits(
    config: EvaluationConfig,
    cells: Sequence[GymCell],
    arms: Sequence[GymAverages],
    lost: Sequence[LostCell],
) -> list[str]:
    judges = ", ".join(sorted({cell.judge for cell in cells} - {NOBODY})) or NOBODY
    scripted = is_scripted(config.users[0])
    found = [
        f"The people are {'scripted' if scripted else 'played by a model'}, the judge is {judges}: "
        "compare with numbers of the same kind only."
    ]
    if len(config.users) > 1:
        found.append(SHARED)
    few = [f"{one.arm} {len(one.seeds)}" for one in arms if len(one.seeds) < FEW_SEEDS]
    if few and len(arms) > 1:
        found.append(
            f"Training seeds per arm: {', '.join(few)}; fewer than {FEW_SEEDS} say little about "
            "another training run."
        )
    if any(cell.judge_mode == "self" for cell in cells):
        found.append("Every user also judges: who talks and who grades change together.")
    if lost:
        found.append(f"{len(lost)} cells could not be finished and are missing; see `lost`.")
    return found


def _verdict(
    arms: Sequence[GymAverages], pooled: Sequence[MatrixRow], differences: Sequence[Difference]
) -> str:
    """Return what came out, in one sentence or two."""
    headline = [d for d in differences if d.headline]
    resolved = [d for d in headline if d.value.resolved]
    compared = f"{len(resolved)} of {len(headline)} differences exclude 0." if headline else ""
    known = [
        f"{one.arm} {one.weighted.value:.3f}" for one in arms if one.weighted.value is not None
    ]
    if known:
        partial = " (partial)" if any(one.missing for one in arms) else ""
        return f"Weighted average{partial}: {', '.join(known)}. {compared}".strip()
    if compared:
        return compared
    counted = sum(row.n for row in pooled) or sum(one.n for one in arms)
    return f"One arm, {counted} counted episodes." if counted else "Nothing was counted."
