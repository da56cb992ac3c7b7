"""Judges set against each other, or against people, on stored episodes: per behavior and measure.

Every judge's verdicts are stored as they come. People's are read from a file, one line per episode:
`{"episode": id, "exhibit": 0.5, ...}` with the measures they scored; `null` is no verdict. Files of
pairs that were rated already (`human_label`, `judge_score`) are compared as they are.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import jsonio, seeds
from mimesim.dialogue.episode import Episode
from mimesim.errors import DataError
from mimesim.judges.agreement import Comparison, compare, slot_score
from mimesim.judges.base import Judge, Skipped
from mimesim.judges.behavior import (
    BEHAVIOR,
    NEUTRAL,
    BehaviorVerdict,
    NeutralVerdict,
    judge_performance,
)
from mimesim.judges.behavior_talk import Performance
from mimesim.judges.episodes import Unjudged, performance_of
from mimesim.judges.stored import FAILED, SCHEMA, SCORED, SKIPPED, Stored, Work
from mimesim.scenarios import behaviors

HUMAN = "human:"
ALL = "all"
NOBODY = "neutral"
"""How a row without a behavior is called."""
MEASURES = tuple(
    dict.fromkeys(
        name
        for model in (BehaviorVerdict, NeutralVerdict)
        for name in model.model_fields
        if name != "why"
    )
)
SHOWN = ("exhibit", "cooperative")
"""The measure of a row with a behavior, and of one without, that tells whether it was played."""
_ITEM_KEYS = ("episode", "item", "id")


@dataclass(frozen=True, slots=True)
class Row:
    """Two judges on one measure of one behavior, or of all."""

    judges: tuple[str, str]
    behavior: str
    measure: str
    comparison: Comparison

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        head = {"judges": list(self.judges), "behavior": self.behavior, "measure": self.measure}
        return head | self.comparison.to_json()


def work_on(episodes: Iterable[Episode], judge: Judge, *, seed: int) -> list[Work]:
    """Return what there is to ask `judge` about episodes."""
    return [_work(episode, judge, seed) for episode in episodes]


def _work(episode: Episode, judge: Judge, seed: int) -> Work:
    found = performance_of(episode)
    if isinstance(found, Unjudged):
        skipped = Skipped(found.reason)

        async def nobody() -> Skipped:
            return skipped

        return Work(episode.id, BEHAVIOR, "", nobody)
    performance = found

    async def ask() -> Any:
        own = seeds.derive(seed, "judge", episode.id)
        return await judge_performance(judge, performance, seed=own)

    behavior = performance.behavior and behaviors.get(performance.behavior).id
    kind = BEHAVIOR if behavior else NEUTRAL
    schema = BehaviorVerdict if behavior else NeutralVerdict
    return Work(episode.id, kind, _text_key(performance), ask, behavior, schema=schema)


def _text_key(performance: Performance) -> str:
    said = [
        [turn.role.value, turn.text, turn.thought.reveal() if turn.thought else "", turn.replayed]
        for turn in performance.turns
    ]
    told = [performance.behavior, performance.goal, dict(performance.params), said]
    return seeds.fingerprint(jsonio.canonical(told))


def read_human(path: Path | str) -> list[Stored]:
    """Read people's verdicts.

    Raises:
        DataError: a damaged line, one without an episode, a score that is no number in [0, 1], or
            no line at all.
    """
    found = []
    for line in jsonio.read_jsonl(path):
        where = f"{path}:{line.number}"
        if isinstance(line.value, dict) and line.value.get("schema") == SCHEMA:
            found.append(Stored.from_json(line.value, where))
            continue
        found.append(_human(line.value, f"{HUMAN}{Path(path).name}", where))
    if not found:
        raise DataError(
            "no verdicts of people",
            where=str(path),
            expected='lines {"episode": id, "exhibit": 0.5}',
        )
    twice = [name for name, n in Counter(one.item for one in found).items() if n > 1]
    if twice:
        raise DataError(f"the episode {twice[0]!r} is scored twice", where=str(path))
    return found


def _human(value: Any, judge: str, where: str) -> Stored:
    if not isinstance(value, dict):
        raise DataError("no object", where=where, expected="an object with episode and scores")
    item = next((value[key] for key in _ITEM_KEYS if isinstance(value.get(key), str)), "")
    scores = {name: value[name] for name in MEASURES if value.get(name) is not None}
    for name, score in scores.items():
        if not isinstance(score, int | float) or not 0 <= score <= 1:
            raise DataError(f"{name} is {score!r}", where=where, expected="a number from 0 to 1")
    if not item:
        raise DataError("no episode is named", where=where, expected="the key 'episode'")
    if not scores:
        return Stored(item, BEHAVIOR, judge, FAILED, reason="no verdict")
    return Stored(item, BEHAVIOR, judge, SCORED, value=scores)


def rows_of(
    judged: Mapping[str, Sequence[Stored]], *, seed: int = 0
) -> tuple[list[Row], dict[str, int]]:
    """Compare every pair of judges, per behavior and measure.

    Only episodes that somebody else than a person was asked about, and that both judges of a pair
    know, are compared; the second value counts what only one of them knew.

    Args:
        judged: judge -> its verdicts; those of a model or rule say which behavior it was.
        seed: of the intervals.
    """
    about = {
        one.item: one.behavior or NOBODY
        for name, stored in judged.items()
        if not name.startswith(HUMAN)
        for one in stored
    }
    rows, alone = [], {}
    for first, second in itertools.combinations(judged, 2):
        left, right = ({one.item: one for one in judged[name]} for name in (first, second))
        items = [item for item in left if item in right and _judgeable(left[item], right[item])]
        alone[f"{first} x {second}"] = len(left.keys() ^ right.keys())
        for behavior, measure in itertools.product((ALL, *_order(about)), MEASURES):
            own = [item for item in items if behavior in (ALL, about.get(item, ALL))]
            scores = [[_score(side[item], measure) for item in own] for side in (left, right)]
            asked = [i for i, item in enumerate(own) if _asks(left[item], right[item], measure)]
            if asked:
                picked = [[side[i] for i in asked] for side in scores]
                rows.append(Row((first, second), behavior, measure, compare(*picked, seed=seed)))
    return rows, alone


def _judgeable(*both: Stored) -> bool:
    return all(one.state != SKIPPED for one in both)


def _asks(first: Stored, second: Stored, measure: str) -> bool:
    """Tell whether a measure was asked for: one gave it, or neither gave any and the kind has it."""
    given = any(one.value is not None and measure in one.value for one in (first, second))
    if given or SCORED in (first.state, second.state):
        return given
    model = NeutralVerdict if NEUTRAL in (first.kind, second.kind) else BehaviorVerdict
    return measure in model.model_fields


def _score(one: Stored, measure: str) -> float | None:
    value = None if one.value is None else one.value.get(measure)
    return None if value is None else float(value)


def _order(about: Mapping[str, str]) -> list[str]:
    seen = set(about.values())
    return [*(name for name in behaviors.ids() if name in seen), *([NOBODY] * (NOBODY in seen))]


def is_rated(path: Path | str) -> bool:
    """Tell whether a file holds pairs of a person's label and a judge's score."""
    first = next(iter(jsonio.read_jsonl(path)), None)
    value = first.value if first else None
    return isinstance(value, dict) and {"human_label", "judge_score"} <= value.keys()


def rated_rows(path: Path | str, *, seed: int = 0) -> list[Row]:
    """Compare people and judge in a file of rated pairs, per metric.

    A label A, B or Tie is read by `ground_truth_synthetic_slot`, a number as it is.

    Raises:
        DataError: a line that is no rated pair.
    """
    return [
        Row(("human", "judge"), ALL, metric, compare(*_columns(own), seed=seed))
        for metric, own in rated_pairs(path).items()
    ]


def rated_pairs(path: Path | str) -> dict[str, list[tuple[float | None, float | None]]]:
    """Return metric -> (person, judge) of a file of rated pairs, in file order.

    Raises:
        DataError: a line that is no rated pair.
    """
    pairs: dict[str, list[tuple[float | None, float | None]]] = {}
    for line in jsonio.read_jsonl(path):
        metric, pair = _rated(line.value, f"{path}:{line.number}")
        pairs.setdefault(metric, []).append(pair)
    return pairs


def _columns(
    pairs: Sequence[tuple[float | None, float | None]],
) -> tuple[list[float | None], list[float | None]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def _rated(value: Any, where: str) -> tuple[str, tuple[float | None, float | None]]:
    if not isinstance(value, dict) or not {"human_label", "judge_score"} <= value.keys():
        raise DataError("no rated pair", where=where, expected="human_label and judge_score")
    label, score = value["human_label"], value["judge_score"]
    if isinstance(label, str):
        try:
            label = slot_score(label, str(value.get("ground_truth_synthetic_slot", "")))
        except ValueError as error:
            raise DataError(f"human_label: {error}", where=where) from error
    for name, one in (("human_label", label), ("judge_score", score)):
        number = isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one <= 1
        if one is not None and not number:
            raise DataError(f"{name} is {one!r}", where=where, expected="a number from 0 to 1")
    return str(value.get("metric", "score")), (label, score)
