"""The coach: turns the user's private thought and next words into a note for the teacher.

Paper: CSD. A note may only state what follows from the public history; a
mechanical check rejects what leaks. Notes go into teacher rows and noted warm-start rows, never
into a roll-out prompt (design ruling 4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mimesim.dialogue.thinking import split
from mimesim.dialogue.types import CoachNote, PublicMessage, Role, Thought
from mimesim.errors import EpisodeError
from mimesim.models.base import ChatMessage, ChatModel, Sampling
from mimesim.prompts import render
from mimesim.registry import unknown_name
from mimesim.scenarios.compact import FIELD_NAMES
from mimesim.seeds import derive, generator

NONE = "NONE"
"""What a coach answers when nothing is actionable."""
MAX_CHARACTERS = 600
STYLES = ("prospective", "corrective")
THOUGHTS = ("after", "before", "both")
NOTE_WORDS = "note wants lacks nothing claims not true and the kind of help"


@dataclass(frozen=True, slots=True)
class CoachTurn:
    """Everything about one agent turn that a coach may be shown.

    Attributes:
        history: public messages before the agent's reply.
        reply: the agent's reply.
        thought_before: the user's thought before the reply; `thought_after` the one after it.
        next_utterance: what the user says next, "" after the last turn.
        wish_before: the scripted user's structured private state before the reply.
    """

    history: tuple[PublicMessage, ...]
    reply: str
    thought_before: Thought | None
    thought_after: Thought | None
    next_utterance: str
    wish_before: Mapping[str, Any] = field(default_factory=dict)


class Coach(Protocol):
    """Writes notes."""

    name: str

    async def note(self, turn: CoachTurn, *, seed: int) -> CoachNote | None:
        """Return a note, or None when nothing is actionable.

        Raises:
            EpisodeError: the model behind the coach failed; the turn gets no note.
        """
        ...

    async def aclose(self) -> None:
        """Release what the coach holds."""
        ...


class RuleCoach:
    """Names what the customer has not said yet, and the request once it was uttered.

    Reads the structured private state before the reply (`thought="before"`), states no value.
    """

    name = "rule"

    async def note(self, turn: CoachTurn, *, seed: int) -> CoachNote | None:
        """Return the note of the compact desk, None for users without a structured state."""
        if not turn.wish_before:
            return None
        return CoachNote(rule_note(turn.wish_before), "rule")

    async def aclose(self) -> None:
        """Release nothing."""


def rule_note(wish: Mapping[str, Any]) -> str:
    """Return the rule coach's text for a private state of a compact customer."""
    if wish["said_intent"] != wish["intent"]:
        return "note lacks the kind of help"
    missing = " ".join(FIELD_NAMES[f] for f in wish["missing"]) or "nothing"
    claims = " claims not true" if wish["false_claim"] else ""
    return f"note wants {wish['intent']} lacks {missing}{claims}"


@dataclass(frozen=True, slots=True)
class CoachConfig:
    """How a model coach is asked.

    Attributes:
        style: prospective (does not see the reply) or corrective.
        thought: which private thought it sees: after, before or both.
        privileged: False = neither thought nor next words are shown (the ablation arm).
        leak_check: reject notes that state what only the private part holds.
    """

    style: str = "prospective"
    thought: str = "after"
    privileged: bool = True
    leak_check: bool = True
    max_tokens: int = 300
    temperature: float = 0.0

    def __post_init__(self) -> None:
        """Check the names.

        Raises:
            UnknownNameError: a style or thought that does not exist.
        """
        if self.style not in STYLES:
            raise unknown_name("coach style", self.style, list(STYLES))
        if self.thought not in THOUGHTS:
            raise unknown_name("coach thought", self.thought, list(THOUGHTS))


class ModelCoach:
    """A chat model as coach; by default the user model itself."""

    def __init__(self, model: ChatModel, config: CoachConfig | None = None) -> None:
        self._model = model
        self.config = config or CoachConfig()
        self.name = f"model:{model.identity.name}"

    async def note(self, turn: CoachTurn, *, seed: int) -> CoachNote | None:
        """Ask the model; reasoning is removed, the text cut to whole words below the cap."""
        config = self.config
        prompt = render(
            f"coach/{config.style}",
            history=[f"{m.role.value}: {m.content}" for m in turn.history if m.content],
            reply=turn.reply if config.style == "corrective" else "",
            thought=_shown_thought(turn, config),
            next_utterance=turn.next_utterance if config.privileged else "",
        )
        sampling = Sampling(temperature=config.temperature, max_tokens=config.max_tokens, seed=seed)
        answer = await self._model.chat([ChatMessage("user", prompt)], sampling)
        text = split(answer.text, finish_reason=answer.finish_reason).text.strip()
        if not text or text.strip(" .").upper() == NONE:
            return None
        return CoachNote(_cut(text), self.name)

    async def aclose(self) -> None:
        """Release the model."""
        await self._model.aclose()


def _shown_thought(turn: CoachTurn, config: CoachConfig) -> str:
    if not config.privileged:
        return ""
    chosen = {
        "before": (turn.thought_before,),
        "after": (turn.thought_after,),
        "both": (turn.thought_before, turn.thought_after),
    }[config.thought]
    return "\n".join(t.reveal() for t in chosen if t)


def _cut(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return text[:MAX_CHARACTERS].rsplit(None, 1)[0]


# -- the leak check ------------------------------------------------------------------------

_TOKEN = re.compile(r"[\w@.,:/-]*\w")
_OPENING = re.compile(r"(^|[.!?]\s+)$")


def leaks(note: str, private: str, history: str) -> list[str]:
    """Return what a note gives away: specifics and 5-word copies of the private text.

    A specific is a number, date, id, address or capitalised name that occurs in the private text
    and not in the public history. Sentence openers are not names.
    """
    known, hidden = _words(history), _words(private)
    found = [
        match.group()
        for match in _TOKEN.finditer(note)
        if _specific(match.group(), note[: match.start()])
        and match.group().casefold() in hidden
        and match.group().casefold() not in known
    ]
    words, known_text, hidden_text = _words(note), " ".join(known), " ".join(hidden)
    for i in range(len(words) - 4):
        run = " ".join(words[i : i + 5])
        if run in hidden_text and run not in known_text:
            found.append(run)
    return found


def _specific(token: str, before: str) -> bool:
    if "@" in token or any(c.isdigit() for c in token):
        return True
    return len(token) > 2 and token[0].isupper() and _OPENING.search(before) is None


def _words(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


# -- notes for a batch ---------------------------------------------------------------------


@dataclass(slots=True)
class NoteCounts:
    """What became of the notes asked for."""

    asked: int = 0
    written: int = 0
    none: int = 0
    failed: int = 0
    leaked: int = 0
    with_thought: int = 0
    with_reaction: int = 0


async def write_note(
    coach: Coach, turn: CoachTurn, counts: NoteCounts, *, seed: int, leak_check: bool = True
) -> CoachNote | None:
    """Ask for one note; None when there is none, it failed, or it leaks. Everything is counted."""
    counts.asked += 1
    counts.with_thought += bool(turn.thought_before or turn.thought_after)
    counts.with_reaction += bool(turn.next_utterance)
    try:
        note = await coach.note(turn, seed=seed)
    except EpisodeError:
        counts.failed += 1
        return None
    if note is None:
        counts.none += 1
        return None
    if leak_check and leaks(note.text, _private_text(turn), _public_text(turn)):
        counts.leaked += 1
        return None
    counts.written += 1
    return note


def _private_text(turn: CoachTurn) -> str:
    thoughts = [t.reveal() for t in (turn.thought_before, turn.thought_after) if t]
    return "\n".join([*thoughts, turn.next_utterance])


def _public_text(turn: CoachTurn) -> str:
    # Not the reply: a note that repeats a value it guessed would tell that the guess was right.
    return "\n".join(m.content for m in turn.history if m.role is not Role.NOTE)


class PlaceboRing:
    """The last notes of other episodes, from which unrelated notes are drawn."""

    def __init__(self, seed: int, size: int = 256, active_from: int = 8) -> None:
        self._seed = seed
        self._size = size
        self._active_from = active_from
        self._notes: list[tuple[str, str]] = []
        self._draws = 0

    def add(self, episode: str, note: str) -> None:
        """Remember a note; the oldest one falls out."""
        self._notes = [*self._notes, (episode, note)][-self._size :]

    def draw(self, episode: str, note: str) -> str | None:
        """Return a note of another episode with another text, None while too few are known."""
        if len(self._notes) < self._active_from:
            return None
        others = [text for owner, text in self._notes if owner != episode and text != note]
        if not others:
            return None
        self._draws += 1
        return generator(self._seed, "placebo", self._draws).choice(others)

    def state(self) -> dict[str, Any]:
        """Return the whole state as JSON values, for checkpoints."""
        return {"notes": [list(n) for n in self._notes], "draws": self._draws}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state from `state`."""
        self._notes = [(owner, text) for owner, text in state["notes"]]
        self._draws = int(state["draws"])


def coach_seed(run_seed: int, episode: str, turn: int) -> int:
    """Return the seed of one coach call."""
    return derive(run_seed, "coach", episode, turn)


def chosen_turns(count: int, limit: int, has_thought: Sequence[bool], seed: int) -> list[int]:
    """Return at most `limit` of `count` turns to note: those with a thought first, uniformly.

    `has_thought[t]`: the turn's predecessor produced a thought.
    """
    if count <= limit:
        return list(range(count))
    rng = generator(seed, "noted-turns")
    order = sorted(range(count), key=lambda t: (not has_thought[t], rng.random()))
    return sorted(order[:limit])
