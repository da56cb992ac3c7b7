"""PRISM: people from 75 countries in talk with several models at once (human text CC BY 4.0).

    {"conversation_id", "user_id", "conversation_type", "opening_prompt",
     "conversation_history": [{"turn", "role": "user" or "model", "content", "if_chosen",
                               "score", "model_name", "within_turn_id"}, …]}

Of the replies of a turn the one that the person chose to go on with is kept; the others are counted.
The models' text is CC BY-NC 4.0 and for measurements only. Rows of the survey have no dialogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Unfit
from mimesim.corpora.formats.chats import plain, read_chat, required
from mimesim.corpora.formats.normalized import convert_normalized, identity, is_normalized

INFO = CorpusInfo(
    name="prism",
    license="CC BY 4.0 (human text), CC BY-NC 4.0 (model text)",
    redistributable="no",
    training_allowed="no",
    citation="Kirk et al. (2024), The PRISM Alignment Dataset, arXiv 2404.16019",
    moderated=True,
    evaluation_only=True,
)


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    if isinstance(value, Mapping) and "user_id" in value and "conversation_id" not in value:
        raise Unfit("no_dialogue", "a row of the survey")
    row = required(value, "conversation_id", "user_id", "conversation_history")
    messages = row["conversation_history"]
    kept, passed = _chosen(messages)
    chat = read_chat(kept, "conversation_history")
    person = identity(row["user_id"])
    lost = dict(chat.left_out)
    if passed:
        lost["messages_left_out"] = lost.get("messages_left_out", 0) + passed
    return [
        HumanDialogue(
            id=f"prism/{identity(row['conversation_id'])}",
            turns=chat.turns,
            source=INFO.name,
            hidden=plain(row, "conversation_type"),
            user_key=person,
            group_keys=(person,) if person else (),
            left_out=lost,
        )
    ]


def _chosen(messages: Any) -> tuple[list[dict[str, Any]], int]:
    """Return what was said in the one line that the person followed, and how many replies were not."""
    if not isinstance(messages, list) or not all(isinstance(one, Mapping) for one in messages):
        raise Unfit("no_conversation", "conversation_history is no list of messages")
    kept = [
        {
            "role": "assistant" if one.get("role") == "model" else one.get("role"),
            "content": one.get("content"),
        }
        for one in messages
        if one.get("role") != "model" or one.get("if_chosen") is True
    ]
    return kept, len(messages) - len(kept)


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and {"conversation_history", "opening_prompt"} <= value.keys()


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, files=(".jsonl",))
