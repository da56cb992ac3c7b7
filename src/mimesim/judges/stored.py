"""Verdicts on disk: one JSON line each, appended as they come, so that judging resumes.

A verdict belongs to an item, a judge with all its settings, and the very text that was judged; a line
of another text or another setting is not taken over. Scores and skips are final; a failure is asked
for again the next time, and so is a line whose value the question does not allow. What a judge wrote
stands under `private`. One process at a time asks for a file.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mimesim import jsonio, seeds
from mimesim.dialogue.types import Identity, Usage
from mimesim.errors import ContextExceeded, DataError, EnvironmentFault, InfraError
from mimesim.judges.base import Failed, Judge, JudgeResult, Verdict
from mimesim.judges.load import make_judge, with_budget
from mimesim.models.load import preflight
from mimesim.models.structured import UnreadableError, validate

SCHEMA = "mimesim.verdict/1"
SCORED, FAILED, REFUSED, SKIPPED = "scored", "failed", "refused", "skipped"
UNREACHABLE = "unreachable"
UNFIT = "value outside the schema"
BUDGET_S = 180.0
"""Wall clock of one call of a judge's endpoint, retries and pauses included."""
MOST_UNREACHABLE = 5
"""Calls in a row without an answer that end the judging."""
_COSTS = {entry.name for entry in fields(Usage)}
_STATES = (SCORED, FAILED, REFUSED, SKIPPED)


class JudgeGoneError(EnvironmentFault):
    """A judge answered its check and then no more; what it said before is kept."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Stored:
    """One verdict as it stands on disk.

    Attributes:
        item: id of the episode or conversation.
        kind: what was asked.
        behavior: what it was about; None = an ordinary customer, or nothing particular.
        judge: door name; `judge_key` tells its settings apart, `text_key` what it read.
        value: the verdict as JSON values; None unless it was scored.
        reason: why there is none.
        order: which text stood first, `AB` = the subject's; empty where nothing is ordered.
        sample: repetition of the same question.
        usage: what it cost, as `dialogue.types.Usage` names it; empty where no model was called.
    """

    item: str
    kind: str
    judge: str
    state: str
    behavior: str | None = None
    value: Mapping[str, Any] | None = None
    reason: str = ""
    judge_key: str = ""
    text_key: str = ""
    raw: str = field(default="", repr=False)
    order: str = ""
    sample: int = 0
    usage: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the line, its private side apart."""
        body = {"schema": SCHEMA, **asdict(self)}
        raw = body.pop("raw")
        body = {k: v for k, v in body.items() if v or k not in ("order", "sample", "usage")}
        return body | ({"private": {"judge": raw}} if raw else {})

    @classmethod
    def from_json(cls, value: Any, where: str) -> Stored:
        """Read a line.

        Raises:
            DataError: it is no verdict.
        """
        if not isinstance(value, dict) or value.get("schema") != SCHEMA:
            raise DataError("no stored verdict", where=where, expected=f"the schema {SCHEMA!r}")
        texts = ("item", "kind", "judge", "state", "reason", "judge_key", "text_key", "order")
        wrong = [key for key in texts if not isinstance(value.get(key, ""), str)]
        wrong += [key for key in texts[:4] if not value.get(key)]
        sample = value.get("sample", 0)
        wrong += [] if type(sample) is int and sample >= 0 else ["sample"]
        scored = value.get("state") == SCORED
        if wrong or value["state"] not in _STATES or scored != isinstance(value.get("value"), dict):
            place = wrong[0] if wrong else "state or value"
            raise DataError(f"{place} is missing or of a wrong kind", where=where)
        usage = value.get("usage", {})
        if not isinstance(usage, dict) or not usage.keys() <= _COSTS:
            raise DataError("usage is of a wrong kind", where=where)
        given = {key: value.get(key, "") for key in texts}
        return cls(
            behavior=value.get("behavior"),
            value=value.get("value"),
            sample=sample,
            usage=usage,
            **given,
        )


@dataclass(frozen=True, slots=True)
class Work:
    """One question that is to be put, or was.

    Attributes:
        text_key: fingerprint of what the judge reads.
        ask: puts it; of what is not to be judged, a `Skipped` without asking anybody.
        order, sample: see `Stored`.
        schema: what a value of it has to fulfil.
    """

    item: str
    kind: str
    text_key: str
    ask: Callable[[], Awaitable[JudgeResult[Any]]]
    behavior: str | None = None
    order: str = ""
    sample: int = 0
    schema: type[BaseModel] | None = None

    def checked(self, one: Stored) -> Stored:
        """Return a stored verdict on it, as a failure where its value is none of the schema."""
        if one.value is None or self.schema is None:
            return one
        try:
            value = validate(one.value, self.schema)
        except UnreadableError:
            return replace(one, state=FAILED, value=None, reason=UNFIT)
        return replace(one, value=value.model_dump(mode="json"))


def judge_key(identity: Identity) -> str:
    """Return the fingerprint of a judge and all that decides its verdicts."""
    return seeds.fingerprint(jsonio.canonical(asdict(identity)))


def read(path: Path | str) -> list[Stored]:
    """Read a file of verdicts.

    Raises:
        DataError: damaged, with the line number.
    """
    lines = jsonio.read_jsonl(path, growing=True)
    return [Stored.from_json(line.value, f"{path}:{line.number}") for line in lines]


class Verdicts:
    """A file of verdicts, open for more; held until it is closed.

    Raises:
        DataError: a damaged line.
        EnvironmentFault: the place cannot be written, or another process asks for it.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        with ExitStack() as opened:
            opened.enter_context(jsonio.locked(self.path.with_name(f".{self.path.name}.lock")))
            jsonio.cut_torn_tail(self.path)
            old = read(self.path) if self.path.exists() else []
            self._file = opened.enter_context(jsonio.Appender(self.path))
            self._opened = opened.pop_all()
        self._known = {_key(one): one for one in old if one.state != FAILED}
        self.resumed = 0

    async def all(
        self,
        works: Iterable[Work],
        judge: Identity,
        *,
        concurrency: int = 8,
    ) -> list[Stored]:
        """Return the verdicts on `works` in their order; those that are known are not asked again.

        A judge that cannot be reached fails its item, not the others, until that happened too
        often in a row.

        Raises:
            EnvironmentFault: a wrong key, a full disk, or a judge that is gone.
        """
        gate = asyncio.Semaphore(concurrency)
        lost: list[str] = []

        def check() -> None:
            if len(lost) >= MOST_UNREACHABLE:
                raise _gone(judge, lost[-1], self.path)

        async def one(work: Work) -> Stored:
            blank = Stored(
                work.item,
                work.kind,
                judge.name,
                SKIPPED,
                work.behavior,
                judge_key=judge_key(judge),
                text_key=work.text_key,
                order=work.order,
                sample=work.sample,
            )
            known = self._known.get(_key(blank))
            known = known and work.checked(known)
            if known is not None and known.state != FAILED:
                self.resumed += 1
                return known
            async with gate:
                check()
                found, trouble = await _asked(work, blank)
            self._file.append(found.to_json())
            self._known[_key(found)] = found
            lost[:] = [*lost, trouble] if trouble else []
            check()
            return found

        tasks: list[asyncio.Task[Stored]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks += [group.create_task(one(work)) for work in works]
        except ExceptionGroup as several:
            raise several.exceptions[0] from None
        return [task.result() for task in tasks]

    def close(self) -> None:
        """Close the file; twice is harmless."""
        self._opened.close()

    def __enter__(self) -> Verdicts:
        """Return self."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the file."""
        self.close()


async def ask_judges(
    names: Iterable[str],
    works: Callable[[Judge], Iterable[Work]],
    path: Path | str,
    *,
    concurrency: int = 8,
    budget_s: float = BUDGET_S,
) -> dict[str, list[Stored]]:
    """Put questions to several judges, one after the other, and keep all verdicts in one file.

    Args:
        names: door names; all of the judges must be reachable before the first is asked.
        works: what there is to ask a judge.
        path: the file, see `Verdicts`.
        concurrency: questions at once.
        budget_s: see `BUDGET_S`.

    Raises:
        UsageError: no such judge, it cannot be reached, or the file is damaged or in use.
    """
    judges = {name: make_judge(name, options=with_budget(name, budget_s)) for name in names}
    try:
        for judge in judges.values():
            await preflight(judge)
        with Verdicts(path) as file:
            return {
                name: await file.all(works(judge), judge.identity, concurrency=concurrency)
                for name, judge in judges.items()
            }
    finally:
        for judge in judges.values():
            await judge.aclose()


def states(stored: Iterable[Stored]) -> dict[str, Any]:
    """Return how many verdicts there are of each state, and the reasons of those without a score."""
    listed = list(stored)
    reasons = Counter(one.reason for one in listed if one.state != SCORED)
    return {**Counter(one.state for one in listed), "reasons": dict(reasons)}


def _gone(judge: Identity, trouble: str, path: Path) -> JudgeGoneError:
    return JudgeGoneError(
        f"{MOST_UNREACHABLE} calls in a row were not answered; the last: {trouble}",
        where=f"judge {judge.name}",
        expected="an endpoint that answers",
        mend=f"look after it and run the same command again; what it said before is kept in {path}",
    )


async def _asked(work: Work, blank: Stored) -> tuple[Stored, str]:
    """Return the verdict, and why nobody answered where nobody did."""
    try:
        result = await work.ask()
    except InfraError as error:
        return replace(blank, state=FAILED, reason=UNREACHABLE), error.detail
    except ContextExceeded:
        return replace(blank, state=FAILED, reason="context_exceeded"), ""
    return _answered(result, blank), ""


def _answered(result: JudgeResult[Any], blank: Stored) -> Stored:
    spent = {name: amount for name, amount in asdict(result.usage).items() if amount}
    blank = replace(blank, usage=spent)
    if isinstance(result, Verdict):
        value = result.value.model_dump(mode="json")
        return replace(blank, state=SCORED, value=value, raw=result.raw)
    state = FAILED if isinstance(result, Failed) else SKIPPED
    if state == SKIPPED and result.reason == REFUSED:
        state = REFUSED
    return replace(blank, state=state, reason=result.reason, raw=result.raw)


def _key(one: Stored) -> tuple[str, str, str, str, str, int]:
    return (one.item, one.kind, one.judge_key, one.text_key, one.order, one.sample)
