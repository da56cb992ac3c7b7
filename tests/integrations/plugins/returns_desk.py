"""A taskset of verifiers whose reward reads what the agent said, never the prompt."""

from __future__ import annotations

from typing import Any

import verifiers.v1 as vf

from tests.support.dropins import PERSON

__all__ = ["DeskTaskset"]


class DeskData(vf.TaskData):
    scenario: dict[str, Any]


class DeskTask(vf.Task[DeskData]):
    @vf.reward
    async def served(self, trace: Any) -> float:
        return float(any("on its way" in str(m.content) for m in trace.assistant_messages))


class DeskTaskset(vf.Taskset[DeskTask]):
    def load(self) -> Any:
        for number in range(2):
            data = DeskData(
                idx=number, prompt=PERSON["goal"], scenario=PERSON, system_prompt="A desk."
            )
            yield DeskTask(data)
