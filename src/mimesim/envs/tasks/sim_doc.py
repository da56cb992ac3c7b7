"""SimulatorArena, documents: have an assistant write a text as a person of a described style."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from mimesim import prompts
from mimesim.envs.tasks.arena import (
    INTERACTION,
    TURNS,
    WRITING,
    ArenaRow,
    ArenaTask,
    Feature,
    common_hidden,
    common_public,
)
from mimesim.envs.tasks.base import PACKS, Line, Row, Scene, TaskInfo
from mimesim.judges.base import JudgeRequest
from mimesim.stats.texts import words


class DocRow(ArenaRow):
    """Fields of one row."""

    document_type: str = Field(min_length=1)
    intent: str = Field(min_length=1)
    pre_writing_materials_text: str = ""
    target_writing_style_features: list[Feature] = Field(default_factory=list)
    target_document_preferences: str = ""


class Rating(BaseModel):
    """How good the document is for this person, 1 to 10."""

    reason: str = ""
    rating: int = Field(ge=1, le=10)


class SimDoc(ArenaTask[DocRow]):
    """Mean of the document, two styles and two shares of matched features."""

    info = TaskInfo(
        "sim_doc",
        "CONV",
        "have an assistant write a text, as a person of a described style",
        "one message; the end marker when done",
        PACKS / "sim_doc.jsonl",
        sources=("sim_arena_doc",),
        judge_free=False,
        needs_partner=True,
        turns=TURNS,
        floor=0.1,
    )
    schema = DocRow
    assistant = "tasks/partner/writer"

    def take(self, row: DocRow) -> Row:
        """Keep the real conversation and the preferences apart."""
        public = {
            **common_public(row),
            "kind": row.document_type,
            "intent": row.intent,
            "materials": row.pre_writing_materials_text.strip(),
        }
        writing = [one.model_dump() for one in row.target_writing_style_features]
        hidden = {
            **common_hidden(row),
            WRITING: writing,
            "preferences": row.target_document_preferences,
        }
        return Row(public=public, hidden=hidden)

    async def parts(self, scene: Scene, lines: tuple[Line, ...]) -> dict[str, float | None]:
        """Ask for the final document, then return the five parts."""
        document = await scene.desk.hear(
            self._request(scene, lines, prompts.render("tasks/partner/final"))
        )
        features = {name: scene.hidden[name] for name in (WRITING, INTERACTION)}
        shares = await self.shares(scene, lines, features)
        return {
            "document": await self._rating(scene, document),
            "writing": await self.likert(scene, lines, WRITING),
            "interaction": await self.likert(scene, lines, INTERACTION),
            "writing_features": shares[WRITING],
            "interaction_features": shares[INTERACTION],
        }

    async def _rating(self, scene: Scene, document: str) -> float | None:
        wanted = set(words(scene.public["intent"]))

        def rule(inputs: Mapping[str, Any]) -> dict[str, Any]:
            share = len(wanted & set(words(inputs["document"]))) / max(1, len(wanted))
            return {"rating": 1 + round(9 * share)}

        inputs = {
            "kind": scene.public["kind"],
            "intent": scene.public["intent"],
            "preferences": scene.hidden["preferences"],
            "document": document,
        }
        request = JudgeRequest("tasks/sim_doc", inputs, Rating, seed=scene.seed, rule=rule)
        verdict = await scene.desk.may(request)
        return None if verdict is None else verdict.rating / 10


TASK = SimDoc()
