"""Agreement of surveys: how a user and a person judge one and the same conversation (optional)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.bench.suites.sessions import SessionSet
from mimesim.errors import DataError
from mimesim.results.suite import Mode

LEVELS: Mapping[str, Mapping[str, int]] = {
    "task_success": {
        "No - Task failed": 1,
        "No - Due to a policy issue, which the agent clearly explained": 2,
        "Partially - Some progress": 3,
        "Yes - Task completed": 4,
        "Fully - Exceeded expectations": 5,
    },
    "efficiency": {
        "Very inefficient - Too many steps": 1,
        "Somewhat inefficient": 2,
        "About right": 3,
        "Very efficient": 4,
    },
    "question_amount_preference": {"Too many": 1, "About right": 2, "Too few": 1},
    "answer_effort_time": {"High": 1, "Medium": 2, "Low": 3},
    "human_like": {"No": 1, "Partially": 2, "Yes": 3},
    "interaction_flow": {"Not smooth": 1, "OK": 2, "Smooth": 3, "Excellent": 4},
    "overall_score": {
        "1 (Very poor)": 1,
        "2 (Poor)": 2,
        "3 (Acceptable)": 3,
        "4 (Good)": 4,
        "5 (Excellent)": 5,
    },
    "reuse": {"Absolutely no": 1, "No": 2, "Maybe": 3, "Yes": 4, "Absolutely yes": 5},
}
"""Field -> answer (data of the files) -> level."""

Answers = Mapping[str, Any]


def agreement(theirs: Answers, ours: Answers, draw: Any = None) -> float | None:
    """Return 100 for equal answers, 0 for opposite ones, over the fields that the person answered.

    Args:
        theirs: the person's answers by field.
        ours: the user's; a field without one is left out, or takes a drawn level.
        draw: a numpy generator for missing answers (`compat`); None = left out.
    """
    gaps = []
    for field, levels in LEVELS.items():
        person, user = (levels.get(str(side.get(field))) for side in (theirs, ours))
        if person is None:
            continue
        if user is None and draw is not None:
            distinct = sorted(set(levels.values()))
            user = distinct[int(draw.integers(len(distinct)))]
        if user is not None:
            gaps.append(abs(person - user) / (max(levels.values()) - min(levels.values())))
    return 100 * (1 - sum(gaps) / len(gaps)) if gaps else None


def batches_of(people: SessionSet, given: Mapping[str, Answers], mode: Mode) -> list[float]:
    """Return the mean agreement of each batch of people that has any.

    Args:
        people: conversations with the people's answers in their outcome.
        given: the user's answers by key of the conversation, e.g. `airline_0_ann2`.
        mode: `compat` draws missing answers at random.
    """
    import numpy as np

    draw = np.random.default_rng(42) if mode == "compat" else None
    found = []
    for batch in sorted({one.trial for one in people.sessions}):
        values = []
        for one in sorted(people.where(trial=batch).sessions, key=lambda one: one.task):
            key = one.id.rpartition("/")[2]
            told = one.outcome.get("survey")
            if isinstance(told, Mapping) and key in given:
                values.append(agreement(told, given[key], draw))
        known = [value for value in values if value is not None]
        if known:
            found.append(sum(known) / len(known))
    return found


def read_answers(path: Path | str) -> dict[str, dict[str, Any]]:
    """Return key -> field -> answer of a survey file.

    Raises:
        DataError: no file of answers by conversation.
    """
    value = jsonio.read_object(path)
    found = {}
    for key, entry in value.items():
        fields = entry.get("survey", entry) if isinstance(entry, Mapping) else None
        if not isinstance(fields, Mapping):
            raise DataError(
                f"the entry {key!r} holds no survey",
                where=str(path),
                expected='{"airline_0": {"survey": {"human_like": {"answer": "Yes"}}}}',
            )
        found[key] = {
            name: one.get("answer") if isinstance(one, Mapping) else one
            for name, one in fields.items()
        }
    return found
