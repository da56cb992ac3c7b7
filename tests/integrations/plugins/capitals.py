"""The plainest environment of verifiers: one question, one answer, a reward."""

from __future__ import annotations

from typing import Any

import verifiers.v1 as vf

__all__ = ["CapitalsTaskset"]

CAPITALS = {"Veldland": "Orbeck", "Sarnia": "Caldin", "Ostrel": "Holby", "Nethmark": "Kestin"}


class CapitalData(vf.TaskData):
    answer: str


class CapitalTask(vf.Task[CapitalData]):
    @vf.reward
    async def right(self, task: CapitalData, trace: Any) -> float:
        return float(trace.last_reply == task.answer)


class CapitalsTaskset(vf.Taskset[CapitalTask]):
    def load(self) -> Any:
        for land, town in CAPITALS.items():
            yield CapitalTask(CapitalData(prompt=f"What is the capital of {land}?", answer=town))
