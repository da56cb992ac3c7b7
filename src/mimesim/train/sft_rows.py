"""What a supervised agent learns from: stored episodes that went well, and ShareGPT conversations.

A row of an episode is, token by token, the context that `rollout.policy` builds: the opening, and
between two replies all that others said as one user message. Only public text enters. Replies that
were cut or that the gym could not read stand there as context and carry no loss. A conversation
that is left out is counted under the reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mimesim.config.ranges import NATURAL, check_ranges
from mimesim.corpora import load
from mimesim.corpora.base import HumanDialogue, Unfit
from mimesim.dialogue.episode import Episode, Step, Turn
from mimesim.dialogue.types import Role
from mimesim.envs.actions import get_format
from mimesim.envs.base import AgentAction, Choice
from mimesim.errors import DataError
from mimesim.models import templates
from mimesim.models.base import ChatMessage
from mimesim.rollout.store import read_episodes
from mimesim.train.rows import TrainRow

_SHAREGPT = "sharegpt"
_TOLD = {"function_call": "gpt", "observation": "human", "tool": "human", "function": "human"}
"""Roles of tool use -> the side whose words they are for a policy: calls are its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepConfig:
    """Which episodes are learnt from.

    Attributes:
        min_reward: lowest total reward; None = any.
        success: only those that succeeded.
        per_task: most of one task, those with the highest reward; 0 = all.
        splits: splits whose tasks may be learnt from; tasks without a split always may.
        replies: how they are written: as they were said, or anew from the action that was read.
    """

    min_reward: float | None = None
    success: bool = True
    per_task: int = 4
    splits: tuple[str, ...] = ("train",)
    replies: Literal["as-said", "line", "tool-call"] = "as-said"

    def __post_init__(self) -> None:
        """Refuse numbers that keep nothing.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, NATURAL, "per_task")


@dataclass(slots=True)
class Gathered:
    """Rows of one source, and what became of the rest.

    Attributes:
        read: conversations read.
        dropped: reason -> conversations left out.
        unlearnt: replies in the rows that carry no loss.
    """

    source: str
    rows: list[TrainRow] = field(default_factory=list)
    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    unlearnt: int = 0

    def summary(self) -> dict[str, Any]:
        """Return the account as JSON values."""
        return {
            "source": Path(self.source).name,
            "read": self.read,
            "kept": len(self.rows),
            "dropped": dict(sorted(self.dropped.items())),
            "replies_not_learnt": self.unlearnt,
            "tokens": sum(len(row.input_ids) for row in self.rows),
            "learnt_tokens": sum(row.learnt for row in self.rows),
        }


class Told(NamedTuple):
    """A conversation as a policy sees it; one flag per reply: whether it is learnt."""

    messages: list[ChatMessage]
    learn: list[bool]


class Reader:
    """Makes rows with one tokenizer.

    Args:
        tokenizer: of the model that is trained, with its template.
        keep: which episodes are learnt from.
        max_length: tokens that a row may have.

    Raises:
        EnvironmentFault: the template is not fit for rollouts.
    """

    def __init__(self, tokenizer: Any, keep: KeepConfig, max_length: int) -> None:
        self._facts = templates.check_rollouts(tokenizer)
        self._tokenizer = tokenizer
        self._keep = keep
        self._max_length = max_length

    def episodes(self, places: Iterable[Path]) -> list[Gathered]:
        """Return the rows of run folders or episode files; `per_task` holds over all of them.

        Raises:
            DataError: a file is missing or damaged.
        """
        found, passed, seen = [], defaultdict[tuple[str, ...], list[_Candidate]](list), set()
        for place in places:
            part = Gathered(str(place))
            found.append(part)
            for episode in read_episodes(place):
                part.read += 1
                reason = "repeated" if episode.id in seen else unfit(episode, self._keep)
                seen.add(episode.id)
                if reason:
                    part.dropped[reason] += 1
                    continue
                # Tasks of two gyms may bear one id, and the hash tells one version from another.
                task = (episode.task.gym, episode.task.id, episode.task.hash)
                passed[task].append(_Candidate(part, episode))
        for candidates in passed.values():
            self._best(candidates)
        return found

    def _best(self, candidates: Sequence[_Candidate]) -> None:
        """Take the best episodes of one task; one that makes no row gives its place away."""
        taken = 0
        # Sorting is stable: of equal rewards the first in file order is taken.
        for part, episode in sorted(candidates, key=_worth, reverse=True):
            if self._keep.per_task and taken >= self._keep.per_task:
                part.dropped["over_per_task"] += 1
            else:
                taken += self._take(part, episode.id, replayed(episode, self._keep.replies))

    def sharegpt(self, place: Path) -> Gathered:
        """Return the rows of a ShareGPT file; what cannot be read costs itself and is counted.

        Raises:
            DataError: no such file.
        """
        part = Gathered(str(place))
        form = load.format_of(_SHAREGPT)

        def reject(where: str, reason: str, detail: str) -> None:
            del where, detail
            part.read += 1
            part.dropped[reason] += 1

        for record in load.raw_records(form, str(place), reject):
            if load.forbids_training(record.value):
                reject(record.where, "no_training", "")
                continue
            spoken = record._replace(value=_spoken(record.value))
            try:
                dialogues = load.converted(form, spoken, {}, str(place))
            except Unfit as error:
                reject(record.where, error.reason, error.detail)
                continue
            for dialogue in dialogues:
                part.read += 1
                self._take(part, dialogue.id, self._shared(dialogue))
        return part

    def _shared(self, dialogue: HumanDialogue) -> Told | str:
        """Return a conversation in the shape that the template takes, the agent's side learnt."""
        if dialogue.split and dialogue.split not in self._keep.splits:
            return "other_split"
        if dialogue.left_out:
            return "without_text"  # what was said next answers something that is not there
        sides = {"user": "user", "agent": "assistant"}
        talk = [ChatMessage(sides[turn.role], turn.text) for turn in dialogue.turns]
        shaped = self._facts.shape([ChatMessage("system", dialogue.context), *talk])
        replies = sum(message.role == "assistant" for message in shaped)
        return Told(shaped, [True] * replies) if replies else "no_reply"

    def _take(self, part: Gathered, name: str, told: Told | str) -> bool:
        """Make a row and put it to the others, or count why there is none."""
        if isinstance(told, str):
            part.dropped[told] += 1
            return False
        row = self._row(name, told)
        if isinstance(row, str):
            part.dropped[row] += 1
            return False
        part.rows.append(row)
        part.unlearnt += told.learn.count(False)
        return True

    def _row(self, name: str, told: Told) -> TrainRow | str:
        try:
            masked = templates.mask_rows(self._tokenizer, told.messages, told.learn)
        except DataError:
            return "unfit_text"
        if len(masked.input_ids) > self._max_length:
            return "too_long"
        if templates.untold(self._tokenizer, masked):
            return "unfit_text"
        return TrainRow(name, masked.input_ids, masked.labels)

    @staticmethod
    def reasons(found: Sequence[Gathered]) -> str:
        """Return in words what was left out."""
        total = sum((part.dropped for part in found), Counter[str]())
        return ", ".join(f"{count} {reason}" for reason, count in total.most_common()) or "empty"


class _Candidate(NamedTuple):
    """An episode that passed the filter, and the source it counts for."""

    part: Gathered
    episode: Episode


def _worth(candidate: _Candidate) -> tuple[bool, float]:
    """Return what episodes of a task are ranked by; one without a reward comes last."""
    reward = candidate.episode.outcome.reward
    return reward is not None, reward or 0.0


def unfit(episode: Episode, keep: KeepConfig) -> str:
    """Return why an episode is not learnt from; empty = it is."""
    outcome = episode.outcome
    if not episode.counted:
        return "not_counted"
    if episode.task.split and episode.task.split not in keep.splits:
        return "other_split"
    if keep.success and outcome.success is not True:
        return "no_success"
    if keep.min_reward is None:
        return ""
    if outcome.reward is None:
        return "no_reward"
    return "low_reward" if outcome.reward < keep.min_reward else ""


def replayed(episode: Episode, replies: str = "as-said") -> Told | str:
    """Return an episode as the policy would have seen it, or why that cannot be.

    Args:
        episode: of which only the public side is read.
        replies: see `KeepConfig`.
    """
    if not episode.steps:
        return "no_reply"
    messages, learn, heard_to = [ChatMessage("system", episode.system)], [], 0
    for step in episode.steps:
        reply = _written(step, replies)
        if not reply.strip():
            return "reply_without_text"
        messages.append(ChatMessage("user", _heard(episode.turns[heard_to : step.turn])))
        messages.append(ChatMessage("assistant", reply))
        learn.append(step.valid and episode.turns[step.turn].finish_reason != "length")
        heard_to = step.turn + 1
    return Told(messages, learn) if any(learn) else "no_reply_to_learn"


def _heard(turns: Sequence[Turn]) -> str:
    """Return what reached the agent between two of its replies, as one message."""
    told = (t for t in turns if t.delivered and t.role is not Role.AGENT)
    return "\n\n".join(turn.content for turn in told if turn.content)


def _written(step: Step, replies: str) -> str:
    """Return the text of a reply; an action that could not be read stays as it was said."""
    if replies == "as-said" or step.problem:
        return step.text
    return get_format(replies).render(AgentAction(Choice(step.choice), step.content))


def _spoken(value: Any) -> Any:
    """Return a raw conversation in which tool calls and results are told by the two sides."""
    if not isinstance(value, Mapping):
        return value
    changed = dict(value)
    for key in ("conversations", "messages"):
        if isinstance(value.get(key), list):
            changed[key] = _with_system(value, [_side(entry) for entry in value[key]])
    return changed


def _side(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    key = "from" if "from" in entry else "role"
    name = entry.get(key)
    return {**entry, key: _TOLD[name]} if isinstance(name, str) and name in _TOLD else entry


def _with_system(value: Mapping[str, Any], entries: list[Any]) -> list[Any]:
    """Put a system text that stands beside the list in front of it, where the list has none."""
    system = value.get("system")
    if not (isinstance(system, str) and system.strip() and entries):
        return entries
    if not isinstance(entries[0], Mapping):
        return entries
    key, text = ("from", "value") if "from" in entries[0] else ("role", "content")
    if entries[0].get(key) == "system":
        return entries
    return [{key: "system", text: system}, *entries]
