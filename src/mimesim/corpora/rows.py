"""The canonical row: one dialogue as flat JSON values, with its terms and its split.

This is what `mimesim data build` writes, as JSON Lines or parquet, and what training reads:

    {"schema": "mimesim.dialogue/1", "id", "source", "license", "redistributable",
     "training_allowed", "split", "split_key", "user_key", "language", "topic", "goal", "context",
     "earlier", "turns": [{"role", "text", "thought"?, "reaction"?}], "hidden", "outcome", "flags"}

`hidden` and `outcome` are JSON text, since parquet wants one type per column. Thoughts stand in
this file and in training rows only; nothing an agent reads is made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from mimesim import jsonio
from mimesim.corpora.base import CorpusInfo, HumanDialogue, HumanTurn, Side, Split
from mimesim.dialogue.types import Thought
from mimesim.errors import DataError

SCHEMA = "mimesim.dialogue/1"

_TEXTS = ("topic", "goal", "context", "earlier", "user_key", "language")
_SIDES = get_args(Side)
_SPLITS = get_args(Split)


def to_row(dialogue: HumanDialogue, info: CorpusInfo, *, split_key: str = "") -> dict[str, Any]:
    """Return the canonical row of a dialogue.

    Args:
        dialogue: the conversation, its split decided.
        info: terms of its corpus.
        split_key: what all conversations share that must not part in a split.
    """
    return {
        "schema": SCHEMA,
        "id": dialogue.id,
        "source": dialogue.source or info.name,
        "license": info.license,
        "redistributable": info.redistributable,
        "training_allowed": info.training_allowed,
        "moderated": info.moderated,
        "split": dialogue.split,
        "split_key": split_key,
        **{name: getattr(dialogue, name) for name in _TEXTS},
        "flags": list(dialogue.flags),
        "turns": [_turn(turn) for turn in dialogue.turns],
        "hidden": jsonio.dumps(dict(dialogue.hidden)),
        "outcome": jsonio.dumps(dict(dialogue.outcome)),
    }


def from_row(row: Any, where: str) -> HumanDialogue:
    """Read a canonical row strictly.

    Raises:
        DataError: another schema, or a missing or damaged field.
    """
    if not isinstance(row, Mapping) or row.get("schema") != SCHEMA:
        raise DataError(
            "not a dialogue row", where=where, expected=f"an object of the schema {SCHEMA!r}"
        )
    texts = {name: _text(row, name, where) for name in ("id", "source", "split", *_TEXTS)}
    if texts["split"] not in _SPLITS:
        raise _damaged("split", where, "train, validation, test or an empty string")
    turns = row.get("turns")
    if not isinstance(turns, list) or not turns:
        raise _damaged("turns", where, "a list of turns")
    return HumanDialogue(
        turns=tuple(_read_turn(turn, where) for turn in turns),
        hidden=_values(row, "hidden", where),
        outcome=_values(row, "outcome", where),
        flags=tuple(row.get("flags") or ()),
        **texts,  # type: ignore[arg-type]  # the split was checked above
    )


def _turn(turn: HumanTurn) -> dict[str, str]:
    words = {"thought": turn.thought, "reaction": turn.reaction}
    private = {name: thought.reveal() for name, thought in words.items() if thought}
    return {"role": turn.role, "text": turn.text, **private}


def _read_turn(turn: Any, where: str) -> HumanTurn:
    if not isinstance(turn, Mapping) or turn.get("role") not in _SIDES:
        raise _damaged("turns", where, "turns with a role, user or agent")
    text = turn.get("text")
    if not isinstance(text, str) or not text.strip():
        raise _damaged("turns", where, "turns with a text that is not empty")
    thought, reaction = turn.get("thought"), turn.get("reaction")
    return HumanTurn(
        turn["role"],
        text,
        Thought(thought) if thought else None,
        Thought(reaction) if reaction else None,
    )


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name, "")
    if not isinstance(value, str) or (name == "id" and not value):
        raise _damaged(name, where, "text")
    return value


def _values(row: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    value = row.get(name) or "{}"
    try:
        found = jsonio.loads(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _damaged(name, where, "an object, as JSON text")
    return found


def _damaged(name: str, where: str, expected: str) -> DataError:
    return DataError(f"the field {name!r} is damaged", where=where, expected=expected)
