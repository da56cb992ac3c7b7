"""The suites `usi` and `tau-usi`: how like people a user writes, and how like people it succeeds.

With people beside it the whole index; without, the user's row and what noise alone does to the
index. `usi` uses our own word lists or a named file, `tau-usi` the official lists, which the user
must supply; a score is called by the lists it was made with, never by the suite that was asked for.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimesim.bench.suites.base import Inputs, SuiteFacts
from mimesim.bench.suites.difficulty import (
    FAR,
    frozen_difficulty,
    off_map,
    read_difficulty,
    task_key,
)
from mimesim.bench.suites.sessions import read_sessions
from mimesim.bench.suites.usi import parts, published, scoring, survey
from mimesim.bench.suites.usi.features import NAMES
from mimesim.bench.suites.usi.index import MeasuredSet, measure_all
from mimesim.bench.suites.usi.lexicon import OFFICIAL, Lexicon, own_lexicon, read_lexicon
from mimesim.bench.suites.usi.scoring import Against, Resampling
from mimesim.bench.suites.usi.verify import verify_lexicon
from mimesim.errors import ConfigError, UsageError
from mimesim.judges.base import Judge
from mimesim.judges.stored import Work
from mimesim.results.suite import FloorRow, Metric, SuiteScore

VARIABLE = "MIMESIM_TAU_USI_LEXICON"
"""Names the official lexicon file where the option `lexicon` does not."""
_OPTIONS = {
    "lexicon": "a lexicon file (bench import-lexicon); without it our own lists",
    "verify": "the airline runs of tau-bench, on which a lexicon may prove to be the official one",
    "difficulty": "a map of task difficulties, or self; without it the frozen one of tau-bench",
    "survey": "the user's answers to the survey, one entry per conversation of the people",
    "paired": "true insists on common tasks, false compares all conversations; left out: by task "
    "where any is common, else all, without calibration",
    "null": "difficulty (default) or pooled: success rates of the perfect simulator",
}


@dataclass(frozen=True, slots=True)
class _Part:
    """What one way of scoring adds to the record."""

    metrics: tuple[Metric, ...]
    floors: tuple[FloorRow, ...] = ()
    warnings: tuple[str, ...] = ()
    told: Mapping[str, Any] = field(default_factory=dict)


class UsiSuite:
    """The user-sim index with the lists that are at hand, or with the official ones only."""

    def __init__(self, name: str, title: str, *, official: bool) -> None:
        self._official = official
        self.facts = SuiteFacts(
            name=name,
            title=title,
            needs=("data",) if official else (),
            adds=("people",),
            source="tau-USI (arXiv 2603.11245), OdysSim agents/tau_usi",
            license="people's conversations (cmu-lti/tau-usi): research and evaluation only, no "
            "training, no redistribution; difficulty map: Apache-2.0, OdysSim",
            options=_OPTIONS,
            plays={} if official else {"gym": "support-desk", "episodes": 24},
            raw=True,
        )

    def works(self, inputs: Inputs, judge: Judge) -> list[Work]:
        """Return nothing: no judge is asked."""
        del inputs, judge
        return []

    def score(self, inputs: Inputs) -> SuiteScore:
        """Score; see `Suite.score`.

        Raises:
            UsageError: an option that does not fit, no conversation with a word of the user, or no
                task common to both sides.
        """
        lexicon = self._lexicon(inputs.options)
        ours = _measured(inputs, lexicon, people=False)
        theirs = _measured(inputs, lexicon, people=True) if inputs.people else None
        difficulty, noted = _difficulty(inputs.options.get("difficulty"), ours)
        how = Resampling(inputs.draws, inputs.seed)
        part = _beside(inputs, ours, theirs, difficulty, how) if theirs else _alone(ours, how)
        floors = part.floors
        if len(ours.runs) > 1:
            floors += scoring.pair_floors(ours, difficulty, "the same user, run against run")
        excluded = Counter(ours.left_out)
        for reason, n in (theirs.left_out if theirs else {}).items():
            excluded[f"people: {reason}"] += n
        comparable = _comparable(lexicon, inputs, part.told)
        return SuiteScore(
            suite=lexicon.name,
            metrics=part.metrics,
            mode=inputs.mode,
            roles={"user": inputs.sessions.user, "agent": inputs.sessions.agent},
            seeds=inputs.sessions.seeds,
            floors=floors,
            references=published.rows() if comparable else (),
            excluded=dict(excluded),
            warnings=(*part.warnings, *noted, *_labels(lexicon, comparable=comparable)),
            by_key=parts.by_key(ours),
            provenance={
                "lexicon": {
                    "name": lexicon.name,
                    "title": lexicon.title,
                    "source": lexicon.source,
                    "licence": lexicon.licence,
                    "fingerprint": lexicon.fingerprint,
                },
                "runs": len(ours.runs),
                "empty_messages": ours.dropped,
                **part.told,
            },
        )

    def check_data(self, data: str) -> dict[str, str]:
        """Return what conversations of people there are, beside what the published index had.

        Raises:
            UsageError: none, or damaged.
        """
        sessions = read_sessions(data, raw=True)
        batches = Counter(one.trial for one in sessions.sessions)
        tasks = {task_key(one.task or one.id) for one in sessions.sessions}
        known = len(tasks & frozen_difficulty().keys())
        surveys = sum(bool(one.outcome.get("survey")) for one in sessions.sessions)
        return {
            "conversations": f"{len(sessions.sessions)} (published: 495)",
            "batches": ", ".join(str(n) for _, n in sorted(batches.items())) + " (165, 165, 165)",
            "tasks": f"{len(tasks)}, {known} of them with a frozen difficulty (165)",
            "with a survey": str(surveys),
            "left out": ", ".join(f"{n} {why}" for why, n in sessions.left_out.items()) or "none",
            "training": "never" if sessions.training_allowed == "no" else "see the license",
        }

    def _lexicon(self, options: Mapping[str, Any]) -> Lexicon:
        path = options.get("lexicon") or (os.environ.get(VARIABLE) if self._official else None)
        if not path:
            if self._official:
                raise UsageError(
                    "tau-usi needs the official word lists, which do not come with MimeSim",
                    expected=f"--set lexicon=<file>, or {VARIABLE}",
                    mend="mimesim bench import-lexicon <OdysSim>/agents/tau_usi/utils.py "
                    "--out lexicon.json; with our own lists: mimesim bench usi",
                )
            return own_lexicon()
        lexicon = read_lexicon(Path(str(path)))
        if options.get("verify"):
            lexicon = verify_lexicon(lexicon, str(options["verify"])).lexicon
        if self._official and lexicon.name != OFFICIAL:
            raise UsageError(
                f"these are not the official word lists (fingerprint {lexicon.fingerprint[:12]}…)",
                where=str(path),
                expected="the lists of OdysSim, or lists that give its golden pairs",
                mend="--set verify=<airline runs> checks the latter; for other lists there is "
                "mimesim bench usi",
            )
        return lexicon


def _measured(inputs: Inputs, lexicon: Lexicon, *, people: bool) -> MeasuredSet:
    sessions = inputs.people if people and inputs.people else inputs.sessions
    found = measure_all(sessions, lexicon, inputs.mode)
    if not found.rows:
        raise UsageError(
            "the user says nothing in any conversation",
            where=sessions.name,
            expected="at least one turn of a user",
        )
    return found


def _difficulty(named: Any, ours: MeasuredSet) -> tuple[dict[str, float], tuple[str, ...]]:
    if named is None:
        return frozen_difficulty(), ()
    if named != "self":
        return read_difficulty(Path(str(named))), ()
    found = scoring.success_rates(ours, least=10)
    if not found:
        raise UsageError(
            "no task was played ten times or more with a known success",
            expected="enough runs to make difficulties from, or --set difficulty=<file>",
        )
    return found, ("difficulty bins are made from the measured user's own success",)


def _alone(ours: MeasuredSet, how: Resampling) -> _Part:
    """Return the user's row; nobody stands beside it."""
    rows = scoring.rows_of(ours, how)
    metrics = [parts.feature_metric(name, estimate, ours.hits) for name, estimate in rows.items()]
    told = ("nobody to compare with: the row describes, it does not score; name people by --human",)
    return _Part((*metrics, *parts.plain_metrics(ours)), warnings=told)


def _beside(
    inputs: Inputs,
    ours: MeasuredSet,
    theirs: MeasuredSet,
    difficulty: Mapping[str, float],
    how: Resampling,
) -> _Part:
    wanted = inputs.options.get("paired")
    if not isinstance(wanted, bool | None):
        raise ConfigError(f"paired is {wanted!r}", where="suite usi", expected="true or false")
    found = None if wanted is False else scoring.against(ours, theirs, difficulty, how)
    paired = found is not None
    if found is None and wanted:
        raise UsageError(
            "no task is common to both sides",
            where=f"{inputs.sessions.name} against {inputs.people.name if inputs.people else ''}",
            expected="conversations about the same tasks",
            mend="without --set paired=true all are compared as they are; no calibration then",
        )
    found = found or scoring.unpaired(ours, theirs, how)
    eval_ = _survey(inputs)
    metrics = [*parts.index_metrics(found, eval_), *parts.plain_metrics(ours)]
    metrics += [
        parts.feature_metric(
            name, found.rows[name], ours.hits, theirs.hits, f"likeness {100 * found.dice[name]:.1f}"
        )
        for name in NAMES
    ]
    floors = [FloorRow(name, "people", found.people[name]) for name in NAMES]
    if len(theirs.runs) > 1:
        floors += scoring.pair_floors(theirs, difficulty, "people against people")
    floors += parts.null_floor(inputs.options, found, ours, theirs, difficulty)
    told = {
        "tasks": len(found.tasks),
        "batches": found.shape[1],
        "bins": scoring.bin_sizes(found.tasks, difficulty),
    }
    warnings = (
        *_missing(ours, theirs, found, paired=paired),
        *_doubts(inputs, found, (ours, theirs), difficulty),
    )
    return _Part(tuple(metrics), tuple(floors), warnings, told)


def _doubts(
    inputs: Inputs,
    found: Against,
    sides: tuple[MeasuredSet, MeasuredSet],
    difficulty: Mapping[str, float],
) -> list[str]:
    """Return what makes one doubt the comparison, one warning each."""
    told = []
    same = inputs.sessions.shared(inputs.people)
    if same:
        told.append(f"{same} conversations stand on both sides, word for word")
    if found.scores["ECE"].value is not None and parts.drawn_at(inputs.options) == "difficulty":
        off = off_map(difficulty, *map(scoring.success_rates, sides))
        if off > FAR:
            told.append(
                f"the difficulties are {100 * off:.0f} points or more from the success of both sides,"
                " so ECE's perfect simulator is not one of these tasks; --set null=pooled draws it at"
                " the rates seen"
            )
    return told


def _survey(inputs: Inputs) -> list[float]:
    named = inputs.options.get("survey")
    if named is None or inputs.people is None:
        return []
    found = survey.batches_of(inputs.people, survey.read_answers(str(named)), inputs.mode)
    if not found:
        raise UsageError(
            "no answer of the survey is about a conversation of the people",
            where=str(named),
            expected="entries by the people's keys, e.g. airline_0_ann2",
        )
    return found


def _missing(
    ours: MeasuredSet, theirs: MeasuredSet, found: Against, *, paired: bool
) -> tuple[str, ...]:
    """Return what is not compared, one warning each."""
    told = []
    if paired:
        sides = [({one.key for one in side.rows}, who) for side, who in _sides(ours, theirs)]
        for keys, who in sides:
            lone = len(keys - set(found.tasks))
            if lone:
                told.append(f"{lone} tasks of {who} have no counterpart and are left out")
    else:
        told.append(
            "not paired by task: the tasks of the two sides may differ, so part of a distance "
            "may be theirs"
        )
    if found.scores["ECE"].value is None:
        told.append("no ECE and no USI5: no common task with a difficulty and known success")
    for side, who in _sides(ours, theirs):
        unknown = sum(one.success is None for one in side.rows)
        if unknown:
            told.append(f"{unknown} conversations of {who} have no known success")
    return tuple(told)


def _sides(ours: MeasuredSet, theirs: MeasuredSet) -> tuple[tuple[MeasuredSet, str], ...]:
    return (ours, "the user"), (theirs, "people")


def _comparable(lexicon: Lexicon, inputs: Inputs, told: Mapping[str, Any]) -> bool:
    """Tell whether the published table may stand beside this score."""
    whole = told.get("tasks") == published.TASKS and told.get("batches") == published.BATCHES
    return lexicon.name == OFFICIAL and inputs.mode == "compat" and whole


def _labels(lexicon: Lexicon, *, comparable: bool) -> tuple[str, ...]:
    if comparable:
        return ("published rows: compare only with those of the same agent",)
    if lexicon.name == OFFICIAL:
        return ("published rows need compat, 165 tasks and three batches of people",)
    return (f"{lexicon.name}: other word lists than tau-usi; only structural features compare",)


SUITE = UsiSuite(
    "usi", "how like people a user writes and succeeds, by 19 features", official=False
)
TAU_SUITE = UsiSuite(
    "tau-usi", "the same with the official word lists (not included)", official=True
)
