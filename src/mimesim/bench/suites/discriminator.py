"""The suite `discriminator`: can a learned judge tell the user from people, and does it cover them?

Two judges, both scored out of fold: a random forest over 19 features of how somebody writes, and a
stronger one over the words themselves. Where a person and the user wrote in the same situations
(see `replay`), pairs are compared as in a Turing test: how often is the person's side taken for the
person's? Coverage asks the opposite question, whether the user writes in all the ways people do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mimesim import stats
from mimesim.bench.suites.base import Inputs, Simulation, SuiteFacts
from mimesim.bench.suites.learned import FOLDS, Learner, characters, forest, out_of_fold
from mimesim.bench.suites.replay import check_reader, replay
from mimesim.bench.suites.sessions import Session, SessionSet, read_sessions
from mimesim.bench.suites.usi.features import measure, user_texts
from mimesim.bench.suites.usi.lexicon import own_lexicon
from mimesim.errors import UsageError
from mimesim.judges.base import Judge
from mimesim.judges.stored import Work
from mimesim.results import Estimate
from mimesim.results.suite import FloorRow, Metric, Mode, PerKey, SuiteScore
from mimesim.rollout.engine import EngineConfig, RunSummary, wait
from mimesim.seeds import derive
from mimesim.stats import Interval
from mimesim.stats.coverage import Coverage, Scale, coverage
from mimesim.stats.proportions import expected_distance
from mimesim.stats.separation import auc
from mimesim.users.load import make_user

_LEARNERS: Mapping[str, Learner] = {"forest": forest, "text": characters}
_DRAWS = 2_000
_DEALS = 5
_QUICK = 12
"""Conversations of a quick run."""


@dataclass(frozen=True, slots=True)
class Point:
    """One conversation as a learner meets it.

    Attributes:
        key: what it shares with its counterpart: the task, else its own id.
        group: what never parts in a fold.
        features: by `usi.features.FEATURES`. text: all that the user said.
    """

    key: str
    group: str
    human: bool
    features: tuple[float, ...]
    text: str


class Discriminator:
    """The suite."""

    facts = SuiteFacts(
        name="discriminator",
        title="P(human) by learned judges, AUC, Turing distance; coverage of people's ways",
        needs=("people",),
        plays={},
        source="persona policies, arXiv 2605.12894 (PPol); benchmarks.md 13",
        options={"learners": "forest, text or both joined by a comma (default both)"},
    )

    def simulate(self, asked: Simulation) -> RunSummary:
        """Let a user write in people's own conversations; see `replay`.

        Raises:
            UsageError: no people, an unknown or scripted user, or a folder of another run.
        """
        if not asked.people:
            raise UsageError(
                "the user writes in people's conversations",
                where="discriminator",
                expected="--human FILE, e.g. star:data/star",
            )
        limit = _QUICK if asked.quick else asked.limit
        people = read_sessions(asked.people, limit=limit)
        user = make_user(asked.user, options=asked.user_options)
        check_reader(user)
        config = EngineConfig(seed=asked.seeds[0], concurrency=asked.concurrency)
        try:
            return replay(people, user, asked.out, config=config, on_event=asked.on_event)
        finally:
            wait(user.aclose())

    def works(self, inputs: Inputs, judge: Judge) -> Iterable[Work]:
        """Return nothing: these judges are learned, not asked."""
        return ()

    def score(self, inputs: Inputs) -> SuiteScore:
        """Score.

        Raises:
            UsageError: no people, too few conversations, or an unknown learner.
            MissingExtraError: scikit-learn is not installed.
        """
        if inputs.people is None:
            raise UsageError(
                "the discriminator compares with people",
                where="discriminator",
                expected="--human FILE, e.g. the conversations that the user was replayed in",
            )
        ours, lost = _points(inputs.sessions, inputs.mode, human=False)
        theirs, without = _points(inputs.people, inputs.mode, human=True)
        points, paired = _matched(ours, theirs)
        metrics: list[Metric] = []
        floors: list[FloorRow] = []
        by_key: dict[str, PerKey] = {}
        for name in _names(inputs):
            chances = _chances(name, points)
            metrics += _separation(name, points, chances, inputs.seed)
            by_key[f"{name}: P(human)"] = PerKey(
                {p.key: c for p, c in zip(points, chances, strict=True) if not p.human},
                {p.key: p.group for p in points},
            )
            floors += _floors(name, theirs, inputs.seed)
        metrics += _coverages(ours, theirs)
        floors.append(_coverage_floor(theirs, inputs.seed))
        excluded = {"user: no words": lost, "people: no words": without}
        told = () if paired else (_UNPAIRED,)
        return SuiteScore(
            suite="discriminator",
            metrics=tuple(metrics),
            mode=inputs.mode,
            roles={
                "user": inputs.sessions.user,
                "people": inputs.people.name,
                "agent": inputs.sessions.agent,
                "judge": ", ".join(f"learned: {name}" for name in _names(inputs)),
            },
            seeds=inputs.sessions.seeds,
            floors=tuple(floors),
            excluded={name: n for name, n in excluded.items() if n},
            warnings=told,
            by_key=by_key,
            provenance={"files": {**inputs.sessions.hashes, **inputs.people.hashes}},
        )


SUITE = Discriminator()
_UNPAIRED = (
    "people and user did not meet the same situations: topics alone may tell them apart, and there "
    "are no pairs to compare"
)


def _names(inputs: Inputs) -> list[str]:
    named = str(inputs.options.get("learners", "forest,text"))
    names = [name.strip() for name in named.replace("both", "forest,text").split(",")]
    for name in names:
        if name not in _LEARNERS:
            raise UsageError(
                f"unknown learner {name!r}", where="learners", expected="forest, text or both"
            )
    return names


def _points(sessions: SessionSet, mode: Mode, *, human: bool) -> tuple[list[Point], int]:
    """Return what is learned from, and how many conversations have no words of the user."""
    lexicon = own_lexicon()
    found = []
    for session in sessions.sessions:
        row = measure(session, lexicon, mode)
        if row is not None:
            text = "\n".join(user_texts(session, mode)[0])
            key = session.task or session.id
            found.append(Point(key, _group(session), human, row.values, text))
    return found, len(sessions.sessions) - len(found)


def _group(session: Session) -> str:
    return session.person or session.task or session.id


def _matched(ours: Sequence[Point], theirs: Sequence[Point]) -> tuple[list[Point], int]:
    """Return all points, those of people limited to the user's situations where any are shared."""
    shared = {p.key for p in ours} & {p.key for p in theirs}
    if not shared:
        return [*theirs, *ours], 0
    group = {p.key: p.group for p in theirs}
    same = [replace(p, group=group[p.key]) for p in ours if p.key in shared]
    return [*(p for p in theirs if p.key in shared), *same], len(shared)


def _chances(name: str, points: Sequence[Point]) -> list[float]:
    rows = [p.features if name == "forest" else p.text for p in points]
    return out_of_fold(_LEARNERS[name], rows, [p.human for p in points], [p.group for p in points])


def _separation(
    name: str, points: Sequence[Point], chances: Sequence[float], seed: int
) -> list[Metric]:
    groups = [p.group for p in points]
    area = auc(chances, [p.human for p in points], groups, seed, _DRAWS)
    mine = [(c, p.group) for c, p in zip(chances, points, strict=True) if not p.human]
    taken = stats.mean_ci([c for c, _ in mine], [g for _, g in mine], seed, _DRAWS)
    metrics = [
        Metric(f"{name}: AUC", Estimate.of(area), direction="lower", note="0.5 = cannot tell"),
        Metric(f"{name}: P(human)", Estimate.of(taken), direction="higher"),
    ]
    wins = _pairs(points, chances)
    if wins:
        caught = stats.mean_ci([w for w, _ in wins], [g for _, g in wins], seed, _DRAWS)
        metrics.append(
            Metric(f"{name}: accuracy", Estimate.of(caught).times(100), unit="%", unit_of_n="pairs")
        )
        metrics.append(
            Metric(
                f"{name}: Turing distance",
                Estimate.of(_distance(caught)).times(100),
                unit="points",
                direction="lower",
                unit_of_n="pairs",
                note=f"chance alone {100 * expected_distance(len(wins)):.1f} points",
            )
        )
    return metrics


def _pairs(points: Sequence[Point], chances: Sequence[float]) -> list[tuple[float, str]]:
    """Return 1, .5 or 0 for every user's conversation beside the person's, and its group."""
    people = {p.key: c for p, c in zip(points, chances, strict=True) if p.human}
    found = []
    for point, chance in zip(points, chances, strict=True):
        if not point.human and point.key in people:
            other = people[point.key]
            found.append((1.0 if other > chance else 0.5 if other == chance else 0.0, point.group))
    return found


def _distance(caught: Interval) -> Interval:
    """Return |accuracy - 1/2|; its interval starts at 0 where the accuracy's holds one half."""
    if caught.value is None or caught.low is None or caught.high is None:
        return Interval(None, None, None, caught.n, caught.method)
    ends = sorted((abs(caught.low - 0.5), abs(caught.high - 0.5)))
    low = 0.0 if caught.low <= 0.5 <= caught.high else ends[0]
    return Interval(abs(caught.value - 0.5), low, ends[1], caught.n, caught.method)


def _floors(name: str, theirs: Sequence[Point], seed: int) -> list[FloorRow]:
    """Return the AUC of one half of the people against the other, over several deals.

    Few conversations scatter it widely around one half, and cross-validation pulls it below. People
    who are too few to be halved give no floor.
    """
    groups = [p.group for p in theirs]
    if len(set(groups)) < 2 * FOLDS:
        return []
    areas = []
    for deal in range(_DEALS):
        human = _half(groups, derive(seed, "deal", deal))
        rows = [replace(p, human=side) for p, side in zip(theirs, human, strict=True)]
        area = auc(_chances(name, rows), human, groups, draws=1).value
        areas += [] if area is None else [area]
    value = math.fsum(areas) / len(areas)
    told = Estimate(value, min(areas), max(areas), len(theirs), f"{_DEALS} deals, least to most")
    return [FloorRow(f"{name}: AUC", "people against people", told, covers="least to most")]


def _half(groups: Sequence[str], seed: int) -> list[bool]:
    """Deal groups to two halves, by a draw of each group's own."""
    order = sorted(set(groups), key=lambda group: derive(seed, "half", group))
    first = frozenset(order[: math.ceil(len(order) / 2)])
    return [group in first for group in groups]


def _coverages(ours: Sequence[Point], theirs: Sequence[Point]) -> list[Metric]:
    scales: tuple[tuple[str, Scale], ...] = (("coverage", "z"), ("coverage, raw", "raw"))
    return [
        Metric(
            name,
            _estimate(found := _covered(ours, theirs, scale)),
            direction="higher",
            note=f"{len(found[0].dropped)} features do not vary among people, left out"
            if found[0].dropped
            else "",
        )
        for name, scale in scales
    ]


def _coverage_floor(theirs: Sequence[Point], seed: int) -> FloorRow:
    halves = _half([p.group for p in theirs], seed)
    first = [p for p, side in zip(theirs, halves, strict=True) if side]
    second = [p for p, side in zip(theirs, halves, strict=True) if not side]
    return FloorRow(
        "coverage", "half of the people by the other half", _estimate(_covered(first, second, "z"))
    )


def _covered(ours: Sequence[Point], theirs: Sequence[Point], scale: Scale) -> tuple[Coverage, int]:
    found = coverage([p.features for p in ours], [p.features for p in theirs], scale)
    return found, len(ours)


def _estimate(found: tuple[Coverage, int]) -> Estimate:
    value, n = found
    return Estimate(value.value, n=n, method=f"Chamfer, spread {value.spread:.2f}")
