"""The environment's side: it reads the end from a substring of what the user says."""

from __future__ import annotations

from typing import Any

from mimesim.dialogue.stop import END_MARKER
from tau_bench.envs.user import load_user


class Env:
    def __init__(self, user_strategy: str, user_model: str, instruction: str) -> None:
        self.user = load_user(user_strategy=user_strategy, model=user_model, provider=None)
        self.instruction = instruction

    def reset(self) -> str:
        return str(self.user.reset(instruction=self.instruction))

    def step(self, content: str) -> tuple[str, bool]:
        observation: Any = self.user.step(content)
        return observation, END_MARKER in observation
