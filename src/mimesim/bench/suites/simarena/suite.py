"""The suite `simarena`: documents and mathematics, each with what it has.

Ratings: a judge rates the assistant in every simulated conversation, and its ratings are correlated
with the z-scores that people gave for the same task. Likeness: how alike user and person write and
go about it, which traits of the person show, and the Turing test. A conversation ends where its
user ended it. A simulated conversation without a person's counterpart is dropped and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mimesim.bench.suites import turing
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
    with_people,
)
from mimesim.bench.suites.sessions import Session
from mimesim.bench.suites.simarena import asking
from mimesim.bench.suites.simarena.ratings import (
    LEVELS,
    Point,
    Rated,
    grouped,
    macro_f1,
    z_scores,
)
from mimesim.config import from_options
from mimesim.envs.tasks.arena import TURNS, Features, match_share
from mimesim.errors import ConfigError
from mimesim.judges.base import Judge
from mimesim.judges.stored import Work
from mimesim.results.suite import Metric, PerKey, SuiteScore
from mimesim.rollout.engine import RunSummary
from mimesim.stats import mean_ci
from mimesim.stats.correlations import kendall, pearson, spearman
from mimesim.stats.recomputed import RECOMPUTED_DRAWS, statistic_ci

NAME = "simarena"
PARTS = ("rating", "likeness", "traits", "turing")
_OWN = ("sim_doc", "sim_math")
_RIGHT = "correct"
_RATINGS = (
    ("interaction", asking.INTERACTION, "interaction_rating"),
    ("document", asking.DOCUMENT, "document_rating"),
)


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the suite.

    Attributes:
        parts: what is asked, names of `PARTS` joined by commas.
        features: file of people's traits, see `asking.read_traits`.
    """

    parts: str = ",".join(PARTS)
    features: str = ""

    def __post_init__(self) -> None:
        """Refuse parts that do not exist.

        Raises:
            ConfigError: naming the first.
        """
        for part in self.asked:
            if part not in PARTS:
                raise ConfigError(
                    f"unknown part {part!r}", where=NAME, expected="some of " + ", ".join(PARTS)
                )

    @property
    def asked(self) -> tuple[str, ...]:
        """The parts."""
        return tuple(part.strip() for part in self.parts.split(",") if part.strip())


class SimArena:
    """Correlation of ratings, likeness, traits, Turing test, mathematics outcome."""

    facts = SuiteFacts(
        name=NAME,
        title="do ratings in simulated dialogues follow people's, and how alike are the users",
        needs=("judge",),
        adds=("people",),
        source="SimulatorArena (arXiv 2510.05444)",
        license="MIT; problem texts of the MATH set are left out and must stay out",
        corpora=("simulatorarena",),
        options={
            "parts": "what is asked: " + ",".join(PARTS),
            "features": "file of people's traits (default: those of the conversations, if any)",
        },
        plays={},
    )

    def simulate(self, asked: Simulation) -> RunSummary:
        """Let the user pursue people's goals (documents; mathematics has none); see `Simulates`."""
        return play_goals(asked, _OWN, turns=TURNS)

    def works(self, inputs: Inputs, judge: Judge) -> Iterable[Work]:
        """Return the questions of all parts; see `Suite.works`."""
        _, questions, _ = _planned(inputs)
        return [question.work(judge, inputs.seed) for question in questions]

    def score(self, inputs: Inputs) -> SuiteScore:
        """Return all metrics that the conversations allow; see `Suite.score`."""
        inputs, questions, found = _planned(inputs)
        asked = judged(questions, inputs.verdicts)
        metrics = [*_correlations(asked, found, inputs), *_outcome(found.pairs, inputs)]
        alike, by_key = _likeness(asked, found.pairs, inputs)
        metrics += [*alike, *_traits(asked, found.pairs, inputs)]
        told = turing.caught(asked, found.pairs, inputs)
        floors = told.floors
        if asked.answers(turing.KIND):
            metrics += told.metrics
            by_key |= told.by_key
        else:
            floors = ()
        about = {"pairs": len(found.pairs)}
        result = Told(tuple(metrics), floors, by_key, found.excluded, found.warnings, about)
        return record(NAME, inputs, asked, result)


def _planned(inputs: Inputs) -> tuple[Inputs, list[Question], Pairs]:
    options = from_options(Options, inputs.options, where=f"suite {NAME!r}")
    inputs = with_people(inputs, *_OWN)
    found = pair_up(inputs, by_lot=False)
    traits = asking.read_traits(options.features)
    questions: list[Question] = []
    for pair in found.pairs:
        if "rating" in options.asked:
            questions += asking.rating_questions(pair)
        if "likeness" in options.asked:
            questions += asking.likeness_questions(pair)
        if "traits" in options.asked:
            questions += asking.trait_questions(pair, traits)
    if "turing" in options.asked:
        questions += turing.questions_of(found.pairs, inputs.seed)
    return inputs, questions, found


def _correlations(asked: Judged, found: Pairs, inputs: Inputs) -> list[Metric]:
    metrics = []
    for task in _tasks(found.pairs):
        for name, kind, field in _RATINGS:
            points = _points(asked, found.pairs, inputs, (task, kind, field))
            if not points:
                continue
            for level in LEVELS:
                metrics.append(_correlation(f"{task} {name} rho, {level}", points, level, inputs))
            for label, measure in (("r", pearson), ("tau-b", kendall)):
                pairs = grouped(points, "intermediate")
                value = number(measure(pairs), len(pairs), "intermediate level")
                metrics.append(Metric(f"{task} {name} {label}", value, "", "higher", "groups"))
    return metrics


def _correlation(name: str, points: Sequence[Point], level: str, inputs: Inputs) -> Metric:
    draws = min(inputs.draws, RECOMPUTED_DRAWS)
    workers = [one.rated.worker for one in points]
    interval = statistic_ci(
        points, workers, lambda drawn: spearman(grouped(drawn, level)), inputs.seed, draws
    )
    size = len(grouped(points, level))
    interval = replace(interval, n=size)
    return Metric(name, estimate(interval), "", "higher", "conversations or groups")


def _points(
    asked: Judged, pairs: Sequence[Pair], inputs: Inputs, which: tuple[str, str, str]
) -> list[Point]:
    """Return people's z-scores beside the judge's ratings; the scales are those of all people."""
    task, kind, field = which
    people = inputs.people.sessions if inputs.people is not None else ()
    rated = [one for one in people if _task(one) == task and _number(one.outcome.get(field))]
    ratings = [
        Rated(
            one.cluster,
            asking.assistant_of(one),
            asking.kind_of(one),
            float(one.outcome[field]),
        )
        for one in rated
    ]
    scale = dict(zip((one.id for one in rated), z_scores(ratings), strict=True))
    by_id = dict(zip((one.id for one in rated), ratings, strict=True))
    person = {pair.item: pair.person.id for pair in pairs}
    return [
        Point(by_id[person[q.item]], scale[person[q.item]], float(value["rating"]))
        for q, value in asked.answers(kind)
        if person[q.item] in by_id
    ]


def _outcome(pairs: Sequence[Pair], inputs: Inputs) -> list[Metric]:
    """Return the macro-F1 of solving the problem, over simulations that say how it ended."""
    known = [
        (pair.subject.success, pair.person.outcome.get("problem_1_correctness") == _RIGHT)
        for pair in pairs
        if pair.subject.success is not None and _task(pair.person) == "math"
    ]
    ends = [(bool(simulated), human) for simulated, human in known]
    if not ends:
        return []
    clusters = [
        pair.cluster
        for pair in pairs
        if pair.subject.success is not None and _task(pair.person) == "math"
    ]
    draws = min(inputs.draws, RECOMPUTED_DRAWS)
    interval = statistic_ci(ends, clusters, macro_f1, inputs.seed, draws)
    return [Metric("math macro-F1", estimate(interval), "", "higher", "conversations")]


def _likeness(
    asked: Judged, pairs: Sequence[Pair], inputs: Inputs
) -> tuple[list[Metric], dict[str, PerKey]]:
    cluster = {pair.item: pair.cluster for pair in pairs}
    metrics, by_key = [], {}
    for name, kind in (
        ("writing", asking.WRITING_LIKE),
        ("interaction", asking.INTERACTION_LIKE),
    ):
        values = {q.item: float(v["similarity_score"]) for q, v in asked.answers(kind)}
        if values:
            metrics.append(_mean(name, values, cluster, inputs))
            by_key[name] = PerKey(values, {item: cluster[item] for item in values})
    return metrics, by_key


def _mean(name: str, values: dict[str, float], cluster: dict[str, str], inputs: Inputs) -> Metric:
    clusters = [cluster[item] for item in values]
    interval = mean_ci(list(values.values()), clusters, seed=inputs.seed, draws=inputs.draws)
    return Metric(name, estimate(interval), "of 5", "higher", "pairs")


def _traits(asked: Judged, pairs: Sequence[Pair], inputs: Inputs) -> list[Metric]:
    cluster = {pair.item: pair.cluster for pair in pairs}
    shares: dict[str, float] = {}
    for question, value in asked.answers(asking.TRAITS):
        names = [one["name"] for one in question.inputs["features"]]
        share = match_share(Features.model_validate(value), names)
        if share is not None:
            shares[question.item] = share
    if not shares:
        return []
    clusters = [cluster[item] for item in shares]
    interval = mean_ci(list(shares.values()), clusters, seed=inputs.seed, draws=inputs.draws)
    return [Metric("traits shown", estimate(interval, 100), "%", "higher", "conversations")]


def _tasks(pairs: Sequence[Pair]) -> list[str]:
    return sorted({_task(pair.person) for pair in pairs})


def _task(session: Session) -> str:
    return str(session.about.get("task") or "talk")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


SUITE = SimArena()
