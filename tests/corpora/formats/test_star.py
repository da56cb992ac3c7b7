"""STAR: events, hidden instructions, the groups that they make, and unfinished dialogues."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mimesim.corpora.formats.star import FORMAT
from tests.support.sources import Read, read, spoken, write


def event(agent: str, action: str, text: str | None = None, **more: Any) -> dict[str, Any]:
    words = {} if text is None else {"Text": text}
    return {"Agent": agent, "Action": action, "UnixTime": 1, **words, **more}


def row(number: int, *instructions: str, **changes: Any) -> dict[str, Any]:
    value = {
        "FORMAT-VERSION": 7,
        "DialogueID": number,
        "BatchID": "b",
        "CompletionLevel": "Complete",
        "AnonymizedUserWorkerID": "w1",
        "Events": [
            *(event("UserGuide", "instruct", text) for text in instructions),
            event("User", "utter", "hello"),
            event("Wizard", "request_suggestions", "what now"),
            event("Wizard", "pick_suggestion", "Hello, how can I help?", ActionLabel="hello"),
            event("User", "utter", "i am lost"),
            event("Wizard", "query", APIName="map"),
            event("KnowledgeBase", "return_item", Item={"street": "Elm"}),
            event("Wizard", "utter", "You are in Elm Street."),
            event("User", "complete"),
        ],
        "Scenario": {
            "Domains": ["ride"],
            "UserTask": "You are Bo and want to go home.",
            "Happy": False,
            "MultiTask": False,
            "WizardTask": "Help.",
            "WizardCapabilities": [],
        },
        "UserQuestionnaire": [{"Question": "Did it help?", "Answer": True}],
        "WizardQuestionnaire": [],
    }
    return {**value, **changes}


def test_instructions_are_hidden_and_lose_their_counter(tmp_path: Path) -> None:
    write(
        tmp_path / "5.json",
        row(5, "Act lost. [instruction 1 of 2]", "Act lost. [instruction 2 of 2]"),
    )
    (dialogue,) = read(FORMAT, tmp_path).dialogues
    assert dialogue.id == "star/5"
    assert dialogue.goal == "You are Bo and want to go home."
    assert spoken(dialogue) == [
        ("user", "hello"),
        ("agent", "Hello, how can I help?"),
        ("user", "i am lost"),
        ("agent", "You are in Elm Street."),
    ]
    assert [note["text"] for note in dialogue.hidden["director"]] == ["Act lost.", "Act lost."]
    assert dialogue.group_keys == ("Act lost.",)
    assert dialogue.split == ""
    assert dialogue.outcome["Did it help?"] is True
    assert "instruction" not in "".join(turn.text for turn in dialogue.turns)


def test_the_same_text_under_another_counter_is_the_same_group(tmp_path: Path) -> None:
    write(tmp_path / "1.json", row(1, "Act lost. [instruction 1 of 1]"))
    write(
        tmp_path / "2.json", row(2, "Hurry. [instruction 1 of 2]", "Act lost. [instruction 2 of 2]")
    )
    one, two = read(FORMAT, tmp_path).dialogues
    assert set(one.group_keys) & set(two.group_keys) == {"Act lost."}


def test_dialogues_without_instructions_are_for_training(tmp_path: Path) -> None:
    write(tmp_path / "1.json", row(1))
    (dialogue,) = read(FORMAT, tmp_path).dialogues
    assert (dialogue.split, dialogue.group_keys) == ("train", ())


def test_unfinished_dialogues_stay_out(tmp_path: Path) -> None:
    write(tmp_path / "1.json", row(1, CompletionLevel="DisconnectDuringDialogue"))
    write(tmp_path / "tasks.json", {"no": "dialogue"})
    found = read(FORMAT, tmp_path)
    assert found.dialogues == []
    assert found.rejects == [(str(tmp_path / "1.json"), "incomplete")]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"Events": {}}, "no_conversation"),
        ({"Events": [{"Text": "who?"}]}, "missing_role"),
        ({"Events": [event("User", "utter", None)]}, None),
    ],
)
def test_damage_is_named(changes: dict[str, Any], reason: str | None, tmp_path: Path) -> None:
    found = read(FORMAT, write(tmp_path / "1.json", row(1, **changes)))
    assert dict(found.reasons) == ({reason: 1} if reason else {})


def components(found: Read) -> Counter[str]:
    """Return root -> number of dialogues that hang together through their keys."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    tied = [d for d in found.dialogues if d.group_keys]
    for dialogue in tied:
        for key in dialogue.group_keys:
            parent[root(f"d{dialogue.id}")] = root(f"k{key}")
    return Counter(root(f"d{dialogue.id}") for dialogue in tied)


def test_the_genuine_rows(test_data: Path) -> None:
    found = read(FORMAT, test_data / "star")
    assert len(found.dialogues) == 2300
    assert (found.turns("user"), found.turns("agent")) == (23_352, 23_352)
    assert round(found.words(), 2) == 8.55
    notes = [note["text"] for d in found.dialogues for note in d.hidden.get("director", ())]
    assert len(notes) == 11_240
    assert len(set(notes)) == 1246
    assert sum(d.split == "train" for d in found.dialogues) == 337
    tied = components(found)
    assert (len(tied), tied.total(), max(tied.values())) == (21, 1963, 732)
    assert not found.rejects
