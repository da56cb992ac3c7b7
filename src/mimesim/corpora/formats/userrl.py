"""UserRL: tasks of eight gyms as rows of parquet; they hold no conversation.

    {"data_source", "prompt": [{"role", "content"}], "ability", "reward_model": {"style",
     "ground_truth", "env_name", "id" or "title", …}, "extra_info": {"split", "index", …}}

The names of `data_source` are irregular, so the gym is told by `reward_model.env_name`. What an
agent may see is the prompt; ground truth, key (in one gym it is the answer) and everything else of
the reward stand in `hidden`. In PersuadeGym the ground truth is the claim, which the prompt states
by design. `read_task` serves gyms and groundings; a build leaves every row out as `no_dialogue`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Split, Unfit
from mimesim.corpora.formats.chats import plain, read_chat, required
from mimesim.corpora.formats.normalized import (
    convert_normalized,
    identity,
    is_normalized,
    split_of,
)

INFO = CorpusInfo(
    name="userrl",
    license="Apache-2.0 (repository; texts of PersuadeGym and TurtleGym have unclear terms)",
    redistributable="no",
    training_allowed="unknown",
    citation="UserRL (2025), repository SalesforceAIResearch/UserRL",
    moderated=False,
    simulated=True,
)

KEYS: Mapping[str, str] = {
    "FunctionGym": "id",
    "TauGym": "id",
    "SearchGym": "id",
    "IntentionGym": "id",
    "PersuadeGym": "id",
    "TravelGym": "id",
    "TelepathyGym": "title",
    "TurtleGym": "title",
}
"""Gym -> which field of `reward_model` names the task."""


@dataclass(frozen=True, slots=True)
class UserRLTask:
    """One task: what an agent reads, and apart from it what it must not see.

    Attributes:
        gym: one of `KEYS`.
        key: names the task in the data of its gym; never shown, for it may name the answer.
        split: the part that the source itself fixes.
        system: rules for the agent.
        request: the first message to the agent.
        hidden: ground truth and the other fields of the reward that hold something.
    """

    gym: str
    key: str
    split: Split
    system: str
    request: str
    hidden: Mapping[str, Any]


def read_task(value: Any) -> UserRLTask:
    """Return the task of one row.

    Raises:
        Unfit: `missing_keys`, `unknown_gym`, or a prompt that is none.
    """
    row = required(value, "prompt", "reward_model", "extra_info")
    reward = required(row["reward_model"], "env_name", "ground_truth")
    gym = identity(reward["env_name"])
    if gym not in KEYS:
        raise Unfit("unknown_gym", f"env_name {gym[:80]!r}")
    key = identity(required(reward, KEYS[gym])[KEYS[gym]])
    if not key:
        raise Unfit("missing_keys", f"{KEYS[gym]!r} of {gym} is empty")
    chat = read_chat(row["prompt"], "prompt")
    extra = row["extra_info"] if isinstance(row["extra_info"], Mapping) else {}
    return UserRLTask(
        gym=gym,
        key=key,
        split=split_of(extra.get("split")),
        system=chat.system,
        request="\n\n".join(turn.text for turn in chat.turns),
        hidden=plain(reward, *(name for name in reward if name not in ("env_name", "style"))),
    )


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    task = read_task(value)
    raise Unfit("no_dialogue", f"a task of {task.gym} without a conversation")


def _claims(value: Any) -> bool:
    reward = value.get("reward_model") if isinstance(value, Mapping) else None
    return isinstance(reward, Mapping) and "env_name" in reward and "prompt" in value


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, files=(".parquet", ".jsonl"))
