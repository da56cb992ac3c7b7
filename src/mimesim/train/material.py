"""What a user training works with: rows to learn from, rows to validate on, rows to score.

A corpus that `mimesim data build` made has its splits; any other one is split by the hash of its
conversations' ids, those of one person or one instruction together. Scores are taken of every
corpus apart, so each gives the same number of conversations, in hash order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mimesim import seeds
from mimesim.corpora.base import Corpus, CorpusInfo, HumanDialogue, is_held_out, order_key
from mimesim.corpora.load import open_corpus
from mimesim.corpora.splits import Components
from mimesim.errors import DataError
from mimesim.train import thought
from mimesim.train.rows import SYSTEM_TEMPLATE, Rows, TrainRow, midtrain_rows

Stage = Literal["midtrain", "thought"]

_GOAL_TEMPLATE = "user/midtrain_goal"
_NOTHING = Rows([], {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows are wanted; the fields are those of `train.midtrain.UserConfig`."""

    corpus: str
    stage: Stage
    reactions: bool
    limit: int
    token_budget: int
    held_out_share: float
    eval_conversations: int
    validation_conversations: int
    max_length: int
    seed: int


@dataclass(frozen=True, slots=True)
class Material:
    """Rows of one training, and where they come from.

    Attributes:
        held_dialogues: the conversations behind `held_out`.
        serving_template: prompt template of the system text when the trained user is at work.
    """

    corpus: Corpus
    train: Rows
    validation: Rows
    held_out: Rows
    held_dialogues: tuple[HumanDialogue, ...]
    serving_template: str

    @property
    def terms(self) -> tuple[CorpusInfo, ...]:
        """Terms of every corpus in it."""
        return self.corpus.parts or (self.corpus.info,)

    @property
    def moderated(self) -> bool:
        """Whether people went through all the texts."""
        return all(terms.moderated for terms in self.terms)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return what was read, cut and left out."""
        return {
            "corpus": dict(self.corpus.counts),
            "train": dict(self.train.counts),
            "validation": dict(self.validation.counts),
            "held_out": dict(self.held_out.counts),
        }


def system_template(stage: Stage) -> str:
    """Return the prompt template of the system text of training rows."""
    return thought.SYSTEM_TEMPLATE if stage == "thought" else SYSTEM_TEMPLATE


def read_corpus(wanted: Wanted) -> Corpus:
    """Read the conversations; before any model is loaded, for a wrong place is told at once then.

    Raises:
        DataError: the place is missing, or damaged.
        UsageError: its terms forbid training.
        EnvironmentFault: the corpus is not installed.
    """
    return open_corpus(wanted.corpus, limit=wanted.limit or None, for_training=True)


def gather(tokenizer: Any, wanted: Wanted, corpus: Corpus) -> Material:
    """Split and tokenize.

    Raises:
        DataError: the corpus does not give both a training and a held-out part.
        EnvironmentFault: the template is unfit.
    """
    train, validation, held = _parts(corpus.dialogues, wanted)
    if not held or not train:
        raise DataError(
            f"{len(corpus.dialogues)} conversations do not give both a training and a held-out part",
            where=wanted.corpus,
            expected=f"enough for a held-out share of {wanted.held_out_share}",
            mend="take more conversations or another held_out_share",
        )
    held = _some_of_each(held, wanted.eval_conversations)
    validation = _some_of_each(validation, wanted.validation_conversations)
    return Material(
        corpus=corpus,
        train=_budgeted(tokenizer, train, wanted),
        validation=_rows(tokenizer, validation, wanted) if validation else _NOTHING,
        held_out=_rows(tokenizer, held, wanted),
        held_dialogues=tuple(held),
        serving_template=_serving_template(wanted.stage, train),
    )


def _parts(
    dialogues: Sequence[HumanDialogue], wanted: Wanted
) -> tuple[list[HumanDialogue], list[HumanDialogue], list[HumanDialogue]]:
    """Return the training, validation and held-out parts."""
    if any(dialogue.split for dialogue in dialogues):
        by_split = defaultdict(list)
        for dialogue in dialogues:
            by_split[dialogue.split or "train"].append(dialogue)
        held = by_split["test"] or by_split["validation"]
        return by_split["train"], by_split["validation"], held
    free: list[HumanDialogue] = []
    held = []
    for dialogue, group in zip(dialogues, _groups(dialogues), strict=True):
        (held if is_held_out(group, wanted.held_out_share) else free).append(dialogue)
    scored = {dialogue.id for dialogue in _some_of_each(held, wanted.eval_conversations)}
    return free, [dialogue for dialogue in held if dialogue.id not in scored], held


def _groups(dialogues: Sequence[HumanDialogue]) -> list[str]:
    """Return for each conversation the first id of all that share a person or a text with it."""
    components, first_with = Components(len(dialogues)), dict[str, int]()
    for number, dialogue in enumerate(dialogues):
        for key in dialogue.group_keys or filter(None, [dialogue.user_key]):
            components.join(first_with.setdefault(f"{dialogue.source}/{key}", number), number)
    names: dict[int, str] = {}
    for number, dialogue in enumerate(dialogues):
        root = components.root(number)
        names[root] = min(names.get(root, dialogue.id), dialogue.id)
    return [names[components.root(number)] for number in range(len(dialogues))]


def _some_of_each(dialogues: Iterable[HumanDialogue], count: int) -> list[HumanDialogue]:
    """Return the first `count` conversations of each corpus, in hash order."""
    taken: dict[str, int] = defaultdict(int)
    kept = []
    for dialogue in sorted(dialogues, key=lambda dialogue: order_key(dialogue.id)):
        if taken[dialogue.source] < count:
            taken[dialogue.source] += 1
            kept.append(dialogue)
    return kept


def _rows(tokenizer: Any, dialogues: Iterable[HumanDialogue], wanted: Wanted) -> Rows:
    if wanted.stage == "thought":
        return thought.thought_rows(
            tokenizer, dialogues, wanted.max_length, reactions=wanted.reactions
        )
    return midtrain_rows(tokenizer, dialogues, wanted.max_length)


def _budgeted(tokenizer: Any, dialogues: list[HumanDialogue], wanted: Wanted) -> Rows:
    """Take rows in an order drawn from the seed until the token budget is reached."""
    seeds.generator(wanted.seed, "midtrain-rows").shuffle(dialogues)
    made = _rows(tokenizer, dialogues, wanted)
    taken: list[TrainRow] = []
    tokens = 0
    for row in made.rows:
        if wanted.token_budget and tokens >= wanted.token_budget:
            break
        taken.append(row)
        tokens += len(row.input_ids)
    return Rows(taken, {**made.counts, "rows_trained": len(taken)})


def _serving_template(stage: Stage, dialogues: Iterable[HumanDialogue]) -> str:
    """Return the template that tells a scenario in the place where training told a goal."""
    if stage == "thought":
        return thought.SERVING_TEMPLATE
    told = any(dialogue.goal for dialogue in dialogues)
    return _GOAL_TEMPLATE if told else SYSTEM_TEMPLATE
