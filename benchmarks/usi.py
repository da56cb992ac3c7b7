"""How fast the user-sim index is -> benchmarks/usi.json.

    python -m benchmarks.usi

495 invented conversations of a user (165 tasks, three runs) are scored against 495 of people, with
our own word lists, on one core: features alone, the whole index without and with 10,000 resamplings
of the tasks. Beside it stands a plain form that goes feature by feature and turn by turn, and draw by
draw; both must give the same numbers. The index also makes the null of ECE, the floors and the values
by task, which the plain form does not. CPU time; seconds depend on the machine, ratios hardly.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median, pstdev
from typing import Any

import numpy as np

from benchmarks.run import machine
from mimesim import jsonio, seeds
from mimesim.bench.suites.base import Inputs
from mimesim.bench.suites.difficulty import frozen_difficulty
from mimesim.bench.suites.sessions import Session, SessionSet
from mimesim.bench.suites.usi.detectors import Detector
from mimesim.bench.suites.usi.features import DIMENSIONS, FEATURES, NAMES, identifiers
from mimesim.bench.suites.usi.index import dice, measure_all
from mimesim.bench.suites.usi.lexicon import own_lexicon
from mimesim.bench.suites.usi.suite import SUITE
from mimesim.dialogue.types import Role

OUT = Path(__file__).with_name("usi.json")
ROUNDS = 5
DRAWS = 10_000
PLAIN_DRAWS = 100
TARGETS = {"seconds_without": 0.5, "seconds_with": 5.0, "ratio": 5.0}
"""Aimed at: CPU seconds without and with resampling, and times as fast as the plain form."""

_SYLLABLES = ("ba", "do", "ki", "lu", "mer", "no", "pas", "ru", "sil", "ta", "ven", "zo")
_SETS = {
    "politeness_rate": "politeness",
    "ack_only_rate": "ack_only",
    "id_confuse_rate": "identity_confusion",
    "uncertainty_rate": "uncertainty",
    "certainty_rate": "certainty",
    "emotion_rate": "emotion",
    "accusation_rate": "accusation",
    "pivot_rate": "pivot",
}
_CLASSES = {
    "pushback_q_rate": "pushback_q",
    "clarify_q_rate": "clarify_q",
    "info_q_rate": "info_q",
}


def main() -> None:
    """Measure, check that both forms agree, record."""
    ours, theirs = invented(seed=1), invented(seed=2)
    lexicon = own_lexicon()
    features, plain_features = timed(
        lambda: measure_all(ours, lexicon, "fixed"), lambda: plain_rows(ours)
    )
    without, plain_index = timed(
        lambda: scored(ours, theirs, 0), lambda: plain_scores(plain_rows(ours), plain_rows(theirs))
    )
    rows = plain_rows(ours), plain_rows(theirs)
    whole, some_draws = timed(
        lambda: scored(ours, theirs, DRAWS), lambda: plain_draws(*rows, PLAIN_DRAWS), rounds=3
    )
    plain_whole = plain_index + some_draws * DRAWS / PLAIN_DRAWS
    check(ours, theirs)
    found = {
        "schema": "mimesim.benchmark/1",
        "machine": machine(),
        "conversations": len(ours.sessions),
        "people": len(theirs.sessions),
        "user_turns": sum(len(one.said) for one in ours.sessions),
        "draws": DRAWS,
        "seconds_features": features,
        "seconds_without": without,
        "seconds_with": whole,
        "plain_seconds_features": plain_features,
        "plain_seconds_without": plain_index,
        "plain_seconds_with": plain_whole,
        "ratio_features": plain_features / features,
        "ratio_with": plain_whole / whole,
        "targets": TARGETS,
        "equal": True,
    }
    jsonio.write_json(OUT, found)
    print(jsonio.dumps(found))


def timed(*works: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """Return the median CPU seconds of each, taken in turns, after a round that warms up."""
    found: list[list[float]] = [[] for _ in works]
    for place in range(rounds + 1):
        for work, times in zip(works, found, strict=True):
            start = time.process_time()
            work()
            if place:
                times.append(time.process_time() - start)
    return [median(times) for times in found]


def scored(ours: SessionSet, theirs: SessionSet, draws: int) -> Any:
    """Score by the suite."""
    return SUITE.score(Inputs(ours, theirs, draws=draws))


def invented(seed: int) -> SessionSet:
    """Return invented conversations: three runs of the 165 tasks of the frozen map."""
    rng = seeds.generator(seed, "benchmark", "usi")
    vocabulary = ["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4))) for _ in range(3_000)]
    phrases = [entry.value for one in own_lexicon().detectors.values() for entry in one.entries]
    sessions = []
    for task in frozen_difficulty():
        for run in range(3):
            turns = []
            for _ in range(rng.randint(3, 12)):
                turns.append((Role.USER, _turn(rng, vocabulary, phrases)))
                turns.append((Role.AGENT, "Certainly."))
            won = float(rng.random() < 0.6)
            sessions.append(
                Session(f"{task}/{run}", tuple(turns), task=task, trial=run, reward=won)
            )
    return SessionSet(f"invented {seed}", tuple(sessions))


def _turn(rng: random.Random, vocabulary: Sequence[str], phrases: Sequence[str]) -> str:
    words = rng.choices(vocabulary, k=rng.randint(1, 30))
    if rng.random() < 0.6:
        words.insert(rng.randrange(len(words) + 1), rng.choice(phrases))
    if rng.random() < 0.1:
        words.append(f"#{rng.randrange(10**6):06d}")
    return " ".join(words) + rng.choice(("", ".", "?", " \u2014"))


def plain_rows(sessions: SessionSet) -> list[dict[str, float]]:
    """Return the features of each conversation, one after the other, turn by turn."""
    patterns = {name: _pattern(one) for name, one in own_lexicon().detectors.items()}
    return [
        {name: _plain(name, [text for _, text in _users(one)], patterns) for name in NAMES}
        for one in sessions.sessions
    ]


def _users(session: Session) -> list[tuple[Role, str]]:
    return [turn for turn in session.turns if turn[0] is Role.USER]


def _pattern(detector: Detector) -> re.Pattern[str]:
    """Return one pattern of all phrases, made here once more."""
    phrases = "|".join(
        re.escape(entry.value.lower()).replace(r"\ ", r"\s+").replace("'", "'?")
        for entry in detector.entries
    )
    if detector.match == "whole_turn":
        return re.compile(rf"\s*(?:{phrases})[ !.,\-]*\s*\Z")
    return re.compile(rf"(?<!\w)(?:{phrases})(?!\w)")


def _hit(pattern: re.Pattern[str], text: str, name: str) -> bool:
    return bool(pattern.match(text) if name == "ack_only" else pattern.search(text))


def _plain(name: str, texts: list[str], patterns: Mapping[str, re.Pattern[str]]) -> float:
    sizes = [len(text.split()) for text in texts]
    n, total = len(texts), sum(sizes)
    if name in _SETS:
        key = _SETS[name]
        hits = [_hit(patterns[key], text.lower(), key) for text in texts]
        return float(any(hits)) if key == "identity_confusion" else sum(hits) / n
    if name in _CLASSES:
        first = [_class_of(text, patterns) for text in texts]
        return first.count(_CLASSES[name]) / n
    if name == "repeat_rate":
        runs = Counter(run for text in texts for run in _trigrams(text.lower().split()))
        return float(any(count > 10 for count in runs.values()))
    by_name: dict[str, Callable[[], float]] = {
        "short_msg_rate": lambda: sum(size <= 3 for size in sizes) / n,
        "dash_rate": lambda: sum("\u2013" in text or "\u2014" in text for text in texts) / n,
        "verbosity_cv": lambda: pstdev(sizes) / (total / n) if n > 1 and total else 0.0,
        "info_frontload": lambda: sum(sizes[:2]) / total if total else 0.0,
        "id_density": lambda: sum(identifiers(text.lower()) for text in texts) / n,
        "user_words_per_turn": lambda: total / n,
        "opening_words": lambda: float(sizes[0]),
    }
    return by_name[name]()


def _class_of(text: str, patterns: Mapping[str, re.Pattern[str]]) -> str:
    for key in _CLASSES.values():
        if patterns[key].search(text.lower()):
            return key
    return ""


def _trigrams(words: list[str]) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + 3]) for i in range(len(words) - 2)]


def plain_scores(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> dict[str, float]:
    """Return D1 to D4 against each batch of people, mean over the batches.

    All tasks are on both sides, and the conversations stand task by task, run by run.
    """
    row = {name: sum(one[name] for one in ours) / len(ours) for name in NAMES}
    found = dict.fromkeys(DIMENSIONS, 0.0)
    for batch in range(3):
        part = theirs[batch::3]
        people = {name: sum(one[name] for one in part) / len(part) for name in NAMES}
        for dimension in DIMENSIONS:
            names = [one.name for one in FEATURES if one.dimension == dimension]
            likeness = [dice(row[name], people[name]) for name in names]
            found[dimension] += 100 * sum(likeness) / len(likeness) / 3
    return found


def plain_draws(
    ours: list[dict[str, float]], theirs: list[dict[str, float]], draws: int
) -> dict[str, list[float]]:
    """Return the scores of every resampling of the tasks, made one by one."""
    tasks = len(ours) // 3
    rng = np.random.default_rng(1234)
    found: dict[str, list[float]] = {name: [] for name in DIMENSIONS}
    for picked in rng.integers(0, tasks, size=(draws, tasks)):
        sides = [[side[3 * t + run] for t in picked for run in range(3)] for side in (ours, theirs)]
        for name, value in plain_scores(*sides).items():
            found[name].append(value)
    return found


def check(ours: SessionSet, theirs: SessionSet) -> None:
    """Make sure that both forms give the same rows, scores and intervals.

    Raises:
        AssertionError: they do not.
    """
    rows = plain_rows(ours)
    for plain, fast in zip(rows, measure_all(ours, own_lexicon(), "fixed").rows, strict=True):
        assert np.allclose([plain[name] for name in NAMES], fast.row.values), plain
    found = scored(ours, theirs, PLAIN_DRAWS)
    drawn = plain_draws(rows, plain_rows(theirs), PLAIN_DRAWS)
    for name, value in plain_scores(rows, plain_rows(theirs)).items():
        one = found.metric(name).value
        low, high = np.percentile(drawn[name], (2.5, 97.5))
        assert np.allclose((one.value, one.low, one.high), (value, low, high)), name


if __name__ == "__main__":
    main()
