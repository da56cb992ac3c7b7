"""The task contract: environments whose policy is the user model.

A task runs in the same driver as a gym, with the seats turned round: the seat called `agent` there
is the user model that is trained or measured; whoever answers it (a frozen partner model, or
nobody) speaks as the other side. One file per task holds its row schema, its prompts' values, its
roll-out and its reward in [0, 1]; `envs.tasks.env.TaskEnv` does the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from mimesim import prompts
from mimesim.corpora.base import Unfit
from mimesim.dialogue.thinking import split
from mimesim.dialogue.types import PublicMessage, Reply, Role, Thought
from mimesim.envs import actions
from mimesim.envs.base import AgentAction, AgentMove, Choice, GymSpec, Observation, Task
from mimesim.envs.tasks.desk import Desk

PREFIX = "task:"
"""What the `gym` of a task line begins with, so that no task is taken for a gym."""
POLICY = "policy"
"""Who speaks the lines of the model under test."""
PACKS = Path(__file__).parent / "packs"
MAX_SAID = 32_000
"""Longest message of the policy, in characters."""

S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """Static facts about a task.

    Attributes:
        name: the name at the door.
        axis: COG, ROLE, EVAL, CONV or SS (the axes of SOUL), EXTRA for what is none of them.
        summary: what the user model has to do, one line.
        answer: what a well-formed reply looks like.
        sources: values of `data_source` that mark a row of this task; empty = the name.
        judge_free: whether the reward follows from the reply alone.
        needs_partner: whether a frozen model speaks on the other side.
        turns: most messages of the user model.
        floor: mean reward of the null policy on the own rows, under rules alone.
        ceiling: the same of the oracle policy.
        modes: ways to score, the first is the default.
        rows: file of the own rows.
    """

    name: str
    axis: str
    summary: str
    answer: str
    rows: Path
    sources: tuple[str, ...] = ()
    judge_free: bool = True
    needs_partner: bool = False
    turns: int = 1
    floor: float = 0.0
    ceiling: float = 1.0
    modes: tuple[str, ...] = ("fixed",)

    def owns(self, source: str) -> bool:
        """Tell whether rows with this `data_source` are rows of this task."""
        known = {fold_source(name) for name in (*self.sources, self.name)}
        return fold_source(source) in known


def fold_source(source: str) -> str:
    """Return a `data_source` in its normal form: files write `humanual_x` and `humanual-x`."""
    return source.strip().casefold().replace("-", "_")


@dataclass(frozen=True, slots=True)
class Row:
    """A row that was read: what the user model may see, and what decides.

    Attributes:
        groups: what ties rows together (a story, a person); a split never parts a group.
        id: of the row within its task; "" = made from its content.
    """

    public: Mapping[str, Any]
    hidden: Mapping[str, Any]
    groups: tuple[str, ...] = ()
    id: str = ""


class Line(NamedTuple):
    """One thing that was said; `by` is `POLICY` or the name of whoever else spoke."""

    by: str
    text: str


@dataclass(frozen=True, slots=True)
class Score:
    """The end of an episode.

    Attributes:
        reward: in [0, 1].
        parts: what the reward is made of, and what is only logged.
        success: whether the task was solved; None where there is no such thing.
    """

    reward: float
    parts: Mapping[str, Any] = field(default_factory=dict)
    success: bool | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """What a task knows when the user model has spoken; `lines` end before what it said now.

    Attributes:
        turn: how many messages of the user model were executed before this one.
        seed: of this turn.
        desk: judge and partner.
        mode: way to score.
        replies: the messages of the user model with their thoughts, the one it said now included.
    """

    task: Task
    lines: tuple[Line, ...]
    turn: int
    seed: int
    desk: Desk
    mode: str = "fixed"
    replies: tuple[Reply, ...] = ()

    @property
    def public(self) -> Mapping[str, Any]:
        """What the user model was shown."""
        return self.task.public

    @property
    def hidden(self) -> Mapping[str, Any]:
        """What decides."""
        return self.task.hidden

    def spoken(self, said: str | None = None) -> tuple[str, ...]:
        """Return the messages of the user model, `said` included when it is given."""
        own = tuple(line.text for line in self.lines if line.by == POLICY)
        return own if said is None else (*own, said)


@dataclass(frozen=True, slots=True)
class Opening:
    """What the user model is told first, and what was said before it speaks."""

    observation: Observation
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class Reaction:
    """What follows a message of the user model.

    Attributes:
        heard: what it is told next; nothing when the episode is over.
        lines: what is added to the record of the scene, its own message excluded.
        score: set when the episode is over.
        left: whether the user model itself ended the conversation.
    """

    heard: str = ""
    lines: tuple[Line, ...] = ()
    score: Score | None = None
    left: bool = False


class UserTask(ABC, Generic[S]):
    """One task; without state, so one object serves all episodes."""

    info: TaskInfo
    schema: type[S]

    def read(self, extra: Mapping[str, Any]) -> Row:
        """Read the fields of one row.

        Raises:
            Unfit: a field is missing, of the wrong kind, or contradicts another one.
        """
        try:
            row = self.schema.model_validate(dict(extra))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "the row"
            raise Unfit("bad_row", f"{place}: {first['msg']}") from None
        return self.take(row)

    @abstractmethod
    def take(self, row: S) -> Row:
        """Part a typed row into what is shown and what decides.

        Raises:
            Unfit: the fields contradict one another.
        """

    @abstractmethod
    async def open(self, scene: Scene) -> Opening:
        """Return what the user model is told first; its `first_user` is never blank.

        Raises:
            InfraError: a partner that speaks first could not be reached.
        """

    @abstractmethod
    async def react(self, scene: Scene, said: str) -> Reaction:
        """Answer a message of the user model, or end with a score; nothing is kept inside.

        Raises:
            JudgeError, InfraError: no verdict or no partner; the turn may be tried again.
        """

    @abstractmethod
    def oracle(self, task: Task, turn: int) -> str:
        """Return what a policy that knows everything says in this turn; it earns `ceiling`."""

    def null(self, task: Task, turn: int) -> str:
        """Return what a policy that does nothing says; it earns `floor`."""
        return "..."


class AnswerTask(UserTask[S]):
    """A task of one reply that is graded by rule."""

    form: str
    """What stands inside the answer tag, in words for the prompt."""

    async def open(self, scene: Scene) -> Opening:
        """Return the question and how the answer is to be written."""
        system = prompts.render("tasks/answer", form=self.form)
        text = prompts.render(f"tasks/{self.info.name}", **scene.public)
        return Opening(Observation(system=system, first_user=text))

    async def react(self, scene: Scene, said: str) -> Reaction:
        """Grade the reply."""
        return Reaction(score=self.grade(scene.task, said, scene.mode))

    @abstractmethod
    def grade(self, task: Task, said: str, mode: str) -> Score:
        """Grade a reply; no readable answer is 0, for it is the simulator that failed."""

    def oracle(self, task: Task, turn: int) -> str:
        """Return the right answer in its tag."""
        return f"<answer>{self.right(task)}</answer>"

    @abstractmethod
    def right(self, task: Task) -> str:
        """Return the right answer."""


def right_or_wrong(right: object, **parts: Any) -> Score:
    """Return 1 or 0 with what was read."""
    return Score(float(bool(right)), parts, bool(right))


def spec_of(info: TaskInfo) -> GymSpec:
    """Return the facts of a task as the driver wants them."""
    return GymSpec(
        name=PREFIX + info.name,
        choices=(Choice.ACTION,),
        max_steps=info.turns,
        step_bounds=(0.0, 1.0),
        return_bound=1.0,
        needs_user=False,
        needs_judge=not info.judge_free,
        summary=info.summary,
    )


class PlainFormat(actions.PlainFormat):
    """The action format of tasks: the whole public text is what the user model says.

    Unlike in a conversation a blank message counts, and the private thought goes along.
    """

    def instructions(self, spec: GymSpec) -> str:
        """Return nothing: the task itself says how to answer."""
        return ""

    def parse(self, move: AgentMove, spec: GymSpec) -> AgentAction:
        """Take the text as it is, private reasoning removed."""
        if move.action is not None:
            return move.action
        text = split(move.text, finish_reason=move.finish_reason).text.strip()
        long = f"longer than {MAX_SAID} characters" if len(text) > MAX_SAID else ""
        thought = Thought(move.reasoning) if move.reasoning else None
        reply = Reply(thought, text, finish_reason=move.finish_reason)
        return AgentAction(Choice.ACTION, text, problem=long, reply=reply)


PLAIN = PlainFormat()


def told(text: str) -> PublicMessage:
    """Return what the user model hears, in the role that the driver gives the other side."""
    return PublicMessage(Role.USER, text)
