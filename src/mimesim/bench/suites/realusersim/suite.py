"""The suite `realusersim`: simulate the cases, compare with the people, fidelity index FI.

    FI = 100 * matched sides / (5 * judged cases)
    FI_strict: the same over judged cases and those where the simulated user failed

What a judge could not decide counts in neither. The index is called `pt3` where judge prompts and
simulator prompt are those of the data, else `pt3-own`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import seeds
from mimesim.bench.suites.base import Inputs, Simulation, SuiteFacts
from mimesim.bench.suites.playing import QUICK, play_scenarios
from mimesim.bench.suites.questions import (
    Question,
    Told,
    estimate,
    judged,
    record,
    shown,
)
from mimesim.bench.suites.realusersim import asking
from mimesim.bench.suites.realusersim.cases import (
    CLOSE,
    CONDITIONS,
    TRAITS,
    Case,
    cut,
    figures,
    load_cases,
    under,
)
from mimesim.bench.suites.sessions import Session
from mimesim.config import from_options
from mimesim.dialogue.stop import StopReason
from mimesim.errors import DataError
from mimesim.judges.base import Judge
from mimesim.judges.pairwise import Order
from mimesim.judges.stored import Work
from mimesim.results.suite import Metric, PerKey, SuiteScore
from mimesim.results.values import Estimate
from mimesim.rollout.engine import RunSummary
from mimesim.stats import Interval, mean_ci, rate_ci
from mimesim.stats.correlations import sample_deviation

NAME = "realusersim"
TURNS = 5
SEED = 1234
"""Of the bootstrap, as published."""
EMPTY = "empty_input"
FAILURES = ("user_failure", "no_user_turn", EMPTY)
"""What counts as a failure of the simulated user."""
_TAG = "condition:"
_CHECKED = 10
"""One in so many cases is judged with the sides swapped, where that is asked for."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the suite.

    Attributes:
        data: place of the cases; empty = our own invented ones.
        dedup: whether a conversation that stands in two test sets is one case.
        condition: of the simulation, see `CONDITIONS`.
        judge_prompt: the judge file of the data; sim_template: the simulator prompt that was used.
        order_check: whether a tenth of the cases is judged a second time, with the sides swapped.
    """

    data: str = ""
    dedup: bool = False
    condition: str = CONDITIONS[0]
    judge_prompt: str = ""
    sim_template: str = ""
    order_check: bool = False

    @property
    def name(self) -> str:
        """What the index is called."""
        return "pt3" if self.judge_prompt and self.sim_template else "pt3-own"


class RealUserSim:
    """The paired trajectory test."""

    facts = SuiteFacts(
        name=NAME,
        title="is the simulated user the same person as the one it imitates (PT3)",
        needs=("judge",),
        adds=("partner", "data"),
        source="RealUserSim (arXiv 2605.20204), data set Salesforce/RealUserSim",
        license="ODC-BY (paper text CC BY-NC-SA 4.0); for measurement, never for training",
        options={
            "data": "place of the data set (default: our own invented cases)",
            "dedup": "count a conversation of two test sets once (default false)",
            "condition": "whose profile is simulated: " + ", ".join(CONDITIONS),
            "judge_prompt": "judge_prompt.txt of the data; with sim_template the index is pt3",
            "sim_template": "simulator prompt of the data that the episodes were made with",
            "order_check": "judge a tenth again with the sides swapped (default false)",
        },
        plays={},
    )

    def works(self, inputs: Inputs, judge: Judge) -> Iterable[Work]:
        """Return two calls per case as one question; see `Suite.works`."""
        questions, _, _ = _planned(inputs, _options(inputs))
        return [question.work(judge, inputs.seed) for question in questions]

    def score(self, inputs: Inputs) -> SuiteScore:
        """Return FI, its five sides and FI_strict; see `Suite.score`."""
        options = _options(inputs)
        questions, played, excluded = _planned(inputs, options)
        asked = judged(questions, inputs.verdicts)
        found = {
            (q.item, q.order): asking.matches(value) for q, value in asked.answers(asking.COMPARE)
        }
        first = {
            item: hits for (item, order), hits in found.items() if order == Order.REFERENCE_FIRST
        }
        failed = sum(excluded.get(k, 0) + inputs.sessions.left_out.get(k, 0) for k in FAILURES)
        persons = {item: played[item][0].person for item in first}
        metrics = index(first, persons, inputs.draws)
        metrics += [_strict(first, persons, failed, inputs.draws)]
        metrics += _behavior(list(played.values()))
        metrics += _swapped(found)
        by_key = {
            "FI": PerKey({i: 20.0 * sum(hits) for i, hits in first.items()}, persons),
        }
        prompts = {
            key: seeds.file_fingerprint(Path(path))
            for key, path in (
                ("judge_prompt", options.judge_prompt),
                ("sim_template", options.sim_template),
            )
            if path
        }
        about = {"condition": _condition(inputs.sessions.sessions), "official": prompts}
        told = Told(tuple(metrics), (), by_key, excluded, _warnings(options), about)
        return record(options.name, inputs, asked, told, table=NAME)

    def simulate(self, asked: Simulation) -> RunSummary:
        """Play the cases as scenarios, without a gym; see `base.Simulates`."""
        given = dict(asked.options) | ({"data": asked.data} if asked.data else {})
        options = from_options(Options, given, where=f"suite {NAME!r}")
        cases = load_cases(options.data, dedup=options.dedup)[
            : QUICK if asked.quick else asked.limit
        ]
        tags = [f"{_TAG}{options.condition}"]
        told = [scenario(one) | {"tags": tags} for one in under(cases, options.condition, 0)]
        return play_scenarios(told, asked, own=not options.data)

    def check_data(self, data: str) -> Mapping[str, str]:
        """Return the figures of the data beside the published ones; see `base.ChecksData`."""
        return figures(load_cases(data))


def _options(inputs: Inputs) -> Options:
    return from_options(Options, inputs.options, where=f"suite {NAME!r}")


def scenario(case: Case) -> dict[str, Any]:
    """Return a case as a scenario: our own wording of the simulator prompt."""
    traits = [
        f"{name.replace('_', ' ')}: {case.traits[name]}" for name in TRAITS if name in case.traits
    ]
    found: dict[str, Any] = {
        "id": case.id,
        "goal": case.problem,
        "end": {"on": f"This holds, and you never say it: {case.conditions}", "grace": "none"},
        "max_turns": TURNS,
    }
    if case.commands:
        found["persona"] = "\n".join(traits) or "Nothing more is known of this person."
        found["style"] = {"imitate this person, but none of the examples": case.commands}
    return found


def _condition(sessions: Sequence[Session]) -> str:
    """Return under which profile the conversations were simulated, as they say themselves."""
    tags = {
        tag.removeprefix(_TAG)
        for one in sessions
        if one.episode is not None
        for tag in one.episode.scenario.get("tags", ())
        if tag.startswith(_TAG)
    }
    return ", ".join(sorted(tags)) or "unknown"


def _planned(
    inputs: Inputs, options: Options
) -> tuple[list[Question], dict[str, tuple[Case, Session]], dict[str, int]]:
    """Return questions, item -> case and conversation, and what is left out."""
    prompts = asking.read_prompts(options.judge_prompt)
    cases = {one.id: one for one in load_cases(options.data, dedup=options.dedup)}
    questions, played, texts = [], {}, {}
    excluded = {EMPTY: 0, "no case of this id": 0}
    for session in inputs.sessions.sessions:
        case = cases.get(session.task or session.id)
        if case is None:
            excluded["no case of this id"] += 1
            continue
        said = cut([(m["role"], m["text"]) for m in shown(session)], synthetic=True)
        if not said:
            excluded[EMPTY] += 1
            continue
        item = f"{case.id}#{session.trial}"
        played[item] = (case, session)
        human = cut(case.messages, synthetic=False)
        questions.append(asking.question(item, human, said, prompts))
        texts[item] = (human, said)
    if not played:
        raise DataError(
            "no conversation on one of the cases",
            where=inputs.sessions.name,
            expected="episodes whose task is the id of a case, e.g. " + next(iter(cases)),
            mend="mimesim bench simulate realusersim, with the same data",
        )
    if options.order_check:
        drawn = sorted(texts, key=lambda item: seeds.derive(inputs.seed, "order-check", item))
        for item in drawn[: -(-len(drawn) // _CHECKED)]:
            questions.append(asking.question(item, *texts[item], prompts, sample=1))
    return questions, played, {reason: n for reason, n in excluded.items() if n}


def index(
    found: Mapping[str, Sequence[bool]], person: Mapping[str, str], draws: int
) -> list[Metric]:
    """Return FI and D1 to D5 in percent, people resampled with all their cases.

    Args:
        found: item (`<case>#<trial>`) -> the five answers.
        person: item -> who it was.
        draws: of the bootstrap.
    """
    clusters = [person[item] for item in found]

    def metric(name: str, values: Mapping[str, float]) -> Metric:
        listed = list(values.values())
        interval = _share(listed, clusters, draws)
        trials: dict[str, list[float]] = {}
        for item, value in values.items():
            trials.setdefault(item.rpartition("#")[2], []).append(100 * value)
        each = (
            tuple(math.fsum(own) / len(own) for own in trials.values()) if len(trials) > 1 else ()
        )
        spread = sample_deviation(each)
        note = "" if spread is None else f"SEM over seeds {spread / math.sqrt(len(each)):.2f}"
        return Metric(name, estimate(interval, 100), "%", "higher", "cases", each, note)

    metrics = [metric("FI", {item: sum(hits) / len(hits) for item, hits in found.items()})]
    for place in range(len(asking.SIDES)):
        values = {item: float(hits[place]) for item, hits in found.items()}
        metrics.append(metric(f"D{place + 1}", values))
    return metrics


def _share(values: Sequence[float], clusters: Sequence[str], draws: int) -> Interval:
    if set(values) <= {0.0, 1.0}:  # alike answers are no certainty
        return rate_ci([bool(value) for value in values], clusters, seed=SEED, draws=draws)
    return mean_ci(values, clusters, seed=SEED, draws=draws)


def _strict(
    found: Mapping[str, Sequence[bool]], person: Mapping[str, str], failed: int, draws: int
) -> Metric:
    """Return FI with failed simulations at 0; each of these stands for a person of its own."""
    shares = [sum(hits) / len(hits) for hits in found.values()] + [0.0] * failed
    clusters = [person[item] for item in found] + [f"failed {place}" for place in range(failed)]
    interval = _share(shares, clusters, draws)
    return Metric(
        "FI_strict", estimate(interval, 100), "%", "higher", "cases", note=f"{failed} failed"
    )


def _behavior(played: Sequence[tuple[Case, Session]]) -> list[Metric]:
    """Return how often the user closed the talk itself, and how much it said."""
    people = [case.person for case, _ in played]
    closed = [
        CLOSE in " ".join(one.said) or one.outcome.get("stop") == StopReason.USER_STOP
        for _, one in played
    ]
    said = mean_ci([float(len(one.said)) for _, one in played], people, seed=SEED)
    return [
        Metric("closed", estimate(rate_ci(closed, people, seed=SEED), 100), "%"),
        Metric("user turns", estimate(said), "messages"),
    ]


def _swapped(found: Mapping[tuple[str, str], Sequence[bool]]) -> list[Metric]:
    """Return the share of answers that changed when the sides were swapped, where that was asked."""
    parted = [
        one != other
        for (item, order), hits in found.items()
        if order == Order.SUBJECT_FIRST and (item, Order.REFERENCE_FIRST) in found
        for one, other in zip(hits, found[item, Order.REFERENCE_FIRST], strict=True)
    ]
    if not parted:
        return []
    share = Estimate(100 * sum(parted) / len(parted), n=len(parted))
    return [Metric("order-dependent", share, "%", "lower", "answers")]


def _warnings(options: Options) -> tuple[str, ...]:
    found = []
    if options.name != "pt3":
        found.append("pt3-own: prompts of our own wording, no number beside pt3")
    if not options.data:
        found.append("cases: our own invented ones, for trying it only")
    return tuple(found)


SUITE = RealUserSim()
