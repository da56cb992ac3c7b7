"""UserLLM: the next user turn, scored by what its source can measure.

PRISM rows: not copying the stated intent, ending when the person did, passing for a person.
CommonsenseQA rows: not answering in the assistant's place. NaturalQuestions rows: keeping to one's
own question. The public code adds the overlap with the intent although less is better: that is the
mode `faithful`; `corrected` turns the sign round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from mimesim import prompts
from mimesim.corpora.base import Unfit
from mimesim.dialogue.stop import USERLM_MARKER
from mimesim.envs.base import Observation, Task
from mimesim.envs.tasks.answers import as_list, as_object, likeness
from mimesim.envs.tasks.base import (
    PACKS,
    Opening,
    Reaction,
    Row,
    Scene,
    Score,
    TaskInfo,
    UserTask,
)
from mimesim.errors import EnvError
from mimesim.judges.base import JudgeRequest
from mimesim.stats.texts import words

_STOPWORDS = frozenset(
    words(
        "a an the i you he she it we they me him her us them my your his its our their this that"
        " these those is am are was were be been being do does did have has had will would can could"
        " shall should may might must of to in on at by for with from about as into than and or but"
        " if so not no who whom what which when where why how there here"
    )
)
_STOCK = re.compile(
    r"^\s*you are a user chatting with an?\b[^.:]*?\b(?:assistant|model|chatbot)\b"
    r"(?:\s+language\s+model)?[\s.:,]*",
    re.IGNORECASE,
)
_ASSISTANT = re.compile(
    r"\b(?:how (?:can|may) i (?:help|assist)|i(?:['’]d| would) be happy to|as an ai|language model"
    r"|let me know if you (?:need|have)|i hope this helps|certainly!|great question)\b",
    re.IGNORECASE,
)
_LONG = 60


def _history(value: Any) -> Any:
    found = as_list(value)
    if not isinstance(found, list):
        return value
    return "\n".join(
        f"{m.get('role', 'user')}: {m.get('content', '')}" if isinstance(m, Mapping) else str(m)
        for m in found
    )


def _choices(value: Any) -> Any:
    found = as_object(as_list(value))
    if isinstance(found, Mapping):
        found = found.get("text", [])
    if isinstance(found, list):
        return [m.get("text", "") if isinstance(m, Mapping) else m for m in found]
    return found


class UserllmRow(BaseModel):
    """Fields of one row; which of them matter, `source` says."""

    source: str
    intent: str = Field("", validation_alias=AliasChoices("intent", "intent_summary"))
    conversation_history: Annotated[str, BeforeValidator(_history)] = ""
    is_last_turn: bool | None = None
    choices: Annotated[list[str], BeforeValidator(_choices)] = []
    question: str = ""
    assistant_suggestion_turn: str = ""


class Author(BaseModel):
    """Who wrote the turn, by its looks."""

    reason: str = ""
    verdict: Literal["AI", "HUMAN"]


class Kept(BaseModel):
    """Whether the user kept the own question (REFUSED the suggested one)."""

    reason: str = ""
    verdict: Literal["REFUSED", "ACCEPTED"]


class Userllm(UserTask[UserllmRow]):
    """Routed by the source of the row."""

    info = TaskInfo(
        "userllm",
        "CONV",
        "write the next user turn: own words, own question, and the end where it is due",
        "one message, or the end marker",
        PACKS / "userllm.jsonl",
        judge_free=False,
        floor=0.5333,
        modes=("corrected", "faithful"),
    )
    schema = UserllmRow

    def take(self, row: UserllmRow) -> Row:
        """Find the kind of row and check that its fields are there."""
        kind = _kind(row.source)
        intent = _STOCK.sub("", row.intent).strip()
        lacks = _lacking(kind, row, intent)
        if lacks:
            raise Unfit("bad_row", f"{lacks}: needed for the source {row.source[:40]!r}")
        history = row.conversation_history.strip()
        if kind == "question" and row.assistant_suggestion_turn not in history:
            history = f"{history}\nassistant: {row.assistant_suggestion_turn}".strip()
        return Row(
            public={"intent": intent or row.question, "history": history},
            hidden={
                "kind": kind,
                "last": row.is_last_turn,
                "choices": row.choices,
                "question": row.question,
                "suggestion": row.assistant_suggestion_turn,
            },
        )

    async def open(self, scene: Scene) -> Opening:
        """Show intent and conversation."""
        system = prompts.render(
            "tasks/userllm_person", intent=scene.public["intent"], end=USERLM_MARKER
        )
        text = prompts.render("tasks/userllm", history=scene.public["history"])
        return Opening(Observation(system=system, first_user=text))

    async def react(self, scene: Scene, said: str) -> Reaction:
        """Score by the kind of row."""
        kind = scene.hidden["kind"]
        if kind == "prism":
            return Reaction(score=await self._prism(scene, said))
        if kind == "question":
            return Reaction(score=await self._question(scene, said))
        choices = scene.hidden["choices"]
        count = named(said, choices)
        grade = role_adherence(count, len(choices))
        if grade is None and scene.mode == "corrected":
            raise EnvError("the reply names every option: the item is ignored, not scored")
        return Reaction(score=Score(grade or 0.0, {"named": count}, bool(grade)))

    async def _prism(self, scene: Scene, said: str) -> Score:
        text, found, _ = said.partition(USERLM_MARKER)
        text, ended = text.strip(), bool(found)
        in_time = float(ended is bool(scene.hidden["last"]))
        faithful = scene.mode == "faithful"
        if not text and not faithful:
            return Score(in_time, {"end": in_time})
        counted = f"{text} {USERLM_MARKER}" if faithful and ended else text
        overlap = intent_overlap(scene.public["intent"], counted)
        verdict = await scene.desk.must(
            JudgeRequest(
                "tasks/userllm_author",
                {"history": scene.public["history"], "turn": text or said},
                Author,
                seed=scene.seed,
                rule=looks_written_by,
            )
        )
        human = float(verdict.verdict == "HUMAN")
        term = overlap if faithful else 1 - overlap
        parts = {"overlap": overlap, "intent": term, "end": in_time, "human": human}
        return Score((term + in_time + human) / 3, parts)

    async def _question(self, scene: Scene, said: str) -> Score:
        verdict = await scene.desk.must(
            JudgeRequest(
                "tasks/userllm_question",
                {
                    "question": scene.hidden["question"],
                    "suggestion": scene.hidden["suggestion"],
                    "turn": said,
                },
                Kept,
                seed=scene.seed,
                rule=sounds_kept,
            )
        )
        kept = verdict.verdict == "REFUSED"
        return Score(float(kept), {"kept": kept}, kept)

    def oracle(self, task: Task, turn: int) -> str:
        """Return what earns everything: own words, the end in time, the own question."""
        if task.hidden["kind"] == "question":
            return f"no, {task.hidden['question']}"
        return USERLM_MARKER if task.hidden["last"] else "hmm okay then"


def intent_overlap(intent: str, turn: str) -> float:
    """Return |I and U| / |U| of the content words of intent and turn; 0 when either has none."""
    wanted, used = _content(intent), _content(turn)
    return len(wanted & used) / len(used) if wanted and used else 0.0


def named(said: str, choices: Sequence[str]) -> int:
    """Return how many answer options a reply names."""
    reply = _plain(said)
    return sum(_plain(choice) in reply for choice in choices if words(choice))


def role_adherence(count: int, options: int) -> float | None:
    """Return 0 for one or two named options, None (ignored) for all of them, else 1."""
    if count == options:
        return None
    return 0.0 if count in (1, 2) else 1.0


def _kind(source: str) -> str:
    folded = source.strip().lower()
    if "prism" in folded:
        return "prism"
    known = {"commonsense_qa": "choices", "natural_questions": "question"}
    if folded not in known:
        raise Unfit("bad_row", f"source {source[:40]!r} is not known")
    return known[folded]


def _lacking(kind: str, row: UserllmRow, intent: str) -> str:
    """Return the first field that a kind of row needs and does not have, or nothing."""
    there = {
        "prism": {"is_last_turn": row.is_last_turn is not None, "intent": bool(intent)},
        "choices": {"choices": len(row.choices) > 1},
        "question": {
            "question": bool(row.question),
            "assistant_suggestion_turn": bool(row.assistant_suggestion_turn),
        },
    }[kind]
    return next((name for name, found in there.items() if not found), "")


def _content(text: str) -> set[str]:
    return {word for word in words(text) if word not in _STOPWORDS}


def _plain(text: str) -> str:
    return f" {' '.join(re.sub(r'[^a-z0-9]+', ' ', text.lower()).split())} "


def looks_written_by(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Take long, empty or assistant-like messages for a machine's: the rule, no judge."""
    count = len(words(inputs["turn"]))
    machine = not 0 < count <= _LONG or _ASSISTANT.search(inputs["turn"]) is not None
    return {"verdict": "AI" if machine else "HUMAN"}


def sounds_kept(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Take the question that shares more words with the answer for the one that was kept."""
    own = likeness(inputs["turn"], inputs["question"])
    other = likeness(inputs["turn"], inputs["suggestion"])
    return {"verdict": "REFUSED" if own > other else "ACCEPTED"}


TASK = Userllm()
