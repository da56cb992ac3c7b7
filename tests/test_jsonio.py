"""JSON on disk: any text survives, numbers are finite, torn tails and full disks are harmless."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.errors import DataError, EnvironmentFault

ODD = st.sampled_from(
    ["\u2028", "\u2029", "\u0085", "\ud83d", "\ude00", "\U0001f642", "\n", "\r", "\0"]
)
TEXT = st.lists(st.one_of(ODD, st.text(max_size=5))).map("".join)
# Neighboring halves of a pair become one character in any JSON reader: not a loss, but not equal.
SOLO = TEXT.map(
    lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        SOLO,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(SOLO, inner, max_size=4)),
    max_leaves=12,
)


@given(st.lists(VALUES, max_size=6))
def test_any_values_survive_a_file(
    tmp_path_factory: pytest.TempPathFactory, values: list[object]
) -> None:
    path = tmp_path_factory.mktemp("jsonio") / "a.jsonl"
    with jsonio.Appender(path) as out:
        for value in values:
            out.append(value)
    raw = path.read_bytes()
    assert raw.count(b"\n") == len(values)
    raw.decode("utf-8")
    assert [line.value for line in jsonio.read_jsonl(path)] == values
    assert jsonio.cut_torn_tail(path) == 0


@given(TEXT)
def test_one_value_is_one_line_for_any_splitter(text: str) -> None:
    assert len(jsonio.dumps({"a": text}).splitlines()) == 1


def test_readable_text_stays_readable() -> None:
    assert jsonio.dumps("Grüße \U0001f642 \u2028 \ud83d") == '"Grüße \U0001f642 \\u2028 \\ud83d"'


def test_numbers_are_finite_or_null() -> None:
    clean, paths = jsonio.finite({"a": [1.0, float("nan")], "b": {"c": float("-inf")}})
    assert clean == {"a": [1.0, None], "b": {"c": None}}
    assert paths == ["a[1]", "b.c"]
    with pytest.raises(ValueError, match="NaN"):
        jsonio.loads("NaN")


def test_canonical_text_is_one_form() -> None:
    assert jsonio.canonical({"b": 1, "a": "é"}) == jsonio.canonical({"a": "é", "b": 1})


@given(st.integers(0, 39))
def test_a_torn_tail_is_cut_wherever_it_tears(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("torn") / "a.jsonl"
    whole = b'{"a": 1}\n{"a": "two"}\n'
    path.write_bytes(whole + b'{"a": "unfinished line of some length"}'[:cut])
    assert jsonio.cut_torn_tail(path) == cut
    assert path.read_bytes() == whole


def test_a_long_torn_tail_and_a_lone_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n" + b"x" * 200_000)
    assert jsonio.cut_torn_tail(path) == 200_000
    assert path.read_bytes() == b"1\n"
    path.write_bytes(b"x" * 10)
    assert jsonio.cut_torn_tail(path) == 10
    assert jsonio.cut_torn_tail(tmp_path / "absent") == 0


def test_a_damaged_line_has_a_number(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'1\n\n{"a": \n3\n')
    with pytest.raises(DataError, match=r"a\.jsonl:3: not valid JSON"):
        list(jsonio.read_jsonl(path))
    path.write_bytes(b"1\n\xff\n")
    with pytest.raises(DataError, match=r"a\.jsonl:2"):
        list(jsonio.read_jsonl(path))


def test_nesting_beyond_reason_is_a_damaged_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n" + b"[" * 100_000 + b"]" * 100_000 + b"\n")
    with pytest.raises(DataError, match=r"a\.jsonl:2: not valid JSON: nested too deeply"):
        list(jsonio.read_jsonl(path))


def test_what_a_writer_has_not_finished_is_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'1\n{"a": ')
    assert [line.value for line in jsonio.read_jsonl(path, growing=True)] == [1]
    with pytest.raises(DataError, match=r"a\.jsonl:2"):
        list(jsonio.read_jsonl(path))
    path.write_bytes(b"1\n2")
    assert [line.value for line in jsonio.read_jsonl(path, growing=True)] == [1, 2]
    path.write_bytes(b'{"a": \n2\n')
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        list(jsonio.read_jsonl(path, growing=True))


def test_a_document_that_is_no_object_or_lacks_a_key_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}')
    assert jsonio.read_object(path, "a") == {"a": 1}
    with pytest.raises(DataError, match="the key 'b' is missing; expected a JSON object with 'b'"):
        jsonio.read_object(path, "b")
    for text in ("[1]", "null", "", "7", "\0"):
        path.write_text(text)
        with pytest.raises(DataError, match=r"a\.json: not a JSON"):
            jsonio.read_object(path)


def test_a_held_file_cannot_be_held_twice(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lock"
    with jsonio.open_locked(path), pytest.raises(EnvironmentFault, match="another process"):
        jsonio.open_locked(path)
    jsonio.open_locked(path).close()
    with pytest.raises(EnvironmentFault, match="cannot write"):
        jsonio.open_locked(path / "below-a-file")


def test_a_lock_is_gone_in_the_end_and_holds_till_then(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with jsonio.locked(path):
        with pytest.raises(EnvironmentFault, match="another process"), jsonio.locked(path):
            pass
        assert path.exists()
    assert not path.exists()


def test_a_lock_that_was_removed_meanwhile_is_taken_where_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, held = tmp_path / "lock", jsonio._held
    times: list[int] = []

    def slow(where: Path) -> TextIO:
        stream = held(where)
        if not times:
            where.unlink()  # as another process does that ends right now
        times.append(1)
        return stream

    monkeypatch.setattr(jsonio, "_held", slow)
    with jsonio.open_locked(path) as stream:
        assert os.fstat(stream.fileno()).st_ino == path.stat().st_ino


def test_compressed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n'))
    assert [line.value for line in jsonio.read_jsonl(path)] == [{"a": 1}]
    whole = path.read_bytes()
    for damaged in (whole[:-4], whole[:12] + b"\xff\xff" + whole[14:], b"no gzip at all"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="cannot read"):
            list(jsonio.read_jsonl(path))


def test_whole_files_are_replaced_or_stay(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.json"
    jsonio.write_json(path, {"a": "\u2028"})
    assert jsonio.read_json(path) == {"a": "\u2028"}
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]
    with pytest.raises(DataError, match="file not found"):
        jsonio.read_json(tmp_path / "absent.json")
    with pytest.raises(EnvironmentFault, match="cannot write"):
        jsonio.write_text(path / "below-a-file", "x")


def test_a_full_device_is_told(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    link = tmp_path / "full.jsonl"
    link.symlink_to("/dev/full")
    out = jsonio.Appender(link)
    with pytest.raises(EnvironmentFault, match="No space left"):
        out.append({"a": 1})
    out.close()
