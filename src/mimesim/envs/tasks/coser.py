"""CoSER: play every character of a scene from a book; a judge grades the scene on four sides.

A partner plays the surroundings and names the next speaker. All characters are spoken by one
conversation of the user model (the driver has one policy per episode), which is told each time
whose turn it is; the grade is given to the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from mimesim import prompts
from mimesim.corpora.base import Unfit
from mimesim.envs.base import Observation, Task
from mimesim.envs.tasks.answers import as_object, likeness, names
from mimesim.envs.tasks.base import (
    PACKS,
    POLICY,
    Line,
    Opening,
    Reaction,
    Row,
    Scene,
    Score,
    TaskInfo,
    UserTask,
)
from mimesim.envs.tasks.partner import PartnerRequest
from mimesim.judges.base import JudgeRequest
from mimesim.models.base import ChatMessage

ROUNDS = 10
"""Most messages of a scene, the surroundings included."""
END_FROM = 5
"""Index of the first message after which the scene may end."""
ENVIRONMENT = "Environment"
SIDES = ("storyline_consistency", "anthropomorphism", "character_fidelity", "storyline_quality")
_END = "<END CHAT>"
_CUE = "cue"
"""Who writes the line that says whose turn it is; such lines are no part of the scene."""
_THOUGHTS = re.compile(r"\[[^\]]*\]")


class Said(BaseModel):
    """One message of the book's own scene."""

    character: str = Field(min_length=1)
    message: str


class Part(BaseModel):
    """A character with what is known of it."""

    name: str = Field(min_length=1)
    description: str = ""
    motivation: str = Field("", validation_alias=AliasChoices("motivation", "thought"))


class Plot(BaseModel):
    """The part of the book around the scene."""

    summary: str = ""
    key_characters: list[Part] = []


class CoserRow(BaseModel):
    """Fields of one row; the files keep them under `circumstance`."""

    book: str = Field(min_length=1)
    plot: Plot
    scenario: str = Field(min_length=1)
    dialogues: list[Said] = Field(min_length=1)
    major_characters: list[str] = Field(min_length=1)
    character_profiles: dict[str, str] = Field(
        {}, validation_alias=AliasChoices("character_profiles", "profiles")
    )
    speaking_characters_w_env: list[str] = []
    key_characters: list[Part] = []


class Circumstance(BaseModel):
    """A row as the files hold it."""

    circumstance: Annotated[CoserRow, BeforeValidator(as_object)]


class Four(BaseModel):
    """The four grades."""

    reason: str = ""
    storyline_consistency: int = Field(ge=1, le=10)
    anthropomorphism: int = Field(ge=1, le=10)
    character_fidelity: int = Field(ge=1, le=10)
    storyline_quality: int = Field(ge=1, le=10)

    def grades(self) -> dict[str, float]:
        """Return the grades of 1 to 10 as 0 to 100."""
        return {name: percent(int(self.model_dump()[name])) for name in SIDES}


class Coser(UserTask[Circumstance]):
    """Mean of the four grades."""

    info = TaskInfo(
        "coser",
        "ROLE",
        "play the characters of a scene from a book, each in turn",
        "one short message in the voice of the character whose turn it is",
        PACKS / "coser.jsonl",
        judge_free=False,
        needs_partner=True,
        turns=ROUNDS,
    )
    schema = Circumstance

    def read(self, extra: Mapping[str, Any]) -> Row:
        """Read a row whose fields stand under `circumstance` or lie open.

        Raises:
            Unfit: a field is missing or of the wrong kind.
        """
        return super().read(extra if "circumstance" in extra else {"circumstance": extra})

    def take(self, row: Circumstance) -> Row:
        """Gather what is known of each character."""
        scene = row.circumstance
        speakers = scene.speaking_characters_w_env or [said.character for said in scene.dialogues]
        cast = [name for name in dict.fromkeys(speakers) if name != ENVIRONMENT]
        if not cast:
            raise Unfit("bad_row", "dialogues: nobody but the surroundings speaks")
        described = {part.name: part.description for part in scene.plot.key_characters}
        moved = {part.name: part.motivation for part in scene.key_characters}
        parts = [
            {
                "name": name,
                "profile": " ".join(
                    filter(None, (described.get(name, ""), scene.character_profiles.get(name, "")))
                ),
                "motivation": moved.get(name, ""),
            }
            for name in cast
        ]
        return Row(
            public={
                "book": scene.book,
                "plot": scene.plot.summary,
                "scenario": scene.scenario,
                "cast": parts,
                "first": speakers[0],
            },
            hidden={
                "reference": [
                    {"role": said.character, "text": public_part(said.message)}
                    for said in scene.dialogues
                ],
                "major": [n for n in scene.major_characters if n in cast] or cast,
            },
            groups=(f"book:{scene.book}",),
        )

    async def open(self, scene: Scene) -> Opening:
        """Tell the scene and whose turn it is."""
        lines = await self._to_next(scene, (), scene.public["first"])
        opening = Observation(
            system=prompts.render("tasks/coser", **scene.public),
            first_user=_told(lines) if lines else "",
        )
        return Opening(opening, lines)

    async def react(self, scene: Scene, said: str) -> Reaction:
        """Let the surroundings speak and name the next character, or end and judge."""
        lines = (*scene.lines, Line(POLICY, said))
        following = await self._next(scene, lines)
        added = await self._to_next(scene, lines, following)
        if not added or added[-1].by != _CUE:
            score = await self._judge(scene, (*lines, *added))
            return Reaction(lines=added, score=score)
        return Reaction(_told(added), added)

    async def _to_next(
        self, scene: Scene, lines: tuple[Line, ...], speaker: str
    ) -> tuple[Line, ...]:
        """Return what is said until a character has its turn; without a cue the scene is over."""
        added: tuple[Line, ...] = ()
        while speaker != _END and len(transcript((*lines, *added))) < ROUNDS:
            if speaker != ENVIRONMENT:
                return (*added, Line(_CUE, speaker))
            text = await self._surroundings(scene, (*lines, *added))
            added = (*added, Line(ENVIRONMENT, text))
            speaker = await self._next(scene, (*lines, *added))
        return added

    async def _surroundings(self, scene: Scene, lines: tuple[Line, ...]) -> str:
        place, reference = len(transcript(lines)), scene.hidden["reference"]
        known = reference[place] if place < len(reference) else {"role": ""}
        quiet = f"Nothing stirs around them; it is moment {place + 1}."
        text = known["text"] if known["role"] == ENVIRONMENT else quiet
        return await self._ask(scene, "tasks/partner/surroundings", lines, text)

    async def _next(self, scene: Scene, lines: tuple[Line, ...]) -> str:
        """Return who speaks next: a character, the surroundings, or the end."""
        said, reference = transcript(lines), scene.hidden["reference"]
        place = len(said)
        if place >= ROUNDS:
            return _END
        rule = reference[place]["role"] if place < len(reference) else _END
        told = await self._ask(scene, "tasks/partner/next_speaker", lines, rule)
        if names("END CHAT", told) and place > END_FROM:
            return _END
        cast: list[str] = [part["name"] for part in scene.public["cast"]]
        found = [name for name in (*cast, ENVIRONMENT) if names(name, told)]
        if found and not names("END CHAT", told):
            return found[0]
        major: list[str] = scene.hidden["major"]  # nobody we know: the next one in turn
        last = next((m["role"] for m in reversed(said) if m["role"] in major), major[-1])
        return major[(major.index(last) + 1) % len(major)]

    async def _ask(self, scene: Scene, template: str, lines: tuple[Line, ...], rule: str) -> str:
        system = prompts.render(
            template,
            scenario=scene.public["scenario"],
            cast=[part["name"] for part in scene.public["cast"]],
            environment=ENVIRONMENT,
            end=_END,
        )
        shown = prompts.render("tasks/scene", turns=transcript(lines))
        request = PartnerRequest(system, [ChatMessage("user", shown)], scene.seed, lambda: rule)
        return await scene.desk.hear(request)

    async def _judge(self, scene: Scene, lines: tuple[Line, ...]) -> Score:
        reference = scene.hidden["reference"]

        def rule(inputs: Mapping[str, Any]) -> dict[str, Any]:
            share = likeness(_spoken(inputs["simulated"]), _spoken(reference[:ROUNDS]))
            return dict.fromkeys(SIDES, 1 + round(9 * share))

        simulated = [{**m, "text": public_part(m["text"])} for m in transcript(lines)]
        verdict = await scene.desk.must(
            JudgeRequest(
                "tasks/coser",
                {**scene.public, "reference": reference, "simulated": simulated},
                Four,
                seed=scene.seed,
                rule=rule,
            )
        )
        grades = verdict.grades()
        return Score(sum(grades.values()) / len(SIDES) / 100, grades)

    def oracle(self, task: Task, turn: int) -> str:
        """Say what the book says."""
        spoken = [m["text"] for m in task.hidden["reference"] if m["role"] != ENVIRONMENT]
        return str(spoken[turn])


def percent(grade: float) -> float:
    """Return a grade of 1 to 10 on the scale 0 to 100, to one decimal."""
    return round((grade - 1) * 100 / 9, 1)


def public_part(message: str) -> str:
    """Return a message without the inner thoughts, which the books' scenes put in brackets."""
    return " ".join(_THOUGHTS.sub(" ", message).split())


def transcript(lines: tuple[Line, ...]) -> list[dict[str, str]]:
    """Return the scene so far, each message under the character that spoke it."""
    found: list[dict[str, str]] = []
    speaker = ""
    for by, text in lines:
        if by == _CUE:
            speaker = text
        else:
            found.append({"role": speaker if by == POLICY else by, "text": text})
    return found


def _spoken(turns: Sequence[Mapping[str, str]]) -> str:
    """Return what the characters say, the surroundings left out."""
    return " ".join(turn["text"] for turn in turns if turn["role"] != ENVIRONMENT)


def _told(lines: tuple[Line, ...]) -> str:
    """Return what happened since, and whose turn it is."""
    turns = transcript(lines)
    return prompts.render("tasks/coser_turn", turns=turns, speaker=lines[-1].text)


TASK = Coser()
