"""Splits that a place is named after."""

from __future__ import annotations

import pytest

from mimesim.corpora.base import Record, Unfit
from mimesim.corpora.formats.layout import named, part_of, role_of, with_part


@pytest.mark.parametrize(
    ("where", "part"),
    [
        ("d/shop.json#train/3", "train"),
        ("d/shop.json.gz#dev/1", "dev"),
        ("sgd/test/dialogues_001.json#2", "test"),
        ("split/casino_valid.json#7", "valid"),
        ("val.json.zip!val.json#PMUL1", "val"),
        ("hub:owner/chats@validation#4", "validation"),
        ("chats.jsonl:3", ""),
        ("latest/contest.json#3", ""),
        ("d/shop.json#trains/3", ""),
    ],
)
def test_the_part_of_a_place(where: str, part: str) -> None:
    assert part_of(where) == part


def test_only_upstream_objects_are_told_their_part() -> None:
    normalized = {"id": "a", "turns": [{"role": "user", "text": "hi"}]}
    records = [Record("test/a.json#1", {"k": 1}), Record("test/a.json#2", normalized)]
    first, second = with_part(iter(records))
    assert first.value == {"k": 1, "part": "test"}
    assert second.value == normalized
    assert records[0].value == {"k": 1}, "the raw value is left alone"


def test_speakers_are_exact_but_for_case() -> None:
    roles = {"user": "user"}
    assert role_of({"speaker": " USER "}, "turns", "speaker", roles) == "user"
    with pytest.raises(Unfit, match=r"unknown_role.*superuser"):
        role_of({"speaker": "superuser"}, "turns", "speaker", roles)
    with pytest.raises(Unfit, match="missing_role"):
        role_of({"who": "user"}, "turns", "speaker", roles)


def test_empty_parts_leave_no_slashes() -> None:
    assert named(("tau2", "", None, 0, "x")) == "tau2/0/x"
