"""How a source is written, and corpora by name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora import base, chitchat
from mimesim.corpora.base import Format
from mimesim.corpora.formats import own
from mimesim.corpora.load import CORPORA, format_of, open_corpus, parse_source
from mimesim.errors import (
    ConfigError,
    DataError,
    EnvironmentFault,
    UnknownNameError,
    UsageError,
)
from tests.support.chats import chat, say, write_rows

FORMAT = own.FORMAT
"""An extension's format, reached by its path."""


@pytest.mark.parametrize(
    ("text", "corpus", "place"),
    [
        ("star:data/star", "star", "data/star"),
        ("wildchat:hub:allenai/WildChat-1M@train", "wildchat", "hub:allenai/WildChat-1M@train"),
        ("chitchat", "chitchat", ""),
        ("logs.jsonl", "own", "logs.jsonl"),
        ("../logs/*.csv", "own", "../logs/*.csv"),
        ("csv:table.csv", "csv", "table.csv"),
        ("tests.corpora.test_load:FORMAT:x.jsonl", "tests.corpora.test_load:FORMAT", "x.jsonl"),
    ],
)
def test_a_source_is_taken_apart(text: str, corpus: str, place: str) -> None:
    assert parse_source(text) == (corpus, place)
    assert str(parse_source(text)) in (text, f"own:{text}")


@pytest.mark.parametrize(
    "text", ["stra:data", "wildchat-1m:x.jsonl", "chats", "messages:x", "hub:a/b"]
)
def test_an_unknown_name_is_never_guessed(text: str) -> None:
    with pytest.raises(UnknownNameError, match="expected one of"):
        parse_source(text)


@pytest.mark.parametrize("name", CORPORA.names())
def test_every_corpus_has_a_format_with_terms(name: str) -> None:
    found = format_of(name)
    assert isinstance(found, Format)
    assert found.info.name == name
    assert found.info.license
    assert found.info.citation


def test_ids_come_from_the_place_below_the_source(tmp_path: Path) -> None:
    rows: list[Any] = [{"turns": chat(n)["turns"]} for n in range(2)]
    for year in ("2030", "2031"):
        (tmp_path / "logs" / year).mkdir(parents=True)
        write_rows(tmp_path / "logs" / year / "may.jsonl", rows)
    names = {"may.jsonl/1", "may.jsonl/2"}
    found = open_corpus(str(tmp_path / "logs" / "2030" / "may.jsonl"))
    assert {dialogue.id for dialogue in found.dialogues} == names
    for source in (tmp_path / "logs", tmp_path / "logs" / "*" / "*.jsonl"):
        found = open_corpus(f"own:{source}")
        assert {dialogue.id for dialogue in found.dialogues} == {
            f"{year}/{name}" for year in ("2030", "2031") for name in names
        }


def test_the_order_is_that_of_the_hashes(tmp_path: Path) -> None:
    place = write_rows(tmp_path / "logs.jsonl", (chat(n) for n in range(20)))
    ids = [dialogue.id for dialogue in open_corpus(str(place)).dialogues]
    assert ids == sorted(ids, key=base.order_key)
    assert [d.id for d in open_corpus(str(place), limit=5).dialogues] == ids[:5]


def test_damage_is_an_error_or_a_count(tmp_path: Path) -> None:
    place = write_rows(tmp_path / "logs.jsonl", [chat(1), {"x": 1}, say("hello", name="alone")])
    with pytest.raises(DataError, match=r"logs.jsonl:2: no_conversation.*data build own:.*logs"):
        open_corpus(str(place))
    counts = open_corpus(str(place), strict=False).counts
    assert (counts["no_conversation"], counts["kept"]) == (1, 2)


def test_a_copy_is_no_damage_and_other_words_under_an_id_are(tmp_path: Path) -> None:
    place = write_rows(tmp_path / "logs.jsonl", [chat(1), chat(2), chat(1)])
    counts = open_corpus(str(place)).counts
    assert (counts["duplicate"], counts["kept"]) == (1, 2)
    place = write_rows(tmp_path / "two.jsonl", [chat(1), {**chat(2), "id": chat(1)["id"]}])
    with pytest.raises(DataError, match=r"two.jsonl:2: duplicate_id: .* with other words"):
        open_corpus(str(place))


def test_a_converter_that_stumbles_tells_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(value: Any, options: Any) -> list[Any]:
        return [value["absent"]]

    broken = Format(info=own.INFO, convert=stumble, claims=bool)
    monkeypatch.setattr(own, "FORMAT", broken)
    place = write_rows(tmp_path / "logs.jsonl", [chat(1)])
    with pytest.raises(DataError, match=r"logs.jsonl:1: bad_shape: KeyError"):
        open_corpus(str(place))


def test_an_absent_wheel_tells_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chitchat, "_PACKAGE", "no_such_package_here")
    for source in ("chitchat", "chitchat:"):
        with pytest.raises(EnvironmentFault, match="pip install --no-deps chitchat-dataset"):
            open_corpus(source)


def test_a_foreign_record_costs_itself_alone(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    page = {"from": "gpt", "value": "<p>well <![if strange]> </p>"}
    odd = {"conversations": [{"from": "human", "value": "hello"}, page]}
    place = write_rows(tmp_path / "logs.jsonl", [chat(1, x=deep), chat(2), chat(3, x=[1])])
    assert open_corpus(str(place), strict=False).counts["too_deep"] == 1
    place = write_rows(tmp_path / "shared.jsonl", [odd, chat(2)])
    assert open_corpus(f"sharegpt:{place}", strict=False).counts["kept"] >= 1


def test_what_a_format_gives_can_be_written(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import Table, parquet

    rows = [
        {**say("hello", "hi"), "x": b"\xff", "outcome": {"at": datetime(2020, 1, 2, tzinfo=UTC)}}
    ]
    place = tmp_path / "logs.parquet"
    parquet.write_table(Table.from_pylist(rows), place)
    (dialogue,) = open_corpus(str(place)).dialogues
    assert jsonio.loads(jsonio.dumps([dialogue.hidden, dialogue.outcome])) == [
        {"x": "b'\\xff'"},
        {"at": "2020-01-02 00:00:00+00:00"},
    ]


@pytest.mark.parametrize("corpus", ["own", "oasst", "star"])
def test_an_option_that_a_format_does_not_know_is_an_error(corpus: str) -> None:
    with pytest.raises(ConfigError, match="unknown option 'treads'"):
        format_of(corpus, {"treads": "all"})
    assert format_of("oasst", {"threads": "all"}).options == ("threads",)


def test_terms_that_forbid_training_are_heeded_there(tmp_path: Path) -> None:
    rows = [chat(1), chat(2, training_allowed="no"), chat(3, evaluation_only=True)]
    place = write_rows(tmp_path / "logs.jsonl", rows)
    assert open_corpus(str(place)).counts["kept"] == 3
    found = open_corpus(str(place), for_training=True)
    assert [dialogue.id for dialogue in found.dialogues] == ["c1"]
    assert found.counts["no_training"] == 2
    assert open_corpus(f"mirrorbench:{place}").counts["kept"] == 3
    with pytest.raises(UsageError, match=r"mirrorbench.*evaluation only.*--i-have-rights"):
        open_corpus(f"mirrorbench:{place}", for_training=True)


@pytest.mark.parametrize("text", ["a" * 5000, "a" * 5000 + ".jsonl", "own:" + "a" * 5000])
def test_a_source_too_long_for_a_path_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        open_corpus(text)
