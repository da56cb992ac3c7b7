"""The working state on disk: what a checkpoint keeps, and what a killed process loses."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

from mimesim.corpora.index import Entry, Index
from mimesim.errors import EnvironmentFault


def entry(index: Index, texts: list[int] | None = None, split: str = "") -> Entry:
    return Entry(index.size, 3, 2**62 + index.size, split, 7, array("q", texts or []))


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    with Index(tmp_path) as index:
        index.add({"id": "a"}, entry(index, [-5, 9], "test"), bands=[1, 2], keys=[8, 8])
        index.add({"id": "b\u2028"}, entry(index), bands=[2], keys=[8], origin="f:7")
        assert (index.origin(0), index.origin(1)) == ("", "f:7")
        assert index.row(1) == (3, {"id": "b\u2028"})
        assert index.row(0) == (3, {"id": "a"})
        assert index.sharing([2, 1], 9) == [0, 1]
        assert index.sharing([2], 1) == [0]
        assert index.members(8) == 2
        assert list(index.pairs()) == [(0, 1)]
        first, second = index.entries()
        assert first == Entry(0, 3, 2**62, "test", 7, array("q", [-5, 9]))
        assert second.texts == array("q")


def test_a_killed_process_loses_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    with Index(tmp_path) as index:
        assert index.first_time(1)
        index.add({"id": "a"}, entry(index), bands=[1], keys=[2])
        index.reject({"reason": "x"})
        index.checkpoint(reading={"records": 1})
        assert index.first_time(2)
        index.add({"id": "b"}, entry(index), bands=[1], keys=[2])
        index.reject({"reason": "y"})
    with Index(tmp_path) as index:
        assert index.state("reading") == {"records": 1}
        assert index.size == 1
        assert not index.first_time(1)
        assert index.first_time(2)
        assert index.members(2) == 1
        assert list(index.rejects()) == [b'{"reason": "x"}\n']
        index.add({"id": "c"}, entry(index), bands=[], keys=[])
        assert index.row(1)[1] == {"id": "c"}


def test_a_damaged_or_full_disk_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="no space"), Index(tmp_path):
        raise OSError(28, "no space left on device")
    with pytest.raises(EnvironmentFault, match="cannot write"), Index(tmp_path) as index:
        index._base.execute("SELECT * FROM absent")
