"""MirrorBench: upstream and normalized rows, labels, the tree of Open Assistant chats."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim import jsonio
from mimesim.corpora.base import HumanTurn, Unfit
from mimesim.corpora.formats.mirrorbench import FORMAT

UPSTREAM = {
    "dataset": "oasst1",
    "conversation_id": "tree-1",
    "task_description": "The user wants a packing list.",
    "turns": [
        {"role": "user", "content": "what to pack for rain", "metadata": {"lang": "en"}},
        {"role": "assistant", "content": "A jacket.", "metadata": {"rank": 0}},
    ],
    "metadata": {"language": "en", "few_shot_user_examples": [{"utterance": "what to pack?"}]},
}
NORMAL = {
    "id": "mirrorbench_oasst1/tree-1",
    "goal": "The user wants a packing list.",
    "turns": [
        {"role": "user", "text": "what to pack for rain"},
        {"role": "agent", "text": "A jacket."},
    ],
}


def test_both_shapes() -> None:
    (upstream,) = FORMAT.convert(UPSTREAM, {})
    (normal,) = FORMAT.convert(NORMAL, {})
    for found in (upstream, normal):
        assert found.id == "mirrorbench_oasst1/tree-1"
        assert found.turns == (
            HumanTurn("user", "what to pack for rain"),
            HumanTurn("agent", "A jacket."),
        )
        assert found.goal == "The user wants a packing list."
        assert found.group_keys == ("tree-1",)
    assert upstream.language == "en"
    assert "few_shot_user_examples" in upstream.hidden
    assert FORMAT.claims(UPSTREAM)
    assert FORMAT.info.evaluation_only


def test_other_sources_have_no_tree() -> None:
    (found,) = FORMAT.convert({**UPSTREAM, "dataset": "qulac", "metadata": None}, {})
    assert (found.id, found.group_keys) == ("mirrorbench_qulac/tree-1", ())


def test_labels_have_no_dialogue() -> None:
    label = {"metric": "gteval", "sample": "ab", "human_label": 0.5, "judge_score": 0.4}
    with pytest.raises(Unfit, match="no_dialogue"):
        list(FORMAT.convert(label, {}))
    with pytest.raises(Unfit, match="conversation_id"):
        list(FORMAT.convert({"dataset": "oasst1"}, {}))


def test_genuine_files(test_data: Path) -> None:
    lines = jsonio.read_jsonl(test_data / "mirrorbench/oasst1_mirror.jsonl")
    found = [one for line in lines for one in FORMAT.convert(line.value, {})]
    sides = [turn.role for one in found for turn in one.turns]
    assert (len(found), sides.count("user"), sides.count("agent")) == (200, 366, 296)
    assert sum(one.turns[-1].role == "agent" for one in found) == 130
    assert all(one.group_keys for one in found)
    labels = [
        line.value for line in jsonio.read_jsonl(test_data / "mirrorbench/judge_vs_human.jsonl")
    ]
    assert len(labels) == 200
    for label in labels:
        with pytest.raises(Unfit, match="no_dialogue"):
            list(FORMAT.convert(label, {}))
