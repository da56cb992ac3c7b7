"""Making a deny-list from sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim.corpora.cleaning import overlap
from mimesim.corpora.deny import write_deny_list
from mimesim.errors import DataError, UnknownNameError
from tests.support.chats import chat, say, write_rows


def test_a_list_is_sorted_counted_and_free_of_text(tmp_path: Path) -> None:
    rows = [chat(1), chat(2), chat(1, x=1), {"turns": 1}, say("too short", "ok")]
    place = write_rows(tmp_path / "logs.jsonl", rows)
    made = write_deny_list([str(place)], tmp_path / "deny.txt")
    assert made["fingerprints"] == 4
    assert made["sources"] == {str(place): {"dialogues": 4, "texts": 6, "unreadable": 1}}
    lines = (tmp_path / "deny.txt").read_text("utf-8").split("\n")
    body = [line for line in lines if line and not line.startswith("#")]
    assert body == sorted(body)
    assert {len(line) for line in body} == {16}
    words = overlap.words_of(chat(1)["turns"][0]["text"])
    assert overlap.fingerprint(words) in overlap.read_deny_list(tmp_path / "deny.txt")


def test_nothing_to_take_a_fingerprint_of(tmp_path: Path) -> None:
    place = write_rows(tmp_path / "logs.jsonl", [say("short", "ok")])
    with pytest.raises(DataError, match="8 words or more"):
        write_deny_list([str(place)], tmp_path / "deny.txt")
    with pytest.raises(UnknownNameError):
        write_deny_list(["stra:x"], tmp_path / "deny.txt")
    assert not (tmp_path / "deny.txt").exists()


def test_a_file_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    place = write_rows(tmp_path / "logs.jsonl", [chat(1)])
    before = place.read_bytes()
    with pytest.raises(DataError, match="not a fingerprint"):
        write_deny_list([str(place)], place)
    assert place.read_bytes() == before
    for _ in range(2):
        write_deny_list([str(place)], tmp_path / "deny.txt")
