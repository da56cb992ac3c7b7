"""Equal and near duplicates: the first stays."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.corpora import rows
from mimesim.corpora.base import HumanDialogue, HumanTurn, Unfit
from mimesim.corpora.cleaning.dedup import Duplicates, jaccard, shingles
from mimesim.corpora.formats.own import INFO
from mimesim.corpora.index import Entry, Index
from tests.support.chats import sentence

pytest.importorskip("datasketch")


class Kept:
    """Keeps what is no duplicate, as a build does."""

    def __init__(self, index: Index, threshold: float = 0.85) -> None:
        self.index = index
        self.duplicates = Duplicates(index, self._earlier, threshold)

    def _earlier(self, number: int) -> HumanDialogue:
        return rows.from_row(self.index.row(number)[1], "row")

    def take(self, name: str, user: str, agent: str = "yes") -> str:
        dialogue = HumanDialogue(name, (HumanTurn("user", user), HumanTurn("agent", agent)))
        try:
            self.duplicates.check_equal(dialogue)
            bands = self.duplicates.near(dialogue)
        except Unfit as unfit:
            return unfit.reason
        entry = Entry(self.index.size, 0, 0, "", 1, array("q"))
        self.index.add(rows.to_row(dialogue, INFO), entry, bands=bands, keys=[])
        return "kept"


@pytest.fixture
def kept(tmp_path: Path):  # type: ignore[no-untyped-def]
    with Index(tmp_path / "work") as index:
        yield Kept(index)


def test_equal_texts(kept: Kept) -> None:
    assert kept.take("a", "Hello there!") == "kept"
    assert kept.take("b", "hello, THERE") == "duplicate"
    assert kept.take("c", "hello there", "no") == "kept", "the other side says something else"
    assert kept.take("d", "yes", "Hello there!") == "kept", "the sides are swapped"


def test_near_texts(kept: Kept) -> None:
    text = sentence("near", words=60)
    assert kept.take("a", text) == "kept"
    assert kept.take("b", f"{text} please", "another reply") == "near_duplicate"
    assert kept.take("c", sentence("other", words=60)) == "kept"
    half = " ".join(text.split()[:30])
    assert kept.take("d", f"{half} {sentence('rest', words=30)}") == "kept"


def test_short_texts_are_no_near_duplicates(kept: Kept) -> None:
    assert kept.take("a", "can you book a table for two people tonight") == "kept"
    assert kept.take("b", "can you book a table for two people tonight please") == "kept"


def test_near_is_what_shares_most_runs_of_words() -> None:
    one = shingles(HumanDialogue("a", (HumanTurn("user", "a b c d"), HumanTurn("agent", "x y z"))))
    assert one == {"a b c", "b c d"}
    assert jaccard(one, {"b c d", "c d e"}) == pytest.approx(1 / 3)
    assert jaccard(set(), set()) == 0.0


@given(st.lists(st.sampled_from("abcdefgh"), min_size=30, max_size=60), st.integers(0, 29))
def test_one_changed_word_changes_few_runs(words: list[str], place: int) -> None:
    changed = [*words]
    changed[place] = "other"
    sets = [
        shingles(HumanDialogue("d", (HumanTurn("user", " ".join(found)),)))
        for found in (words, changed)
    ]
    assert len(sets[0] ^ sets[1]) <= 6
