"""The six UserLM metrics: diversity, own words, ending, naturalness, role and intent adherence.

Items come with what the user wrote: episodes of the task `userllm` on its rows, or a file of items
with their `output`. Other conversations have what needs no row: diversity of first turns, overlap
with the stated intent, naturalness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mimesim import jsonio
from mimesim.bench.suites.base import Inputs, SuiteFacts
from mimesim.bench.suites.questions import Judged, Question, Told, estimate, judged, record
from mimesim.config import from_options
from mimesim.corpora.base import Unfit
from mimesim.dialogue.stop import USERLM_MARKER
from mimesim.envs.packs import SPLITS
from mimesim.envs.tasks.load import load_rows
from mimesim.envs.tasks.userllm import (
    TASK,
    Author,
    Kept,
    intent_overlap,
    looks_written_by,
    named,
    role_adherence,
    sounds_kept,
)
from mimesim.errors import DataError
from mimesim.judges.base import Judge
from mimesim.judges.stored import Work
from mimesim.results.suite import Metric, PerKey, SuiteScore
from mimesim.stats import mean_ci, rate_ci
from mimesim.stats.proportions import f1
from mimesim.stats.recomputed import RECOMPUTED_DRAWS, statistic_ci
from mimesim.stats.texts import diversity_ci, surface_tokens

NAME = "userlm"
AUTHOR = "tasks/userllm_author"
QUESTION = "tasks/userllm_question"


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the suite.

    Attributes:
        items: file of items with outputs, see `read_items`.
        rows: rows of the task userllm for episodes; empty = our own invented ones.
    """

    items: str = ""
    rows: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One message of the user and what it was written for.

    Attributes:
        cluster: what is resampled as one.
        kind: prism, choices or question; `talk` = a message of any other conversation.
        first: whether it opens a conversation.
        last: whether the person ended here; None = unknown.
        output: as written, the end marker included.
    """

    id: str
    cluster: str
    kind: Literal["prism", "choices", "question", "talk"]
    output: str
    intent: str = ""
    history: str = ""
    first: bool = False
    last: bool | None = None
    choices: tuple[str, ...] = ()
    question: str = ""
    suggestion: str = ""

    @property
    def text(self) -> str:
        """What was said before the end marker."""
        return self.output.partition(USERLM_MARKER)[0].strip()

    @property
    def ended(self) -> bool:
        """Whether the end marker was written."""
        return USERLM_MARKER in self.output


NOBODY_JUDGED = "no judge: naturalness and intent adherence are not measured"


class UserLM:
    """Six metrics; two of them need a judge."""

    facts = SuiteFacts(
        name=NAME,
        title="diversity, own words, ending, naturalness, role and intent adherence",
        adds=("judge",),
        source="UserLM (arXiv 2510.06552)",
        license="PRISM, CommonsenseQA, NaturalQuestions: check at the source",
        options={
            "items": "file of items with their output (default: the episodes)",
            "rows": "rows of the task userllm (default: our own invented ones)",
        },
    )

    def check_data(self, data: str) -> Mapping[str, str]:
        """Return how many rows of each kind there are; see `base.ChecksData`."""
        rows = load_rows("userllm", place=data, split="test").tasks
        kinds = Counter(str(one.public.get("kind", one.hidden.get("kind"))) for one in rows)
        return {"rows": str(len(rows)), **{kind: str(n) for kind, n in sorted(kinds.items())}}

    def works(self, inputs: Inputs, judge: Judge) -> Iterable[Work]:
        """Return who wrote each message, and whether questions were kept; see `Suite.works`."""
        _, questions = _planned(inputs)
        return [question.work(judge, inputs.seed) for question in questions]

    def score(self, inputs: Inputs) -> SuiteScore:
        """Return those of the six metrics that the items allow; see `Suite.score`."""
        items, questions = _planned(inputs)
        asked = judged(questions if inputs.verdicts else (), inputs.verdicts, needed=False)
        by_id = {one.id: one for one in items}
        metrics = [*_counted(items, inputs), *_judged(asked, by_id, inputs)]
        overlaps = _overlaps(items)
        by_key = {"intent overlap": PerKey(overlaps, {i: by_id[i].cluster for i in overlaps})}
        empty = sum(not one.text and not one.ended for one in items)
        excluded = {"empty message": empty} if empty else {}
        unjudged = () if inputs.verdicts else (NOBODY_JUDGED,)
        about = {"items": len(items), "detector of naturalness": asked.judge}
        return record(
            NAME, inputs, asked, Told(tuple(metrics), (), by_key, excluded, unjudged, about)
        )


def _planned(inputs: Inputs) -> tuple[list[Item], list[Question]]:
    options = from_options(Options, inputs.options, where=f"suite {NAME!r}")
    items = read_items(options.items) if options.items else _of_sessions(inputs, options.rows)
    questions = [q for one in items if one.text for q in _questions(one)]
    return items, questions


def read_items(path: str) -> list[Item]:
    """Read items, one line each: the fields of a row of the task `userllm`, `id` and `output`.

    Raises:
        DataError: a line that is no item, or an id that occurs twice.
    """
    found: dict[str, Item] = {}
    for line in jsonio.read_jsonl(path):
        where = f"{path}:{line.number}"
        value = line.value if isinstance(line.value, Mapping) else {}
        name, output = value.get("id"), value.get("output")
        if not isinstance(name, str | int) or not isinstance(output, str):
            raise DataError("no item", where=where, expected="id, output and the fields of a row")
        try:
            row = TASK.read(value)
        except Unfit as unfit:
            raise DataError(f"no item: {unfit.detail}", where=where) from None
        if str(name) in found:
            raise DataError(f"the item {name!r} occurs twice", where=where)
        cluster = str(value.get("conversation_id") or name)
        found[str(name)] = _item(str(name), cluster, output, {**row.public, **row.hidden})
    return list(found.values())


def _item(name: str, cluster: str, output: str, row: Mapping[str, Any]) -> Item:
    return Item(
        name,
        cluster,
        row["kind"],
        output,
        intent=row["intent"],
        history=row["history"],
        first=row["kind"] == "prism" and not row["history"],
        last=row["last"],
        choices=tuple(row["choices"]),
        question=row["question"],
        suggestion=row["suggestion"],
    )


def _of_sessions(inputs: Inputs, rows: str) -> list[Item]:
    if rows:
        tasks = list(load_rows("userllm", place=rows, split="test").tasks)
    else:
        tasks = [task for split in SPLITS for task in load_rows("userllm", split=split).tasks]
    known = {task.id: {**task.public, **task.hidden} for task in tasks}
    found: list[Item] = []
    for session in inputs.sessions.sessions:
        row = known.get(session.task)
        if row is not None:
            found.append(_item(session.id, session.task, session.said[-1], row))
            continue
        for place, text in enumerate(session.said):
            found.append(
                Item(
                    f"{session.id}@{place}",
                    session.cluster,
                    "talk",
                    text,
                    intent=session.goal,
                    first=place == 0,
                )
            )
    return found


def _questions(item: Item) -> list[Question]:
    if item.kind in ("prism", "talk"):
        inputs = {"history": item.history, "turn": item.text}
        return [Question(item.id, AUTHOR, inputs, Author, rule=looks_written_by)]
    if item.kind == "question":
        asked = {"question": item.question, "suggestion": item.suggestion, "turn": item.text}
        return [Question(item.id, QUESTION, asked, Kept, rule=sounds_kept)]
    return []


def _counted(items: Sequence[Item], inputs: Inputs) -> list[Metric]:
    """Return the four metrics that need no judge, as far as there are items for them."""
    metrics = []
    first = [(surface_tokens(one.text), one.cluster) for one in items if one.first and one.text]
    if len(first) > 1:
        found = diversity_ci([tokens for tokens, _ in first], [c for _, c in first])
        metrics.append(Metric("first-turn diversity", estimate(found), "", "nearer", "first turns"))
    overlaps = _overlaps(items)
    if overlaps:
        clusters = [one.cluster for one in items if one.id in overlaps]
        mean = mean_ci(list(overlaps.values()), clusters, seed=inputs.seed, draws=inputs.draws)
        metrics.append(Metric("intent overlap", estimate(mean), "", "lower", "turns"))
    ends = [(one.ended, one.last, one.cluster) for one in items if one.last is not None]
    if ends:
        pairs = [(ended, bool(last)) for ended, last, _ in ends]
        draws = min(inputs.draws, RECOMPUTED_DRAWS)
        found = statistic_ci(pairs, [c for _, _, c in ends], ending_f1, inputs.seed, draws)
        metrics.append(Metric("termination F1", estimate(found), "", "higher", "turns"))
    kept = adherence(items)
    if kept:
        grades = [bool(grade) for _, grade in kept]
        rate = rate_ci(grades, [one.cluster for one, _ in kept], inputs.seed, inputs.draws)
        ignored = sum(one.kind == "choices" for one in items) - len(kept)
        note = f"{ignored} ignored: all options named" if ignored else ""
        metrics.append(
            Metric("role adherence", estimate(rate, 100), "%", "higher", "items", note=note)
        )
    return metrics


def ending_f1(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Return the F1 of (ended, should have ended)."""
    return f1(pairs.count((True, True)), pairs.count((True, False)), pairs.count((False, True)))


def adherence(items: Sequence[Item]) -> list[tuple[Item, float]]:
    """Return items with options and their grade; one that names all of them is left out."""
    graded = [
        (one, role_adherence(named(one.text, one.choices), len(one.choices)))
        for one in items
        if one.kind == "choices" and one.text
    ]
    return [(one, grade) for one, grade in graded if grade is not None]


def _overlaps(items: Sequence[Item]) -> dict[str, float]:
    return {
        one.id: intent_overlap(one.intent, one.text)
        for one in items
        if one.intent and one.text and one.kind in ("prism", "talk")
    }


def _judged(asked: Judged, items: Mapping[str, Item], inputs: Inputs) -> list[Metric]:
    metrics = []
    for name, kind, good in (
        ("naturalness", AUTHOR, "HUMAN"),
        ("intent adherence", QUESTION, "REFUSED"),
    ):
        found = [(items[q.item], value["verdict"] == good) for q, value in asked.answers(kind)]
        if found:
            clusters = [one.cluster for one, _ in found]
            rate = rate_ci([hit for _, hit in found], clusters, inputs.seed, inputs.draws)
            metrics.append(Metric(name, estimate(rate, 100), "%", "higher", "messages"))
    return metrics


SUITE = UserLM()
