"""What suites with judges share: questions, the verdicts joined to them, pairs with people.

A suite says what it would ask from stored conversations alone; so scoring asks nobody and knows
which stored verdict belongs to which question, by the fingerprint of the very text. A question
without a verdict is counted and never a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from mimesim import jsonio, prompts, seeds
from mimesim.bench.suites.base import Inputs
from mimesim.bench.suites.references import references
from mimesim.bench.suites.sessions import Session, SessionSet
from mimesim.dialogue.types import Role
from mimesim.envs.packs import SPLITS
from mimesim.envs.tasks.load import load_rows
from mimesim.errors import DataError
from mimesim.judges.base import Failed, Judge, JudgeRequest, JudgeResult, Rule, Verdict
from mimesim.judges.stored import Stored, Work
from mimesim.results.suite import FloorRow, Metric, PerKey, SuiteScore
from mimesim.results.values import Estimate
from mimesim.stats import Interval

RULE = "rule"
NOT_JUDGED = "not judged"
OWN = "own invented conversations"
_GOALS = ("intent", "description", "problem")


@dataclass(frozen=True, slots=True)
class Question:
    """One thing to ask a judge about one item.

    Attributes:
        kind: names the template `judge/<kind>`, and what the verdict is stored as.
        inputs: what the judge reads, JSON values; public text only.
        then: the question that follows from the answer, or why the answer leads to none; the
            verdict is that of the last one.
        later: kinds of the questions that follow; another prompt of theirs is another question.
        verdict: schema of the last one; None = the own.
        order, sample: see `judges.stored.Stored`.
    """

    item: str
    kind: str
    inputs: Mapping[str, Any]
    schema: type[BaseModel]
    rule: Rule | None = None
    then: Callable[[Any], Question | Failed] | None = None
    later: tuple[str, ...] = ()
    verdict: type[BaseModel] | None = None
    order: str = ""
    sample: int = 0

    @property
    def text_key(self) -> str:
        """Fingerprint of what the judge reads, its prompt included."""
        kinds = [f"judge/{kind}" for kind in (self.kind, *self.later)]
        told = [self.kind, prompts.prompt_hash(*kinds), self.inputs]
        return seeds.fingerprint(jsonio.canonical(told))

    def work(self, judge: Judge, seed: int) -> Work:
        """Return the question as the verdict layer takes it."""

        async def ask() -> JudgeResult[Any]:
            return await _answer(self, judge, seed)

        return Work(
            self.item,
            self.kind,
            self.text_key,
            ask,
            order=self.order,
            sample=self.sample,
            schema=self.verdict or self.schema,
        )


async def _answer(question: Question, judge: Judge, seed: int) -> JudgeResult[Any]:
    """Put a question and all that follow from its answers; the first without an answer ends it."""
    asked, raw, usage = question, "", None
    while True:
        own = seeds.derive(seed, "judge", asked.kind, asked.item, asked.order, asked.sample)
        request = JudgeRequest(
            asked.kind,
            asked.inputs,
            asked.schema,
            seed=own,
            trial=asked.sample,
            rule=asked.rule,
            take="last",
        )
        result = await judge.judge(request)
        raw = f"{raw}\n{result.raw}" if raw else result.raw
        usage = result.usage if usage is None else usage + result.usage
        if not isinstance(result, Verdict) or asked.then is None:
            return replace(result, raw=raw, usage=usage)
        following = asked.then(result.value)
        if isinstance(following, Failed):
            return replace(following, raw=raw, usage=usage)
        asked = following


@dataclass(frozen=True, slots=True)
class Judged:
    """Questions with what a judge said to them.

    Attributes:
        values: of the questions that were answered, by place among all.
        lost: reason -> questions without a verdict.
        judge: who answered; empty where nobody was asked.
    """

    questions: tuple[Question, ...]
    values: Mapping[int, Mapping[str, Any]]
    lost: Mapping[str, int]
    judge: str

    def answers(self, kind: str) -> list[tuple[Question, Mapping[str, Any]]]:
        """Return the answered questions of a kind, in their order."""
        found = [(self.questions[place], value) for place, value in self.values.items()]
        return [(question, value) for question, value in found if question.kind == kind]


def judged(
    questions: Sequence[Question], verdicts: Sequence[Stored], *, needed: bool = True
) -> Judged:
    """Join stored verdicts to their questions; of several on one question the last counts.

    Verdicts on other texts, e.g. of an older run in the same file, belong to no question.

    Args:
        questions: of a suite.
        verdicts: of a judge.
        needed: whether there is nothing to score without an answer.

    Raises:
        DataError: an answer is needed, and not one of the questions has a verdict.
    """
    known = {(v.item, v.kind, v.text_key, v.order, v.sample): v for v in verdicts}
    keys = [(q.item, q.kind, q.text_key, q.order, q.sample) for q in questions]
    found = {place: known[key] for place, key in enumerate(keys) if key in known}
    values = {place: one.value for place, one in found.items() if one.value is not None}
    lost = Counter(
        f"judge {found[place].state}" if place in found else NOT_JUDGED
        for place in range(len(questions))
        if place not in values
    )
    if needed and questions and not values:
        reasons = ", ".join(f"{reason}: {n}" for reason, n in sorted(lost.items()))
        raise DataError(
            f"none of {len(questions)} questions has a verdict ({reasons})",
            where="verdicts",
            expected="at least one",
            mend="ask a judge first: mimesim bench judge",
        )
    names = sorted({one.judge for one in found.values()})
    return Judged(tuple(questions), values, lost, ", ".join(names))


@dataclass(frozen=True, slots=True)
class Pair:
    """A conversation of the measured user and one of a person.

    Attributes:
        item: the same for every user that is measured, where tasks are named.
    """

    item: str
    subject: Session
    person: Session

    @property
    def cluster(self) -> str:
        """What is resampled as one."""
        return self.person.cluster


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs, and what has no counterpart."""

    pairs: tuple[Pair, ...]
    excluded: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def pair_up(inputs: Inputs, *, by_lot: bool = True) -> Pairs:
    """Pair conversations by task; where none is common, by lot.

    Several people on one task are taken in turn over its trials. By lot, every conversation gets a
    person's, each equally often to within one; judges then compare talk about different matters.

    Args:
        inputs: with people.
        by_lot: whether a lot is allowed.

    Raises:
        DataError: there are no people, nobody to measure, or no common task and no lot.
    """
    people = inputs.people.sessions if inputs.people is not None else ()
    subjects = inputs.sessions.sessions
    by_task = _by_task(people)
    common = [one for one in subjects if (one.task or one.id) in by_task]
    if not (people and subjects) or not (common or by_lot):
        raise DataError(
            "no task that the user and a person have in common",
            where=inputs.sessions.name,
            expected="conversations of people on the same tasks",
            mend="name the people's conversations: --human SOURCE",
        )
    if not common:
        return _by_lot(subjects, people, inputs.seed)
    turn: Counter[str] = Counter()
    pairs = []
    for one in common:
        key = one.task or one.id
        mates = by_task[key]
        pairs.append(Pair(f"{key}#{turn[key]}", one, mates[turn[key] % len(mates)]))
        turn[key] += 1
    alone = len(subjects) - len(common)
    return Pairs(tuple(pairs), {"no person on the task": alone} if alone else {})


def _by_task(people: Sequence[Session]) -> dict[str, list[Session]]:
    """Return task, and id where it is another, -> people's conversations."""
    found: dict[str, list[Session]] = {}
    for one in people:
        for key in {one.task or one.id, one.id}:
            found.setdefault(key, []).append(one)
    return found


def _by_lot(subjects: Sequence[Session], people: Sequence[Session], seed: int) -> Pairs:
    def drawn(side: str, one: Session) -> str:
        return seeds.fingerprint(f"{seed}|{side}|{one.id}", 32)

    mates = sorted(people, key=lambda one: drawn("people", one))
    order = sorted(subjects, key=lambda one: drawn("subjects", one))
    pairs = [Pair(one.id, one, mates[i % len(mates)]) for i, one in enumerate(order)]
    told = "no common task: people were drawn by lot, so the talks are about different matters"
    return Pairs(tuple(pairs), {}, (told,))


def own_people(*tasks: str) -> SessionSet:
    """Return the invented conversations of our own rows of tasks, e.g. `mirrorbench`.

    They are written by us for trying a suite, not collected from people; their ids are those of the
    tasks, so that episodes played on the same rows meet them.
    """
    found = []
    for name in tasks:
        for split in SPLITS:
            for task in load_rows(name, split=split).tasks:
                told = task.hidden.get("turns") or task.hidden["conversation"]
                turns = tuple(
                    (Role.USER if turn["role"] == "user" else Role.AGENT, str(turn["text"]))
                    for turn in told
                )
                goal = next((str(task.public[k]) for k in _GOALS if task.public.get(k)), "")
                about = {"task": name.removeprefix("sim_"), "type": task.public.get("kind")}
                about["features"] = [
                    {"group": group, **one}
                    for group in ("writing", "interaction")
                    for one in task.hidden.get(group, ())
                ]
                found.append(
                    Session(task.id, turns, task.id, goal=goal, user="invented people", about=about)
                )
    return SessionSet(OWN, tuple(found))


def with_people(inputs: Inputs, *tasks: str) -> Inputs:
    """Return the inputs with our own invented people where none are given."""
    return inputs if inputs.people is not None else replace(inputs, people=own_people(*tasks))


def shown(session: Session, *, only_user: bool = False) -> list[dict[str, str]]:
    """Return a conversation as judge templates take it."""
    return [
        {"role": "user" if role is Role.USER else "assistant", "text": text}
        for role, text in session.turns
        if role is Role.USER or not only_user
    ]


def estimate(found: Interval, scale: float = 1.0) -> Estimate:
    """Return an interval for a record, in other units: `scale` 100 for percent."""
    value, low, high = (
        None if one is None else one * scale for one in (found.value, found.low, found.high)
    )
    return Estimate(value, low, high, found.n, found.method)


def number(value: float | None, n: int, method: str = "") -> Estimate:
    """Return a value without an interval."""
    return Estimate(value, None, None, n, method)


@dataclass(frozen=True, slots=True)
class Told:
    """What a suite found, before it becomes a record."""

    metrics: tuple[Metric, ...]
    floors: tuple[FloorRow, ...] = ()
    by_key: Mapping[str, PerKey] = field(default_factory=dict)
    excluded: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)


def record(name: str, inputs: Inputs, asked: Judged, told: Told, *, table: str = "") -> SuiteScore:
    """Return the record of a suite: what was found, who judged, and what was left out.

    Args:
        name: as it may be printed.
        inputs: what was scored.
        asked: its questions with their verdicts.
        told: what came of it.
        table: of published rows; empty = called like the suite.
    """
    kinds = sorted({kind for one in asked.questions for kind in (one.kind, *one.later)})
    left_out = Counter(inputs.sessions.left_out)
    for more in (told.excluded, asked.lost):
        left_out.update(more)
    rows = references(table or name)
    warnings = list(told.warnings)
    if asked.judge == RULE:
        warnings.append("judge rule: a plain rule on the text, not a judge of the benchmark")
    if inputs.people is not None and inputs.people.name == OWN:
        warnings.append(f"people: {OWN}, for trying it only")
    if rows:
        warnings.append("published rows: made with other judges and assistants, see their scale")
    roles = {
        "user": inputs.sessions.user,
        "agent": inputs.sessions.agent,
        "judge": asked.judge,
    }
    return SuiteScore(
        suite=name,
        metrics=told.metrics,
        mode=inputs.mode,
        roles={role: who for role, who in roles.items() if who},
        seeds=inputs.sessions.seeds,
        floors=told.floors,
        references=rows,
        excluded={reason: n for reason, n in sorted(left_out.items()) if n},
        warnings=tuple(warnings),
        by_key=told.by_key,
        provenance={
            "prompts": {kind: prompts.prompt_hash(f"judge/{kind}") for kind in kinds},
            **told.provenance,
        },
    )
