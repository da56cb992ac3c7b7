"""What the two SimulatorArena tasks share: hold the user's side against an assistant, be compared.

Likert grades of writing and interaction style, and the share of the person's features that the
simulated conversation shows. A part without a verdict is left out of the mean, never 0.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, Field, field_validator

from mimesim import prompts
from mimesim.corpora.base import Unfit
from mimesim.dialogue.stop import END_MARKER, UserAction, read_marker
from mimesim.envs.base import Observation, Task
from mimesim.envs.tasks.answers import likeness
from mimesim.envs.tasks.base import (
    POLICY,
    Line,
    Opening,
    Reaction,
    Scene,
    Score,
    UserTask,
)
from mimesim.envs.tasks.partner import PartnerRequest
from mimesim.envs.tasks.talk import Shown, as_partner, joined, shown
from mimesim.errors import JudgeError
from mimesim.judges.base import JudgeRequest

TURNS = 8
WRITING = "writing"
INTERACTION = "interaction"
_ALIKE = 0.5
"""Likeness from which the rule takes a feature as shown."""


class Feature(BaseModel):
    """One trait of the person's style."""

    name: str = Field(validation_alias=AliasChoices("Feature Name", "name"), min_length=1)
    text: str = Field(
        validation_alias=AliasChoices("Feature Question Answer", "Feature Question", "text"),
        min_length=1,
    )


class Message(BaseModel):
    """One message of the real conversation."""

    role: Literal["user", "assistant"]
    content: str


class ArenaRow(BaseModel):
    """Fields that both tasks have; the files keep them as JSON text under `raw`."""

    human_user_queries: list[Any] = Field(min_length=1)
    human_public_conversation: list[Message] = Field(min_length=1)
    user_profile_text: str = ""
    target_interaction_style_features: list[Feature] = []

    @field_validator("human_user_queries", mode="after")
    @classmethod
    def _spoken(cls, value: list[Any]) -> list[Any]:
        """Leave out queries that are no text, such as an image with its path."""
        return [query for query in value if isinstance(query, str) and query.strip()]

    @field_validator("*", mode="before")
    @classmethod
    def _features(cls, value: Any) -> Any:
        """Leave out features without a name or a text, as the public code does."""
        if not isinstance(value, list):
            return value
        return [v for v in value if not _is_hollow(v)]


class Likert(BaseModel):
    """How alike two styles are: 1 wholly different to 5 hardly to tell apart."""

    key_differences: list[str] = []
    similarity_score: int = Field(ge=1, le=5)


class FeatureVerdict(BaseModel):
    """Whether the conversation shows a feature."""

    name: str
    classification: Literal["Match", "No Match"]


class Features(BaseModel):
    """One verdict per feature."""

    results: list[FeatureVerdict]


R = TypeVar("R", bound=ArenaRow)


class ArenaTask(UserTask[R], Generic[R]):
    """The roll-out and the shared parts of the reward."""

    assistant: str
    """Prompt template of the partner."""

    async def open(self, scene: Scene) -> Opening:
        """Tell the person's matter; the person writes first."""
        system = prompts.render(f"tasks/{self.info.name}", end=END_MARKER, **scene.public)
        return Opening(Observation(system=system, first_user=prompts.render("tasks/begin")))

    async def react(self, scene: Scene, said: str) -> Reaction:
        """Let the assistant answer, or end and judge."""
        marked = read_marker(said)
        ends = marked.action is UserAction.END
        lines = (*scene.lines, Line(POLICY, marked.text)) if marked.text else scene.lines
        if not any(line.by == POLICY for line in lines):
            return Reaction(score=Score(0.0, {"empty": True}), left=True)
        if ends:
            return Reaction(score=await self._judge(scene, lines), left=True)
        reply = await scene.desk.hear(self._request(scene, lines))
        added = (Line("assistant", reply),)
        if scene.turn + 1 >= TURNS:
            return Reaction(lines=added, score=await self._judge(scene, (*lines, *added)))
        return Reaction(reply, added)

    def _request(self, scene: Scene, lines: tuple[Line, ...], extra: str = "") -> PartnerRequest:
        """Return the request to the assistant; without a model it repeats the real replies."""
        turn = sum(line.by == "assistant" for line in lines)
        replies = [m["text"] for m in scene.hidden["conversation"] if m["role"] == "assistant"]
        rule = replies[turn] if turn < len(replies) else f"I see. Is there more? ({turn + 1})"
        asked = (*lines, Line(POLICY, extra)) if extra else lines
        system = prompts.render(self.assistant, **scene.public)
        messages = as_partner(asked)
        own = joined([line.text for line in lines if line.by == POLICY])
        return PartnerRequest(system, messages, scene.seed, lambda: own if extra else rule)

    async def _judge(self, scene: Scene, lines: tuple[Line, ...]) -> Score:
        parts = await self.parts(scene, lines)
        there = [value for value in parts.values() if value is not None]
        if not there:
            raise JudgeError("no part of the reward has a verdict", retryable=True)
        return Score(sum(there) / len(there), parts)

    @abstractmethod
    async def parts(self, scene: Scene, lines: tuple[Line, ...]) -> dict[str, float | None]:
        """Return the parts of the reward in [0, 1]; None = no verdict, or nothing to judge."""

    async def likert(self, scene: Scene, lines: tuple[Line, ...], style: str) -> float | None:
        """Return similarity/5 of the writing (messages only) or the interaction (both sides)."""
        real, simulated = _both(scene, lines, style)
        own, theirs = _own(real), _own(simulated)

        def rule(inputs: Mapping[str, Any]) -> dict[str, Any]:
            return {"similarity_score": 1 + round(4 * likeness(theirs, own))}

        request = JudgeRequest(
            f"tasks/arena_{style}",
            {"task": self.info.name, "real": real, "simulated": simulated},
            Likert,
            seed=scene.seed,
            rule=rule,
        )
        verdict = await scene.desk.may(request)
        return None if verdict is None else verdict.similarity_score / 5

    async def shares(
        self,
        scene: Scene,
        lines: tuple[Line, ...],
        features: Mapping[str, Sequence[Mapping[str, str]]],
    ) -> dict[str, float | None]:
        """Return the share of matched features per group, matched by name in one question."""
        listed = [{"group": g, **one} for g, ones in features.items() for one in ones]
        if not listed:
            return dict.fromkeys(features)
        real, simulated = _both(scene, lines, INTERACTION)
        alike = likeness(_own(simulated), _own(real)) >= _ALIKE

        def rule(inputs: Mapping[str, Any]) -> dict[str, Any]:
            called = "Match" if alike else "No Match"
            return {"results": [{"name": f["name"], "classification": called} for f in listed]}

        request = JudgeRequest(
            "tasks/arena_features",
            {"simulated": simulated, "features": listed},
            Features,
            seed=scene.seed,
            rule=rule,
        )
        verdict = await scene.desk.may(request)
        return {g: match_share(verdict, [f["name"] for f in ones]) for g, ones in features.items()}

    def oracle(self, task: Task, turn: int) -> str:
        """Repeat the real person, then end."""
        queries = task.hidden["queries"]
        return str(queries[turn]) if turn < len(queries) else END_MARKER


def match_share(verdict: Features | None, wanted: Sequence[str]) -> float | None:
    """Return the share of `wanted` features that match; those without a verdict are left out."""
    if verdict is None:
        return None
    told = {_fold(one.name): one.classification == "Match" for one in verdict.results}
    found = [told[_fold(name)] for name in wanted if _fold(name) in told]
    return sum(found) / len(found) if found else None


def common_public(row: ArenaRow) -> dict[str, Any]:
    """Return what both tasks show."""
    return {"profile": row.user_profile_text.strip()}


def common_hidden(row: ArenaRow) -> dict[str, Any]:
    """Return what both tasks keep for the judge.

    Raises:
        Unfit: the person wrote no text.
    """
    if not row.human_user_queries:
        raise Unfit("bad_row", "human_user_queries: no query is a text")
    conversation = [{"role": m.role, "text": m.content} for m in row.human_public_conversation]
    features = [one.model_dump() for one in row.target_interaction_style_features]
    return {
        "queries": row.human_user_queries,
        "conversation": conversation,
        INTERACTION: features,
    }


def _is_hollow(value: Any) -> bool:
    """Tell whether a value is a feature without a name or a text."""
    if not isinstance(value, Mapping) or "Feature Name" not in value:
        return False
    told = value.get("Feature Question Answer") or value.get("Feature Question")
    return not (value["Feature Name"] and told)


def _both(scene: Scene, lines: tuple[Line, ...], style: str) -> tuple[Shown, Shown]:
    real = [dict(m) for m in scene.hidden["conversation"]]
    simulated = shown(lines, "user", "assistant")
    if style == WRITING:
        real = [{"role": "user", "text": text} for text in scene.hidden["queries"]]
        simulated = [m for m in simulated if m["role"] == "user"]
    return real, simulated


def _own(transcript: Shown) -> str:
    return joined([m["text"] for m in transcript if m["role"] == "user"])


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())
