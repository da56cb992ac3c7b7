"""An environment of verifiers as others write them: guess a number within a few turns."""

from __future__ import annotations

from typing import Any

import verifiers.v1 as vf

__all__ = ["GuessEnv", "GuessTaskset"]


class GuessData(vf.TaskData):
    secret: int


class GuessTask(vf.Task[GuessData]):
    @vf.reward(weight=0.5)
    async def polite(self, trace: Any) -> float:
        return float("please" in trace.last_reply)


class GuessConfig(vf.TasksetConfig):
    highest: int = 40
    broken: bool = False


class GuessTaskset(vf.Taskset[GuessTask, GuessConfig]):
    def load(self) -> Any:
        for number in range(1, self.config.highest + 1):
            data = GuessData(secret=number, prompt="Guess my number.", system_prompt="A game.")
            yield GuessTask(data, self.config.task)


class GuessEnvConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime=vf.SubprocessConfig())


class GuessEnv(vf.Env[GuessEnvConfig]):
    async def run(self, task: Any, agents: Any) -> None:
        found = 0.0
        async with agents.player.interaction(task) as game:
            segment = await game.turn()
            while not segment.terminated:
                if self.config.taskset.broken:
                    raise RuntimeError("the game broke")
                guess = int("".join(c for c in segment.last_reply if c.isdigit()) or 0)
                if guess == task.data.secret:
                    found = 1.0
                    break
                hint = "higher" if guess < task.data.secret else "lower"
                segment = await game.turn(hint)
        game.trace.record_reward("found", found, 0.5)
