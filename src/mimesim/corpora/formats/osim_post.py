"""OdysSim post-training: rows of 23 tasks, some of which hold a real conversation.

    {"data_source": "humanual-chat", "extra_info": {"persona", "prompt", "completion", …}}
    {"data_source": "mirrorbench", "extra_info": {"task_description", "turns": [{"role", …}]}}
    {"data_source": "sim_arena_doc", "extra_info": {"raw": JSON text with "human_public_conversation"}}

These three give dialogues: what a person was shown and wrote, or what they said to a model. Every
other row is a question with a checked answer and is left out as `no_dialogue`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mimesim import jsonio
from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, HumanTurn, Unfit
from mimesim.corpora.formats.chats import is_chat, plain, read_chat, required, stripped
from mimesim.corpora.formats.normalized import (
    convert_normalized,
    identity,
    is_normalized,
    split_of,
)
from mimesim.corpora.formats.osim_midtrain import extra_info, json_object, row_name

INFO = CorpusInfo(
    name="osim-post",
    license="Apache-2.0 (card; its 23 sources have terms of their own)",
    redistributable="no",
    training_allowed="unknown",
    citation="OdysSim (2026), arXiv 2606.14199, data set cmu-lti/osim-post-training",
    moderated=False,
)


_TOPICS = ("book", "chat", "email", "news", "opinion", "politics")
_WRITTEN = frozenset(f"humanual-{topic}" for topic in _TOPICS)
_WORK = frozenset(("sim_arena_doc", "sim_arena_math"))
_MIRROR = "mirrorbench"


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    row = required(value, "data_source", "extra_info")
    source, fields = identity(row["data_source"]), extra_info(row)
    if isinstance(fields.get("raw"), str):
        fields = {**fields, **json_object(fields["raw"], "raw")}
    if source in _WRITTEN:
        told = _humanual(fields)
    elif source == _MIRROR:
        told = _spoken(fields, "turns", goal=fields.get("task_description"))
    elif source in _WORK and is_chat(fields.get("human_public_conversation"), "role"):
        told = _spoken(fields, "human_public_conversation", goal=fields.get("intent"))
    else:
        raise Unfit("no_dialogue", f"rows of {source[:80]!r} are tasks without a conversation")
    return [
        HumanDialogue(
            id=row_name(INFO, row, fields),
            source=INFO.name,
            split=split_of(fields.get("split")),
            **told,
        )
    ]


def _humanual(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a person was shown, and what they wrote: two turns."""
    required(fields, "prompt", "completion")
    prompt = fields["prompt"]
    if isinstance(prompt, str) and prompt.lstrip().startswith("["):
        prompt = _messages(prompt)
    if isinstance(prompt, list):
        prompt = "\n".join(turn.text for turn in read_chat(prompt, "prompt").turns)
    written = fields["completion"]
    if not isinstance(prompt, str) or not isinstance(written, str):
        raise Unfit("bad_text", "'prompt' or 'completion' is no text")
    return {
        "turns": (HumanTurn("agent", prompt), HumanTurn("user", written)),
        "context": stripped(fields.get("persona")),
        "hidden": plain(fields, "dataset", "category"),
    }


def _spoken(fields: Mapping[str, Any], key: str, *, goal: Any) -> dict[str, Any]:
    chat = read_chat(required(fields, key)[key], key)
    profile = {"profile": fields.get("user_profile_text")}
    return {
        "turns": chat.turns,
        "goal": stripped(goal),
        "hidden": plain(profile, "profile"),
        "left_out": chat.left_out,
    }


def _messages(text: str) -> Any:
    """Return a list of messages that is written as JSON; any other text is returned as it is."""
    try:
        found = jsonio.loads(text)
    except ValueError:
        return text
    return found if is_chat(found, "role") and found else text


def _claims(value: Any) -> bool:
    if not isinstance(value, Mapping) or "messages" in value:
        return False
    held = [value.get(key) for key in ("extra_info", "reward_model")]
    keys = {key for part in held if isinstance(part, Mapping) for key in part}
    return {"data_source", "extra_info"} <= value.keys() and keys.isdisjoint(
        ("messages", "env_name")
    )


FORMAT = Format(info=INFO, convert=_convert, claims=_claims)
