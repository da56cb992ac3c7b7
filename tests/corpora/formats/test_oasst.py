"""Open Assistant: whole trees, rows of messages and normalized threads give the same dialogues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora.base import HumanDialogue, HumanTurn, Record, Unfit
from mimesim.corpora.formats.oasst import FORMAT
from mimesim.errors import ConfigError


def message(
    name: str, role: str, text: str, *replies: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    return {
        "message_id": name,
        "text": text,
        "role": role,
        "lang": "en",
        "deleted": False,
        "synthetic": False,
        **fields,
        "replies": list(replies),
    }


TREE = {
    "message_tree_id": "m0",
    "tree_state": "ready_for_export",
    "prompt": message(
        "m0",
        "prompter",
        "why is rust orange?",
        message("m1", "assistant", "Second best.", rank=1),
        message(
            "m2",
            "assistant",
            "Iron oxide.",
            message("m3", "prompter", "short follow-up"),
            message(
                "m4",
                "prompter",
                "and on copper?",
                message("m5", "assistant", "Green.", rank=0),
                message("m6", "assistant", "Blue.", rank=1),
            ),
            message("m7", "prompter", "gone", message("m8", "assistant", "also"), deleted=True),
            rank=0,
        ),
        message(
            "m9",
            "assistant",
            "Made up.",
            message("m10", "prompter", "lost with its parent"),
            synthetic=True,
        ),
    ),
}


def rows(node: dict[str, Any], tree: str, parent: str | None = None) -> Iterator[dict[str, Any]]:
    fields = {key: value for key, value in node.items() if key != "replies"}
    state = {"message_tree_id": tree, "tree_state": "ready_for_export"}
    yield {**fields, "parent_id": parent, **state, "labels": {"name": ["quality"]}}
    for reply in node["replies"]:
        yield from rows(reply, tree, node["message_id"])


def gathered(*values: Any) -> list[Any]:
    records = (Record(f"f:{n}", value) for n, value in enumerate(values, start=1))
    return [record.value for record in FORMAT.gather(records)] if FORMAT.gather else []


BEST = (
    HumanTurn("user", "why is rust orange?"),
    HumanTurn("agent", "Iron oxide."),
    HumanTurn("user", "and on copper?"),
    HumanTurn("agent", "Green."),
)


def test_one_thread_by_default() -> None:
    (found,) = FORMAT.convert(TREE, {})
    assert (found.id, found.turns, found.earlier) == ("oasst/m0/0", BEST, "")
    assert (found.group_keys, found.language) == (("m0",), "en")


def test_all_threads_learn_no_text_twice() -> None:
    found = list(FORMAT.convert(TREE, {"threads": "all"}))
    assert [dialogue.id for dialogue in found] == ["oasst/m0/0", "oasst/m0/1"]
    assert found[1].turns == (
        HumanTurn("agent", "Iron oxide."),
        HumanTurn("user", "short follow-up"),
    )
    assert found[1].earlier == "You: why is rust orange?"
    said = [turn.text for one in found for turn in one.turns if turn.role == "user"]
    assert len(said) == len(set(said))
    assert {key for one in found for key in one.group_keys} == {"m0"}


def test_rows_of_messages_are_gathered_by_tree() -> None:
    flat = list(rows(TREE["prompt"], "m0"))  # type: ignore[arg-type]
    other = rows(message("n0", "prompter", "hi"), "n0")
    whole, tree, second = gathered(*reversed(flat[3:]), TREE, *other, *flat[:3])
    assert whole is TREE
    assert [one.id for one in FORMAT.convert(second, {})] == ["oasst/n0/0"]
    for options in ({}, {"threads": "all"}):
        expected = list(FORMAT.convert(TREE, options))
        assert sorted(FORMAT.convert(tree, options), key=lambda one: one.id) == expected
    assert FORMAT.claims(flat[0])
    assert FORMAT.claims(TREE)
    assert not FORMAT.claims({"prompt": "x"})


def test_normalized_threads_are_one_tree_again() -> None:
    def thread(number: int, *texts: str) -> dict[str, Any]:
        ranks = {"Iron oxide.": 0, "Green.": 0, "Blue.": 1, "Second best.": 1}
        turns = [
            {"role": ("user", "agent")[at % 2], "text": text, "rank": ranks.get(text)}
            for at, text in enumerate(texts)
        ]
        return {"id": f"oasst/m0/{number}", "turns": turns}

    root, reply = "why is rust orange?", "Iron oxide."
    (tree,) = gathered(
        thread(0, root, "Second best."),
        thread(1, root, reply, "short follow-up"),
        thread(2, root, reply, "and on copper?", "Blue."),
        thread(3, root, reply, "and on copper?", "Green."),
    )
    for options in ({}, {"threads": "all"}):
        expected = [one.turns for one in FORMAT.convert(TREE, options)]
        assert [one.turns for one in FORMAT.convert(tree, options)] == expected
    (single,) = FORMAT.convert({"id": "oasst/t/4", "turns": [{"role": "user", "text": "a"}]}, {})
    assert (single.id, single.group_keys) == ("oasst/t/0", ("t",))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({**TREE, "tree_state": "growing"}, "not_ready"),
        ({**TREE, "prompt": {**TREE["prompt"], "synthetic": True}}, "synthetic"),  # type: ignore[dict-item]
        ({**TREE, "prompt": {**TREE["prompt"], "deleted": True}}, "deleted"),  # type: ignore[dict-item]
        ({**TREE, "prompt": {"text": "x"}}, "missing_keys"),
        ({**TREE, "prompt": message("m", "narrator", "x")}, "unknown_role"),
        ({"message_tree_id": "m0"}, "missing_keys"),
        ({"message_id": "m", "parent_id": None, "text": "x"}, "missing_keys"),
        ({"message_tree_id": "m0", "messages": [{"message_id": "m", "parent_id": "p"}]}, "no_root"),
    ],
)
def test_damage_has_a_reason(value: Any, reason: str) -> None:
    with pytest.raises(Unfit) as caught:
        list(FORMAT.convert(value, {}))
    assert caught.value.reason == reason


def test_an_unknown_choice_of_threads() -> None:
    with pytest.raises(ConfigError, match="'some'"):
        list(FORMAT.convert(TREE, {"threads": "some"}))


def test_a_very_deep_tree() -> None:
    node = message("m3000", "prompter", "text 3000")
    for depth in range(2999, -1, -1):
        node = message(f"m{depth}", ("prompter", "assistant")[depth % 2], f"text {depth}", node)
    (found,) = FORMAT.convert({"message_tree_id": "m0", "prompt": node}, {"threads": "all"})
    assert len(found.turns) == 3001


def test_genuine_trees(test_data: Path) -> None:
    trees = [
        line.value for line in jsonio.read_jsonl(test_data / "open_assistant/en_100_tree.jsonl")
    ]
    assert len(trees) == 100
    best: list[HumanDialogue] = []
    every: list[HumanDialogue] = []
    reasons = []
    for tree in trees:
        try:
            best += FORMAT.convert(tree, {})
            every += FORMAT.convert(tree, {"threads": "all"})
        except Unfit as unfit:
            reasons.append(unfit.reason)
    assert reasons == ["synthetic"] * 5
    assert len(best) == 95
    said = [turn.text for one in every for turn in one.turns if turn.role == "user"]
    assert (len(said), len(set(said))) == (475, 475)


def test_genuine_threads(test_data: Path) -> None:
    threads = [line.value for line in jsonio.read_jsonl(test_data / "open_assistant/threads.jsonl")]
    assert len(threads) == 532
    assert sum(turn["role"] == "user" for row in threads for turn in row["turns"]) == 1118
    every = [one for tree in gathered(*threads) for one in FORMAT.convert(tree, {"threads": "all"})]
    said = [turn.text for one in every for turn in one.turns if turn.role == "user"]
    assert (len(said), len(set(said))) == (467, 467)
    assert len({one.group_keys for one in every}) == 87
