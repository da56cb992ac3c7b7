"""Which dialogues are fit: shape, size, toxicity, language."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mimesim.corpora.base import HumanDialogue, HumanTurn, Unfit
from mimesim.corpora.cleaning import checks
from mimesim.corpora.cleaning.checks import Limits


def dialogue(*texts: str, first: str = "user", **more: Any) -> HumanDialogue:
    roles = ("user", "agent") if first == "user" else ("agent", "user")
    turns = tuple(HumanTurn(roles[i % 2], text) for i, text in enumerate(texts))  # type: ignore[arg-type]
    return HumanDialogue("d", turns, **more)


def reason(found: HumanDialogue, **limits: Any) -> str:
    try:
        checks.checked(found, Limits(**limits), Counter())
    except Unfit as unfit:
        return "text in the detail" if "secret" in unfit.detail else unfit.reason
    return ""


@pytest.mark.parametrize(
    ("texts", "limits", "expected"),
    [
        (["secret", "yes"], {}, ""),
        ([" ", "\n"], {}, "empty_dialogue"),
        (["secret"], {}, "one_sided"),
        (["", "secret"], {}, "no_user_turn"),
        (["secret", "yes"], {"min_turns": 3}, "too_few_turns"),
        (["secret", "yes", "no"], {"max_turns": 2}, "too_many_turns"),
        (["secret" * 10, "yes"], {"max_chars": 59}, "message_too_long"),
        (["secret" * 10, "yes"], {"max_chars": 60}, ""),
        (["secret" * 9999, "yes"], {"max_chars": 0}, ""),
        (["secret damn", "yes"], {}, ""),
        (["secret damn", "yes"], {"toxicity": "drop"}, "toxic"),
        (["secret damn", "yes"], {"toxicity": "cut"}, "no_user_turn"),
        (["mail jo@mail.example", "yes"], {"toxicity": "drop"}, ""),
    ],
)
def test_reasons(texts: list[str], limits: dict[str, Any], expected: str) -> None:
    assert reason(dialogue(*texts), **limits) == expected


def test_a_toxic_turn_ends_the_dialogue() -> None:
    counts: Counter[str] = Counter()
    found = checks.checked(dialogue("a", "b", "damn", "c"), Limits(toxicity="cut"), counts)
    assert [turn.text for turn in found.turns] == ["a", "b"]
    assert counts["filtered_profanity"] == 1


@pytest.mark.parametrize("flag", ["toxic", "redacted"])
def test_flags_of_the_source_count_once_toxicity_matters(flag: str) -> None:
    flagged = dialogue("a", "b", flags=(flag,))
    assert reason(flagged) == ""
    assert reason(flagged, toxicity="drop") == "flagged"
    assert reason(flagged, toxicity="cut") == "flagged"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I would like to know when the museum opens tomorrow, please", ""),
        ("Ich möchte gerne wissen, wann das Museum morgen öffnet, bitte", "language"),
        ("mañana", ""),
    ],
)
def test_the_language_of_the_user_decides(text: str, expected: str) -> None:
    pytest.importorskip("py3langid")
    reply = "Das Museum öffnet morgen um zehn Uhr, und der Eintritt ist frei"
    assert reason(dialogue(text, reply), languages=("en",)) == expected


def test_a_stated_language_decides_where_the_text_is_too_short() -> None:
    assert reason(dialogue("ja", "yes", language="de"), languages=("en",)) == "language"
    assert reason(dialogue("ja", "yes", language="en"), languages=("en",)) == ""


def test_reasons_that_speak_against_a_source() -> None:
    assert checks.is_damage("bad_json")
    assert checks.is_damage("duplicate_id")
    assert checks.is_damage("message_too_long")
    assert not any(map(checks.is_damage, ("near_duplicate", "language", "no_training")))
