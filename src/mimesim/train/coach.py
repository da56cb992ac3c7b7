"""The coach: turns the user's private thought and next words into a note for the teacher.

Paper: CSD. A note may only state what follows from the public history. Notes go into teacher rows
and noted warm-start rows, never into a roll-out prompt (design ruling 4). What a coach may be shown
is decided in one place (`shown`); asking for the notes of a batch is `train.notes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, check_ranges
from mimesim.dialogue.thinking import split
from mimesim.dialogue.types import CoachNote, PublicMessage, Role, Thought, Usage
from mimesim.errors import ConfigError
from mimesim.models.base import ChatMessage, ChatModel, Sampling
from mimesim.models.load import make_chat_model, preflight
from mimesim.prompts import render
from mimesim.registry import unknown_name
from mimesim.scenarios.compact import FIELD_NAMES
from mimesim.users.base import UserSource
from mimesim.users.sources import SimulatorSource

NONE = "NONE"
"""What a coach answers when nothing is actionable."""
MAX_CHARACTERS = 600
STYLES = ("prospective", "corrective", "small")
THOUGHTS = ("after", "before", "both")
CHANNELS = ("both", "thought", "reaction")
SHAPES = ("rule", "user", "model:<model>")
SMALL_WORDS = 40
SMALL_STOPS = ("\nCONVERSATION", "\nPRIVATE", "\nNOTE")
"""Where a small model goes on to the next case instead of stopping."""
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


@dataclass(frozen=True, slots=True)
class CoachExample:
    """A worked case for the style `small`: public lines, the private side, the note wanted."""

    history: tuple[str, ...]
    note: str
    thought: str = ""
    next_utterance: str = ""


@dataclass(frozen=True, slots=True)
class CoachConfig:
    """Who the coach is, what it is shown and how it is asked; all but the first three for models.

    Attributes:
        name: `rule`, `user` (the model behind the frozen user) or `model:<model>`.
        privileged: False = neither thought nor next words are shown (the ablation arm).
        channels: what is shown of the private side: both, thought or reaction (the next words).
        style: prospective (does not see the reply), corrective, or small (for small models).
        thought: which private thought it sees: after, before or both.
        max_tokens: cap of a note; None = 300, small 110.
        temperature: None = 0, small 0.7.
        examples: for the style small, instead of our own three.
        timeout_s: seconds after which one note counts as failed.
        model_options: what `models.load.make_chat_model` takes, e.g. `cache`.
    """

    name: str = ""
    privileged: bool = True
    channels: str = "both"
    style: str = "prospective"
    thought: str = "after"
    max_tokens: int | None = None
    temperature: float | None = None
    examples: tuple[CoachExample, ...] = ()
    timeout_s: float = 120.0
    model_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check names and numbers.

        Raises:
            UnknownNameError: a coach, style, thought or channel that does not exist.
            ConfigError: a number out of range, or a style that this coach does not have.
        """
        for kind, value, known in (
            ("coach style", self.style, STYLES),
            ("coach thought", self.thought, THOUGHTS),
            ("coach channels", self.channels, CHANNELS),
        ):
            if value not in known:
                raise unknown_name(kind, value, list(known))
        if self.name not in ("", "rule", "user") and not self.name.removeprefix("model:"):
            raise ConfigError("'name' is 'model:' and names no model", expected=SHAPES[-1])
        if self.name not in ("", "rule", "user") and not self.name.startswith("model:"):
            raise unknown_name("coach", self.name, list(SHAPES))
        if self.name == "rule" and self.style != "prospective":
            raise ConfigError(
                f"'style' cannot be {self.style!r}: the rule coach names what the customer has not "
                "said and reads no reply",
                mend="take coach.name = 'user' or 'model:<model>'",
            )
        if self.examples and self.style != "small":
            raise ConfigError("'examples' are for the style 'small'")
        check_ranges(self, COUNT, "max_tokens")
        check_ranges(self, NATURAL, "temperature")
        check_ranges(self, POSITIVE, "timeout_s")

    @property
    def sampling(self) -> Sampling:
        """Return how a note is sampled."""
        small = self.style == "small"
        return Sampling(
            temperature=(0.7 if small else 0.0) if self.temperature is None else self.temperature,
            max_tokens=self.max_tokens or (110 if small else 300),
            stop=SMALL_STOPS if small else (),
        )


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


def shown(turn: CoachTurn, config: CoachConfig) -> CoachTurn:
    """Return the turn as the coach may see it: whatever is withheld from it is not there.

    A scripted user's structured state is its thought in another form and goes the same way.
    """
    thinks = config.privileged and config.channels != "reaction"
    hears = config.privileged and config.channels != "thought"
    return replace(
        turn,
        reply=turn.reply if config.style == "corrective" else "",
        thought_before=turn.thought_before if thinks and config.thought != "after" else None,
        thought_after=turn.thought_after if thinks and config.thought != "before" else None,
        next_utterance=turn.next_utterance if hears else "",
        wish_before=turn.wish_before if thinks else {},
    )


class RuleCoach:
    """Names what the customer has not said yet, and the request once it was uttered.

    Reads the structured private state before the reply (`thought="before"`), states no value.
    Without that state, which no privilege and the reaction alone take away, it has nothing to say.
    """

    name = "rule"

    def __init__(self, config: CoachConfig | None = None) -> None:
        self.config = config or CoachConfig("rule")

    async def note(self, turn: CoachTurn, *, seed: int) -> CoachNote | None:
        """Return the note of the compact desk, None for users without a structured state."""
        wish = shown(turn, self.config).wish_before
        if not wish:
            return None
        return CoachNote(rule_note(wish), "rule")

    async def aclose(self) -> None:
        """Release nothing."""


def rule_note(wish: Mapping[str, Any]) -> str:
    """Return the rule coach's text for a private state of a compact customer."""
    if wish["said_intent"] != wish["intent"]:
        return "note lacks the kind of help"
    missing = " ".join(FIELD_NAMES[f] for f in wish["missing"]) or "nothing"
    claims = " claims not true" if wish["false_claim"] else ""
    return f"note wants {wish['intent']} lacks {missing}{claims}"


class Thinking(NamedTuple):
    """How the model behind a coach writes its private block; see `dialogue.thinking.split`."""

    expected: bool | None = None
    prefilled: bool = False


class ModelCoach:
    """A chat model as coach; by default the user model itself.

    Args:
        model: who writes.
        config: what it is shown and how it is asked.
        name: its name in records; "" = `model:<name of the model>`.
        thinking: whether it thinks first; what it thinks is no part of a note.
    """

    def __init__(
        self,
        model: ChatModel,
        config: CoachConfig | None = None,
        *,
        name: str = "",
        thinking: Thinking | None = None,
    ) -> None:
        self._model = model
        self.identity = model.identity
        self._thinking = thinking or Thinking()
        self.config = config or CoachConfig()
        self.name = name or f"model:{model.identity.name}"
        self.used = Usage()

    async def note(self, turn: CoachTurn, *, seed: int) -> CoachNote | None:
        """Ask the model; reasoning is removed, the text cut to whole words below the cap."""
        prompt = _prompt(shown(turn, self.config), self.config)
        sampling = replace(self.config.sampling, seed=seed)
        answer = await self._model.chat([ChatMessage("user", prompt)], sampling)
        self.used += answer.usage
        parts = split(
            answer.text,
            thinking=self._thinking.expected,
            finish_reason=answer.finish_reason,
            reasoning=answer.reasoning,
            prefilled=self._thinking.prefilled,
        )
        text = parts.text.strip()
        if self.config.style == "small":
            text = _one_sentence(text)
        if not text or text.strip(" .").upper() == NONE:
            return None
        return CoachNote(_cut(text), self.name)

    async def preflight(self) -> None:
        """Check the endpoint of the model, if it has one.

        Raises:
            EnvironmentFault: it is not fit; one line.
        """
        await preflight(self._model)

    async def aclose(self) -> None:
        """Release the model."""
        await self._model.aclose()


def take_usage(coach: Coach) -> Usage:
    """Return what the calls of a coach used since this was last asked; only models make calls."""
    if not isinstance(coach, ModelCoach):
        return Usage()
    used, coach.used = coach.used, Usage()
    return used


def _prompt(seen: CoachTurn, config: CoachConfig) -> str:
    thoughts = [t.reveal() for t in (seen.thought_before, seen.thought_after) if t]
    given: dict[str, Any] = {
        "thought": "\n".join(thoughts),
        "next_utterance": seen.next_utterance,
        "history": [f"{m.role.value}: {m.content}" for m in seen.history if m.content],
    }
    if config.style == "corrective":
        given["reply"] = seen.reply
    if config.style == "small":
        given["history"] = _sanitized(seen.history)
        given["examples"] = config.examples
    return render(f"coach/{config.style}", **given)


_MARKUP = re.compile(
    r"```.*?(```|\Z)"  # fenced blocks
    r"|<(?P<tag>[\w:.-]*(?:tool|function)[\w:.-]*)[^>]*>.*?(</(?P=tag)>|\Z)"  # tagged calls
    r"|<\|[^|>]*\|>"  # special tokens
    r"|^\s*[\[{]\s*[\"{].*?[\]}]\s*$",  # JSON on lines of its own
    re.DOTALL | re.MULTILINE,
)


def _sanitized(history: Sequence[PublicMessage]) -> list[str]:
    """Return spoken words only, a line a message: what tools wrote confuses small models."""
    lines = []
    for message in history:
        words = " ".join(_MARKUP.sub(" ", message.content).split())
        if words and message.role in (Role.USER, Role.AGENT):
            lines.append(f"{'Person' if message.role is Role.USER else 'Agent'}: {words}")
    return lines


def _one_sentence(text: str) -> str:
    """Return the first sentence, 40 words at most, without the heading that models repeat."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    line = re.sub(r"^\s*note\s*:\s*", "", line, flags=re.IGNORECASE).strip().strip('"')
    first = re.split(r"(?<=[.!?])\s+(?=[A-Z\"'])", line, maxsplit=1)[0]
    return " ".join(first.split()[:SMALL_WORDS])


def _cut(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return text[:MAX_CHARACTERS].rsplit(None, 1)[0]


# -- from a name to a coach ------------------------------------------------------------------


def read_coach(said: CoachConfig | str | None) -> CoachConfig | None:
    """Return the table of a coach from a recipe's key: a name by itself, or the table.

    Raises:
        UnknownNameError: there is no such coach.
        ConfigError: a table that names no coach.
    """
    if said is None or (isinstance(said, CoachConfig) and said.name):
        return said
    if isinstance(said, str):
        return CoachConfig(said)
    raise ConfigError("the key 'coach.name' is missing", expected=", ".join(SHAPES))


def make_coach(config: CoachConfig, user: UserSource) -> Coach:
    """Make the coach that `config.name` says; the user is the frozen one of the run.

    Raises:
        UnknownNameError, UsageError: no such model.
        ConfigError: `user`, and there is no model behind that user.
    """
    if config.name == "rule":
        return RuleCoach(config)
    if config.name != "user":
        model = config.name.removeprefix("model:")
        return ModelCoach(make_chat_model(model, options=config.model_options), config)
    served = user.identity.name.startswith("http:")  # whoever serves it answers as the person only
    if served or not isinstance(user, SimulatorSource):
        raise ConfigError(
            f"coach 'user' asks the model behind the user, and {user.identity.name!r} has none "
            "that can be asked",
            where="coach",
            expected="a user such as roleplay:<model> or trained:<path>",
            mend="take coach = 'rule' or 'model:<model>'",
        )
    settings = user.settings
    return ModelCoach(
        user.model,
        config,
        name=f"user:{user.model.identity.name}",
        thinking=Thinking(settings.thinking, settings.prefilled),
    )


def same_model(coach: Coach, user: UserSource) -> bool:
    """Tell whether coach and user are one model at one place."""
    if not isinstance(coach, ModelCoach) or not isinstance(user, SimulatorSource):
        return False
    one, two = coach.identity, user.model.identity
    return (one.name, one.model, one.endpoint_host) == (two.name, two.model, two.endpoint_host)
