"""Golden checks of the user-sim index: features, word lists, rows and pairs of the airline runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mimesim.bench.suites.difficulty import frozen_difficulty
from mimesim.bench.suites.goldens.base import Check, Outcome, holds, numbers
from mimesim.bench.suites.sessions import Session, SessionSet, read_sessions
from mimesim.bench.suites.usi import importer, index, published, survey
from mimesim.bench.suites.usi.features import FEATURES, NAMES, Row, identifiers, measure, user_texts
from mimesim.bench.suites.usi.lexicon import Lexicon, own_lexicon, read_lexicon
from mimesim.bench.suites.usi.suite import VARIABLE
from mimesim.bench.suites.usi.verify import OFFICIAL_PAIRS, trial_pairs, verify_lexicon
from mimesim.dialogue.stop import END_MARKER
from mimesim.dialogue.types import Role
from mimesim.results.suite import Mode
from mimesim.stats.intervals import resampled_weights

RUNS = "tau_bench/gpt4o_airline_trajectories.jsonl"
MODES: tuple[Mode, ...] = ("compat", "fixed")

UNIT = Session(
    "unit",
    (
        (Role.AGENT, "Hello, how can I help you?"),
        (Role.USER, "Hi, I need to change order #W1234567 please"),
        (Role.AGENT, "Sure."),
        (Role.USER, "ok"),
        (Role.USER, "my email is ann.b@example.com \u2014 thanks"),
        (Role.AGENT, "Done."),
        (Role.USER, f"no that is wrong {END_MARKER}"),
        (Role.USER, END_MARKER),
    ),
)
UNIT_VALUES: Mapping[Mode, Mapping[str, float]] = {
    "compat": {"words": 5.0, "cv": 0.5099019513592784, "front": 0.45},
    "fixed": {"words": 4.75, "cv": 0.5444253, "front": 0.4736842},
}
UNIT_SAME = {"short": 0.25, "dash": 0.25, "repeat": 0.0, "ids": 1.25, "opening": 8.0}
IDENTIFIERS = {
    "please cancel reservation": 3,
    "mia_li_3668": 1,
    "user id: mia_li_3668, card 7447": 1,
    "michael@hotmail.com": 2,
    "anna@mail.com": 1,
    "gift_card_x and paypal_1": 2,
    "order #12345": 1,
    "2024-05-20": 0,
    "zip 19031": 1,
}
CLASSES = {
    "are you sure? what do you mean, and how much is it?": "pushback_q_rate",
    "what do you mean, how much is it?": "clarify_q_rate",
    "how much is it?": "info_q_rate",
}
SENTENCES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "politeness": (
        ("could you cancel it please", "thanks, that helps", "sorry, i typed the wrong date"),
        ("cancel my order now", "i need a refund"),
    ),
    "ack_only": (
        ("yes", "ok!", "sounds good."),
        ("yes, and add a bag", "ok so what now", "no"),
    ),
    "identity_confusion": (
        (
            "how can i help you today?",
            "let me check that for you",
            "i apologize for the inconvenience",
            "please cancel your order",
        ),
        ("i need help with a flight", "hello"),
    ),
    "uncertainty": (
        (
            "i think it was in may",
            "not sure, perhaps the blue one",
            "i don't remember the number",
        ),
        ("it was in may", "the blue one"),
    ),
    "certainty": (
        ("i definitely booked two seats", "that is exactly the one i mean"),
        ("i booked two seats", "maybe that one"),
    ),
    "pushback_q": (
        (
            "are you sure that is right?",
            "i already told you my zip code",
            "why can't you just refund it?",
        ),
        ("what is the refund policy?", "ok thanks"),
    ),
    "clarify_q": (
        (
            "what do you mean by basic economy?",
            "i don't understand that fee",
            "could you clarify the second option?",
        ),
        ("how much is the fee?", "cancel it"),
    ),
    "info_q": (
        (
            "how much is the upgrade?",
            "when will it arrive?",
            "can you check the status?",
            "is that the total?",
        ),
        ("please cancel it", "yes"),
    ),
    "emotion": (
        (
            "i am so frustrated with this",
            "i was really worried about the charge",
            "this is a ridiculous fee",
        ),
        ("i want an aisle seat", "my order is late"),
    ),
    "accusation": (
        ("this is your fault", "what a useless service", "that is unacceptable"),
        ("i need help", "it is late"),
    ),
    "pivot": (
        (
            "what about the flight on friday?",
            "use the gift card instead",
            "on second thought, keep it",
            "i would like to cancel my flight",
        ),
        ("cancel it", "yes please"),
    ),
}
"""Word list -> what it must match, what it must not."""

FIRST: Mapping[Mode, Mapping[str, float]] = {
    "compat": {
        "user_words_per_turn": 14.0,
        "verbosity_cv": 0.6776309271789385,
        "info_frontload": 0.1875,
    },
    "fixed": {
        "user_words_per_turn": 13.875,
        "verbosity_cv": 0.6898218846999487,
        "info_frontload": 0.1891891892,
    },
}
FIRST_SAME = {
    "id_density": 2.875,
    "opening_words": 15.0,
    "short_msg_rate": 0.0,
    "dash_rate": 0.0,
    "repeat_rate": 0.0,
    "turns": 15.0,
}
ROW: Mapping[Mode, Mapping[str, float]] = {
    "compat": {
        "short_msg_rate": 0.69696970,
        "verbosity_cv": 0.39468579,
        "info_frontload": 29.16169763,
        "user_words_per_turn": 18.67240787,
    },
    "fixed": {
        "short_msg_rate": 0.85081585,
        "verbosity_cv": 0.40148625,
        "info_frontload": 29.28347132,
        "user_words_per_turn": 18.59712110,
    },
}
ROW_SAME = {
    "dash_rate": 0.0,
    "repeat_rate": 0.0,
    "id_density": 4.89874514,
    "opening_words": 17.72,
    "turns": 15.74,
    "user turns": 405.0,
    "success": 42.0,
}
GUIDE = {
    "politeness_rate": 47.17743368,
    "ack_only_rate": 0.0,
    "id_confuse_rate": 16.0,
    "uncertainty_rate": 10.86657787,
    "certainty_rate": 2.50008325,
    "pushback_q_rate": 1.36291486,
    "clarify_q_rate": 0.0,
    "info_q_rate": 17.08195693,
    "emotion_rate": 1.61904762,
    "accusation_rate": 0.61904762,
    "pivot_rate": 17.92799978,
}
"""Rates of the official lists on trial 0, `compat`: told beside our own, never demanded."""

PAIRS: Mapping[Mode, Mapping[str, float]] = {
    "compat": {
        "0-1 D2": 97.681163,
        "0-1 D1s": 96.676862,
        "0-2 D2": 97.596237,
        "0-2 D1s": 69.904877,
        "0-3 D2": 96.896049,
        "0-3 D1s": 43.987185,
        "0-1 ECE": 0.06,
        "0-2 ECE": 0.10,
        "0-3 ECE": 0.12,
    },
    "fixed": {
        "0-1 D2": 97.678958,
        "0-1 D1s": 94.172239,
        "0-2 D2": 97.594442,
        "0-2 D1s": 67.588189,
        "0-3 D2": 96.912872,
        "0-3 D1s": 41.734505,
        "0-1 ECE": 0.06,
        "0-2 ECE": 0.10,
        "0-3 ECE": 0.12,
    },
}
_NUMBERS = {
    "user_words_per_turn": "words",
    "verbosity_cv": "cv",
    "info_frontload": "front",
    "short_msg_rate": "short",
    "dash_rate": "dash",
    "repeat_rate": "repeat",
    "id_density": "ids",
    "opening_words": "opening",
}


@cache
def _runs(path: Path) -> SessionSet:
    return read_sessions(str(path), raw=True)


def _row(session: Session, mode: Mode, lexicon: Lexicon | None = None) -> Row:
    found = measure(session, lexicon or own_lexicon(), mode)
    if found is None:
        raise ValueError("the user says nothing")
    return found


def _unit(mode: Mode) -> dict[str, float]:
    values = dict(zip(NAMES, _row(UNIT, mode).values, strict=True))
    return {short: values[name] for name, short in _NUMBERS.items()}


def _turn_sizes() -> str:
    return "; ".join(
        " ".join(str(len(text.split())) for text in user_texts(UNIT, mode)[0]) for mode in MODES
    )


def _repetition() -> dict[str, float]:
    place = NAMES.index("repeat_rate")
    return {
        f"{n} times": _row(
            Session("r", tuple((Role.USER, "one two three") for _ in range(n))), "fixed"
        ).values[place]
        for n in (10, 11)
    }


def _lists() -> str:
    wrong = []
    for name, sides in SENTENCES.items():
        detector = own_lexicon().detectors[name]
        for wanted, texts in zip((True, False), sides, strict=True):
            wrong += [f"{name}: {text}" for text in texts if detector.hits(text) != wanted]
    return "; ".join(wrong) or "all agree"


def _classes() -> str:
    wrong = []
    for text, wanted in CLASSES.items():
        values = dict(
            zip(NAMES, _row(Session("c", ((Role.USER, text),)), "fixed").values, strict=True)
        )
        if [name for name in CLASSES.values() if values[name]] != [wanted]:
            wrong.append(text)
    return "; ".join(wrong) or "all agree"


def _first(path: Path, mode: Mode) -> dict[str, float]:
    (session,) = _runs(path).where(task="airline_0", trial=0).sessions
    row = _row(session, mode)
    return {**dict(zip(NAMES, row.values, strict=True)), "turns": float(row.turns)}


def _trial_row(path: Path, mode: Mode) -> dict[str, float]:
    sessions = _runs(path).where(trial=0).sessions
    rows = [_row(one, mode) for one in sessions]
    n = len(rows)
    found = {
        one.name: one.scale * sum(row.values[i] for row in rows) / n
        for i, one in enumerate(FEATURES)
    }
    found["turns"] = sum(row.turns for row in rows) / n
    found["user turns"] = float(sum(row.user_turns for row in rows))
    found["success"] = 100 * sum((one.reward or 0) > 0 for one in sessions) / n
    return found


def _guide(data: Path | None) -> Outcome:
    """Tell how far our own lists are from the official ones; there is nothing to fail."""
    if data is None or not (data / RUNS).exists():
        return Outcome("skipped", reason=f"needs {RUNS}")
    found = _trial_row(data / RUNS, "compat")
    told = ", ".join(f"{name} {found[name] - rate:+.2f}" for name, rate in GUIDE.items())
    return Outcome("passed", found=told, expected="a guide, no gate")


def _pairs(path: Path, mode: Mode) -> dict[str, float]:
    found = trial_pairs(own_lexicon(), str(path), mode)
    return {
        f"0-{trial} {name}": value
        for trial, values in found.items()
        for name, value in values.items()
    }


def _resampled(path: Path) -> dict[str, float]:
    """Return the interval of D2 and the mean of ECE over 2,000 resamplings of the pair 0-1."""
    import numpy as np

    measured = index.measure_all(_runs(path), own_lexicon(), "compat")
    names = list(dict.fromkeys(one.key for one in measured.rows))
    cells = [index.Cells.of(measured.run(run).rows, names) for run in (0, 1)]
    rng = np.random.default_rng(index.SEED)
    weights = np.concatenate(list(resampled_weights(rng, len(names), 2_000)))
    member = index.bins_of(names, frozen_difficulty())
    scores = index.compare(cells[:1], cells[1], member, weights)
    if scores is None:
        return {}
    low, high = np.percentile(scores.values["D2"], (2.5, 97.5))
    error = float(scores.values["ECE"].mean())
    return {"D2 low": float(low), "D2 high": float(high), "ECE mean": error}


def _official(data: Path | None) -> Outcome:
    named = os.environ.get(VARIABLE)
    if not named:
        return Outcome("skipped", reason=f"{VARIABLE} names no official lexicon file")
    if data is None or not (data / RUNS).exists():
        return Outcome("skipped", reason=f"needs {RUNS}")
    found = verify_lexicon(read_lexicon(named), str(data / RUNS))
    if found.differences:
        return Outcome("failed", reason=found.differences[0])
    return Outcome("passed", found=f"{len(OFFICIAL_PAIRS)} pairs agree")


def _imported() -> str:
    """Import a Python file that would raise if it were run."""
    lines = ["import re", 'raise RuntimeError("run, not read")']
    lines += [f'{name} = re.compile(r"\\b{name.lower()}\\b")' for name in importer.CONSTANTS]
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "lists.py", Path(folder) / "lexicon.json"
        source.write_text("\n".join(lines), "utf-8")
        found, again = (importer.import_lexicon(source, out) for _ in range(2))
    told = "one fingerprint" if found.fingerprint == again.fingerprint else "fingerprints differ"
    return f"{len(found.detectors)} detectors, {told}"


def _dice() -> dict[str, float | None]:
    pairs = ((10, 10), (0, 0), (20, 10))
    return {
        "three pairs": 100 * sum(index.dice(*pair) for pair in pairs) / 3,
        "all zero": 100 * index.dice(0, 0),
        "survey equal": survey.agreement({"human_like": "Yes"}, {"human_like": "Yes"}),
        "survey opposite": survey.agreement({"human_like": "Yes"}, {"human_like": "No"}),
        "survey unanswered": survey.agreement({}, {"human_like": "No"}),
    }


def _formulas() -> dict[str, float]:
    """Return the largest distance of a printed index from the formula on its printed parts."""
    far = {"USI5": 0.0, "USI6": 0.0}
    for part, name in (("five", "USI5"), ("six", "USI6")):
        for row in published.table()[part]["row"]:
            if "D1" in row:
                parts = [row[d] for d in ("D1", "D2", "D3", "D4")]
                made = (
                    index.usi6(parts, row["ECE"], row["Eval"])
                    if name == "USI6"
                    else index.usi5(parts, row["ECE"])
                )
                far[name] = max(far[name], abs(made - row[name]))
    return far


def _prism() -> dict[str, float]:
    rows = published.table()["prism"]["row"]
    return {
        "largest distance": max(
            abs(sum(row[d] for d in ("D1", "D2", "D3", "D4")) / 4 - row["mean"]) for row in rows
        )
    }


def _by_mode() -> list[Check]:
    found = []
    for mode in MODES:
        unit = {**UNIT_VALUES[mode], **UNIT_SAME}
        found += [
            numbers(f"usi/unit session, {mode}", unit, lambda mode=mode: _unit(mode)),
            numbers(
                f"usi/airline task 0, {mode}",
                {**FIRST[mode], **FIRST_SAME},
                lambda path, mode=mode: _first(path, mode),
                file=RUNS,
            ),
            numbers(
                f"usi/airline trial 0, {mode}",
                {**ROW[mode], **ROW_SAME},
                lambda path, mode=mode: _trial_row(path, mode),
                file=RUNS,
            ),
            numbers(
                f"usi/airline pairs, {mode}",
                PAIRS[mode],
                lambda path, mode=mode: _pairs(path, mode),
                file=RUNS,
            ),
        ]
    return found


CHECKS: list[Check] = [
    holds("usi/turn sizes", "8 1 6 5; 8 1 6 4", _turn_sizes),
    numbers(
        "usi/identifiers",
        {text: float(n) for text, n in IDENTIFIERS.items()},
        lambda: {text: float(identifiers(text)) for text in IDENTIFIERS},
    ),
    numbers("usi/repetition", {"10 times": 0.0, "11 times": 1.0}, _repetition),
    holds("usi/own word lists", "all agree", _lists),
    holds("usi/classes of questions", "all agree", _classes),
    *_by_mode(),
    Check("usi/own lists beside the official ones", "a guide, no gate", _guide),
    Check("usi/official lists", "three golden pairs", _official),
    holds("usi/import", "13 detectors, one fingerprint", _imported),
    numbers(
        "usi/resampling, pair 0-1",
        {"D2 low": 94.2307, "D2 high": 98.9130, "ECE mean": 0.1401},
        _resampled,
        file=RUNS,
        tolerance=5.1e-5,
    ),
    numbers(
        "usi/dice and survey",
        {
            "three pairs": 88.888889,
            "all zero": 100.0,
            "survey equal": 100.0,
            "survey opposite": 0.0,
            "survey unanswered": None,
        },
        _dice,
    ),
    numbers(
        "usi/published rows by formula",
        {"USI5": 0.0, "USI6": 0.0},
        _formulas,
        tolerance={"USI5": 0.011, "USI6": 0.05 + 1e-9},
    ),
    numbers("usi/published PRISM means", {"largest distance": 0.0}, _prism, tolerance=0.03 + 1e-9),
]
