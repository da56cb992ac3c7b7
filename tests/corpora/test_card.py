"""The data card: what must be known before anything is made from a mix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mimesim.corpora import card
from mimesim.corpora.base import CorpusInfo

OPEN = CorpusInfo("open", "MIT", "yes", "yes", "Quill 2030", moderated=True)
SHARED = replace(OPEN, name="shared", license="CC BY-SA 4.0", redistributable="share-alike")
RAW = replace(OPEN, name="raw", moderated=False, redistributable="no", training_allowed="unknown")


def source(info: CorpusInfo, **counts: int) -> dict[str, Any]:
    figures = {"dialogues": 2, "turns": 8, "user_turns": 4, "words": 40, "user_words": 20}
    return {
        "name": info.name,
        "place": "x.jsonl",
        "terms": info.as_dict(),
        "counts": counts,
        "parts": {
            "train": {**figures, "tokens": 50, "user_tokens": 25},
            "validation": {},
            "test": {},
        },
    }


def summary(*infos: CorpusInfo, known: bool = False, **counts: int) -> dict[str, Any]:
    return {
        "sources": [source(info, **counts) for info in infos],
        "splits": {"open": {"train": 2}},
        "shared_texts": {"open & raw": 3},
        "tokens_known": known,
    }


def test_a_share_alike_part_is_warned_of() -> None:
    mixed = card.as_json(summary(OPEN, SHARED))["warnings"]
    assert len(mixed) == 1
    assert mixed[0].startswith("shared is share-alike: everything derived from this mix")
    alone = card.as_json(summary(SHARED))["warnings"]
    assert alone == [
        "shared is share-alike: what is derived from it takes over its license (CC BY-SA 4.0)"
    ]
    assert card.as_json(summary(OPEN))["warnings"] == []


def test_the_text_explains_its_counts_and_has_no_double_blank_line() -> None:
    for infos in ((OPEN,), (RAW, SHARED)):
        text = card.as_markdown(
            card.as_json(summary(*infos, kept=2, messages_left_out=1, left_out_overlap=3))
        )
        assert "\n\n\n" not in text
        for words in (
            "messages_left_out: 1 (messages of",
            "kept: 2 (of these",
            "overlap: 3 (train",
        ):
            assert words in text
        assert "`components` counts them" in text


def test_terms_that_are_not_plain_are_warned_of() -> None:
    words = " ".join(card.as_json(summary(RAW))["warnings"])
    for text in ("must not be passed on", "is not known", "is not moderated"):
        assert text in words
    claimed = replace(OPEN, training_allowed="no", evaluation_only=True, simulated=True)
    words = " ".join(card.as_json(summary(claimed))["warnings"])
    for text in ("may not be used for training", "serves evaluation only", "are models"):
        assert text in words
    assert words.count("rights were claimed") == 2


def test_tokens_are_unknown_without_a_tokenizer() -> None:
    unknown = card.as_json(summary(OPEN, RAW))
    assert unknown["totals"]["train"]["tokens"] is None
    assert unknown["totals"]["train"]["user_turns"] == 8
    assert "| unknown |" in card.as_markdown(unknown)
    known = card.as_json(summary(OPEN, RAW, known=True))
    assert known["totals"]["train"]["user_tokens"] == 50
    assert known["sources"][0]["parts"]["test"]["tokens"] == 0


def test_people_read_licenses_counts_and_what_is_gone() -> None:
    text = card.as_markdown(
        card.as_json(summary(OPEN, RAW, left_out_duplicate=5, mails_masked=2, kept=9))
    )
    for line in (
        "- license: MIT",
        "- training allowed: unknown",
        "- cite: Quill 2030",
        "- duplicate: 5 (the same conversation again)",
        "- mails_masked: 2",
        "- open & raw: 3",
        f"- texts: {card.UNMODERATED}",
        "| train | 2 | 8 | 4 | 40 | 20 | unknown | unknown |",
    ):
        assert line in text.split("\n"), line
