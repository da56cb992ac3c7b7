"""Rows on disk: tokens are counted, equal builds give equal parquet, a half file never shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim.corpora import writing
from mimesim.corpora.build import BuildConfig, SourceConfig, build
from mimesim.corpora.rows import from_row
from mimesim.errors import DataError
from tests.support.chats import chat, contents, rows_of, write_rows

pytest.importorskip("datasketch")
pytest.importorskip("phonenumbers")


def config(tmp_path: Path, name: str, **more: Any) -> BuildConfig:
    place = tmp_path / "logs.jsonl"
    if not place.exists():
        rows = [chat(n) for n in range(20)]
        rows[3]["turns"][0]["thought"] = "ignored here"
        write_rows(place, rows)
    source = SourceConfig(corpus="own", place=str(place))
    return BuildConfig(out=tmp_path / name, source=(source,), **more)


def tokenizer(tmp_path: Path) -> Path:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    (tmp_path / "tok").mkdir()
    made.save(str(tmp_path / "tok" / "tokenizer.json"))
    return tmp_path / "tok"


def test_tokens_are_counted(tmp_path: Path) -> None:
    folder = tokenizer(tmp_path)
    for place in (folder, folder / "tokenizer.json"):
        made = build(config(tmp_path, f"built-{place.name}", tokenizer=str(place)))
        found = made["sources"][0]["parts"]["train"]
        assert found["tokens"] == found["words"] == 16 * 4 * 12
        assert found["user_tokens"] == found["user_words"] == 16 * 2 * 12


def test_a_tokenizer_that_is_none(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    with pytest.raises(DataError, match=r"expected a tokenizer.json"):
        build(config(tmp_path, "a", tokenizer=str(tmp_path)))
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(DataError, match="not a tokenizer"):
        build(config(tmp_path, "a", tokenizer=str(tmp_path)))


def test_parquet_holds_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(writing, "_BATCH", 7)
    plain = config(tmp_path, "jsonl")
    build(plain)
    for name in ("one", "two"):
        build(config(tmp_path, name, format="parquet"))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    for part in ("train", "validation", "test"):
        rows = parquet.read_table(tmp_path / "one" / f"{part}.parquet").to_pylist()
        assert [from_row(row, "x") for row in rows] == [
            from_row(row, "x") for row in rows_of(plain.out, part)
        ]


def test_another_format_takes_the_place_of_the_first(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    build(config(tmp_path, "built"))
    build(config(tmp_path, "built", format="parquet", resume=False))
    names = {path.name for path in (tmp_path / "built").iterdir()}
    assert "train.parquet" in names
    assert "train.jsonl" not in names
    assert not [name for name in names if name.endswith(".part")]
