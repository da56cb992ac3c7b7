"""Turing-RL rating: one next message of the user and the person's own, graded side by side.

The judge grades both on three criteria and four penalties without knowing which is which; `s` is 1
(the person's is far better) to 7, 4 is a tie. Messages are compared in one of two ways: episodes of
the task `turing` with its rows, or else every message of a person with the one that the user wrote
at the same place (`bench.suites.replay`), e.g. on PRISM by `--human prism:DIR`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mimesim import seeds
from mimesim.bench.suites.base import Inputs, Simulation, SuiteFacts
from mimesim.bench.suites.playing import play_places
from mimesim.bench.suites.questions import (
    Judged,
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
from mimesim.config import from_options
from mimesim.dialogue.types import Role
from mimesim.envs.packs import SPLITS
from mimesim.envs.tasks.answers import likeness
from mimesim.envs.tasks.load import load_rows
from mimesim.envs.tasks.turing import CRITERIA, PENALTIES, Rated, Seven, copies, rate
from mimesim.envs.tasks.turing import Pair as Grades
from mimesim.errors import DataError
from mimesim.judges.base import Judge
from mimesim.judges.pairwise import Order, balanced_orders
from mimesim.judges.stored import Work
from mimesim.results.suite import FloorRow, Metric, PerKey, SuiteScore
from mimesim.rollout.engine import RunSummary
from mimesim.stats import mean_ci, wilson

NAME = "turing-rl"
KIND = "tasks/turing"
_OWN = ("mirrorbench",)
_HISTORY = 20
"""Most earlier messages of the person that are shown, the latest ones."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the suite.

    Attributes:
        rows: file of rows for episodes of the task `turing`; empty = our own invented rows.
    """

    rows: str = ""


@dataclass(frozen=True, slots=True)
class Next:
    """One place in a conversation: what the person wrote next, and what the user wrote."""

    item: str
    person: str
    place: tuple[str, int]
    history: tuple[str, ...]
    context: str
    human: str
    generated: str


class TuringRL:
    """The rating of next messages."""

    facts = SuiteFacts(
        name=NAME,
        title="next messages graded beside the person's own, on a scale of 1 to 7",
        needs=("judge",),
        adds=("people",),
        source="Turing-RL (arXiv 2606.19336)",
        license="PRISM: human text CC BY 4.0, model text CC BY-NC 4.0",
        corpora=("prism",),
        options={"rows": "rows of the task turing (default: our own invented ones)"},
        plays={},
    )

    def simulate(self, asked: Simulation) -> RunSummary:
        """Let the user write wherever a person wrote; see `Simulates`."""
        return play_places(asked, _OWN)

    def works(self, inputs: Inputs, judge: Judge) -> Iterable[Work]:
        """Return one question per message; see `Suite.works`."""
        _, questions, _, _ = _planned(inputs)
        return [question.work(judge, inputs.seed) for question in questions]

    def score(self, inputs: Inputs) -> SuiteScore:
        """Return mean s, reward, ties, accuracy and penalties; see `Suite.score`."""
        inputs, questions, places, excluded = _planned(inputs)
        asked = judged(questions, inputs.verdicts)
        return record(NAME, inputs, asked, _told(asked, places, inputs, excluded))


def _planned(inputs: Inputs) -> tuple[Inputs, list[Question], list[Next], dict[str, int]]:
    options = from_options(Options, inputs.options, where=f"suite {NAME!r}")
    places, excluded = _of_rows(inputs.sessions.sessions, options.rows)
    if inputs.people is not None or not (places or options.rows):
        inputs = with_people(inputs, *_OWN)
        places, excluded = _of_people(inputs)
    if not places:
        raise DataError(
            "no message to compare",
            where=inputs.sessions.name,
            expected="episodes of the task turing, or a replay of the people's conversations",
        )
    orders = _orders(places, inputs)
    return inputs, [_question(one, orders[one.item]) for one in places], places, excluded


def _orders(places: Sequence[Next], inputs: Inputs) -> dict[str, Order]:
    if inputs.mode == "compat":
        return {one.item: compat_order(one.person, *one.place, one.generated) for one in places}
    return balanced_orders([one.item for one in places], benchmark=NAME, seed=inputs.seed)


def compat_order(person: str, talk: str, place: int, generated: str) -> Order:
    """Return the order of the original: it hangs on the generated text and is not balanced."""
    told = f"{person}|{talk}|{place}|{generated}"
    even = int(seeds.fingerprint(told, 64), 16) % 2 == 0
    return Order.REFERENCE_FIRST if even else Order.SUBJECT_FIRST


def _of_rows(sessions: Sequence[Session], rows: str) -> tuple[list[Next], dict[str, int]]:
    if rows:
        tasks = list(load_rows("turing", place=rows, split="test").tasks)
    else:
        tasks = [task for split in SPLITS for task in load_rows("turing", split=split).tasks]
    known = {task.id: task for task in tasks}
    found, seen = [], Counter[str]()
    for session in sessions:
        task = known.get(session.task)
        if task is None:
            continue
        item = f"{task.id}#{seen[task.id]}"
        seen[task.id] += 1
        person = task.groups[0] if task.groups else task.id
        found.append(
            Next(
                item,
                person,
                (task.id, 0),
                tuple(task.public["history"]),
                task.public["context"],
                task.hidden["reference"],
                session.said[-1],
            )
        )
    lost = len(sessions) - len(found)
    return found, {"no row of this task": lost} if lost else {}


def _of_people(inputs: Inputs) -> tuple[list[Next], dict[str, int]]:
    found: list[Next] = []
    pairs = pair_up(inputs, by_lot=False)
    excluded = Counter(pairs.excluded)
    for pair in pairs.pairs:
        if len(pair.subject.said) != len(pair.person.said):
            excluded["other places than the person's: no replay"] += 1
            continue
        found += _places(pair.item, pair.subject, pair.person)
    return found, dict(excluded)


def _places(item: str, subject: Session, person: Session) -> list[Next]:
    """Return all messages but the first, which answers nothing and has no history."""
    found: list[Next] = []
    before: list[str] = []
    heard = ""
    generated = iter(subject.said)
    for role, text in person.turns:
        if role is not Role.USER:
            heard = text
            continue
        own = next(generated)
        if before and heard:
            place = (person.id, len(before))
            history = tuple(before[-_HISTORY:])
            found.append(
                Next(f"{item}@{place[1]}", person.cluster, place, history, heard, text, own)
            )
        before.append(text)
    return found


def _question(one: Next, order: Order) -> Question:
    first = order is Order.SUBJECT_FIRST
    a, b = (one.generated, one.human) if first else (one.human, one.generated)
    ours, theirs = _grades(likeness(one.generated, one.human)), _grades(1.0)
    sides = {"a": ours, "b": theirs} if first else {"a": theirs, "b": ours}
    inputs = {
        "history": list(one.history),
        "context": one.context,
        "a": a,
        "b": b,
        "copied": copies(one.generated, [*one.history, one.context]),
    }
    return Question(one.item, KIND, inputs, Grades, rule=lambda _: sides, order=order.value)


def _grades(share: float) -> dict[str, float]:
    return dict.fromkeys(CRITERIA, round(share, 4)) | dict.fromkeys(PENALTIES, 0.0)


def rated(question: Question, value: Mapping[str, Any]) -> tuple[Rated, Seven]:
    """Return the rating of one verdict, and the grades of the generated message."""
    a, b = Seven(**value["a"]), Seven(**value["b"])
    is_b = question.order == Order.REFERENCE_FIRST
    return rate(a.total(), b.total(), generated_is_b=is_b), b if is_b else a


def _told(
    asked: Judged, places: Sequence[Next], inputs: Inputs, excluded: Mapping[str, int]
) -> Told:
    person = {one.item: one.person for one in places}
    found = {q.item: rated(q, value) for q, value in asked.answers(KIND)}
    clusters = [person[item] for item in found]
    s = {item: float(one.s) for item, (one, _) in found.items()}
    reward = {item: one.reward for item, (one, _) in found.items()}

    def mean(values: Iterable[float], name: str, direction: str = "none") -> Metric:
        interval = mean_ci(list(values), clusters, seed=inputs.seed, draws=inputs.draws)
        way: Any = direction
        return Metric(name, estimate(interval), "", way, "messages")

    apart = [value for value in s.values() if value != 4]
    below = wilson(sum(value < 4 for value in apart), len(apart))
    ties = wilson(len(s) - len(apart), len(s))
    metrics = [
        mean(s.values(), "s", "higher"),
        mean(reward.values(), "reward", "higher"),
        Metric("ties", estimate(ties, 100), "%", "none", "messages"),
        Metric("GT accuracy", estimate(below, 100), "%", "nearer", "messages that are no tie"),
    ]
    for name in PENALTIES:
        metrics.append(mean((g.model_dump()[name] for _, g in found.values()), name, "lower"))
    histogram = Counter(int(value) for value in s.values())
    half = number(50.0, len(apart), "a fair coin")
    floors = (FloorRow("GT accuracy", "perfect simulator", half, "ties left out"),)
    by_key = {
        name: PerKey(values, {item: person[item] for item in values})
        for name, values in (("s", s), ("reward", reward))
    }
    told = {"histogram": {str(step): histogram[step] for step in range(1, 8)}}
    warnings = (
        ()
        if math.isclose(len(places), len(found), rel_tol=0.05)
        else (f"rated {len(found)} of {len(places)} messages",)
    )
    return Told(tuple(metrics), floors, by_key, excluded, warnings, told)


SUITE = TuringRL()
