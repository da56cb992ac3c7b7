"""JSON documents: which are taken entry by entry, at once or streamed, and what damage costs."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora import raw_documents
from mimesim.corpora.base import Record
from mimesim.corpora.raw import Source

LIST = [{"n": 1}, {"n": 2.5}]
PARTS = {"train": [{"n": 1}, {"n": 2}], "dev": [{"n": 3}], "test": []}
NAMED = {"K.1": {"n": 1}, "K2": {"n": 2}}
SINGLE = {"id": "a", "turns": [{"role": "user"}]}
MESSAGES = {"messages": [{"role": "user"}], "tools": []}


@pytest.fixture(params=["at once", "streamed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read whole documents, then as if each were large."""
    if request.param == "streamed":
        pytest.importorskip("ijson")
        monkeypatch.setattr(raw_documents, "_WHOLE", 4)
    return str(request.param)


def read(path: Path, *, splits_lists: bool = True) -> tuple[list[Record], list[tuple[str, str]]]:
    told: list[tuple[str, str]] = []
    found = raw_documents.document(
        Source(path.name, path),
        lambda where, reason, detail: told.append((where, reason)),
        splits_lists=splits_lists,
    )
    return list(found), told


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (LIST, [("#1", LIST[0]), ("#2", LIST[1])]),
        (PARTS, [("#train/1", {"n": 1}), ("#train/2", {"n": 2}), ("#dev/1", {"n": 3})]),
        (NAMED, [("#K.1", {"n": 1}), ("#K2", {"n": 2})]),
        (SINGLE, [("", SINGLE)]),
        (MESSAGES, [("", MESSAGES)]),
        ([], []),
        ({}, [("", {})]),
        ("text", [("", "text")]),
    ],
)
def test_entries(value: Any, expected: list[tuple[str, Any]], way: str, tmp_path: Path) -> None:
    for indent in (None, 1):
        path = tmp_path / "a.json"
        path.write_bytes(b"\xef\xbb\xbf" + jsonio.dumps(value, indent=indent).encode())
        assert read(path) == ([(f"a.json{at}", entry) for at, entry in expected], [])


def test_a_document_may_stay_whole(way: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(jsonio.dumps(PARTS).encode()))
    assert read(path, splits_lists=False) == ([("a.json.gz", PARTS)], [])


def test_lines_that_are_called_json_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"n": 1}\n{"n": 2}\n', "utf-8")
    assert read(path) == ([("a.json:1", {"n": 1}), ("a.json:2", {"n": 2})], [])


@pytest.mark.parametrize(
    ("content", "kept", "reason"),
    [
        (b'[{"n": 1}, {"n": 2}, {"n": ', 2, "truncated"),
        (b'[{"n": 1}, {"n" 2}, {"n": 3}]', 1, "bad_json"),
        (b'{"K1": {"n": 1}, "K2": {"n"', 0, "truncated"),
        (b'[{"n": 1}, {"n": "\xff"}]', None, "bad_encoding"),
        (b"nothing like it", 0, "bad_json"),
    ],
)
def test_what_stands_before_a_damage_is_kept(
    content: bytes, kept: int | None, reason: str, way: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    found, told = read(path)
    assert [why for _, why in told] == [reason]
    assert told[0][0].startswith("a.json")
    if kept is not None:
        assert len(found) == kept


def test_a_cut_archive_gives_the_whole_entries(tmp_path: Path) -> None:
    pytest.importorskip("ijson")
    values = [{"n": n, "noise": f"{n * 7919 % 1000003:x}"} for n in range(3000)]
    packed = gzip.compress(jsonio.dumps(values).encode())
    path = tmp_path / "a.json.gz"
    path.write_bytes(packed[: len(packed) // 2])
    found, told = read(path)
    assert [record.value for record in found] == values[: len(found)]
    assert found
    assert [reason for _, reason in told] == ["truncated"]


def test_a_wrong_encoding_at_once_names_the_reason_only(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes('[{"text": "größer"}]'.encode("utf-16"))
    found, told = read(path)
    assert found == []
    assert told[0][1] in ("bad_encoding", "bad_json")


def test_a_large_list_is_read_with_little_memory(tmp_path: Path) -> None:
    pytest.importorskip("ijson")
    tracemalloc = pytest.importorskip("tracemalloc")
    path = tmp_path / "a.json"
    row = jsonio.dumps({"text": "x" * 1000})
    with path.open("w", encoding="utf-8") as stream:
        stream.write("[" + ",".join([row] * 20_000) + "]")
    assert path.stat().st_size > raw_documents._WHOLE
    source = Source("a.json", path)
    tracemalloc.start()
    found = raw_documents.document(source, lambda *told: None, splits_lists=True)
    count = sum(1 for _ in found)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 18_000_000, "one look at the head, then entry by entry"


@pytest.mark.parametrize("opening", ["[", '{"a":', '[[{"a":'])
def test_a_document_nested_without_end_costs_no_memory(tmp_path: Path, opening: str) -> None:
    pytest.importorskip("ijson")
    path = tmp_path / "deep.json"
    path.write_text(opening * 6000, "utf-8")
    tracemalloc.start()
    found, told = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found, told) == ([], [("deep.json", "bad_json")])
    assert peak < 40_000_000  # 16 MiB of it are the buffer of a whole document


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_another_encoding_is_called_that(tmp_path: Path, way: str, encoding: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes('[{"text": "caf\xe9"}]'.encode(encoding))
    found, told = read(path)
    assert found == []
    assert [reason for _, reason in told] == ["bad_encoding"] or way == "streamed"
