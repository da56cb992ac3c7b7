"""RealUserSim: chats of WildChat with profiles of who wrote them (ODC-BY), for measurements only.

    {"test_id", "domain", "task_type", "user_ip", "conversation_hash",
     "original_messages": [{"role", "content"}],
     "user_profile": {"demographics": {"age": {"value"}, …}, "linguistic_profile": "…"},
     "problem_desc" or "user_goal", "solution_conditions" or "key_context"}

The description of the problem is the goal; profile and conditions are hidden. A conversation that
stands in two of the files bears the same id in both. Rows of profiles alone have no dialogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Unfit
from mimesim.corpora.formats.chats import plain, read_chat, required, stripped
from mimesim.corpora.formats.normalized import convert_normalized, identity, is_normalized

INFO = CorpusInfo(
    name="realusersim",
    license="ODC-BY 1.0",
    redistributable="yes",
    training_allowed="yes",
    citation="RealUserSim (2026), arXiv 2605.20204, data set Salesforce/RealUserSim",
    moderated=False,
    evaluation_only=True,
)


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    if isinstance(value, Mapping) and "original_messages" not in value and _is_profile(value):
        raise Unfit("no_dialogue", "a profile of a person without a conversation")
    row = required(value, "test_id", "original_messages", "user_profile")
    chat = read_chat(row["original_messages"], "original_messages")
    profile = row["user_profile"] if isinstance(row["user_profile"], Mapping) else {}
    told = {
        "conditions": row.get("solution_conditions") or row.get("key_context"),
        "demographics": _demographics(profile.get("demographics")),
        "linguistic_profile": profile.get("linguistic_profile"),
        **plain(row, "domain", "task_type"),
    }
    name = identity(row.get("conversation_hash")) or (
        f"{identity(row.get('domain'))}/{identity(row['test_id'])}"
    )
    person = identity(row.get("user_ip"))
    return [
        HumanDialogue(
            id=f"realusersim/{name}",
            turns=chat.turns,
            source=INFO.name,
            goal=stripped(row.get("problem_desc") or row.get("user_goal")),
            context=chat.system,
            hidden=plain(told, *told),
            user_key=person,
            group_keys=(person,) if person else (),
            left_out=chat.left_out,
        )
    ]


def _demographics(found: Any) -> dict[str, Any]:
    """Return the values, which may stand in an object of their own, as `{"value"}`."""
    pairs = found.items() if isinstance(found, Mapping) else ()
    values = {key: one.get("value") if isinstance(one, Mapping) else one for key, one in pairs}
    return plain(values, *values)


def _is_profile(value: Mapping[str, Any]) -> bool:
    return any(key in value for key in ("linguistic_profile", "user_profile", "demographics"))


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and {"original_messages", "user_profile"} <= value.keys()


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, files=(".jsonl", ".parquet"))
