"""Word lists: what is frozen, how entries match, files of others, and patterns that explode."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.bench.suites.usi import importer
from mimesim.bench.suites.usi.bounded import check_speed
from mimesim.bench.suites.usi.detectors import Detector, Entry
from mimesim.bench.suites.usi.lexicon import (
    LEXICAL,
    OFFICIAL,
    Lexicon,
    own_lexicon,
    read_lexicon,
)
from mimesim.bench.suites.usi.verify import verify_lexicon
from mimesim.errors import DataError

FROZEN = "4a658b3df11cd20ffdbcfadf5b9de2ed22501f4e3bbd9e8725aedc6d36de46d4"


def file(tmp_path: Path, **changes: Any) -> Path:
    """Write a lexicon with one phrase a list, and `changes` of its detectors."""
    detectors: dict[str, Any] = {
        name: {
            "match": "whole_turn" if name == "ack_only" else "search",
            "patterns": [{"type": "phrase", "value": name}],
        }
        for name in LEXICAL
    }
    detectors |= changes
    path = tmp_path / "lexicon.json"
    known = {name: one for name, one in detectors.items() if one is not None}
    jsonio.write_json(path, {"schema": "mimesim.usi_lexicon/1", "detectors": known})
    return path


def regex(value: str, match: str = "search") -> dict[str, Any]:
    return {"match": match, "patterns": [{"type": "regex", "value": value}]}


def phrases(*values: str, match: Any = "search") -> Detector:
    return Detector("x", match, tuple(Entry("phrase", value) for value in values))


def test_our_own_lists_are_frozen() -> None:
    """A change makes every earlier `usi-own` score another score: it needs a name of its own."""
    assert own_lexicon().fingerprint == FROZEN
    assert own_lexicon().name == "usi-own"


def test_how_a_phrase_matches() -> None:
    one = phrases("don't know", "why")
    for text in ("i don't know", "i dont  \tknow.", "why?", "(why)"):
        assert one.hits(text), text
    for text in ("i don't, know", "whys", "_why", "i don\u2019t know"):
        assert not one.hits(text), text
    whole = phrases("ok", match="whole_turn")
    assert [whole.hits(text) for text in (" ok!.. ", "ok then", "ok?")] == [True, False, False]
    start = Detector("x", "match_start", (Entry("regex", "ok"),))
    assert [start.hits(text) for text in (" ok then", "not ok")] == [True, False]
    count = Detector("x", "count", (Entry("regex", r"\d{2}"),))
    assert count.count("12345 67") == 3
    assert Detector("x", "search", (Entry("chars", "]-\u2014"),)).hits("a - b")


WORDS = st.sampled_from(
    [
        *{
            word
            for d in own_lexicon().detectors.values()
            for e in d.entries
            for word in e.value.split()
        },
        *("flight", "'", "-", "don", "t", "DONT", "x_sure"),
    ]
)


@settings(max_examples=50)
@given(words=st.lists(WORDS, max_size=12), gap=st.sampled_from([" ", "  ", "\n", ", ", "'"]))
def test_key_words_spare_searches_but_no_match(words: list[str], gap: str) -> None:
    text = gap.join(words).lower()
    found = own_lexicon().matching(text, re.findall(r"\w+", text))
    assert found == {name for name, one in own_lexicon().detectors.items() if one.hits(text)}


def test_a_file_of_others(tmp_path: Path) -> None:
    extra = {"dash": {"match": "search", "patterns": [{"type": "chars", "value": "\u2014"}]}}
    found = read_lexicon(file(tmp_path, emotion=regex("sad|mad"), **extra))
    assert found.name == "usi-custom"
    assert found.matching("so mad", ["so", "mad"]) == {"emotion"}
    assert "dash" in found.detectors
    again = read_lexicon(file(tmp_path, emotion=regex("sad|mad"), **extra))
    assert found.fingerprint == again.fingerprint
    assert found.fingerprint != read_lexicon(file(tmp_path)).fingerprint
    assert Lexicon(found.detectors, path="p", verified=True).name == OFFICIAL


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"emotion": None}, "'emotion' is missing"),
        ({"mood": regex("x")}, "unknown key 'mood'"),
        ({"emotion": regex("(")}, "not a regular expression"),
        ({"emotion": regex("x", match="count")}, "match is 'count'"),
        ({"emotion": {"match": "search", "patterns": []}}, "no pattern"),
        ({"emotion": {"match": "search", "patterns": ["x"]}}, "not a pattern"),
        ({"emotion": regex(" ")}, "empty pattern"),
        ({"emotion": regex("(?:)")}, "matches everything"),
        ({"emotion": regex("x*")}, "matches everything"),
        ({"emotion": {**regex("x"), "flags": 1}}, "unknown key 'flags'"),
        ({"ack_only": {**regex("(a+)+$", "match_start")}}, r"ack_only\[0\].*unbounded time"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError) as caught:
        read_lexicon(file(tmp_path, **changes))
    assert re.search(told, str(caught.value)), caught.value
    assert "\n" not in str(caught.value)


def test_sound_patterns_are_not_refused() -> None:
    """Repeats inside repeats that cannot trade letters, wide gaps, long alternatives."""
    sound = [
        r"\b(?:\w+\s+){0,3}refund\b",
        r"^(?:yes|ok|sure|got it)[ !.,\-]*$",
        r"\b\w+_\w+_\d{3,}\b|\w+@\w+\.\w+",
        r"i (?:really )?(?:do not|don'?t) (?:know|remember).*number",
        "|".join(f"word{n}" for n in range(300)),
    ]
    assert check_speed(sound) is None
    assert check_speed([]) is None


RUNS = [r"((?:;\?)+)+K", r"zz (?:(?:[;:]\?)+)+Q", r"(?:#%|#%)+$", "((?:\u20ac~)*)*K"]
"""Whose repeats take several signs together."""


@pytest.mark.parametrize(
    "bad", [r"(\w+\s?)*!$", "(sad|sad)*mad", "(?:a|aa)+$", r"(.*,){20}x", *RUNS]
)
def test_patterns_that_explode_are_found(bad: str) -> None:
    assert check_speed(["fine", bad], seconds=0.1) == 1


def python_file(tmp_path: Path, **changes: str) -> Path:
    values = {name: f're.compile(r"\\b{name.lower()}\\b", re.I)' for name in importer.CONSTANTS}
    lines = [f"{name} = {value}" for name, value in (values | changes).items() if value]
    path = tmp_path / "lists.py"
    path.write_text("\n".join(["import re", 'raise SystemExit("run")', *lines]), "utf-8")
    return path


def test_an_import_reads_and_never_runs(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    joined = 're.compile(\n    r"a" r"b|" + "c"\n)'
    found = importer.import_lexicon(python_file(tmp_path, PIVOT_RE=joined), out, licence="mine")
    assert len(found.detectors) == 13
    assert found.detectors["pivot"].entries == (Entry("regex", "ab|c"),)
    assert found.detectors["ack_only"].match == "match_start"
    assert found.licence == "mine"
    assert importer.described(found)["name"] == "usi-custom"


@pytest.mark.parametrize(
    ("constant", "value", "told"),
    [
        ("PIVOT_RE", "", "PIVOT_RE is missing"),
        ("PIVOT_RE", "re.compile(MADE)", "no literal text"),
        ("PIVOT_RE", "make()", "no compile call"),
        ("PIVOT_RE", 're.compile("x", re.VERBOSE)', "flags change"),
        ("PIVOT_RE", 're.compile("x", flags=64)', "flags change"),
        ("PIVOT_RE", "re.compile(", "cannot be read as Python"),
    ],
)
def test_what_cannot_be_imported(tmp_path: Path, constant: str, value: str, told: str) -> None:
    out = tmp_path / "out.json"
    with pytest.raises(DataError, match=told):
        importer.import_lexicon(python_file(tmp_path, **{constant: value}), out)
    assert not out.exists()


def test_other_lists_are_not_verified(test_data: Path, tmp_path: Path) -> None:
    runs = str(test_data / "tau_bench" / "gpt4o_airline_trajectories.jsonl")
    found = verify_lexicon(own_lexicon(), runs)
    assert not found.lexicon.verified
    assert any("D1" in line for line in found.differences)
    assert not any(" D2 " in line or " ECE " in line for line in found.differences)
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": "a", "turns": [{"role": "user", "text": "hi"}]}\n', "utf-8")
    with pytest.raises(DataError, match="1 tasks in 1 trials"):
        verify_lexicon(own_lexicon(), str(other))
