"""What every corpus gives: dialogues of two people, its terms of use, and what was left out.

`user` is the side that a simulator learns, `agent` the other one. Order, sides and splits come
from the id of a conversation alone, so they are the same in every run. Text hygiene has its one
home here.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from mimesim import seeds
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import Thought

Side = Literal["user", "agent"]
Split = Literal["", "train", "validation", "test"]

OTHER: Mapping[Side, Side] = {"user": "agent", "agent": "user"}
"""The side opposite to each."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXTS = ("id", "topic", "goal", "context", "earlier", "user_key", "language")


class Unfit(ValueError):
    """One record that cannot become a dialogue; it is counted, noted and left out.

    Attributes:
        reason: a short stable name, e.g. `missing_role`; rejects are counted by it.
        detail: what exactly, for the rejects file; never the text of a conversation.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class Record(NamedTuple):
    """One raw value of a source: a line, a list entry, a table row; `where` is `file:line`."""

    where: str
    value: Any


@dataclass(frozen=True, slots=True)
class HumanTurn:
    """All that one side says before the other answers; `text` is stripped and not empty.

    Attributes:
        thought: what the person thought before this message (turns of `user` only).
        reaction: what the person thought on reading this message (turns of `agent` only).
    """

    role: Side
    text: str
    thought: Thought | None = None
    reaction: Thought | None = None


@dataclass(frozen=True, slots=True)
class HumanDialogue:
    """One conversation: sides alternate, whoever opens; `user` is the side that is learnt.

    Attributes:
        topic: what the people were given to talk about; both know it.
        source: the corpus, a name of `corpora.load`.
        goal: what the learnt person wants or was asked to play; the other side does not know it.
        context: what the learnt side's model is told beforehand, e.g. a persona; kept verbatim.
        earlier: the older part of a long conversation, folded into one text.
        hidden: what nobody says as such: goal slots, records, instructions, ground truth.
        outcome: how it ended: ratings, success, deal.
        user_key: who the person is, as the source says; empty = unknown.
        group_keys: whatever ties conversations together (person, tree, instruction text);
            conversations that share a key, directly or through others, never part in a split.
        split: the part that the source itself fixes; empty = ours to choose.
        flags: what the source says against its own text: toxic, redacted, …
        language: ISO 639-1 code that the source states; empty = unknown.
        left_out: how much of the record is not in the turns, by kind, for the counts:
            messages_left_out (tools, no text), parts_left_out (pictures and the like).
    """

    id: str
    turns: tuple[HumanTurn, ...]
    topic: str = ""
    source: str = ""
    goal: str = ""
    context: str = ""
    earlier: str = ""
    hidden: Mapping[str, Any] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)
    user_key: str = ""
    group_keys: tuple[str, ...] = ()
    split: Split = ""
    flags: tuple[str, ...] = ()
    language: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """Terms of a corpus, stamped into everything that is made from it.

    Attributes:
        moderated: whether people went through the texts; if not, what is trained on them bears
            a label.
        evaluation_only: it serves measurements, so it never enters training.
        simulated: its users are models, so it is no reference for people.
    """

    name: str
    license: str
    redistributable: Literal["yes", "no", "share-alike"]
    training_allowed: Literal["yes", "no", "unknown"]
    citation: str
    moderated: bool
    evaluation_only: bool = False
    simulated: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the terms as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Format:
    """How one corpus is read: the contract that every file of `corpora/formats/` fulfils.

    Attributes:
        info: terms.
        convert: one raw value -> its dialogues, untidied (both sides of a conversation may be
            learnt in turn). It raises `Unfit` for a value that cannot become a dialogue, and
            copies nothing of `hidden` into public text.
        claims: whether a raw value has the keys of this format; detection by keys, never by
            file name.
        gather: joins records that make up one conversation (rows of a table, messages of a
            tree) before `convert`; None = every record is whole.
        splits_lists: whether a file that is one JSON list (or one object of lists) is taken
            entry by entry.
        files: endings of the files of a folder that are read, e.g. (".json",); empty = every
            kind that `places` can read.
        options: names of the options that `convert` knows.
        messages: one raw value -> the list that `formats.transcripts` reads, tools included, for
            episodes; None = what was said is all there is.
    """

    info: CorpusInfo
    convert: Callable[[Any, Mapping[str, Any]], Iterable[HumanDialogue]]
    claims: Callable[[Any], bool]
    gather: Callable[[Iterator[Record]], Iterator[Record]] | None = None
    splits_lists: bool = True
    files: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    messages: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """Loaded dialogues in the order of their ids' hashes, and counts of what was changed.

    `parts` are the terms of every corpus in a mix; empty = `info` is all there is.
    """

    info: CorpusInfo
    dialogues: tuple[HumanDialogue, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    parts: tuple[CorpusInfo, ...] = ()


def tidy(turns: Iterable[HumanTurn], counts: Counter[str]) -> tuple[HumanTurn, ...]:
    """Replace lone surrogates, strip, drop empty turns, then merge neighbours of one side.

    What was done is added to `counts`: `surrogates_replaced`, `empty_turns`, `merged_turns`.
    """
    kept = []
    for turn in turns:
        text = _whole(turn.text, counts)
        if not is_blank(text):
            thought, reaction = (_whole_thought(t, counts) for t in (turn.thought, turn.reaction))
            kept.append(HumanTurn(turn.role, text.strip(), thought, reaction))
        else:
            counts["empty_turns"] += 1
    merged = [
        _joined(list(group)) for _, group in itertools.groupby(kept, key=lambda turn: turn.role)
    ]
    counts["merged_turns"] += len(kept) - len(merged)
    return tuple(merged)


def tidy_texts(dialogue: HumanDialogue) -> HumanDialogue:
    """Replace lone surrogates in all texts of a dialogue beside its turns; `left_out` counts them."""
    counts: Counter[str] = Counter()
    whole: dict[str, Any] = {name: _whole(getattr(dialogue, name), counts) for name in _TEXTS}
    keys = tuple(_whole(key, counts) for key in dialogue.group_keys)
    flags = tuple(_whole(flag, counts) for flag in dialogue.flags)
    if not counts.total():
        return dialogue
    left_out = {**dialogue.left_out, **counts}
    return replace(dialogue, **whole, group_keys=keys, flags=flags, left_out=left_out)


def _whole(text: str, counts: Counter[str]) -> str:
    made, bad = _SURROGATE.subn("\ufffd", text)
    counts["surrogates_replaced"] += bad
    return made


def _whole_thought(thought: Thought | None, counts: Counter[str]) -> Thought | None:
    return thought and Thought(_whole(thought.reveal(), counts))


def _joined(turns: list[HumanTurn]) -> HumanTurn:
    return HumanTurn(
        turns[0].role,
        "\n".join(turn.text for turn in turns),
        _thought(turn.thought for turn in turns),
        _thought(turn.reaction for turn in turns),
    )


def _thought(thoughts: Iterable[Thought | None]) -> Thought | None:
    """Join the thoughts of merged turns by a blank line."""
    words = [thought.reveal() for thought in thoughts if thought]
    return Thought("\n\n".join(words)) if words else None


def cut_at_problem(
    turns: tuple[HumanTurn, ...], problem: Callable[[str], str], counts: Counter[str]
) -> tuple[HumanTurn, ...]:
    """Keep the turns before the first one that `problem` names a reason against.

    A turn in the middle cannot be left out alone: what follows would answer nothing.
    """
    for position, turn in enumerate(turns):
        reason = problem(turn.text)
        if reason:
            counts[f"filtered_{reason}"] += 1
            counts["filtered_turns"] += len(turns) - position
            return turns[:position]
    return turns


def order_key(dialogue_id: str, seed: int = 0) -> int:
    """Return the place of a conversation in the order of a seed, by hash of its id."""
    return seeds.derive(seed, "order", dialogue_id)


def learnt_side(dialogue_id: str) -> int:
    """Return 0 or 1: which of two people is the learnt side, by hash of the id."""
    return seeds.derive(0, "learnt-side", dialogue_id) % 2


def is_held_out(dialogue_id: str, share: float) -> bool:
    """Tell whether a conversation belongs to the held-out `share` (in [0, 1]), by hash of its id."""
    return seeds.derive(0, "held-out", dialogue_id) % 10_000 < round(share * 10_000)
