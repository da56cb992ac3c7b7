"""What the paired test asks: a free comparison first, then five yes-or-no answers read from it.

To ask for the answers at once would be another, easier task. With the prompts of the user's copy of
the data the result is called `pt3`, with ours `pt3-own`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mimesim.bench.suites.questions import Question
from mimesim.errors import DataError
from mimesim.judges.base import Failed, Prose
from mimesim.judges.pairwise import Order
from mimesim.stats.texts import words

COMPARE = "pt3.compare"
FORMAT = "pt3.format"
_HEADINGS = ("SYSTEM PROMPT", "FORMATTING PROMPT")
_UNDERLINED = re.compile(r"^[ \t]*(\S[^\n]*?)[ \t]*\n[ \t]*=+[ \t]*$", re.MULTILINE)
_LONG_WORD = 8
_FEELING = re.compile(r"[!]|\b(?:please|thanks|thank you|sorry|ugh|great|love|hate|damn)\b", re.I)


class Side(BaseModel):
    """Whether the two users match on one side."""

    is_matched: bool


class Five(BaseModel):
    """The five sides, each of which must be there."""

    Persona_Affective_Traits_Match: Side
    Linguistic_Style_Mechanics_Match: Side
    Technical_Competency_Knowledge_Match: Side
    Interaction_Data_Flow_Match: Side
    Pacing_Action_Sequencing_Match: Side


SIDES = tuple(Five.model_fields)
"""D1 to D5."""
_TREATED = tuple(
    re.compile(words_of_side, re.IGNORECASE)
    for words_of_side in (
        r"\b(?:temper|persona|affect|emotion|mood|tone|patien|friendl|attitude)",
        r"\b(?:writ|linguis|style|spell|punctuat|grammar|wording|formal)",
        r"\b(?:know|technical|competen|expert|terms)",
        r"\b(?:exchang|interact|inform|data|volunteer|ask)",
        r"\b(?:course|pac(?:e|ing)|sequenc|order|steps?\b)",
    )
)
"""Words by which a comparison shows that it treats a side; ours and those of the data."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """Prompts of the user's copy of the data; empty = ours."""

    compare: str = ""
    format: str = ""


def read_prompts(path: str) -> Prompts:
    """Read `judge_prompt.txt`: two sections, each under a title that is underlined with `=`.

    Raises:
        DataError: no such file, or a section is missing.
    """
    if not path:
        return Prompts()
    file = Path(path)
    if not file.is_file():
        raise DataError("no such file", where=path, expected="evaluation/judge_prompt.txt")
    text = file.read_text("utf-8")
    titles = list(_UNDERLINED.finditer(text))
    ends = [title.start() for title in titles[1:]] + [len(text)]
    found = {
        title.group(1).strip().strip("=").strip().upper(): text[title.end() : end].strip("\n= \t")
        for title, end in zip(titles, ends, strict=True)
    }
    sections = []
    for heading in _HEADINGS:
        section = next((body for name, body in found.items() if name.startswith(heading)), "")
        if not section:
            raise DataError(f"no section {heading!r}", where=path, expected="a title over ====")
        sections.append(section)
    return Prompts(*sections)


def question(
    item: str, human: Sequence[str], synthetic: Sequence[str], prompts: Prompts, *, sample: int = 0
) -> Question:
    """Return the question on one case; the person stands first, in sample 1 second."""
    sides = [[{"role": "user", "content": text} for text in said] for said in (human, synthetic)]
    first, second = sides if sample == 0 else sides[::-1]

    def told(_: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": "; ".join(f"{k}: {v}" for k, v in _compared(human, synthetic).items())}

    def read(found: Prose) -> Question | Failed:
        if not all(side.search(found.text) for side in _TREATED):
            return Failed("the comparison does not treat all five sides")
        return Question(
            item,
            FORMAT,
            {"comparison": found.text, "instructions": prompts.format},
            Five,
            rule=lambda _: _answers(human, synthetic),
            sample=sample,
        )

    order = Order.REFERENCE_FIRST if sample == 0 else Order.SUBJECT_FIRST
    return Question(
        item,
        COMPARE,
        {
            "first": first,
            "second": second,
            "instructions": prompts.compare,
            "later": prompts.format,  # not shown yet; another form is another question
        },
        Prose,
        rule=told,
        then=read,
        later=(FORMAT,),
        verdict=Five,
        order=order.value,
        sample=sample,
    )


def matches(value: Mapping[str, Any]) -> list[bool]:
    """Return the five answers of a verdict, D1 to D5."""
    return [bool(value[name]["is_matched"]) for name in SIDES]


def _answers(human: Sequence[str], synthetic: Sequence[str]) -> dict[str, Any]:
    return {name: {"is_matched": same} for name, same in _compared(human, synthetic).items()}


def _compared(human: Sequence[str], synthetic: Sequence[str]) -> dict[str, bool]:
    """Compare two lists of messages by plain counts: a rule for trying the suite, no judge."""
    measures: tuple[tuple[Callable[[Sequence[str]], float], float], ...] = (
        (lambda said: _share(said, lambda text: bool(_FEELING.search(text))), 0.34),
        (_style, 0.5),
        (_long_words, 0.1),
        (lambda said: _share(said, lambda text: "?" in text), 0.34),
        (len, 1.0),
    )
    return {
        name: abs(measure(human) - measure(synthetic)) <= most
        for name, (measure, most) in zip(SIDES, measures, strict=True)
    }


def _share(said: Sequence[str], test: Callable[[str], bool]) -> float:
    return sum(test(text) for text in said) / max(1, len(said))


def _style(said: Sequence[str]) -> float:
    """Return how rough it is written, and a share of its length."""
    rough = _share(said, lambda text: text[:1].islower()) + _share(
        said, lambda text: text[-1:].isalnum()
    )
    return rough + sum(len(words(text)) for text in said) / max(1, len(said)) / 40


def _long_words(said: Sequence[str]) -> float:
    found = [word for text in said for word in words(text)]
    return sum(len(word) >= _LONG_WORD for word in found) / max(1, len(found))
