"""The gym `persuade`: move a person away from a view that it holds, with reasons.

The agent sees the claim only. The person answers, a judge says where it stands, and only ground
that was never reached before is paid, so that a stance which swings to and fro earns nothing twice,
as it does in the original (`compat`: `persuade_reward` = `previous`).

A task:
    public: {"claim": text}
    hidden: {
        "argument": why the person holds the claim; the agent never sees it,
        "counterpoints": [{"id": name, "cues": [[word, ...], ...]}, ...], each once,
        "max_level": 1 to 6, the level beyond which the scripted person does not go,
        "oracle_trace": [["answer", text], ...],
        "scenario": {"id", "goal", "meta": {"profile": "asked"}},
    }
    groups: ("claim:<name>",); tasks on the same claim share it.
    meta: {"source", "license", "schema": 1}; "cues": "derived" where they were not written by hand.

A counterpoint moves the scripted person by one level when an argument holds all words of one of its
keyword groups for the first time; an insult sets it back by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import BaseModel

from mimesim import prompts
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import Reply
from mimesim.envs.base import AgentAction, Choice, GymSpec, Task
from mimesim.envs.gyms.persuade.person import LAST, STANCES, Mind, Point, consider, from_wish, speak
from mimesim.envs.turns.cues import read_cue
from mimesim.envs.turns.kind import scripted
from mimesim.envs.turns.law import TurnGym
from mimesim.envs.turns.parts import BadAction, Opening, Question, Turn, as_speech
from mimesim.errors import DataError
from mimesim.judges.rubric import shown

SPEC = GymSpec(
    name="persuade",
    choices=(Choice.ANSWER,),
    max_steps=16,
    step_bounds=(0.0, 1.0),
    return_bound=1.0,
    needs_user=True,
    needs_judge=True,
    summary="move a person away from a view, with reasons",
    person="person",
)
MAX_ARGUMENT = 4000
"""Characters of one argument."""
UNKNOWN = -1
"""The level that compat stores for a stance which is none of the seven."""


class Stance(BaseModel):
    """Where a person stands towards a claim."""

    stance: Literal[
        "Strongly Agree",
        "Agree",
        "Partly Agree",
        "Neutral",
        "Partly Disagree",
        "Disagree",
        "Strongly Disagree",
    ]


class AnyStance(BaseModel):
    """The same as the original reads it: any text, compared letter by letter."""

    stance: str


@dataclass(frozen=True, slots=True)
class State:
    """Where the person stands.

    Attributes:
        level: as judged last. best: the highest so far.
        mind: the scripted person's own.
    """

    level: int = 0
    best: int = 0
    mind: Mind = field(default_factory=Mind)


@dataclass(frozen=True, slots=True)
class Hidden:
    """The hidden side of a task."""

    argument: str
    points: tuple[Point, ...]
    most: int

    @property
    def reachable(self) -> int:
        """The level to which the points can move the scripted person."""
        return min(self.most, len(self.points))


def read_hidden(task: Task) -> Hidden:
    """Return the hidden side.

    Raises:
        DataError: it lacks something, or its counterpoints cannot be read.
    """
    where = f"task {task.id!r}"
    argument, listed = task.hidden.get("argument"), task.hidden.get("counterpoints")
    most = task.hidden.get("max_level")
    if not isinstance(task.public.get("claim"), str) or not task.public["claim"].strip():
        raise DataError("public.claim is missing", where=where, expected="a text")
    if not isinstance(argument, str) or not argument.strip():
        raise DataError("hidden.argument is missing", where=where, expected="a text")
    if type(most) is not int or not 1 <= most <= LAST:
        raise DataError(f"hidden.max_level is {most!r}", where=where, expected=f"1 to {LAST}")
    if not isinstance(listed, list | tuple) or not listed:
        raise DataError("hidden.counterpoints is missing", where=where, expected="a list")
    points = tuple(_point(entry, where) for entry in listed)
    if len({point.id for point in points}) != len(points):
        raise DataError("hidden.counterpoints: an id occurs twice", where=where)
    return Hidden(argument, points, most)


def check(task: Task) -> list[str]:
    """Return what `public` must not hold.

    Raises:
        DataError: an episode could not read the task.
    """
    return [read_hidden(task).argument]


def best(task: Task) -> float:
    """Return the most that can be won.

    Raises:
        DataError: an episode could not read the task.
    """
    return read_hidden(task).reachable / LAST


class PersuadeGym(TurnGym[State]):
    """One episode (single use). `judge_sees_thought`: whether the judge reads the user's thought."""

    SPEC = SPEC
    STATE = State
    OPTIONS: ClassVar[Mapping[str, Any]] = {"judge_sees_thought": False}
    CANNED = "I am not sure what to make of that."
    FREE_TEXT = True
    BOTH_FLAGS = frozenset()

    def system(self, task: Task) -> str:
        """Return what the agent is told."""
        return prompts.render("envs/persuade/system")

    async def begin(self, task: Task) -> Opening[State]:
        """Start: the person states its view."""
        self._hidden = read_hidden(task)
        claim = task.public["claim"]
        return Opening(State(), claim, scripted(claim))

    async def act(self, state: State, action: AgentAction) -> Turn[State]:
        """Let the person hear an argument, and have the judge say where it stands."""
        argument = as_speech(action) if self.compat.plain_choices else action.content
        if len(argument) > MAX_ARGUMENT and not self.compat.plain_choices:
            raise BadAction(f"an argument has at most {MAX_ARGUMENT} characters")
        reply = await self._reply(state, argument)
        mind = from_wish(reply.wish)
        if mind is None:
            mind, _ = consider(state.mind, self._hidden.points, self._hidden.most, argument)
        level = await self._judged(state, argument, reply, mind)
        before = state.best
        if self.compat.persuade_reward == "previous":
            before = state.level
        gained = max(0, level - before) / LAST if UNKNOWN not in (level, before) else 0.0
        if self.compat.persuade_reward == "previous":
            gained = round(gained, 6)
        after = State(level, max(state.best, level), mind)
        return Turn(
            after,
            reply=reply,
            reward=gained,
            over=StopReason.GOAL_REACHED if level == LAST else None,
            grading={"level": level, "best": after.best, "final_level": max(level, 0) / LAST},
        )

    def succeeded(self, state: State) -> bool:
        """Tell whether the person rejects the claim now."""
        return state.level == LAST

    def forbidden(self) -> list[str]:
        """Return why the person holds the claim, and the judge's names of more than one word."""
        return [self._hidden.argument, *(name for name in STANCES if " " in name)]

    def answer(self) -> str:
        """Return where the person stands."""
        level = self.state.level
        return f"The person stood at: {STANCES[level] if level != UNKNOWN else 'unknown'}."

    async def _reply(self, state: State, argument: str) -> Reply:
        rng = self.rng("words", len(self.heard()))

        def script(kind: str) -> Reply:
            after, took = consider(
                state.mind, self._hidden.points, self._hidden.most, argument, kind
            )
            return speak(after, took, kind, rng)

        return await self.ask(
            Question(
                "persuade.reply",
                argument,
                script,
                public={"claim": self.task.public["claim"]},
                private={"argument": self._hidden.argument, "level": _name(state.level)},
            )
        )

    async def _judged(self, state: State, argument: str, reply: Reply, mind: Mind) -> int:
        inputs: dict[str, Any] = {
            "claim": self.task.public["claim"],
            "initial_argument": self._hidden.argument,
            "before": _name(state.level),
            "transcript": shown(self.heard()),
            "argument": argument,
            "utterance": reply.utterance,
            "thought": "",
        }
        if self.options["judge_sees_thought"] and reply.thought is not None:
            inputs["thought"] = reply.thought.reveal()

        def rule(asked: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"stance": STANCES[mind.level]}

        kind = "persuade.stance"
        if self.compat.persuade_reward == "previous":
            said = (await self.decide(kind, inputs, AnyStance, rule)).stance
            return STANCES.index(said) if said in STANCES else UNKNOWN
        return STANCES.index((await self.decide(kind, inputs, Stance, rule)).stance)


def moves(task: Task) -> list[tuple[str, str]]:
    """Return what a random agent says: appeals without a reason of their own, and the claim."""
    claim = str(task.public["claim"])
    appeals = (
        "Please think again about this.",
        "Most people see it the other way round.",
        "You would feel better with another view.",
        "Trust me, I know more about this.",
        f"I do not believe it: {claim}",
        "Only a fool would hold that.",
    )
    return [("answer", text) for text in appeals]


def _name(level: int) -> str:
    return STANCES[level] if level != UNKNOWN else "unknown"


def _point(entry: Any, where: str) -> Point:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
        raise DataError(
            f"a counterpoint is {entry!r:.60}", where=where, expected='{"id": name, "cues": [...]}'
        )
    return Point(entry["id"], read_cue(entry.get("cues"), where=f"{where}, {entry['id']!r}"))
