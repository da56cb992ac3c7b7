"""BehaviorChain: the next thing a person does, after a chain of what they did before."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, field_validator

from mimesim.corpora.base import Unfit
from mimesim.envs.tasks.base import PACKS, Row, TaskInfo
from mimesim.envs.tasks.letter import LetterTask


class Chapter(BaseModel):
    """A part of the story so far."""

    chapter_num: int | str = ""
    chapter_content: str


class Link(BaseModel):
    """One earlier situation and what the person did in it."""

    context: str
    behavior: str


class BehaviorchainRow(BaseModel):
    """Fields of one row, which the files keep as JSON text under `raw`."""

    persona_name: str = "the person"
    profile_text: str
    history_truncated: list[Chapter] = []
    prior_chain: list[Link] = []
    current_context: str = Field(min_length=1)
    options_dict: dict[str, str]
    right_option_letter: str

    @field_validator("history_truncated", mode="before")
    @classmethod
    def _one_text(cls, value: Any) -> Any:
        return [{"chapter_content": value}] if isinstance(value, str) else value


class Behaviorchain(LetterTask[BehaviorchainRow]):
    """Letter equality."""

    info = TaskInfo(
        "behaviorchain",
        "ROLE",
        "say what a person does next, after a chain of what they did before",
        "one letter A-D in the answer tag",
        PACKS / "behaviorchain.jsonl",
        sources=("behavior_chain",),
    )
    schema = BehaviorchainRow

    def take(self, row: BehaviorchainRow) -> Row:
        """Check that there are options A to D and a right one among them."""
        gold = row.right_option_letter.strip().upper()
        if sorted(row.options_dict) != list("ABCD") or gold not in row.options_dict:
            raise Unfit("bad_row", "options_dict or right_option_letter: expected A to D")
        return Row(
            public={
                "name": row.persona_name,
                "profile": row.profile_text,
                "history": [chapter.chapter_content for chapter in row.history_truncated],
                "chain": [[link.context, link.behavior] for link in row.prior_chain],
                "context": row.current_context,
                "options": [row.options_dict[mark] for mark in "ABCD"],
            },
            hidden={"gold": gold},
            groups=(f"person:{row.persona_name}",),
        )


TASK = Behaviorchain()
