"""One episode of a task, in the manner of a gym, so that the one driver runs it.

`reset` shows the task; each `step` takes one message of the user model, lets the task react and
keeps what was said. A step that raises has kept nothing and may be tried again. The reward comes
whole in the last step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mimesim.dialogue.stop import Party, StopReason
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import Reply, Usage
from mimesim.envs.base import AgentAction, GymSpec, Observation, StepPrivate, StepResult, Task
from mimesim.envs.tasks import hacks
from mimesim.envs.tasks.base import (
    POLICY,
    Line,
    Reaction,
    Scene,
    Score,
    UserTask,
    spec_of,
    told,
)
from mimesim.envs.tasks.desk import Desk
from mimesim.envs.tasks.partner import Partner
from mimesim.errors import CallerError, EnvError
from mimesim.judges.base import Judge
from mimesim.seeds import derive


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """How a task is scored.

    Attributes:
        mode: one of the task's modes; "" = its default.
        hack_weights: check of `hacks` -> how much of the reward its full value takes away;
            empty = the checks are logged only.
    """

    mode: str = ""
    hack_weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse weights of checks that do not exist.

        Raises:
            ConfigError: naming the check.
        """
        hacks.check_weights(self.hack_weights)


class TaskEnv:
    """One episode of one task (single use)."""

    def __init__(
        self,
        kind: UserTask[Any],
        *,
        judge: Judge | None = None,
        partner: Partner | None = None,
        options: TaskOptions | None = None,
    ) -> None:
        self.spec: GymSpec = spec_of(kind.info)
        self.opening_private = StepPrivate()
        self._kind = kind
        self._options = options or TaskOptions()
        self._mode = self._options.mode or kind.info.modes[0]
        self._desk = Desk(judge, partner)
        self._task: Task | None = None
        self._opening: Observation | None = None
        self._seed = 0
        self._lines: tuple[Line, ...] = ()
        self._replies: tuple[Reply, ...] = ()
        self._turn = 0
        self._done = False
        self._busy = False

    @property
    def user_usage(self) -> Usage:
        """What the partner used: it sits where a gym has its user."""
        return self._desk.partner_usage

    @property
    def judge_usage(self) -> Usage:
        """What the judge used."""
        return self._desk.judge_usage

    async def reset(self, task: Task, *, seed: int) -> Observation:
        """Show the task.

        Raises:
            CallerError: the episode was started before.
            EnvError: the task shows nothing.
            InfraError: a partner that speaks first could not be reached.
        """
        if self._task is not None:
            raise CallerError("a task is single-use: make a new one for each episode")
        scene = Scene(task, (), 0, derive(seed, "opening"), self._desk, self._mode)
        opening = await self._kind.open(scene)
        if is_blank(opening.observation.first_user):
            raise EnvError(f"task {task.id!r} shows nothing")
        self._task, self._seed, self._lines = task, seed, opening.lines
        self._opening = opening.observation
        return opening.observation

    async def step(self, action: AgentAction) -> StepResult:
        """Take one message of the user model.

        Raises:
            CallerError: not started, over, or another step is running.
            JudgeError, InfraError: no verdict or no partner; nothing was kept.
        """
        if self._task is None or self._done:
            raise CallerError("the episode is not running: reset it once, stop when it is done")
        if self._busy:
            raise CallerError("two steps at once on one episode")
        self._busy = True
        try:
            return await self._execute(self._task, action)
        finally:
            self._busy = False

    async def _execute(self, task: Task, action: AgentAction) -> StepResult:
        if action.problem:
            self._done = True
            reason = StopReason.AGENT_INVALID
            return StepResult((), 0.0, True, False, reason, Party.AGENT, False, valid=False)
        said = action.content
        seed = derive(self._seed, "turn", self._turn)
        replies = (*self._replies, action.reply or Reply(None, said))
        scene = Scene(task, self._lines, self._turn, seed, self._desk, self._mode, replies)
        self._desk.verdicts.clear()
        reaction = await self._kind.react(scene, said)
        result = self._result(reaction, said)
        self._lines = (*self._lines, Line(POLICY, said), *reaction.lines)
        self._replies = replies
        self._turn += 1
        self._done = result.done
        return result

    def _result(self, reaction: Reaction, said: str) -> StepResult:
        verdicts = tuple(self._desk.verdicts)
        if reaction.score is None:
            if self._turn + 1 >= self.spec.max_steps or is_blank(reaction.heard):
                raise EnvError("the task neither went on nor ended")
            private = StepPrivate(judge=verdicts)
            return StepResult((told(reaction.heard),), 0.0, False, False, private=private)
        score = reaction.score
        checks = self._checks(said)
        reward = hacks.penalized(score.reward, checks, self._options.hack_weights)
        private = StepPrivate(grading=_grading(score, checks), judge=verdicts)
        reason, by = StopReason.CASE_CLOSED, Party.ENV
        if reaction.left:
            reason, by = StopReason.AGENT_STOP, Party.AGENT
        return StepResult((), reward, True, False, reason, by, score.success, private=private)

    def _checks(self, said: str) -> dict[str, float]:
        opening = self._opening
        assert opening is not None
        shown = [opening.system, opening.first_user]
        shown += [line.text for line in self._lines if line.by != POLICY]
        own = [line.text for line in self._lines if line.by == POLICY]
        return hacks.check(hacks.Talk(tuple(shown), (*own, said)))

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {
            "schema_version": 1,
            "gym": self.spec.name,
            "task_id": self._task.id if self._task else None,
            "seed": self._seed,
            "turns": self._turn,
            "state": {"lines": [list(line) for line in self._lines]},
            "done": self._done,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state of the same task.

        Raises:
            CallerError: the state belongs to another task.
        """
        if self._task is None or state["task_id"] != self._task.id:
            raise CallerError(f"state of task {state['task_id']!r} restored into another task")
        self._seed, self._turn, self._done = state["seed"], state["turns"], state["done"]
        self._lines = tuple(Line(by, text) for by, text in state["state"]["lines"])
        self._replies = tuple(Reply(None, line.text) for line in self._lines if line.by == POLICY)

    async def aclose(self) -> None:
        """Release nothing: judge and partner are shared; twice is harmless."""


def _grading(score: Score, checks: Mapping[str, float]) -> dict[str, Any]:
    return {"score": score.reward, **score.parts, "hacks": dict(checks)}
