"""From finished stages to one record: matrix, differences, curves, samples, provenance.

Everything is read from files; running it again gives the same record. A sentence of the verdict
claims nothing that an interval in the same record does not carry.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import mimesim
from mimesim import jsonio
from mimesim.bench.agents import Cell, Key, Matrix, SeedPair, difference, hierarchical
from mimesim.results import (
    Conversation,
    Curve,
    Difference,
    Estimate,
    MatrixRow,
    Provenance,
    RunRecord,
    Stage,
    Tile,
)
from mimesim.seeds import file_fingerprint
from mimesim.studies.plan import (
    CEILING,
    DISTORTION,
    HELD_OUT,
    WARM,
    StudyConfig,
    plan_stages,
    settings,
)
from mimesim.studies.scheduler import StagePlan
from mimesim.studies.talk import read_metrics, read_samples

REALISTIC, COOPERATIVE = "realistic user", "cooperative user"
CSD = "realistic user + CSD"
_COMPARED = (WARM, COOPERATIVE, REALISTIC)
HELD_OUT_LABEL = "held-out users (mean)"
_PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "numpy")


def build_record(config: StudyConfig, out: Path, resumed: Sequence[str] = ()) -> RunRecord:
    """Build the record of a study whose stages are all done."""
    stages = plan_stages(config, out)
    results = {stage.name: jsonio.read_json(stage.result) for stage in stages}
    everyone = _matrix(stages, results)
    matrix = Matrix(tuple(c for c in everyone.cells if c.arm != CEILING))
    differences = _differences(config, matrix)
    talk = results["user-talk"]
    return RunRecord(
        title=_TITLES[config.name],
        verdict=_verdict(config, differences),
        kind="quick" if config.name == "quick" else "study" if config.name == "study" else "demo",
        tiles=_tiles(matrix, differences, results["user-training"]),
        rows=_named(matrix.rows(HELD_OUT)),
        averages=tuple(matrix.averages(HELD_OUT, HELD_OUT_LABEL)),
        differences=differences,
        distortion=_named(r for r in matrix.rows(DISTORTION) if r.arm in _COMPARED),
        curves=_curves(stages, results),
        user_samples=read_samples(talk),
        user_metrics=read_metrics(talk),
        conversations=_conversations(stages),
        limits=_limits(config),
        seeds={"warm start": config.sft_seeds, "RL": config.rl_seeds},
        notes={**_notes(results), "rows": _ceilings(everyone)},
        provenance=_provenance(config, stages, results, resumed),
    )


_TITLES = {
    "quick": "MimeSim quick check",
    "demo": "MimeSim demo",
    "study": "MimeSim embedded study",
}


def _named(rows: Iterable[MatrixRow]) -> tuple[MatrixRow, ...]:
    """Return the rows with short column names; all users of the study are scripted."""
    return tuple(replace(row, user=row.user.removeprefix("scripted:")) for row in rows)


def _matrix(stages: Sequence[StagePlan], results: Mapping[str, Any]) -> Matrix:
    cells = []
    for stage in stages:
        if stage.kind != "evaluate":
            continue
        result = results[stage.name]
        for cell in result["cells"]:
            cells.append(
                Cell(
                    arm=result["arm"],
                    seed=int(result["seed"]),
                    user=cell["user"],
                    agent=result["agent"],
                    success={Key(u, t, int(k)): v for u, t, k, v in cell["success"]},
                    reward={Key(u, t, int(k)): v for u, t, k, v in cell["reward"]},
                    ends=cell["ends"],
                    invalid=int(cell["invalid"]),
                )
            )
    return Matrix(tuple(cells))


def _differences(config: StudyConfig, matrix: Matrix) -> tuple[Difference, ...]:
    """Return the comparisons of the study; the headline ones first."""
    arms = matrix.arms()
    wanted = [(REALISTIC, WARM, True), (REALISTIC, COOPERATIVE, True)]
    wanted += [("easy user", WARM, False), (REALISTIC, "easy user", False)]
    wanted += [(CSD, REALISTIC, False), (COOPERATIVE, WARM, False)]
    found = []
    for arm, baseline, headline in wanted:
        if arm not in arms or baseline not in arms:
            continue
        if len(config.sft_seeds) * len(config.rl_seeds) > 1:
            pairs = _pairs(config, baseline)
            found.append(hierarchical(matrix, arm, baseline, pairs, HELD_OUT, headline=headline))
        else:
            found.append(difference(matrix, arm, baseline, HELD_OUT, headline=headline))
    return tuple(found)


def _pairs(config: StudyConfig, baseline: str) -> list[SeedPair]:
    """Pair checkpoints of equal seeds; the warm start has no RL seed of its own."""
    return [
        SeedPair(sft, rl, sft * 100 + rl, sft * 100 + (0 if baseline == WARM else rl))
        for sft in config.sft_seeds
        for rl in config.rl_seeds
    ]


def _points(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:+.1f}"


def _interval(estimate: Estimate) -> str:
    return f"[{_points(estimate.low)}, {_points(estimate.high)}]"


def _verdict(config: StudyConfig, differences: Sequence[Difference]) -> str:
    if config.name == "quick":
        return "Plumbing check only: every stage ran; a run of this size supports no claim."
    sentences = [
        _compared(
            d, "its warm start" if d.baseline == WARM else "one trained with the cooperative user"
        )
        for d in differences
        if d.arm == REALISTIC and d.headline
    ]
    csd = next((d for d in differences if d.arm == CSD), None)
    text = "Held-out success of the agent trained with the realistic user: "
    text += ", ".join(sentences) + "."
    if csd is not None:
        state = "resolved" if csd.value.resolved else "not resolved"
        text += f" Adding CSD: {_points(csd.value.value)} {_interval(csd.value)}, {state}."
    if len(config.sft_seeds) * len(config.rl_seeds) == 1:
        text += " Intervals are over tasks, for these checkpoints only."
    return text


def _compared(d: Difference, against: str) -> str:
    if not d.value.resolved:
        return f"not resolved against {against} ({_points(d.value.value)} {_interval(d.value)})"
    return f"{_points(d.value.value)} points against {against} {_interval(d.value)}"


def _tiles(
    matrix: Matrix, differences: Sequence[Difference], user: Mapping[str, Any]
) -> tuple[Tile, ...]:
    averages = {row.arm: row for row in matrix.averages(HELD_OUT, HELD_OUT_LABEL)}
    tiles = []
    for arm in (REALISTIC, COOPERATIVE, WARM):
        if arm in averages and averages[arm].success.value is not None:
            value = averages[arm].success
            label = f"held-out success, {'warm start only' if arm == WARM else arm}"
            low, high = 100 * (value.low or 0), 100 * (value.high or 0)
            tiles.append(
                Tile(label, f"{100 * (value.value or 0):.1f} %", f"[{low:.1f}, {high:.1f}]")
            )
    before, after = user["before"]["nll"], user["after"]["nll"]
    tiles.append(
        Tile(
            "held-out human turns, nats per token",
            f"{before:.2f} → {after:.2f}",
            f"SmolLM2 before and after {user['tokens_trained']} training tokens",
        )
    )
    return tuple(tiles)


def _curves(stages: Sequence[StagePlan], results: Mapping[str, Any]) -> tuple[Curve, ...]:
    curves = []
    for stage in stages:
        if stage.kind != "rl":
            continue
        rows = results[stage.name]["curve"]
        seed = int(stage.settings["sft"]) * 100 + int(stage.settings["rl"])
        arm = str(stage.settings["arm"])
        for metric, key in (("training success", "episode/success"), ("turns", "episode/turns")):
            x, y = _smooth(rows, key)
            curves.append(Curve(arm, seed, metric, x, y, "generation batch"))
    return tuple(curves)


def _smooth(rows: Sequence[Mapping[str, float]], key: str) -> tuple[tuple[float, ...], Any]:
    """Return means over windows of up to 5 batches, so that a curve can be read."""
    width = 5 if len(rows) >= 25 else 1
    x, y = [], []
    for start in range(0, len(rows), width):
        window = [row[key] for row in rows[start : start + width] if key in row]
        x.append(float(rows[min(start + width, len(rows)) - 1]["batch"]))
        y.append(sum(window) / len(window) if window else None)
    return tuple(x), tuple(y)


def _conversations(stages: Sequence[StagePlan]) -> tuple[Conversation, ...]:
    """Show the same held-out task before and after, private side included."""
    by_arm = {s.settings["arm"]: s for s in reversed(stages) if s.kind == "evaluate"}
    found = []
    for user in ("heldout-4", "heldout-5"):
        shown = _contrast(by_arm, user)
        for arm, episode in shown:
            title = f"{arm}, user {user}"
            agent = {**episode["agent"], "name": f"policy, {arm}"}  # not a path of this machine
            found.append(Conversation({**episode, "agent": agent}, title=title))
    return tuple(found)


def _contrast(by_arm: Mapping[str, StagePlan], user: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return one task that the warm start fails and the realistic arm solves, else the first."""
    arms = [arm for arm in (WARM, REALISTIC) if arm in by_arm]
    episodes = {
        arm: {
            line.value["task"]["id"]: line.value
            for line in jsonio.read_jsonl(by_arm[arm].folder / user / "episodes.jsonl")
        }
        for arm in arms
    }
    tasks = list(episodes[arms[0]])
    better = [
        task
        for task in tasks
        if len(arms) == 2
        and not episodes[WARM][task]["outcome"]["success"]
        and episodes[REALISTIC].get(task, {}).get("outcome", {}).get("success")
    ]
    chosen = (better or tasks)[0]
    return [(arm, episodes[arm][chosen]) for arm in arms if chosen in episodes[arm]]


def _limits(config: StudyConfig) -> tuple[str, ...]:
    seeds = f"{len(config.sft_seeds)} warm-start seed(s) and {len(config.rl_seeds)} RL seed(s)"
    return (
        "The agent practises with scripted customers; the trained SmolLM2 user is frozen, shown "
        "and scored beside the role-play user, because its free text and its speed do not fit a "
        "policy of this size. Larger models take it as environment through the same door.",
        f"{seeds}: with one of each, the intervals are over tasks only and say nothing about "
        "other seeds; the warm-start seed alone can move held-out success by many points.",
        "A customer who states everything leaves a cooperative-trained agent nothing to learn, so "
        "part of the gap to it is by construction; the easy user is the fairer contrast.",
        "CSD could not be resolved at this scale in a pilot; its interval is shown whatever it is.",
        "The held-out users are scripted too: other phrases, and behaviors combined in ways that "
        "training never has. They are not people.",
    )


def _ceilings(matrix: Matrix) -> str:
    """Say how far a script that reads perfectly gets: some users let nobody reach 100 %."""
    rows = [r for r in _named(matrix.rows(HELD_OUT)) if r.arm == CEILING]
    shares = ", ".join(f"{r.user} {100 * (r.success.value or 0):.0f} %" for r in rows)
    return f"A script that reads perfectly and asks until it has all reaches {shares}."


def _notes(results: Mapping[str, Any]) -> dict[str, str]:
    user = results["user-training"]
    talk = results["user-talk"]["counted"]
    counted = ", ".join(f"{k}: {v['counted']} of {v['all']}" for k, v in talk.items())
    before, after = user["before"], user["after"]
    return {
        "user_metrics": f"Conversations counted: {counted}. {user.get('label', '')} "
        f"Held-out NLL {before['nll']:.3f} → {after['nll']:.3f} nats per token over "
        f"{after['n_tokens']} tokens of {after['n_conversations']} conversations.",
    }


def _weights(stages: Sequence[StagePlan], results: Mapping[str, Any]) -> dict[str, str]:
    """Return the fingerprint of every checkpoint's weights: they are frozen from here on."""
    found = {}
    for stage in stages:
        weights = Path(str(results[stage.name].get("checkpoint", ""))) / "model.safetensors"
        if weights.is_file():
            found[f"weights of {stage.name}"] = file_fingerprint(weights)
    return found


def _provenance(
    config: StudyConfig,
    stages: Sequence[StagePlan],
    results: Mapping[str, Any],
    resumed: Sequence[str],
) -> Provenance:
    costs = tuple(
        Stage(
            s.name,
            float(results[s.name]["stage_wall_s"]),
            float(results[s.name]["stage_cpu_s"]),
            s.name in resumed,
        )
        for s in stages
    )
    versions = {"mimesim": mimesim.__version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in _PACKAGES}
    return Provenance(
        versions=versions,
        identities={
            "agent": {"kind": "policy", "name": "embedded policy", "model": "llama"},
            "judge": {"kind": "rule", "name": "rule"},
            "coach": {"kind": "rule", "name": "rule"},
            "trained user": {"kind": "llm", "name": "SmolLM2-135M-Instruct, mid-trained"},
        },
        hashes=_weights(stages, results),
        machine={"cores": os.cpu_count(), "platform": platform.platform(terse=True)},
        settings=settings(config),
        stages=costs,
        wall_s=sum(c.wall_s for c in costs),
        cpu_s=sum(c.cpu_s or 0.0 for c in costs),
        command=f"mimesim demo --size {config.name} --seed {config.seed}",
    )
