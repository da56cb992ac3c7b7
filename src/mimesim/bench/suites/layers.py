"""Judging and scoring by a suite: what is read, who is asked, which verdicts count.

A score reads conversations and verdicts and writes neither, so it can be made again at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mimesim
from mimesim.bench.suites.base import Inputs, Suite
from mimesim.bench.suites.folder import VERDICTS, Asked
from mimesim.bench.suites.judged import agreement, cost
from mimesim.bench.suites.sessions import SessionSet, read_sessions
from mimesim.dialogue.stop import Status
from mimesim.dialogue.types import Identity
from mimesim.errors import ConfigError, DataError, UsageError
from mimesim.judges.base import Judge, JudgeRequest, JudgeResult, Skipped, T
from mimesim.judges.stored import (
    BUDGET_S,
    FAILED,
    REFUSED,
    SCORED,
    Stored,
    Work,
    ask_judges,
    read,
    states,
)
from mimesim.registry import closest, unknown_name
from mimesim.results.suite import Mode, SuiteScore
from mimesim.stats import DRAWS

MOST_ERRORS = 0.05
"""Share of lost verdicts above which a score bears a warning."""


@dataclass(frozen=True, slots=True)
class How:
    """How it is scored: the mode, and the draws of all resampling."""

    mode: Mode = "fixed"
    draws: int = DRAWS

    @classmethod
    def of(cls, mode: str, draws: int) -> How:
        """Return it as typed.

        Raises:
            UnknownNameError: no such mode.
        """
        known = {"fixed": cls("fixed", draws), "compat": cls("compat", draws)}
        if mode not in known:
            raise unknown_name("mode", mode, list(known))
        return known[mode]


def check_options(suite: Suite, options: Mapping[str, Any]) -> None:
    """Refuse options that a suite does not take.

    Raises:
        ConfigError: naming the first one.
    """
    known = suite.facts.options
    for key in options:
        if key not in known:
            raise ConfigError(
                f"unknown option {key!r}{closest(key, list(known))}",
                where=f"suite {suite.facts.name}",
                expected="one of " + ", ".join(known) if known else "no option",
            )


def inputs_of(suite: Suite, asked: Asked, how: How) -> Inputs:
    """Read what a suite judges and scores.

    Raises:
        UsageError: an option it does not take, a source that cannot be read, nothing in it.
    """
    check_options(suite, asked.options)
    facts = suite.facts
    sessions = read_sessions(asked.episodes, limit=asked.limit, raw=facts.raw)
    if not sessions.sessions:
        told = ", ".join(f"{n} {reason}" for reason, n in sessions.left_out.items())
        raise DataError(
            "no conversation to score" + (f": {told}" if told else ""),
            where=asked.episodes,
            expected="at least one conversation in which the user says something",
        )
    people = read_sessions(asked.people, raw=facts.raw) if asked.people else None
    return Inputs(
        sessions,
        people,
        mode=how.mode,
        draws=how.draws,
        seed=asked.seed,
        options=dict(asked.options),
    )


def judge_names(suite: Suite, named: Sequence[str], *, stored: bool) -> list[str]:
    """Return who is asked: those named, else the suite's own judge; nobody where verdicts suffice.

    Raises:
        UsageError: the suite needs a judge, and there is none.
    """
    facts = suite.facts
    if named and not facts.asks_judge:
        raise UsageError(f"suite {facts.name!r} asks no judge", expected="no --judge")
    names = list(named) or ([facts.judge] if facts.judge else [])
    if not names and "judge" in facts.needs and not stored:
        raise UsageError(
            f"suite {facts.name!r} needs a judge", expected="--judge model:<model>, or rule"
        )
    return names


async def ask(
    suite: Suite,
    inputs: Inputs,
    names: Sequence[str],
    folder: Path,
    *,
    concurrency: int = 8,
    budget_s: float = BUDGET_S,
) -> dict[str, list[Stored]]:
    """Put the questions of a suite to judges; what is stored already is not asked again.

    Raises:
        UsageError: as `judges.stored.ask_judges`.
    """
    return await ask_judges(
        names,
        lambda judge: suite.works(inputs, judge),
        folder / VERDICTS,
        concurrency=concurrency,
        budget_s=budget_s,
    )


def stored(
    suite: Suite, inputs: Inputs, folder: Path, judge: str = "", *, mixed: bool = False
) -> dict[str, list[Stored]]:
    """Return judge -> its stored verdicts on exactly these inputs, the judge that scores first.

    Args:
        suite: what scores.
        inputs: what is scored; verdicts on other texts are left aside.
        folder: of the verdicts.
        judge: whose verdicts score; empty = the only one's.
        mixed: whether verdicts of several judges may be scored as one.

    Raises:
        UsageError: several judges and none is named, or none of that name.
    """
    file = folder / VERDICTS
    if not suite.facts.asks_judge or not file.exists():
        return {}
    planned = {_about(work): work for work in suite.works(inputs, _NOBODY)}
    found: dict[tuple[str, str], dict[Any, Stored]] = {}
    for one in read(file):
        work = planned.get(_about(one))
        if work is not None:
            found.setdefault((one.judge, one.judge_key), {})[_about(one)] = work.checked(one)
    if mixed and found:
        everything = {key: one for lines in found.values() for key, one in lines.items()}
        return {"mixed": _ordered(everything, planned)}
    if judge:
        found = dict(sorted(found.items(), key=lambda item: item[0][0] != judge))
    names = [name for name, _ in found]
    ours = [name for name in names if name == judge] if judge else names
    if len(ours) > 1:
        raise UsageError(
            f"the verdicts are of several judges: {', '.join(ours)}"
            if len(set(ours)) > 1
            else f"the verdicts of {ours[0]!r} were given under {len(ours)} settings",
            where=str(file),
            expected="one judge",
            mend="name it by --judge, or take them together by --mixed",
        )
    if judge and not ours:
        raise UsageError(
            f"no verdict of judge {judge!r}{closest(judge, names)}",
            where=str(file),
            expected="one of " + ", ".join(dict.fromkeys(names)) if names else "verdicts",
        )
    return {name: _ordered(lines, planned) for (name, _), lines in found.items()}


def scored(
    suite: Suite, inputs: Inputs, verdicts: Mapping[str, Sequence[Stored]] | None = None
) -> SuiteScore:
    """Score, and note who was measured, by whom, on what; pure.

    Args:
        suite: what scores.
        inputs: what is scored.
        verdicts: judge -> verdicts; the first one's are scored, the others' compared with them.

    Raises:
        UsageError: the inputs do not fit, or a judge is needed and gave no verdict at all.
    """
    given = dict(verdicts or {})
    judge = next(iter(given), "")
    own = tuple(given.get(judge, ()))
    if "judge" in suite.facts.needs and not any(one.state == SCORED for one in own):
        reasons = states(own)["reasons"] if own else {}
        told = ", ".join(f"{n} {reason}" for reason, n in reasons.items())
        raise DataError(
            "no verdict to score" + (f": {told}" if told else ""),
            where=f"suite {suite.facts.name}",
            expected="at least one verdict of the judge",
            mend="mimesim bench judge, with a judge that answers",
        )
    found = suite.score(replace(inputs, verdicts=own))
    sessions, people = inputs.sessions, inputs.people
    roles = {
        "user": sessions.user,
        "agent": sessions.agent,
        "judge": judge,
        "people": people.name if people else "",
    }
    proof = {
        "mimesim": mimesim.__version__,
        "conversations": _told(sessions),
        **({"people": _told(people)} if people else {}),
        "draws": inputs.draws,
        "seed": inputs.seed,
        "options": dict(inputs.options),
        **({"judges": {name: _spent(lines) for name, lines in given.items()}} if own else {}),
        **({"agreement": agreement(given)} if len(given) > 1 else {}),
    }
    return replace(
        found,
        roles={name: who for name, who in roles.items() if who} | dict(found.roles),
        seeds=found.seeds or sessions.seeds,
        excluded=_left_out(inputs) | dict(found.excluded),
        warnings=(*found.warnings, *_warnings(own), *_warnings_in_play(inputs)),
        provenance=proof | dict(found.provenance),
    )


def judged_in_play(inputs: Inputs) -> dict[str, dict[str, int]]:
    """Return how many conversations were lost to whoever judged them as they were played.

    Returns:
        One entry, as of a judge's verdicts; none where nothing was lost.
    """
    lost = inputs.sessions.left_out.get(Status.JUDGE_FAILURE.value, 0)
    counts = {SCORED: len(inputs.sessions.sessions), FAILED: lost}
    return {"judge while playing": counts} if lost else {}


class _Nobody:
    """A judge that is never asked: it stands where the questions are only listed."""

    identity = Identity(name="nobody", kind="rule")

    async def judge(self, request: JudgeRequest[T]) -> JudgeResult[T]:
        """Say nothing."""
        return Skipped("not_asked")

    async def aclose(self) -> None:
        """Hold nothing."""


_NOBODY: Judge = _Nobody()


def _about(one: Stored | Work) -> tuple[str, str, str, str, int]:
    return (one.item, one.kind, one.text_key, one.order, one.sample)


def _ordered(lines: Mapping[Any, Stored], planned: Iterable[Any]) -> list[Stored]:
    return [lines[key] for key in planned if key in lines]


def _spent(lines: Sequence[Stored]) -> dict[str, Any]:
    return {**states(lines), **cost(lines)}


def _left_out(inputs: Inputs) -> dict[str, int]:
    """Return what no suite saw of either side, by reason."""
    people = inputs.people.left_out if inputs.people else {}
    whole = {**inputs.sessions.left_out, **{f"people: {k}": n for k, n in people.items()}}
    return {reason: n for reason, n in whole.items() if n}


def _told(found: SessionSet) -> dict[str, Any]:
    return {
        "source": found.name,
        "n": len(found.sessions),
        "files": dict(found.hashes),
        **({"training_allowed": found.training_allowed} if found.training_allowed else {}),
    }


def _warnings_in_play(inputs: Inputs) -> list[str]:
    for told in judged_in_play(inputs).values():
        asked = sum(told.values())
        if told[FAILED] > MOST_ERRORS * asked:
            return [f"judge_errors: {told[FAILED]} of {asked} conversations lost to their judge"]
    return []


def _warnings(lines: Sequence[Stored]) -> list[str]:
    asked = [one for one in lines if one.state in (SCORED, FAILED, REFUSED)]
    lost = sum(one.state != SCORED for one in asked)
    if lost <= MOST_ERRORS * len(asked):
        return []
    return [f"judge_errors: {lost} of {len(asked)} verdicts failed or were refused"]
