"""PersuasionForGood: one person asks another for a donation, who may refuse (Apache-2.0 copy).

    full_dialog.csv   ,Unit,Turn,B4,B2          rows of text; B2 dialogue, B4 0 persuader, 1 persuadee
    full_info.csv     B2,B3,B4,B6,B7,*.x        optional; B3 person, B6 donation, B7 number of turns

Give the folder that holds both. The persuadee is learnt. Of the survey only the big-five traits of
the persuadee stay, hidden; demographics are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Record, Unfit
from mimesim.corpora.formats.chats import required
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized

INFO = CorpusInfo(
    name="persuasion-for-good",
    license="Apache-2.0",
    redistributable="yes",
    training_allowed="yes",
    citation="Wang et al. (2019), Persuasion for Good: Towards a Personalized Persuasive Dialogue "
    "System for Social Good, arXiv 1906.06725",
    moderated=True,
)

_ROLES = {"0": "agent", "1": "user"}
_ROW = frozenset({"Unit", "Turn", "B4", "B2"})
_PERSON = frozenset({"B2", "B4", "B6", "B7"})
_TRAITS = ("extrovert", "agreeable", "conscientious", "neurotic", "open")


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    row = value if is_normalized(value) else _normalized(required(value, "dialogue", "rows"))
    dialogue = convert_normalized(row, INFO)
    gift = dialogue.outcome.get("persuadee_B6")
    outcome = dict(dialogue.outcome)
    if isinstance(gift, str) and gift.strip():
        outcome["donated"] = _amount(gift) > 0
    keys = (dialogue.user_key,) if dialogue.user_key else ()
    yield replace(dialogue, outcome=outcome, group_keys=keys, language="en")


def _amount(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Unfit("bad_number", f"the donation {text[:40]!r} in the column 'B6'") from None


def _normalized(value: Mapping[str, Any]) -> dict[str, Any]:
    persuadee, persuader = value.get("persuadee", {}), value.get("persuader", {})
    person = persuadee.get("B3")
    outcome = {
        "persuadee_B6": persuadee.get("B6"),
        "persuader_B6": persuader.get("B6"),
        "turns_B7": persuadee.get("B7"),
    }
    traits = {trait: persuadee[f"{trait}.x"] for trait in _TRAITS if f"{trait}.x" in persuadee}
    return {
        "id": f"p4g/{value['dialogue']}",
        "user_key": f"p4g/{person}" if person else "",
        "persuadee_big5": traits or None,
        "outcome": {key: found for key, found in outcome.items() if found is not None},
        "turns": [{"role": _role(row), "text": row["Unit"]} for row in value["rows"]],
    }


def _role(row: Mapping[str, str]) -> str:
    role = _ROLES.get(row["B4"].strip())
    if role is None:
        raise Unfit("unknown_role", f"the side {row['B4'][:40]!r} in the column 'B4'")
    return role


def _gather(records: Iterator[Record]) -> Iterator[Record]:
    """Join the rows of a dialogue and what is known of its two people.

    The people stand in a file that comes after, so all dialogues wait for the end.
    """
    joined: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    people: dict[str, dict[str, Any]] = {}
    for record in records:
        row = record.value
        keys = row.keys() if isinstance(row, Mapping) else set()
        if keys >= _ROW:
            known = joined.setdefault(row["B2"], {"dialogue": row["B2"], "rows": []})
            known["rows"].append(row)
            places.setdefault(row["B2"], record.where)
        elif keys >= _PERSON:
            side = {"agent": "persuader", "user": "persuadee"}.get(_ROLES.get(row["B4"], ""), "")
            people.setdefault(row["B2"], {})[side] = row
        else:
            yield record
    for name, value in joined.items():
        yield Record(places[name], {**value, **people.get(name, {})})


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and (value.keys() >= _ROW or value.keys() >= _PERSON)


FORMAT = Format(
    info=INFO,
    convert=_convert,
    claims=_claims,
    gather=_gather,
    files=("full_dialog.csv", "full_info.csv", ".jsonl"),
)
