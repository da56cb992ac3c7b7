"""Normal form and fingerprints of users' texts, and the deny-list of the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim.corpora.base import HumanTurn
from mimesim.corpora.cleaning import overlap
from mimesim.errors import DataError


def test_case_and_punctuation_do_not_count() -> None:
    assert overlap.words_of("Hello, WORLD -- it's me_too!") == [
        "hello",
        "world",
        "it",
        "s",
        "me",
        "too",
    ]
    assert overlap.words_of("ﬁne ＡＢ") == ["fine", "ab"]
    assert overlap.words_of("猫が好き") == ["猫", "が", "好", "き"]


def test_only_long_texts_of_the_user_have_a_fingerprint() -> None:
    long = "one two three four five six seven eight"
    turns = [
        HumanTurn("user", "one two three four five six seven"),
        HumanTurn("agent", long),
        HumanTurn("user", long),
        HumanTurn("agent", "yes"),
        HumanTurn("user", long.upper() + "!"),
    ]
    assert overlap.user_fingerprints(turns) == [overlap.fingerprint(long.split())]


def test_a_list_is_read_as_it_is_written(tmp_path: Path) -> None:
    values = {overlap.fingerprint([word]) for word in ("a", "b", "c", "d", "e")}
    assert min(values) < 0 < max(values), "both signs occur"
    path = tmp_path / "deny.txt"
    lines = [f"{overlap.as_line(value)}  # remark" for value in values]
    path.write_text("\n".join(["# head", "", *lines]), "utf-8")
    assert overlap.read_deny_list(path) == values


@pytest.mark.parametrize("line", ["xyz", "123", "00112233445566778", "hello world"])
def test_another_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "deny.txt"
    path.write_text(f"# head\n{line}\n", "utf-8")
    with pytest.raises(DataError, match=r"deny.txt:2.*16 hex digits"):
        overlap.read_deny_list(path)


def test_an_absent_list(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="file not found"):
        overlap.read_deny_list(tmp_path / "none.txt")


def test_the_list_of_the_package_holds_fingerprints_only() -> None:
    assert len(overlap.own_deny_list()) > 2000
