"""Places: files, folders, globs, archives and the hub; what is read, in which order, and named how."""

from __future__ import annotations

import gzip
import itertools
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora import places
from mimesim.corpora.base import Record
from mimesim.errors import DataError, EnvironmentFault


def lines(path: Path, *values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(jsonio.dumps(value) + "\n" for value in values)
    raw = text.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def refuse(where: str, reason: str, detail: str) -> None:
    raise AssertionError((where, reason, detail))


def read(place: Path | str, **options: Any) -> list[Record]:
    return list(places.records(str(place), on_reject=refuse, **options))


def test_a_file_is_read_by_its_lines(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"n": 1}, {"n": 2})
    assert read(path) == [(f"{path}:1", {"n": 1}), (f"{path}:2", {"n": 2})]


def test_a_folder_is_read_in_the_order_of_its_paths_without_hidden_entries(tmp_path: Path) -> None:
    lines(tmp_path / "b.jsonl", 2)
    lines(tmp_path / "a" / "z.jsonl.gz", 1)
    lines(tmp_path / ".git" / "x.jsonl", 0)
    lines(tmp_path / ".hidden.jsonl", 0)
    (tmp_path / "README.md").write_text("not read", "utf-8")
    (tmp_path / "c.tsv").write_text("k\n3\n", "utf-8")
    assert [record.value for record in read(tmp_path)] == [1, 2, {"k": "3"}]


def test_endings_choose_in_a_folder_but_not_a_named_file(tmp_path: Path) -> None:
    lines(tmp_path / "part_1.json.gz", {"n": 1})
    other = lines(tmp_path / "schema.json", {"n": 2})
    assert [r.value for r in read(tmp_path, files=("1.json",))] == [{"n": 1}]
    assert [r.value for r in read(other, files=("1.json",))] == [{"n": 2}]


def test_a_glob_takes_files_and_folders(tmp_path: Path) -> None:
    lines(tmp_path / "x1" / "a.jsonl", 1)
    lines(tmp_path / "x2.jsonl", 2)
    lines(tmp_path / "y.jsonl", 3)
    assert [r.value for r in read(tmp_path / "x*")] == [1, 2]
    assert [r.value for r in read(tmp_path / "**" / "*.jsonl")] == [1, 2, 3]


def test_an_archive_is_read_by_its_members(tmp_path: Path) -> None:
    path = tmp_path / "val.json.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("in/val.json", '[{"n": 1}, {"n": 2}]')
        archive.writestr("in/notes.txt", "not read")
    found = read(path)
    assert [record.value for record in found] == [{"n": 1}, {"n": 2}]
    assert found[1].where == f"{path}!in/val.json#2"
    assert places.file_of(found[1].where) == path


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}\nbroken\n', "utf-8")
    found = places.records(str(path), on_reject=refuse)
    assert next(found).value == {"n": 1}
    with pytest.raises(AssertionError, match="bad_json"):
        next(found)


@pytest.mark.parametrize("place", ["absent.jsonl", "absent/*.jsonl", "absent"])
def test_an_absent_place_is_told_at_once(place: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent.*not found"):
        places.records(str(tmp_path / place), on_reject=refuse)


def test_a_place_without_a_readable_file_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("hello", "utf-8")
    for place in (tmp_path, tmp_path / "chat.txt"):
        with pytest.raises(DataError, match=r"nothing to read.*\.jsonl"):
            places.records(str(place), on_reject=refuse)


def test_a_broken_archive_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK no archive")
    with pytest.raises(DataError, match="not a zip archive"):
        places.records(str(path), on_reject=refuse)


@pytest.mark.parametrize(
    ("where", "entry", "file"),
    [
        ("d/a.jsonl:12", "", "d/a.jsonl"),
        ("d/a.json#train/3", "train/3", "d/a.json"),
        ("d/a.json", "", "d/a.json"),
        ("c:odd/a.json", "", "c:odd/a.json"),
        ("d/a.zip!m/b.json#K1", "K1", "d/a.zip"),
    ],
)
def test_a_where_is_taken_apart(where: str, entry: str, file: str) -> None:
    assert places.entry(where) == entry
    assert places.file_of(where) == Path(file)


class TestHub:
    """The hub's library reads a local folder of the same name, so no network is needed."""

    @pytest.fixture
    def owner(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        pytest.importorskip("datasets")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
        for part, numbers in {"train": (1, 2), "test": (3,)}.items():
            lines(tmp_path / "owner" / "chats" / f"{part}.jsonl", *({"n": n} for n in numbers))
        return tmp_path

    def test_every_split_or_one(self, owner: Path) -> None:
        found = read("hub:owner/chats")
        assert sorted(record.value["n"] for record in found) == [1, 2, 3]
        assert read("hub:owner/chats@test") == [("hub:owner/chats@test#1", {"n": 3})]

    def test_an_unknown_set_is_one_line_that_tells_what_to_do(self, owner: Path) -> None:
        with pytest.raises(EnvironmentFault, match=r"hub:owner/absent.*token"):
            read("hub:owner/absent")
        with pytest.raises(EnvironmentFault, match="nosplit"):
            read("hub:owner/chats@nosplit")

    @pytest.mark.parametrize("place", ["hub:", "hub:chats", "hub:a/b/c", "hub:a/b@"])
    def test_another_spelling_is_one_line(self, place: str) -> None:
        with pytest.raises(DataError, match="hub:<owner>/<name>"):
            read(place)


def test_a_long_file_is_read_with_little_memory(tmp_path: Path) -> None:
    tracemalloc = pytest.importorskip("tracemalloc")
    path = tmp_path / "a.jsonl"
    row = jsonio.dumps({"text": "x" * 1000}) + "\n"
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(itertools.repeat(row, 20_000))
    tracemalloc.start()
    count = sum(1 for _ in places.records(str(path), on_reject=refuse))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 2_000_000, "20 MB of lines"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("a" * 5000, "File name too long"),
        ("~nobody-of-this-name/x.jsonl", "home directory"),
        ("logs/**x/*.jsonl", "not a glob"),
    ],
)
def test_what_no_path_can_be_is_told_in_one_line(place: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as raised:
        read(place)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(("offset", "value"), [(8, 77), (6, 1)], ids=["method", "locked"])
def test_a_member_that_cannot_be_unpacked_is_told(tmp_path: Path, offset: int, value: int) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.jsonl", "1\n")
    content = bytearray(path.read_bytes())
    content[content.find(b"PK\x03\x04") + offset] = value
    content[content.find(b"PK\x01\x02") + offset + 2] = value
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.zip!a\.jsonl: cannot read"):
        read(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to the superuser")
def test_a_folder_that_may_not_be_looked_into_is_no_empty_folder(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", 1)
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(DataError, match=r"closed: cannot read: Permission denied"):
        read(tmp_path)
