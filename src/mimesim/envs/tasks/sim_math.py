"""SimulatorArena, mathematics: be the student of a described style in front of a tutor."""

from __future__ import annotations

from pydantic import Field

from mimesim.envs.tasks.arena import (
    INTERACTION,
    TURNS,
    WRITING,
    ArenaRow,
    ArenaTask,
    common_hidden,
    common_public,
)
from mimesim.envs.tasks.base import PACKS, Line, Row, Scene, TaskInfo


class MathRow(ArenaRow):
    """Fields of one row."""

    problem: str = Field(min_length=1)


class SimMath(ArenaTask[MathRow]):
    """Mean of writing, interaction and matched features."""

    info = TaskInfo(
        "sim_math",
        "ROLE",
        "ask a tutor about a problem as a student of a described style",
        "one message; the end marker when done",
        PACKS / "sim_math.jsonl",
        sources=("sim_arena_math",),
        judge_free=False,
        needs_partner=True,
        turns=TURNS,
        floor=0.1333,
    )
    schema = MathRow
    assistant = "tasks/partner/tutor"

    def take(self, row: MathRow) -> Row:
        """Keep the real conversation apart."""
        public = {**common_public(row), "problem": row.problem}
        return Row(public=public, hidden=common_hidden(row))

    async def parts(self, scene: Scene, lines: tuple[Line, ...]) -> dict[str, float | None]:
        """Return the three parts."""
        features = {INTERACTION: scene.hidden[INTERACTION]}
        return {
            "writing": await self.likert(scene, lines, WRITING),
            "interaction": await self.likert(scene, lines, INTERACTION),
            "features": (await self.shares(scene, lines, features))[INTERACTION],
        }


TASK = SimMath()
