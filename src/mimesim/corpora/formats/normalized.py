"""The normalized shape `{"id", "turns": [{"role", "text"}]}`, which every corpus accepts.

    {"id": "a1", "goal": "…", "turns": [{"role": "user", "text": "…"}, {"role": "agent", "text": "…"}]}

What both sides said becomes turns; `goal`, `context`, `topic` and the like go where their names
say; how it ended goes to `outcome`; everything else, and the words of the roles `director` (shown
to the person only) and `action` (a pressed button), goes to `hidden`. A format that knows more
about its corpus refines the dialogue by `dataclasses.replace`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from mimesim.corpora.base import CorpusInfo, HumanDialogue, HumanTurn, Side, Split, Unfit
from mimesim.corpora.formats.chats import as_json, joined, stripped, text_of
from mimesim.corpora.formats.languages import language_code
from mimesim.dialogue.types import Thought

SIDES: Mapping[str, Side] = {"user": "user", "agent": "agent", "assistant": "agent"}

_PRIVATE = ("director", "action")
_SILENT = ("tool", "function", "observation", "data")
_OUTCOMES = ("reward", "ratings", "why_stop", "happy")
_TEXTS = ("topic", "goal", "context", "user_key", "language")
_SPLITS: Mapping[str, Split] = {
    "train": "train",
    "dev": "validation",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
}


class Told(NamedTuple):
    """The entries of a conversation by who may know them.

    Attributes:
        turns: what was said, untidied.
        notes: role -> `{"turn", "text"}` of what was never said; `turn` counts the tidied turns
            that come before the next one, so it is the place of the turn that the note precedes.
        system: texts of system messages, in order.
        deals: actions that look like turns, with their side.
        left_out: how much has no place anywhere: tools, no text, pictures.
    """

    turns: tuple[HumanTurn, ...]
    notes: Mapping[str, list[dict[str, Any]]]
    system: tuple[str, ...]
    deals: tuple[dict[str, Any], ...]
    left_out: Mapping[str, int]


def is_normalized(value: Any) -> bool:
    """Tell whether a raw value has the normalized shape, by its keys."""
    turns = value.get("turns") if isinstance(value, Mapping) else None
    if not isinstance(turns, list):
        return False
    first = turns[0] if turns else {"text": ""}
    if not isinstance(first, Mapping):
        return False
    return "text" in first or ("role" in first and "content" not in first)


def convert_normalized(value: Mapping[str, Any], info: CorpusInfo) -> HumanDialogue:
    """Return the dialogue of a normalized value, untidied; an empty id is named by its place.

    Directors' and actions' words stand in `hidden` under the name of their role, as
    `{"turn", "text"}`; deals stand in `outcome["deals"]`.

    Raises:
        Unfit: `no_conversation`, `missing_role`, `unknown_role`, `bad_text`.
    """
    told = tell(value)
    known = {"id", "turns", "outcome", "split", *_OUTCOMES}
    texts = {name: stripped(value.get(name)) for name in _TEXTS}
    known |= {name for name in _TEXTS if texts[name]}
    outcome = {name: value.get(name) for name in _OUTCOMES}
    if told.deals:
        outcome["deals"] = list(told.deals)
    return HumanDialogue(
        id=identity(value.get("id")),
        turns=told.turns,
        source=info.name,
        topic=texts["topic"],
        goal=texts["goal"],
        context=joined((texts["context"], *told.system)),
        hidden={
            **_held({key: kept for key, kept in value.items() if key not in known}),
            **told.notes,
        },
        outcome={**as_outcome(value.get("outcome")), **_held(outcome)},
        user_key=texts["user_key"],
        split=split_of(value.get("split")),
        language=language_code(texts["language"]),
        left_out=told.left_out,
    )


def tell(value: Mapping[str, Any]) -> Told:
    """Sort the entries of `value["turns"]` by who may know them.

    Raises:
        Unfit: as `convert_normalized`.
    """
    entries = value.get("turns")
    if not isinstance(entries, list):
        raise Unfit("no_conversation", "no conversation here: 'turns' is not a list")
    turns: list[HumanTurn] = []
    notes: dict[str, list[dict[str, Any]]] = {}
    system: list[str] = []
    deals: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    last, place = "", -1
    for entry in entries:
        role, text = _entry(entry, counts)
        if role in SIDES and entry.get("deal") is not None:
            deals.append({"role": SIDES[role], "text": text, "deal": entry["deal"]})
        elif text is None or role in _SILENT:
            counts["messages_left_out"] += 1
        elif role == "system":
            system.append(text)
        elif role in _PRIVATE:
            note = {"turn": place + 1, "text": text}
            notes.setdefault(role, []).append(note)
            waiting.append(note)
        else:
            turns.append(_turn(SIDES[role], text, entry))
            if text.strip():
                place += role != last
                last = role
                for note in waiting:
                    note["turn"] = place
                waiting = []
    return Told(tuple(turns), notes, tuple(system), tuple(deals), dict(+counts))


def identity(value: Any) -> str:
    """Return an id as text; a missing one is empty, and the place of the record names it."""
    return "" if value is None else str(value).strip()


def split_of(name: Any) -> Split:
    """Return the split that a source's own name for it means; an unknown name means none."""
    return _SPLITS.get(name.strip().lower(), "") if isinstance(name, str) else ""


def as_outcome(value: Any) -> dict[str, Any]:
    """Return how a conversation ended as an object; a bare value stands under `outcome`."""
    return _held(value if isinstance(value, Mapping) else {"outcome": value})


def _held(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): as_json(found) for name, found in fields.items() if found is not None}


def _entry(entry: Any, counts: Counter[str]) -> tuple[str, str | None]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("role"), str):
        raise Unfit("missing_role", "an entry of 'turns' has no 'role'")
    role = entry["role"].strip().lower()
    if role not in SIDES and role not in _PRIVATE and role not in _SILENT and role != "system":
        raise Unfit(
            "unknown_role", f"the role {entry['role'][:40]!r} of 'turns'; known: user, agent"
        )
    return role, text_of(entry.get("text"), "turns", counts)


def _turn(side: Side, text: str, entry: Mapping[str, Any]) -> HumanTurn:
    """Return a turn; a person's own note on it is the thought before, or the reaction to, it."""
    key = "thought" if side == "user" else "reaction"
    words = stripped(entry.get(key))
    return HumanTurn(side, text, **({key: Thought(words)} if words else {}))
