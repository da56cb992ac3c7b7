"""Single files: lines, tables and parquet, whole and damaged."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.corpora import raw
from mimesim.corpora.raw import Source

Told = list[tuple[str, str]]


def source(path: Path) -> Source:
    return Source(path.name, path)


def collect(told: Told) -> raw.OnReject:
    return lambda where, reason, detail: told.append((where, reason))


def read_lines(path: Path) -> tuple[list[Any], Told]:
    told: Told = []
    found = [record.value for record in raw.lines(source(path), collect(told))]
    return found, told


def read_table(path: Path) -> tuple[list[Any], Told]:
    told: Told = []
    return list(raw.table(source(path), collect(told))), told


def test_a_damaged_line_costs_that_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"n": 1}\n\n{"n": \n{"n": "\xff"}\n{"n": NaN}\n{"n": 2}')
    found, told = read_lines(path)
    assert found == [{"n": 1}, {"n": 2}]
    assert told == [
        ("a.jsonl:3", "bad_json"),
        ("a.jsonl:4", "bad_encoding"),
        ("a.jsonl:5", "bad_json"),
    ]


def test_separators_of_unicode_do_not_split_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"text": "a\u2028b\u2029c\x85d"}\n'.encode())
    assert read_lines(path) == ([{"text": "a\u2028b\u2029c\x85d"}], [])


def test_a_lone_surrogate_stays_for_the_cleaning(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a\\ud800b"}\n')
    assert read_lines(path) == ([{"text": "a\ud800b"}], [])


@pytest.mark.parametrize("cut", [30, 60])
def test_a_cut_archive_gives_what_is_whole(cut: int, tmp_path: Path) -> None:
    noise = [{"n": n, "noise": f"{n * 7919 % 1000003:x}"} for n in range(400)]
    packed = gzip.compress("".join(jsonio.dumps(row) + "\n" for row in noise).encode())
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(packed[: len(packed) * cut // 100])
    found, told = read_lines(path)
    assert found == noise[: len(found)]
    assert 0 < len(found) < 400
    assert [reason for _, reason in told][-1] == "truncated"


def test_no_archive_at_all_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(b"plain text")
    assert read_lines(path) == ([], [("a.jsonl.gz:1", "truncated")])


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20)), max_size=5))
def test_what_is_written_is_read(rows: list[dict[str, str]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_bytes("".join(jsonio.dumps(row) + "\n" for row in rows).encode())
        assert read_lines(path) == (rows, [])


def test_rows_are_texts_under_the_names_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbf,id,text\n0,7,"two\nlines, ""quoted"""\n\n1,8,\n')
    found, told = read_table(path)
    assert found == [
        ("a.csv:2", {"": "0", "id": "7", "text": 'two\nlines, "quoted"'}),
        ("a.csv:5", {"": "1", "id": "8", "text": ""}),
    ]
    assert told == []


def test_a_damaged_row_costs_that_row(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b'id\ttext\n1\tfine\n2\n3\ta\tb\n4\t\xff\n5\t"a"b\n6\tgood\n')
    found, told = read_table(path)
    assert [record.value["id"] for record in found] == ["1", "6"]
    assert told == [
        ("a.tsv:3", "bad_table"),
        ("a.tsv:4", "bad_table"),
        ("a.tsv:5", "bad_encoding"),
        ("a.tsv:6", "bad_table"),
    ]


def test_a_header_that_cannot_be_read_leaves_the_table_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("id,größe\n1,2\n".encode("latin-1"))
    assert read_table(path) == ([], [("a.csv:1", "bad_encoding")])


def test_a_quote_that_is_never_closed_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,fine\n2,"open\n3,lost\n', "utf-8")
    found, told = read_table(path)
    assert [record.value["id"] for record in found] == ["1"]
    assert told == [("a.csv:3", "bad_table")]


def test_a_message_of_ten_megabytes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,text\n1," + "x" * 10_000_000 + "\n", "utf-8")
    ((_, row),), told = read_table(path)
    assert len(row["text"]) == 10_000_000
    assert told == []


class TestParquet:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        path = tmp_path / "a.parquet"
        rows = [{"id": n, "turns": [{"role": "user", "text": f"t{n}"}]} for n in range(600)]
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=200)
        return path

    def test_rows_come_as_objects(self, path: Path) -> None:
        told: Told = []
        found = list(raw.parquet(source(path), collect(told)))
        assert len(found) == 600
        assert found[599] == (
            "a.parquet#600",
            {"id": 599, "turns": [{"role": "user", "text": "t599"}]},
        )
        assert told == []

    def test_a_cut_file_is_told(self, path: Path) -> None:
        path.write_bytes(path.read_bytes()[:2000])
        told: Told = []
        assert list(raw.parquet(source(path), collect(told))) == []
        assert told == [("a.parquet#1", "truncated")]
