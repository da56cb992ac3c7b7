"""AlignX: which of two replies this person prefers."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from mimesim import seeds
from mimesim.envs.tasks.base import PACKS, Row, TaskInfo
from mimesim.envs.tasks.letter import LetterTask

EXAMPLES = 2
"""In-context pairs and comments that are shown, at most."""
KINDS = ("demo", "pair", "ugc", "arbitrary", "arb", "history16", "hist16")


class Preferred(BaseModel):
    """An earlier choice of the person."""

    prompt: str = ""
    chosen: str
    rejected: str


class Comment(BaseModel):
    """Something the person wrote."""

    prompt: str = ""
    comment: str


class AlignxRow(BaseModel):
    """Fields of one row; `index` fixes on which side the chosen reply stands."""

    raw_prompt: str = Field(min_length=1)
    chosen: str = Field(min_length=1)
    rejected: str = Field(min_length=1)
    demographic: str = Field(
        "", validation_alias=AliasChoices("demographic", "Demographic Information")
    )
    profile: str = ""
    icl_pairs: list[Preferred] = Field(
        [], validation_alias=AliasChoices("icl_pairs", "Pair-wise Comparative Feedback")
    )
    ugc: list[Comment] = Field([], validation_alias=AliasChoices("ugc", "User-Generated Content"))
    index: int = 0


class Alignx(LetterTask[AlignxRow]):
    """1 if the reply that the person really chose is picked; upper case only."""

    info = TaskInfo(
        "alignx",
        "EVAL",
        "tell which of two replies a person prefers",
        "A or B in the answer tag, upper case",
        PACKS / "alignx.jsonl",
        sources=tuple(f"alignx_{kind}" for kind in KINDS),
    )
    schema = AlignxRow
    form = "one capital letter, A or B"
    letters = "AB"
    either_case = False

    def take(self, row: AlignxRow) -> Row:
        """Put the chosen reply on the side that the row's index gives it."""
        gold = slot(row.index)
        sides = [row.chosen, row.rejected] if gold == "A" else [row.rejected, row.chosen]
        public: dict[str, Any] = {
            "persona": row.demographic.strip() or row.profile.strip(),
            "pairs": [pair.model_dump() for pair in row.icl_pairs[:EXAMPLES]],
            "comments": [comment.model_dump() for comment in row.ugc[:EXAMPLES]],
            "post": row.raw_prompt,
            "options": sides,
        }
        return Row(public=public, hidden={"gold": gold})


def slot(index: int) -> str:
    """Return the letter of the chosen reply.

    The public code seeds a plain generator with the row's index; any other stream would change
    the slots of the published scores.
    """
    return "B" if seeds.plain(index).random() < 0.5 else "A"


TASK = Alignx()
