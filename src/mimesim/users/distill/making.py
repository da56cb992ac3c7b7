"""`mimesim data from-logs`: a source of human conversations to a scenario file, resumable.

Conversations are read as they come and written in that order; a judge is asked about several at
once. A file that is there already is continued: what it holds is not asked for again.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from mimesim import jsonio, prompts, seeds
from mimesim.config import redact
from mimesim.corpora import base, built, load
from mimesim.corpora.base import CorpusInfo, HumanDialogue, Unfit
from mimesim.corpora.raw import OnReject
from mimesim.errors import DataError, UsageError
from mimesim.judges.base import Judge
from mimesim.models.load import preflight
from mimesim.scenarios.types import Scenario
from mimesim.users.distill import claims
from mimesim.users.distill.contacts import pseudonymized
from mimesim.users.distill.scenario import distill, fit_scenario
from mimesim.users.distill.skipping import NO_SCENARIO, Skips

RULES = 2
"""Version of the rules; another one does not continue a file."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be made.

    Attributes:
        source: conversations, as `corpora.load` takes them.
        out: the scenario file, JSON Lines; None = write nothing.
        limit: conversations at most, 0 = all; the first in the order of the source.
        seed: of stand-ins and of the judge.
        judge: name of the judge, for the record; "" = rules alone.
        keep_contacts: leave contact data as it is.
        region: country (ISO 3166-1) whose phone numbers are told without a country code.
        options: of the format of the source, e.g. the columns of a table.
        concurrency: conversations that a judge reads at once.
    """

    source: str
    out: Path | None
    limit: int = 0
    seed: int = 0
    judge: str = ""
    keep_contacts: bool = False
    region: str = "US"
    options: Mapping[str, str] = field(default_factory=dict)
    overwrite: bool = False
    concurrency: int = 8

    def made(self) -> dict[str, Any]:
        """Return what stands in every scenario about how it was made."""
        return {
            "by": "rules" if not self.judge else redact(self.judge),
            "rules": RULES,
            "prompt_hash": prompts.prompt_hash(f"judge/{claims.KIND}") if self.judge else "",
            "seed": self.seed,
            "contacts": "kept" if self.keep_contacts else f"replaced, region {self.region}",
            **({"options": dict(self.options)} if self.options else {}),
        }


@dataclass(slots=True)
class Report:
    """What came of it.

    Attributes:
        skipped: conversations without a scenario, by reason.
        first: the first of these, with its place.
        contacts: values that were replaced, by kind.
        judged: answers of the judge, by result; `dropped` its claims that did not hold.
    """

    conversations: int = 0
    scenarios: int = 0
    resumed: int = 0
    facts: int = 0
    withheld: int = 0
    may_state_goal: int = 0
    claims: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    first: str = ""
    contacts: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "conversations": self.conversations,
            "scenarios": self.scenarios,
            "resumed": self.resumed,
            "facts": self.facts,
            "withheld": self.withheld,
            "may_state_goal": self.may_state_goal,
            "skipped": +self.skipped,
            "contacts_replaced": +self.contacts,
            "judge": {
                "results": +self.judged, "claims": self.claims, "claims_dropped": +self.dropped
            },
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Case:
    """A conversation that is worth a scenario, before and after the judge."""

    where: str
    dialogue: HumanDialogue
    info: CorpusInfo
    contacts: Counter[str]


async def make_scenarios(
    order: Order, judge: Judge | None, on_done: Callable[[Report], None] | None = None
) -> Report:
    """Distil every conversation of the source.

    Args:
        order: what is to be made.
        judge: helps the rules; it is not closed.
        on_done: told after every conversation.

    Raises:
        UsageError: a source, a file or a judge that cannot be used.
    """
    report = Report()
    with _held(order.out):
        await _fill(order, judge, on_done, report)
        if not report.conversations:
            first = f"; the first thing left out is {report.first}" if report.first else ""
            raise DataError(f"no conversation in the source{first}", where=order.source)
    return report


@contextmanager
def _held(path: Path | None) -> Iterator[None]:
    """Keep other processes out of the file; an empty one is not left behind by a failure."""
    if path is None:
        yield
        return
    with jsonio.open_locked(path):
        try:
            yield
        except BaseException:
            if not path.stat().st_size:
                path.unlink()
            raise


async def _fill(
    order: Order, judge: Judge | None, on_done: Callable[[Report], None] | None, report: Report
) -> None:
    known = _known(order)
    if judge is not None:
        await preflight(judge)
    skips = Skips(report.skipped, order.out)
    cases = _cases(order, known, report, skips)
    size = order.concurrency if judge is not None else 1
    batch = list(islice(cases, size))  # a source that cannot be read costs no earlier file
    if order.out is not None and order.overwrite:
        os.truncate(order.out, 0)
    out = jsonio.Appender(order.out) if order.out is not None else None
    try:
        while batch:
            making = (_make(case, order, judge, report, skips) for case in batch)
            made = await asyncio.gather(*making)
            for case, scenario in zip(batch, made, strict=True):
                _count(report, case, scenario)
                if scenario is not None and out is not None:
                    out.append(scenario.to_json())
            if on_done is not None:
                on_done(report)
            batch = list(islice(cases, size))
    finally:
        report.first = skips.first
        skips.close()
        if out is not None:
            out.close()


def preview(order: Order) -> Scenario:
    """Return the first scenario of the source, made by rule.

    Raises:
        DataError: no conversation of the source gives one.
    """
    report = Report()
    for case in _cases(order, frozenset(), report, Skips(report.skipped, None)):
        found = distill(case.dialogue)
        made = order.made()
        fit = found and fit_scenario(case.dialogue, found, case.info, made, report.skipped)
        if fit:
            return fit
    raise DataError("no conversation gives a scenario", where=order.source)


def _known(order: Order) -> frozenset[str]:
    """Return the ids of the scenarios that are there already; a torn last line is cut.

    Raises:
        DataError: a damaged line, or scenarios that were made in another way.
    """
    path = order.out
    if path is None or not path.exists():
        return frozenset()
    if order.overwrite:
        _check_own(path)
        return frozenset()
    jsonio.cut_torn_tail(path)
    ids = set()
    for line in jsonio.read_jsonl(path):
        where = f"{path}:{line.number}"
        scenario = Scenario.from_json(line.value, where)
        if scenario.meta.get("distilled") != order.made():
            raise UsageError(
                "the file holds scenarios that were made in another way",
                where=where,
                expected="the same seed, judge and settings as before",
                mend="--overwrite, or another --out",
            )
        ids.add(scenario.id)
    return frozenset(ids)


def _check_own(path: Path) -> None:
    """Make sure that a file to be overwritten holds scenarios, not somebody's conversations.

    Raises:
        UsageError: it begins with something else; a damaged first line may be anything.
    """
    try:
        with path.open("rb") as stream:
            first = stream.readline()
        value = jsonio.loads(first.decode("utf-8")) if first.strip() else {"meta": {"distilled": 0}}
        own = "distilled" in value["meta"]
    except (OSError, ValueError, LookupError, TypeError):
        own = False
    if not own:
        raise UsageError(
            "this is no file of `mimesim data from-logs`, so it is not overwritten",
            where=str(path),
            expected="a new file, or one of scenarios made from conversations",
            mend="choose another --out",
        )


def _cases(order: Order, known: frozenset[str], report: Report, skips: Skips) -> Iterator[_Case]:
    """Yield the conversations that are still to be done."""
    seen: dict[str, str] = {}
    found = conversations(order.source, skips, order.options)
    for where, dialogue, info in islice(found, order.limit or None):
        report.conversations += 1
        fit, contacts = dialogue, Counter[str]()
        if not order.keep_contacts:
            fit, contacts = pseudonymized(dialogue, seed=order.seed, region=order.region)
        words = jsonio.dumps([[turn.role, turn.text] for turn in dialogue.turns])
        content = seeds.fingerprint(words)
        if fit.id in seen:
            same = seen[fit.id] == content
            how = "the same" if same else "other"
            skips(
                where,
                "duplicate" if same else "duplicate_id",
                f"the id {fit.id!r} stands here again, with {how} words",
            )
        elif fit.id in known:
            report.resumed += 1
        else:
            yield _Case(where, fit, info, contacts)
        seen.setdefault(fit.id, content)


async def _make(
    case: _Case, order: Order, judge: Judge | None, report: Report, skips: Skips
) -> Scenario | None:
    found = distill(case.dialogue)
    if found is None:
        skips(case.where, "no_goal", NO_SCENARIO["no_goal"])
        return None
    made = order.made()
    why: Counter[str] = Counter()
    scenario = fit_scenario(case.dialogue, found, case.info, made, why)
    for reason in why:
        skips(case.where, reason, NO_SCENARIO[reason])
    if judge is None or scenario is None:
        return scenario
    judged = await claims.ask_judge(judge, case.dialogue, found, seed=order.seed)
    report.judged[judged.result] += 1
    report.claims += judged.claims
    report.dropped += judged.dropped
    unfit: Counter[str] = Counter()
    better = fit_scenario(case.dialogue, judged.distilled, case.info, made, unfit)
    report.dropped["scenario_unfit"] += unfit.total()
    return _marked(better or scenario, judged)


def _marked(scenario: Scenario, judged: claims.Judged) -> Scenario:
    """Return the scenario with what the judge did in its `meta`."""
    shown = {
        "result": judged.result, "claims": judged.claims, "dropped": dict(+judged.dropped)
    }  # fmt: skip
    value = scenario.to_json()
    value["meta"] = {**value["meta"], "judge": shown}
    return Scenario.from_json(value, scenario.id)


def _count(report: Report, case: _Case, scenario: Scenario | None) -> None:
    if scenario is None:
        return
    report.scenarios += 1
    report.facts += len(scenario.facts)
    report.withheld += len(scenario.withhold)
    report.may_state_goal += scenario.may_state_goal
    report.contacts += case.contacts


def conversations(
    source: str, reject: OnReject, options: Mapping[str, str] | None = None
) -> Iterator[tuple[str, HumanDialogue, CorpusInfo]]:
    """Yield the tidied conversations of a source and where they stand, contact data included.

    Args:
        source: a file of own logs, `name:place`, a built folder, or `chitchat`.
        reject: is told where something is no conversation, the reason and details.
        options: of the format, e.g. the columns of a table.

    Raises:
        UnknownNameError: neither a known corpus nor a path.
        DataError: the place does not exist.
    """
    if source == "chitchat" or built.is_built(Path(source)):
        corpus = load.open_corpus(source)
        for dialogue in corpus.dialogues:
            yield f"{source}#{dialogue.id}", dialogue, corpus.info
        return
    place = load.parse_source(source)
    given = options or {}
    form = load.format_of(place.corpus, given)
    where = load.source_place(place)
    for record in load.raw_records(form, where, reject):
        try:
            found = load.converted(form, record, given, where)
        except Unfit as unfit:
            reject(record.where, unfit.reason, unfit.detail)
            continue
        for dialogue in found:
            turns = base.tidy(dialogue.turns, Counter())
            if any(turn.role == "user" for turn in turns):
                yield record.where, replace(dialogue, turns=turns), form.info
            else:
                reject(record.where, "no_user_turn", "nobody to learn from")
