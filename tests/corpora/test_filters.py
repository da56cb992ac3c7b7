"""The text filter: what it stops, and everyday words it must let pass."""

from __future__ import annotations

import pytest

from mimesim.corpora import filters


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("see http://example.org/x", "url"),
        ("look at www.example.net", "url"),
        ("it is on mysite.com I think", "url"),
        ("write to jo.doe@example.org", "contact"),
        ("call (555) 010-1234 tonight", "contact"),
        ("follow @somebody there", "contact"),
        ("my instagram is open", "contact"),
        ("I live at 12 Maple Street", "contact"),
        ("my last name is rare", "contact"),
        ("What the HELL", "profanity"),
        ("that was bullshitting", "profanity"),
        ("do you watch porn", "sexual"),
        ("such a retarded idea", "slur"),
        ("i will kill myself", "violence"),
    ],
)
def test_unsuitable_text_is_named(text: str, reason: str) -> None:
    assert filters.problem(text) == reason


@pytest.mark.parametrize(
    "text",
    [
        "I passed my class in Essex",
        "hello, a shell on the assembly line",
        "I was there from 2014-2016",
        "we drove 5 hours, it cost 1200 dollars",
        "My name is Sam. I like cockatoos and Scunthorpe",
        "Facebook is a huge help",
        "ok... well.that is fine",
    ],
)
def test_everyday_text_passes(text: str) -> None:
    assert filters.problem(text) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [("write to jo@example.org", ""), ("http://example.org", ""), ("damn", "profanity")],
)
def test_toxicity_is_not_about_contacts(text: str, reason: str) -> None:
    assert filters.toxicity(text) == reason
