"""CaSiNo: campsite negotiations, each side with private preferences and reasons (CC BY 4.0).

    [{"dialogue_id", "chat_logs": [{"text", "task_data": {…}, "id": "mturk_agent_1"}],
      "participant_info": {"mturk_agent_1": {"value2issue", "value2reason", "outcomes", …}}}]

Both sides are learnt, so one conversation gives two dialogues that stay together in a split.
Offers and their answers are actions and not speech. Demographics are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora.base import OTHER, CorpusInfo, Format, HumanDialogue, Side, Unfit
from mimesim.corpora.formats.chats import required
from mimesim.corpora.formats.layout import named, role_of, with_part
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized, split_of

INFO = CorpusInfo(
    name="casino",
    license="CC BY 4.0",
    redistributable="yes",
    training_allowed="yes",
    citation="Chawla et al. (2021), CaSiNo: A Corpus of Campsite Negotiation Dialogues for "
    "Automatic Negotiation Systems, NAACL 2021, arXiv 2103.15721",
    moderated=True,
)

DEALS = ("Submit-Deal", "Accept-Deal", "Reject-Deal", "Walk-Away")

_ROLES = {"mturk_agent_1": "user", "mturk_agent_2": "agent"}
_SIDES: tuple[Side, Side] = ("user", "agent")
_HIDDEN = ("value2issue", "value2reason", "personality")
_KEPT = (*_HIDDEN, "outcomes")
_LEVELS = ("High", "Medium", "Low")


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        row = value
    else:
        row = _normalized(required(value, "dialogue_id", "chat_logs", "participant_info"))
    dialogue = convert_normalized(row, INFO)
    people = row.get("participants")
    people = people if isinstance(people, Mapping) else {}
    parts = dialogue.id.split("/")
    split = dialogue.split or (split_of(parts[1]) if len(parts) > 2 else "")
    for number, side in enumerate(_SIDES, start=1):
        yield _seen_by(side, replace(dialogue, id=f"{dialogue.id}/{number}", split=split), people)


def _seen_by(side: Side, dialogue: HumanDialogue, people: Mapping[str, Any]) -> HumanDialogue:
    """Return the conversation with `side` as the one that is learnt."""
    own, other = (people.get(role) or {} for role in (side, OTHER[side]))
    flips = side == "agent"
    deals = [
        {**deal, "role": OTHER[deal["role"]] if flips else deal["role"]}
        for deal in dialogue.outcome.get("deals", ())
    ]
    return replace(
        dialogue,
        turns=tuple(
            replace(turn, role=OTHER[turn.role]) if flips else turn for turn in dialogue.turns
        ),
        goal=_goal(own),
        hidden={
            **{key: own[key] for key in _HIDDEN if key in own},
            "partner": {key: other[key] for key in _HIDDEN if key in other},
        },
        outcome={**(own.get("outcomes") or {}), **({"deals": deals} if deals else {})},
        group_keys=(dialogue.id.rpartition("/")[0],),
        language="en",
    )


def _goal(own: Mapping[str, Any]) -> str:
    """Return what the person wants most, in the words of the record."""
    issues, reasons = own.get("value2issue") or {}, own.get("value2reason") or {}
    return "\n".join(
        f"{level}: {issues[level]}" + (f" ({reasons[level]})" if reasons.get(level) else "")
        for level in _LEVELS
        if issues.get(level)
    )


def _normalized(row: Mapping[str, Any]) -> dict[str, Any]:
    log, people = row["chat_logs"], row["participant_info"]
    if not isinstance(log, list) or not isinstance(people, Mapping):
        raise Unfit("no_conversation", "'chat_logs' is not a list or 'participant_info' no object")
    return {
        "id": named(("casino", row.get("part"), row["dialogue_id"])),
        "split": row.get("part"),
        "participants": {
            role: {key: people[name][key] for key in _KEPT if key in people[name]}
            for name, role in _ROLES.items()
            if isinstance(people.get(name), Mapping)
        },
        "turns": [_turn(entry) for entry in log],
    }


def _turn(entry: Any) -> dict[str, Any]:
    role = role_of(entry, "chat_logs", "id", _ROLES)
    turn = {"role": role, "text": entry.get("text")}
    return {**turn, "deal": entry.get("task_data") or {}} if turn["text"] in DEALS else turn


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and {"chat_logs", "participant_info"} <= value.keys()


FORMAT = Format(
    info=INFO,
    convert=_convert,
    claims=_claims,
    gather=with_part,
    files=("casino_train.json", "casino_valid.json", "casino_test.json", ".jsonl"),
)
