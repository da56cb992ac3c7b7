"""MultiDoGO: tables joined by conversation, one-sided and two-sided."""

from __future__ import annotations

from pathlib import Path

from mimesim.corpora.formats.multidogo import FORMAT, ONE_SIDED
from tests.support.sources import read, spoken

ANNOTATED = """conversationId	turnNumber	utteranceId	utterance	slot-labels	intent
c1	2.0	u2	window	O	contentonly
c1	0.0	u0	hi i need a seat	O O O O O	bookflight<div>greet
c2	0	u0	hello	O	greet
"""
TALK = """conversationId	turnNumber	utteranceId	utterance	authorRole
c1	0	u0	Hi, I need a seat.	customer
c1	1	u1	Where to?	agent
"""


def test_customers_alone_are_marked(tmp_path: Path) -> None:
    path = tmp_path / "airline" / "dev.tsv"
    path.parent.mkdir()
    path.write_text(ANNOTATED, "utf-8")
    one, two = read(FORMAT, tmp_path).dialogues
    assert one.id == "multidogo/airline/dev/c1"
    assert spoken(one) == [("user", "hi i need a seat"), ("user", "window")]
    assert one.flags == two.flags == (ONE_SIDED,)
    assert one.split == "validation"


def test_the_unannotated_files_have_both_sides(tmp_path: Path) -> None:
    (tmp_path / "airline.tsv").write_text(TALK, "utf-8")
    (dialogue,) = read(FORMAT, tmp_path).dialogues
    assert dialogue.id == "multidogo/airline/c1"
    assert spoken(dialogue) == [("user", "Hi, I need a seat."), ("agent", "Where to?")]
    assert (dialogue.flags, dialogue.split) == ((), "")


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "airline.tsv"
    path.write_text(TALK.replace("\t1\t", "\tone\t").replace("c1\t0", "c0\t0"), "utf-8")
    found = read(FORMAT, path)
    assert found.rejects == [(f"{path}:3", "bad_order")]
    assert len(found.dialogues) == 1
    path.write_text(TALK.replace("agent", "robot"), "utf-8")
    assert read(FORMAT, path).rejects == [(f"{path}:2", "unknown_role")]


def test_a_printed_table_is_no_conversation(tmp_path: Path) -> None:
    path = tmp_path / "sample.json"
    path.write_text('["conversationId turnNumber", "c1 0"]', "utf-8")
    assert dict(read(FORMAT, path).reasons) == {"missing_keys": 2}


def test_the_genuine_rows(test_data: Path) -> None:
    found = read(FORMAT, test_data / "multidogo")
    assert len(found.dialogues) == 4247
    assert (found.turns("user"), found.turns("agent")) == (34_904, 0)
    assert round(found.words(), 1) == 3.5
    assert all(d.flags == (ONE_SIDED,) for d in found.dialogues)
    assert not found.rejects
