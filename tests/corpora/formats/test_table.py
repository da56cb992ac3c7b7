"""Tables of messages: columns by option, order, roles, and damage by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim.corpora.formats.table import FORMAT, with_options
from mimesim.errors import ConfigError
from tests.support.sources import read, spoken

PLAIN = (
    'id,role,text\n17,customer,"where, please?"\n17,shop,Over there.\n18,user,hi\n18,bot,hello\n'
)
NAMED = (
    "ticket;ignored\tsender\tbody\tat\n"
    "B\tALICE\tsecond\t10\n"
    "A\tAlice\tfirst\t9\n"
    "B\tBob\tthird\t11\n"
    "A\tBob\tanswer\t9.5\n"
)
OPTIONS = {"id": "ticket;ignored", "role": "sender", "text": "body", "order": "at", "user": "alice"}


def table(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_the_usual_names_need_no_option(tmp_path: Path) -> None:
    one, two = read(FORMAT, table(tmp_path / "a.csv", PLAIN)).dialogues
    assert (one.id, two.id) == ("17", "18")
    assert spoken(one) == [("user", "where, please?"), ("agent", "Over there.")]
    assert spoken(two) == [("user", "hi"), ("agent", "hello")]


def test_columns_by_option_and_rows_by_order(tmp_path: Path) -> None:
    path = table(tmp_path / "a.tsv", NAMED)
    form = with_options(OPTIONS)
    found = {d.id: spoken(d) for d in read(form, path, OPTIONS).dialogues}
    assert found == {
        "B": [("user", "second"), ("agent", "third")],
        "A": [("user", "first"), ("agent", "answer")],
    }


def test_without_order_rows_stand_together(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", "id,role,text\n1,user,a\n2,user,b\n1,bot,c\n")
    assert [d.id for d in read(FORMAT, path).dialogues] == ["1", "2", "1"]
    joined = with_options({"order": "id"})
    assert [d.id for d in read(joined, path).dialogues] == ["1", "2"]


@pytest.mark.parametrize(
    ("options", "text", "reason"),
    [
        ({}, "id,who,text\n1,user,a\n", "missing_keys"),
        ({}, "number,role,text\n1,user,a\n", "missing_keys"),
        ({"order": "at"}, "id,role,text\n1,user,a\n", "missing_keys"),
        ({}, "id,role,text\n1,,a\n", "missing_role"),
        ({"agent": "bot"}, "id,role,text\n1,user,a\n1,robot,b\n", "unknown_role"),
    ],
)
def test_damage_is_named_with_its_line(
    options: dict[str, str], text: str, reason: str, tmp_path: Path
) -> None:
    path = table(tmp_path / "a.csv", text)
    assert read(with_options(options), path).rejects == [(f"{path}:2", reason)]


@pytest.mark.parametrize(
    "options", [{"colour": "x"}, {"id": 3}, {"text": ["a"]}, {"user": {"a": "b"}}]
)
def test_another_option_is_one_line(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="csv"):
        with_options(options)


def test_columns_given_too_late_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", PLAIN)
    with pytest.raises(ConfigError, match="with_options"):
        read(FORMAT, path, {"id": "ticket"})
    assert len(read(FORMAT, path, {"id": "id"}).dialogues) == 2
