"""Verdicts on disk: one JSON line each, appended as they come, so that judging resumes.

A verdict belongs to an item, a judge with all its settings, and the very text that was judged; a line
of another text or another setting is not taken over. Scores and skips are final; a failure is asked
for again the next time. What a judge wrote stands under `private`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mimesim import jsonio, seeds
from mimesim.dialogue.types import Identity, Usage
from mimesim.errors import ContextExceeded, DataError, InfraError
from mimesim.judges.base import Failed, Judge, JudgeResult, Verdict
from mimesim.judges.load import make_judge
from mimesim.models.load import preflight

SCHEMA = "mimesim.verdict/1"
SCORED, FAILED, REFUSED, SKIPPED = "scored", "failed", "refused", "skipped"
_COSTS = {entry.name for entry in fields(Usage)}
_STATES = (SCORED, FAILED, REFUSED, SKIPPED)


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
    """

    item: str
    kind: str
    text_key: str
    ask: Callable[[], Awaitable[JudgeResult[Any]]]
    behavior: str | None = None
    order: str = ""
    sample: int = 0


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
    """A file of verdicts, open for more.

    Raises:
        DataError: a damaged line.
        EnvironmentFault: the place cannot be written.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        jsonio.cut_torn_tail(self.path)
        old = read(self.path) if self.path.exists() else []
        self._known = {_key(one): one for one in old if one.state != FAILED}
        self._file = jsonio.Appender(self.path)
        self.resumed = 0

    async def all(
        self,
        works: Iterable[Work],
        judge: Identity,
        *,
        concurrency: int = 8,
    ) -> list[Stored]:
        """Return the verdicts on `works` in their order; those that are known are not asked again.

        A judge that cannot be reached fails its item, not the others.

        Raises:
            EnvironmentFault: a wrong key, a full disk.
        """
        gate = asyncio.Semaphore(concurrency)

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
            if known is not None:
                self.resumed += 1
                return known
            async with gate:
                found = await _asked(work, blank)
            self._file.append(found.to_json())
            self._known[_key(found)] = found
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
        self._file.close()

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
) -> dict[str, list[Stored]]:
    """Put questions to several judges, one after the other, and keep all verdicts in one file.

    Args:
        names: door names; all of the judges must be reachable before the first is asked.
        works: what there is to ask a judge.
        path: the file, see `Verdicts`.
        concurrency: questions at once.

    Raises:
        UsageError: no such judge, it cannot be reached, or the file is damaged.
    """
    judges = {name: make_judge(name) for name in names}
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


async def _asked(work: Work, blank: Stored) -> Stored:
    try:
        result = await work.ask()
    except InfraError:
        return replace(blank, state=FAILED, reason="unreachable")
    except ContextExceeded:
        return replace(blank, state=FAILED, reason="context_exceeded")
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
