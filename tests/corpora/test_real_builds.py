"""Builds from public corpora, where they are at hand: the numbers that are known of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim.corpora.build import BuildConfig, SourceConfig, build
from tests.support.chats import ids_of, rows_of

pytest.importorskip("datasketch")
pytest.importorskip("phonenumbers")


def built(out: Path, corpus: str, place: Path, **more: Any) -> dict[str, Any]:
    if not place.exists():
        pytest.skip(f"{place.name} is not among the corpora")
    source = SourceConfig(corpus=corpus, place=str(place), **more)
    return build(BuildConfig(out=out, source=(source,)))


def test_star_is_split_by_shared_instructions(test_data: Path, tmp_path: Path) -> None:
    found = built(tmp_path, "star", test_data / "star" / "dialogues.jsonl")
    splits = found["splits"]["star"]
    counts = found["sources"][0]["counts"]
    assert counts["records"] == 2300
    assert splits["fixed_by_source"] == 337, "dialogues without instructions go to training"
    assert splits["components"] == 21 + 337
    assert 720 <= splits["largest_component"] <= 732, "but for those that the cleaning took"
    assert splits["test"] > 150
    assert splits["validation"] > 150
    keys = [{row["split_key"] for row in rows_of(tmp_path, part)} for part in ("train", "test")]
    assert not set.intersection(*keys)


def test_both_sides_of_a_negotiation_stay_in_the_part_of_its_source(
    test_data: Path, tmp_path: Path
) -> None:
    found = built(tmp_path, "casino", test_data / "casino" / "dialogues.jsonl")
    splits = found["splits"]["casino"]
    assert splits["components"] == 1030
    assert splits["parted_by_source"] == 0
    assert splits["fixed_by_source"] == found["sources"][0]["counts"]["kept"] == 2060
    assert {name.split("/")[1] for name in ids_of(tmp_path, "test")} == {"test"}


def test_chats_that_measure_do_not_train(test_data: Path, tmp_path: Path) -> None:
    """Of the MirrorBench chats four share a longer text with Open Assistant trees."""
    place = test_data / "open_assistant" / "threads.jsonl"
    found = built(tmp_path, "oasst", place)
    assert found["sources"][0]["counts"]["left_out_denied"] == 4
    assert found["splits"]["oasst"]["components"] == found["sources"][0]["counts"]["kept"]
