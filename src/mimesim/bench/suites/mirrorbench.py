"""MirrorBench: a simulated user beside the real one on the same conversation, on a calibrated scale.

GTEval is one score for style, realism and fit. A judge's scale is anchored by two controls: people
against themselves (HH) and the simulated user against itself (PP); `calibrated` says where the user
stands between them. Controls that lie together anchor nothing, so then there is no calibrated value.
The lexical half of the benchmark is the suite `lexical`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import jsonio, seeds
from mimesim.bench.suites.base import Inputs, Simulation, SuiteFacts
from mimesim.bench.suites.playing import play_goals
from mimesim.bench.suites.questions import (
    Judged,
    Pair,
    Pairs,
    Question,
    Told,
    estimate,
    judged,
    number,
    pair_up,
    record,
    shown,
    with_people,
)
from mimesim.bench.suites.sessions import Session
from mimesim.bench.suites.turing import roughness
from mimesim.config import from_options
from mimesim.config.ranges import COUNT, NATURAL, check_ranges
from mimesim.envs.tasks.answers import likeness
from mimesim.envs.tasks.mirrorbench import MESSAGES, Likeness
from mimesim.judges.agree import rated_pairs
from mimesim.judges.base import Judge
from mimesim.judges.pairwise import Order, PairVerdict, balanced_orders
from mimesim.judges.stored import Work
from mimesim.results.suite import FloorRow, Metric, Mode, PerKey, SuiteScore
from mimesim.rollout.engine import RunSummary
from mimesim.stats import Interval, mean_ci
from mimesim.stats.correlations import kendall, pearson, sample_deviation, spearman

NAME = "mirrorbench"
GTEVAL = "tasks/mirrorbench"
PAIRWISE = "mirror.pairwise"
HH, PP = "HH", "PP"
LEAST_GAP = 0.05
LEAST_CONTROLS = 20
_COMPAT_GAP = 1e-6


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the suite.

    Attributes:
        samples: verdicts per question.
        controls: pairs that are also judged against themselves, at most.
    """

    samples: int = 3
    controls: int = 50

    def __post_init__(self) -> None:
        """Refuse numbers that make no plan.

        Raises:
            ConfigError: naming the option.
        """
        check_ranges(self, COUNT, "samples")
        check_ranges(self, NATURAL, "controls")


class MirrorBench:
    """GTEval with its anchors, and pairwise indistinguishability."""

    facts = SuiteFacts(
        name=NAME,
        title="the simulated user beside the real one on the same conversation, calibrated",
        needs=("judge",),
        adds=("people",),
        source="MirrorBench (arXiv 2601.08118)",
        license="code and scores Apache-2.0; dialogues by their own terms",
        corpora=("mirrorbench",),
        options={
            "samples": "verdicts per question (default 3)",
            "controls": "pairs judged against themselves for the anchors, at most (default 50)",
        },
        plays={},
    )

    def simulate(self, asked: Simulation) -> RunSummary:
        """Let the user pursue the described tasks; see `Simulates`."""
        return play_goals(asked, (NAME,), turns=MESSAGES // 2)

    def works(self, inputs: Inputs, judge: Judge) -> Iterable[Work]:
        """Return the questions on pairs and on controls; see `Suite.works`."""
        _, questions, _ = _planned(inputs)
        return [question.work(judge, inputs.seed) for question in questions]

    def score(self, inputs: Inputs) -> SuiteScore:
        """Return GTEval, its calibrated form, and the parity gap; see `Suite.score`."""
        inputs, questions, found = _planned(inputs)
        asked = judged(questions, inputs.verdicts)
        told = _told(asked, found, inputs)
        return record(NAME, inputs, asked, told)


def _planned(inputs: Inputs) -> tuple[Inputs, list[Question], Pairs]:
    options = from_options(Options, inputs.options, where=f"suite {NAME!r}")
    inputs = with_people(inputs, NAME)
    found = pair_up(inputs, by_lot=False)
    ranked = sorted(found.pairs, key=lambda p: seeds.derive(inputs.seed, "controls", p.item))
    controls = ranked[: options.controls]
    questions = []
    for sample in range(options.samples):
        orders = balanced_orders(
            [p.item for p in found.pairs], benchmark=NAME, seed=inputs.seed, sample=sample
        )
        for pair in found.pairs:
            questions.append(_gteval(pair.item, pair.person, pair.subject, sample))
            questions.append(_pairwise(pair, orders[pair.item], sample))
        for pair in controls:
            questions.append(_gteval(f"{HH}|{pair.item}", pair.person, pair.person, sample))
            questions.append(_gteval(f"{PP}|{pair.item}", pair.subject, pair.subject, sample))
    return inputs, questions, found


def _gteval(item: str, real: Session, simulated: Session, sample: int) -> Question:
    alike = round(likeness(" ".join(simulated.said), " ".join(real.said)), 4)
    inputs = {"real": shown(real), "simulated": shown(simulated)}
    return Question(item, GTEVAL, inputs, Likeness, rule=lambda _: {"score": alike}, sample=sample)


def _pairwise(pair: Pair, order: Order, sample: int) -> Question:
    sides = [pair.subject, pair.person]
    first, second = sides if order is Order.SUBJECT_FIRST else sides[::-1]
    rough = [roughness(side.said) for side in (first, second)]

    def rule(_: Mapping[str, Any]) -> dict[str, Any]:
        if math.isclose(*rough):
            return {"winner": "tie"}
        return {"winner": "A" if rough[0] > rough[1] else "B"}

    inputs = {"first": shown(first), "second": shown(second)}
    return Question(
        pair.item, PAIRWISE, inputs, PairVerdict, rule=rule, order=order.value, sample=sample
    )


def calibrated(
    scores: Sequence[float], hh: Sequence[float], pp: Sequence[float], mode: Mode = "fixed"
) -> tuple[list[float] | None, str]:
    """Return the scores between the anchors, clipped to [0, 1], or None and why not.

    Args:
        scores: of episodes.
        hh: control scores of people against themselves.
        pp: control scores of the simulated user against itself.
        mode: `compat` divides by whatever gap there is, at least 1e-6.
    """
    if not hh or not pp:
        return None, "no control has a verdict"
    low, high = (math.fsum(side) / len(side) for side in (pp, hh))
    gap = high - low
    if mode == "compat":
        gap = max(gap, _COMPAT_GAP)
    elif min(len(hh), len(pp)) < LEAST_CONTROLS:
        return None, f"{min(len(hh), len(pp))} controls, at least {LEAST_CONTROLS} are needed"
    elif gap < LEAST_GAP:
        return None, f"the anchors lie {gap:.3f} apart, at least {LEAST_GAP} is needed"
    return [min(1.0, max(0.0, (score - low) / gap)) for score in scores], ""


def _told(asked: Judged, found: Pairs, inputs: Inputs) -> Told:
    cluster = {pair.item: pair.cluster for pair in found.pairs}
    scores = _means(asked, GTEVAL, lambda q, v: float(v["score"]))
    own = {item: scores[item] for item in scores if item in cluster}
    hh, pp = ([v for i, v in scores.items() if i.startswith(f"{c}|")] for c in (HH, PP))
    alike, why = calibrated(list(own.values()), hh, pp, inputs.mode)
    picked = _means(asked, PAIRWISE, _picked)

    def mean(name: str, values: Mapping[str, float], shift: float = 0.0) -> Metric:
        clusters = [cluster[item] for item in values]
        moved = [value - shift for value in values.values()]
        interval = mean_ci(moved, clusters, seed=inputs.seed, draws=inputs.draws)
        way: Any = "nearer" if shift else "higher"
        return Metric(name, estimate(interval), "", way, "conversations")

    metrics = [mean("gteval", own)]
    if alike is not None:
        metrics.append(mean("gteval calibrated", dict(zip(own, alike, strict=True))))
    else:
        nothing = Interval(None, None, None, len(own), why)
        metrics.append(Metric("gteval calibrated", estimate(nothing), "", "higher", note=why))
    metrics += [mean("pairwise", picked), mean("parity gap", picked, 0.5)]
    floors = [
        FloorRow("gteval", name, estimate(mean_ci(values, seed=inputs.seed, draws=inputs.draws)))
        for name, values in (
            ("people against themselves (HH)", hh),
            ("user against itself (PP)", pp),
        )
    ]
    floors.append(FloorRow("pairwise", "perfect simulator", number(0.5, len(picked), "parity")))
    by_key = {
        name: PerKey(values, {item: cluster[item] for item in values})
        for name, values in (("gteval", own), ("pairwise", picked))
    }
    warnings = (*found.warnings, *([f"gteval calibrated: {why}"] if why else []))
    return Told(tuple(metrics), tuple(floors), by_key, found.excluded, warnings)


def _means(
    asked: Judged, kind: str, read: Callable[[Question, Mapping[str, Any]], float]
) -> dict[str, float]:
    """Return item -> mean over the samples that have a verdict."""
    found: dict[str, list[float]] = {}
    for question, value in asked.answers(kind):
        found.setdefault(question.item, []).append(read(question, value))
    return {item: math.fsum(values) / len(values) for item, values in found.items()}


def _picked(question: Question, value: Mapping[str, Any]) -> float:
    """Return 1 where the simulated user is taken for the human, .5 for a tie, else 0."""
    if value["winner"] == "tie":
        return 0.5
    ours = "A" if question.order == Order.SUBJECT_FIRST else "B"
    return float(value["winner"] == ours)


def against_people(path: Path | str) -> dict[str, dict[str, float | None]]:
    """Return metric -> how far a judge agrees with people, on a file of rated pairs.

    Raises:
        DataError: a line that is no rated pair.
    """
    found: dict[str, dict[str, float | None]] = {}
    for metric, listed in rated_pairs(path).items():
        pairs = [(a, b) for a, b in listed if a is not None and b is not None]
        sides = [[pair[side] for pair in pairs] for side in (0, 1)]
        n = len(pairs)
        means = [math.fsum(side) / n if n else None for side in sides]
        found[metric] = {
            "n": n,
            "rho": spearman(pairs),
            "r": pearson(pairs),
            "tau-b": kendall(pairs),
            "human mean": means[0],
            "judge mean": means[1],
            "human sd": sample_deviation(sides[0]),
            "judge sd": sample_deviation(sides[1]),
            "MAE": math.fsum(abs(a - b) for a, b in pairs) / n if n else None,
        }
    for key, counts in _labels(path).items():
        found[key] |= {name: float(n) for name, n in counts.items()}
    return found


def _labels(path: Path | str) -> dict[str, Counter[str]]:
    """Return metric -> how often each label was given, and each slot held the simulated user."""
    found: dict[str, Counter[str]] = {}
    for line in jsonio.read_jsonl(path):
        if isinstance(line.value["human_label"], str):
            counts = found.setdefault(str(line.value.get("metric", "score")), Counter())
            counts[f"label {line.value['human_label']}"] += 1
            counts[f"slot {line.value.get('ground_truth_synthetic_slot', '')}"] += 1
    return found


SUITE = MirrorBench()
