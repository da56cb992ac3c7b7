"""OdysSim mid-training: rows of 62 corpora, each with the person on a side of its own.

    {"data_source": "wildchat", "messages": [{"role", "content"}]}

`data_source` says, name by name, on which side the person stands. A name that is in no list is an
error, never a guess; the option `routes` adds some, as `{"name": "swap"}`. The system text
describes the person. Long experiments are folded: the older part stands in `earlier`, or, with the
option `compat`, in the first turn that is kept, which then becomes the other side's, as the
original has it. Paper: mid-training, stage one; OdysSim, arXiv 2606.14199.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from mimesim import jsonio
from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, HumanTurn, Unfit
from mimesim.corpora.formats.chats import Chat, fold, is_chat, plain, read_chat, required
from mimesim.corpora.formats.normalized import (
    convert_normalized,
    identity,
    is_normalized,
    split_of,
)
from mimesim.errors import ConfigError

Route = Literal["swap", "no-swap", "fold"]
"""swap: the person is `user`; no-swap: the person is `assistant`; fold: swap, older part folded."""

INFO = CorpusInfo(
    name="osim-midtrain",
    license="other (62 corpora, each with terms of its own)",
    redistributable="no",
    training_allowed="unknown",
    citation="OdysSim (2026), arXiv 2606.14199, data set cmu-lti/osim-mid-training",
    moderated=False,
)

_KEPT = 20  # turns of an experiment that are not folded

_SWAP = """
alignx coser cornell_movie dailydialog dialogue education_dialogue empathetic experiment hh_rlhf
humanual humanual_book humanual_chat humanual_email humanual_news humanual_opinion
humanual_politics lmsys mathdial nectar oasst1 oasst2 prism socsci210 studychat wildchat wildchat_v1
"""
_CONVOKIT = """
IDEA-NTHU-unintended-offense-tweets casino-corpus chromium-corpus
conversations-gone-awry-cmv-corpus conversations-gone-awry-cmv-corpus-large
conversations-gone-awry-corpus emotional-support friends-corpus mediasum-corpus npr-2p-corpus
parliament-corpus persuasionforgood-corpus reddit-coarse-discourse-corpus reddit-corpus-small
small-pool supreme-corpus switchboard-corpus tennis-corpus wiki-articles-for-deletion-corpus
wiki-corpus wikiconv-2018 winning-args-corpus
"""
_NO_SWAP = """
human_llm rm_r1_sft soc_cornell soc_haico soc_persona_conflicts soc_sotopia_pi_bc
soc_sotopia_tom_silver sotopia tom_characterllm tom_fantom tom_from_coser tom_grimulkan tom_hitom
tom_mindgames tom_mmtom tom_moralstories tom_paratomi tom_socialiqa tom_sotopia tom_tominli
"""
_ROUTES: Mapping[str, Route] = {
    **dict.fromkeys(_SWAP.split(), "swap"),
    **{f"convokit_{name}": "swap" for name in _CONVOKIT.split()},
    **dict.fromkeys(_NO_SWAP.split(), "no-swap"),
    "psych101": "fold",
}


def route(source: Any, more: Mapping[str, Any]) -> Route:
    """Return how the rows of a source are read, by its exact name.

    Args:
        source: a row's `data_source`.
        more: further names and their routes; they go before the built-in ones.

    Raises:
        Unfit: `unknown_source`.
        ConfigError: a route of `more` that there is not.
    """
    name = identity(source)
    found = more.get(name, _ROUTES.get(name))
    if found is None:
        raise Unfit("unknown_source", f"data_source {name[:80]!r}")
    if found not in get_args(Route):
        raise ConfigError(
            f"the source {name!r} has an unknown route {found!r}",
            expected="one of " + ", ".join(get_args(Route)),
        )
    return found  # type: ignore[no-any-return]  # one of the three, as just checked


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    row = required(value, "data_source")
    extra = extra_info(row)
    messages = row.get("messages")
    if messages is None:
        messages = required(extra, "messages")["messages"]
    way = route(row["data_source"], options.get("routes") or {})
    chat = read_chat(messages, "messages", swapped=way == "no-swap")
    earlier, turns = "", chat.turns
    if way == "fold" and len(turns) > _KEPT:
        if options.get("compat"):
            turns = _folded_as_published(chat)
        else:
            earlier, turns = fold(turns[:-_KEPT]), turns[-_KEPT:]
    return [
        HumanDialogue(
            id=row_name(INFO, row, extra),
            turns=turns,
            source=INFO.name,
            context=chat.system,
            earlier=earlier,
            hidden=plain(row, "data_source"),
            split=split_of(extra.get("split")),
            left_out=chat.left_out,
        )
    ]


def _folded_as_published(chat: Chat) -> tuple[HumanTurn, ...]:
    """Put the older part in front of the first kept turn, and give that to the other side."""
    names = {"user": "user", "agent": "assistant"}
    head, first, rest = chat.turns[:-_KEPT], chat.turns[-_KEPT], chat.turns[1 - _KEPT :]
    told = "\n\n".join(f"{names[turn.role]}: {turn.text}" for turn in head)
    return (HumanTurn("agent", f"[Earlier conversation]\n{told}\n\n{first.text}"), *rest)


def extra_info(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `extra_info` of a row, which is an object or JSON text of one.

    Raises:
        Unfit: `bad_json`.
    """
    found = row.get("extra_info")
    if isinstance(found, str):
        return json_object(found, "extra_info")
    return found if isinstance(found, Mapping) else {}


def json_object(text: str, key: str) -> Mapping[str, Any]:
    """Return an object that is written as JSON under `key`.

    Raises:
        Unfit: `bad_json`.
    """
    try:
        found = jsonio.loads(text)
    except ValueError as error:
        raise Unfit("bad_json", f"{key!r} is no JSON: {error}") from error
    if not isinstance(found, Mapping):
        raise Unfit("bad_json", f"{key!r} is no JSON object")
    return found


def row_name(info: CorpusInfo, row: Mapping[str, Any], extra: Mapping[str, Any]) -> str:
    """Return the id of a row that has one of its own, or an empty string."""
    places = (row.get("id"), extra.get("id"), extra.get("index"))
    number = next((identity(place) for place in places if place is not None), "")
    return f"{info.name}/{identity(row['data_source'])}/{number}" if number else ""


def _claims(value: Any) -> bool:
    if not isinstance(value, Mapping) or "data_source" not in value:
        return False
    extra = value.get("extra_info")
    held = value.get("messages", extra.get("messages") if isinstance(extra, Mapping) else None)
    return is_chat(held, "role")


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, options=("routes", "compat"))
