"""The gym `search`: answer a question whose two halves stand in two documents.

The agent has a few searches and any number of answers within its turns. Where it looks things up
is a back end; the mode of it is written into every result, since scores of two modes say different
things.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import BaseModel

from mimesim import prompts
from mimesim.dialogue.stop import StopReason
from mimesim.envs.base import AgentAction, Choice, GymSpec, Observation, StepPrivate, Task
from mimesim.envs.gyms.search.backends import SHOWN, Found, make_backend
from mimesim.envs.packs import fold, holds_string
from mimesim.envs.turns.law import BadAction, Opening, Turn, TurnGym
from mimesim.errors import DataError, InfraError
from mimesim.judges.base import Judge
from mimesim.users.base import User

SPEC = GymSpec(
    name="search",
    choices=(Choice.SEARCH, Choice.ANSWER),
    max_steps=16,
    step_bounds=(0.0, 1.0),
    return_bound=1.0,
    needs_user=False,
    needs_judge=True,
    needs_search=True,
    summary="answer a question by looking up two documents",
)
MAX_SEARCHES = 5
"""Searches of one episode."""
CORRECT = "Correct."
INCORRECT = "Incorrect."
UNAVAILABLE = "Nothing can be looked up here; answer from what you know."
NOTHING = "Nothing was found."
USED_UP = f"No search was made: all {MAX_SEARCHES} are used up."
UNREADABLE = "Only searches and answers are understood."
EMPTY = "Nothing was searched: the query is empty."
FAILED = "The search failed."
_TEXT = 600
"""Characters of a result that are shown."""
_ARTICLES = ("the", "a", "an")


class Equal(BaseModel):
    """The verdict on one answer."""

    correct: bool


@dataclass(frozen=True, slots=True)
class State:
    """Searches made, whether a result held the answer, and whether it was given."""

    searches: int = 0
    shown: bool = False
    solved: bool = False


@dataclass(frozen=True, slots=True)
class Hidden:
    """The hidden side of a task."""

    answer: str
    aliases: tuple[str, ...]


def read_hidden(task: Task) -> Hidden:
    """Return the hidden side.

    Raises:
        DataError: it lacks something, or `public` has no question.
    """
    where, hidden = f"task {task.id!r}", task.hidden
    answer, aliases = hidden.get("answer"), hidden.get("aliases", [])
    if not isinstance(answer, str) or not plain(answer):
        raise DataError("no answer", where=where, expected="hidden.answer, a text")
    if not isinstance(aliases, list | tuple) or not all(isinstance(one, str) for one in aliases):
        raise DataError("aliases is no list of texts", where=where, expected="hidden.aliases")
    question = task.public.get("question")
    if not isinstance(question, str) or not question.strip():
        raise DataError("no question", where=where, expected="public.question, a text")
    return Hidden(answer, tuple(aliases))


class SearchGym(TurnGym[State]):
    """One episode (single use)."""

    SPEC = SPEC
    STATE = State
    OPTIONS: ClassVar[Mapping[str, Any]] = {"search": "static", "search_options": {}}
    CANNED = INCORRECT

    def __init__(
        self, *, user: User, judge: Judge | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(user=user, judge=judge, options=options)
        self._backend = make_backend(self.options["search"], self.options["search_options"])

    async def reset(self, task: Task, *, seed: int) -> Observation:
        """Start the episode; the mode is noted at once, for an agent that never acts."""
        seen = await super().reset(task, seed=seed)
        self.opening_private = StepPrivate(grading={"search": self._backend.mode})
        return seen

    def system(self, task: Task) -> str:
        """Return what the agent is told."""
        return prompts.render("envs/search/system", searches=MAX_SEARCHES, shown=SHOWN)

    async def begin(self, task: Task) -> Opening[State]:
        """Start: the question is put."""
        self._hidden = read_hidden(task)
        return Opening(State(), str(task.public["question"]))

    async def act(self, state: State, action: AgentAction) -> Turn[State]:
        """Search or answer."""
        if action.choice is Choice.SEARCH:
            turn = await self._search(state, action.content)
        elif action.choice is Choice.ANSWER:
            turn = await self._answer(state, action.content)
        else:
            turn = Turn(state, UNREADABLE)  # compat lets any choice through
        noted = {"search": self._backend.mode, "searches": turn.state.searches}
        return replace(turn, grading=noted)

    def succeeded(self, state: State) -> bool:
        """Tell whether the answer was given."""
        return state.solved

    def forbidden(self) -> list[str]:
        """Return the answer, which is no secret where a result showed it."""
        return [] if self.state.shown else [self._hidden.answer, *self._hidden.aliases]

    def answer(self) -> str:
        """Return the answer."""
        return f"The answer is {self._hidden.answer}."

    async def aclose(self) -> None:
        """Close what the back end holds."""
        await self._backend.aclose()

    async def _search(self, state: State, query: str) -> Turn[State]:
        if state.searches >= MAX_SEARCHES:
            return Turn(state, USED_UP)
        after = replace(state, searches=state.searches + 1)
        if not query.strip():
            return Turn(after, EMPTY)  # compat only: the law of steps refuses it before
        try:
            found = await self._backend.search(query)
        except InfraError as error:
            if self.compat.error_policy != "zero_reward":
                raise
            return Turn(after, f"{FAILED} {error.detail}")
        told = _listed(found)
        secrets = (self._hidden.answer, *self._hidden.aliases)
        shown = state.shown or any(holds_string(told, one) for one in secrets)
        return Turn(replace(after, shown=shown), told)

    async def _answer(self, state: State, text: str) -> Turn[State]:
        if not await self._equal(text):
            return Turn(state, INCORRECT)
        done = replace(state, solved=True)
        return Turn(done, CORRECT, reward=1.0, over=StopReason.GOAL_REACHED)

    async def _equal(self, text: str) -> bool:
        gold = self._hidden.answer
        if self.compat.plain_choices:
            if _letters(text) == _letters(gold):
                return True
        elif not plain(text):
            raise BadAction("an answer has letters or digits")
        elif matches({"answer": text, "gold": gold, "aliases": self._hidden.aliases}):
            return True
        inputs = {
            "question": str(self.task.public["question"]),
            "answer": text,
            "gold": gold,
            "aliases": list(self._hidden.aliases),
        }
        verdict = await self.decide(
            "search.equal", inputs, Equal, lambda asked: {"correct": matches(asked)}
        )
        return verdict.correct


def matches(inputs: Mapping[str, Any]) -> bool:
    """Tell whether an answer is the gold one or an alias of it, word for word (the rule)."""
    return plain(inputs["answer"]) in {plain(one) for one in (inputs["gold"], *inputs["aliases"])}


def plain(text: str) -> str:
    """Return letters and digits in lower case, articles in front dropped."""
    words = fold(text).split()
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return _letters(" ".join(words))


def moves(task: Task) -> list[tuple[str, str]]:
    """Return what a random agent does here: search for the question's words, and guess them."""
    question = str(task.public["question"])
    names = [word.strip("?.,") for word in question.split() if word[:1].isupper()]
    return [
        ("search", question),
        *(("search", name) for name in names),
        *(("answer", name) for name in names),
        ("answer", "1400"),
    ]


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def _listed(found: list[Found] | None) -> str:
    if found is None:
        return UNAVAILABLE
    if not found:
        return NOTHING
    lines = []
    for number, one in enumerate(found[:SHOWN], start=1):
        title, text = " ".join(one.title.split()), " ".join(one.text.split())
        lines.append(f"{number}. {title}: {text[:_TEXT]}")
    return "\n".join(lines)
