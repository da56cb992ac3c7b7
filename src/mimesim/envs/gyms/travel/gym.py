"""The gym `travel`: find out what a traveler wishes, look up what there is, choose well.

The wishes are hidden. A concrete question about one lets it show, never by name; a traveler who
is not asked volunteers one now and then. A search shows all options of one aspect. An answer
closes its aspect for good. With `compat`, answers, volunteering and rewards follow the original's
two code paths, each with its own flaws.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from mimesim import jsonio, prompts
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import PublicMessage, Reply
from mimesim.envs.base import AgentAction, Choice, GymSpec, Task
from mimesim.envs.gyms.travel import cues, lines
from mimesim.envs.gyms.travel.trip import DIMENSIONS, PRIVATE_KEYS, Aspect, Preference, read_trip
from mimesim.envs.gyms.travel.verdicts import (
    SearchVerdict,
    UtteranceVerdict,
    search_schema,
    utterance_schema,
)
from mimesim.envs.turns.law import BadAction, Opening, Question, Turn, TurnGym
from mimesim.envs.turns.parts import PARTY_FAILURES
from mimesim.errors import ConfigError
from mimesim.judges.base import Judge
from mimesim.users.base import Script, User

MAX_STEPS = 16
ASKED = 0.8
"""Reward for a question about a wish that is open."""
SPEC = GymSpec(
    name="travel",
    choices=(Choice.ACTION, Choice.SEARCH, Choice.ANSWER),
    max_steps=MAX_STEPS,
    step_bounds=(0.0, 1.0),
    return_bound=5 + ASKED * (MAX_STEPS - 5),
    needs_user=True,
    needs_judge=True,
    summary="find out what a traveler wishes, search, recommend the cheapest that fits",
    person="traveler",
)
BUDGET = "My budget is limited: of all that suits me, I want the cheapest."
NO_WISH = "The traveler has no wish about that."
TOO_VAGUE = "That is too general for an answer; ask about one particular thing."
NO_MATCH = "Nothing was looked up: ask for one thing to book, with every detail given for it."
DOWN = "The search does not respond right now; it may be tried again."
REUSE = "This was looked up before; the options shown then are still valid."
TROUBLE = "The search had a problem of its own."
FOUND = "Options for {name}, one per line, each with {fields}:"
GRADES = {1.0: "the best choice", 0.8: "a suitable choice, but not the best one"}
WRONG = "not a suitable choice"
CLOSED = "This part was answered before; the first choice stands."
UNREADABLE = "This is no option id."
_OPTION = re.compile(r"[ACFHR]\d{1,6}", re.ASCII)
_COMPAT_OPTION = re.compile(r"[ACFHR]\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class State:
    """What has happened.

    Attributes:
        searches: how many were made. found: aspects whose options were shown.
        told: ids of the wishes that were revealed or volunteered.
        idle: utterances in a row that asked for no open wish.
        chosen: (letter, option id) of every recorded answer.
        unheard: places in the conversation that compat keeps from the user.
    """

    searches: int = 0
    found: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    idle: int = 0
    chosen: tuple[tuple[str, str], ...] = ()
    unheard: tuple[int, ...] = ()


class TravelGym(TurnGym[State]):
    """One episode (single use)."""

    SPEC = SPEC
    STATE = State
    COMPAT_BOUNDS = (0.0, 5.0)
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "search_failure_interval": 5,
        "elicitation_interval": 3,
        "wrong_limit": 0,
        "noise_limit": 0,
        "loaded_before": 0,
    }
    """Every n-th search fails, and at the n-th idle turn the traveler volunteers (0 = never); how
    many options of type wrong and noise are shown (0 = all); how many tasks compat takes to have
    been loaded before this one, on which its order of options depends."""
    CANNED = "Sorry, I cannot answer that at the moment."
    BOTH_FLAGS = frozenset({StopReason.GOAL_REACHED, StopReason.CASE_CLOSED})

    def __init__(
        self, *, user: User, judge: Judge | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(user=user, judge=judge, options=options)
        for key in self.OPTIONS:
            if self.options[key] < 0:
                raise ConfigError(
                    f"gym 'travel': {key!r} is {self.options[key]}", expected="0 or more"
                )

    def system(self, task: Task) -> str:
        """Return what the agent is told."""
        letters = [{"name": name.replace("_", " "), "letter": c} for c, name in DIMENSIONS.items()]
        return prompts.render("envs/travel/system", letters=letters)

    async def begin(self, task: Task) -> Opening[State]:
        """Start: the traveler's request is in the task."""
        self._trip = read_trip(task)
        self._initial: str = task.public["initial"]
        return Opening(State(), f"{self._initial}\n{BUDGET}")

    async def act(self, state: State, action: AgentAction) -> Turn[State]:
        """Search, talk or choose."""
        if action.choice is Choice.SEARCH:
            return await self._search(state, action.content)
        if action.choice is Choice.ACTION:
            return await self._talk(state, action.content)
        return self._choose(state, action.content)

    def succeeded(self, state: State) -> bool:
        """Tell whether every aspect was answered with an option that fits."""
        grades = self._grades(state)
        return all(grades.get(a.letter, 0.0) > 0.0 for a in self._trip.aspects.values())

    def forbidden(self) -> list[str]:
        """Return ids and words of all wishes that were not told."""
        told = self.state.told
        hidden = [wish for wish in self._trip.preferences if wish.id not in told]
        return [text for wish in hidden for text in (wish.id, wish.text, wish.implicit)]

    def _spec(self) -> GymSpec:
        """Let the async path pay for several answers at once, whatever else is asked for."""
        spec = super()._spec()
        several = self.compat.travel_path == "async"
        return replace(spec, step_bounds=self.COMPAT_BOUNDS) if several else spec

    # Searching ------------------------------------------------------------------------------

    async def _search(self, state: State, request: str) -> Turn[State]:
        state = replace(state, searches=state.searches + 1)
        interval = self.options["search_failure_interval"]
        if interval and state.searches % interval == 0:
            return Turn(state, DOWN)
        try:
            verdict = await self._look_up(request)
        except PARTY_FAILURES:
            if self.compat.error_policy != "zero_reward":
                raise
            return Turn(state, TROUBLE)
        if not verdict.match:
            return Turn(state, NO_MATCH)
        aspect = self._trip.aspects.get(verdict.aspect or "")
        if aspect is None:  # a lie that compat takes
            return Turn(state, TROUBLE)
        if aspect.name in state.found:
            return Turn(state, REUSE)
        state = replace(state, found=(*state.found, aspect.name))
        return Turn(state, self._shown(aspect), reward=self._rewards()[1])

    async def _look_up(self, request: str) -> SearchVerdict:
        arguments = {name: dict(a.arguments) for name, a in self._trip.aspects.items()}
        inputs = {"request": request, "arguments": arguments}

        def rule(asked: Mapping[str, Any]) -> Mapping[str, Any]:
            aspect = cues.find_aspect(asked["request"], asked["arguments"])
            return {"match": aspect is not None, "aspect": aspect}

        loose = self.compat.error_policy == "zero_reward"
        schema = SearchVerdict if loose else search_schema(tuple(arguments))
        return await self.decide("travel.search", inputs, schema, rule)

    def _shown(self, aspect: Aspect) -> str:
        """Return all options of an aspect, in an order of this episode, nothing private in them."""
        options = list(aspect.options)
        for kind in ("wrong", "noise"):
            most = self.options[f"{kind}_limit"]
            over = [o for o in options if o.get("type") == kind][most:] if most else []
            options = [option for option in options if option not in over]
        before = self.options["loaded_before"] if self.compat.travel_path != "fixed" else 0
        self.rng("options", aspect.name, before).shuffle(options)
        public = [{k: v for k, v in o.items() if k not in PRIVATE_KEYS} for o in options]
        fields = ", ".join(dict.fromkeys(key for option in public for key in option))
        head = FOUND.format(name=aspect.name.replace("_", " "), fields=fields)
        return "\n".join([head, *map(jsonio.dumps, public)])

    # Talking --------------------------------------------------------------------------------

    async def _talk(self, state: State, text: str) -> Turn[State]:
        idle = replace(state, idle=state.idle + 1)
        try:
            return await self._heard(state, idle, text)
        except PARTY_FAILURES:
            if self.compat.error_policy != "zero_reward":
                raise
            return Turn(idle, self.CANNED)

    async def _heard(self, state: State, idle: State, text: str) -> Turn[State]:
        wishes = self._open(state)
        kind, wish = await self._classify(state, text, wishes)
        if wish is not None:
            script = lines.tells(wish.implicit, self._words(state))
            reply = await self._ask("travel.reveal", text, state, wish=wish, script=script)
            return self._told(state, wish, reply, reward=self._rewards()[0])
        if wishes and self._due(state):
            if self._volunteering() == "broken":
                return Turn(replace(state, idle=0), self.CANNED)
            wish = self.rng("volunteer", len(state.told)).choice(wishes)
            script = lines.volunteers(wish.implicit, self._words(state))
            reply = await self._ask("travel.volunteer", text, state, wish=wish, script=script)
            return self._told(state, wish, reply)
        if kind == cues.SMALL_TALK:
            script = lines.chats(self._words(state))
            reply = await self._ask("travel.chat", text, state, script=script)
            return Turn(idle, reply=reply, grading=self._grading(idle))
        told = NO_WISH if kind == cues.NOT_HELD else TOO_VAGUE
        return Turn(idle, told, grading=self._grading(idle))

    async def _classify(
        self, state: State, text: str, wishes: Sequence[Preference]
    ) -> tuple[int, Preference | None]:
        """Return what an utterance is, and the open wish that it asks for."""
        inputs = {
            "scenario": self._initial,
            "history": [
                {"role": one.role.value, "text": one.content} for one in self._history(state)
            ],
            "utterance": text,
            "preferences": [{"id": w.id, "aspect": w.aspect, "text": w.text} for w in wishes],
        }
        ids = tuple(wish.id for wish in wishes)
        words = {wish.id: wish.cues for wish in self._trip.preferences}

        def rule(asked: Mapping[str, Any]) -> Mapping[str, Any]:
            kind, wish = cues.classify(asked["utterance"], words, ids)
            return {"type": kind, "preference_id": wish}

        loose = self.compat.error_policy == "zero_reward"
        schema = UtteranceVerdict if loose else utterance_schema(ids)
        try:
            verdict = await self.decide("travel.utterance", inputs, schema, rule)
        except PARTY_FAILURES:
            if not loose:
                raise
            return cues.SMALL_TALK, None
        if verdict.type != cues.HELD:
            return verdict.type, None
        named = [wish for wish in wishes if wish.id == verdict.preference_id]
        return (cues.HELD, named[0]) if named else (cues.SMALL_TALK, None)

    async def _ask(
        self,
        kind: str,
        text: str,
        state: State,
        *,
        script: Script,
        wish: Preference | None = None,
    ) -> Reply:
        private = {"aspect": wish.aspect, "wish": wish.text, "hint": wish.implicit} if wish else {}
        public = {"request": self._initial}
        history = self._history(state)
        return await self.ask(Question(kind, text, script, public, private, history))

    def _told(
        self, state: State, wish: Preference, reply: Reply, *, reward: float = 0.0
    ) -> Turn[State]:
        state = replace(state, told=(*state.told, wish.id), idle=0)
        return Turn(state, reply=reply, reward=reward, grading=self._grading(state))

    def _open(self, state: State) -> list[Preference]:
        """Return the wishes that can still be asked for; compat mistakes which ones it drops."""
        closed = {DIMENSIONS[letter] for letter, _ in state.chosen}
        fixed = self.compat.travel_path == "fixed"
        return [
            wish
            for wish in self._trip.preferences
            if wish.id not in state.told
            and not (wish.aspect in closed and (fixed or wish.topic == wish.aspect))
        ]

    def _due(self, state: State) -> bool:
        """Tell whether this idle turn is one at which the traveler volunteers."""
        interval: int = self.options["elicitation_interval"]
        late = self._volunteering() != "third_turn"
        return interval > 0 and state.idle >= (interval if late else interval - 1)

    def _volunteering(self) -> str:
        """Return how volunteering works; the sync path was never broken."""
        return "third_turn" if self.compat.travel_path == "sync" else self.compat.travel_volunteer

    def _history(self, state: State) -> tuple[PublicMessage, ...]:
        return tuple(one for n, one in enumerate(self.heard()) if n not in state.unheard)

    def _words(self, state: State) -> Any:
        return self.rng("words", len(self.heard()), len(state.told))

    def _rewards(self) -> tuple[float, float]:
        """Return what a question about a wish and a first fitting search are worth."""
        split = self.compat.travel_rewards == "train_eval_split"
        return (0.6, 0.2) if split and self.compat.phase == "eval" else (ASKED, 0.0)

    # Choosing -------------------------------------------------------------------------------

    def _choose(self, state: State, content: str) -> Turn[State]:
        path = self.compat.travel_path
        if path != "fixed":
            state = replace(state, unheard=(*state.unheard, len(self.heard())))
            parts = content.split(",") if path == "async" else [content]
            return self._record(state, [part.strip() for part in parts])
        option = content.strip().upper()
        if not _OPTION.fullmatch(option):
            raise BadAction("an answer is exactly one option id, a letter and a number")
        aspect = self._trip.aspects.get(DIMENSIONS[option[0]])
        if aspect is None or option not in aspect.ids:
            raise BadAction(f"there is no option {option} here")
        if aspect.letter in dict(state.chosen):
            return Turn(state, CLOSED, grading=self._grading(state))
        state = replace(state, chosen=(*state.chosen, (aspect.letter, option)))
        over = len(state.chosen) == len(self._trip.aspects)
        return self._answered(state, [aspect.grade(option)], over=over)

    def _record(self, state: State, options: Sequence[str]) -> Turn[State]:
        """Record as the original does: one after another, whatever comes after."""
        grades = []
        for option in options:
            if not _COMPAT_OPTION.fullmatch(option):
                return Turn(state, UNREADABLE, grading=self._grading(state))
            if option[0] in dict(state.chosen):
                return Turn(state, CLOSED, grading=self._grading(state))
            state = replace(state, chosen=(*state.chosen, (option[0], option)))
            aspect = self._trip.aspects.get(DIMENSIONS[option[0]])
            grades.append(aspect.grade(option) if aspect is not None else 0.0)
        ids = {option for _, option in state.chosen}
        over = all(aspect.best in ids for aspect in self._trip.aspects.values())
        if self.compat.travel_path == "sync":
            over = over or len(state.chosen) == len(self._trip.aspects)
        return self._answered(state, grades, over=over)

    def _answered(self, state: State, grades: Sequence[float], *, over: bool) -> Turn[State]:
        reached = StopReason.GOAL_REACHED if self.succeeded(state) else StopReason.CASE_CLOSED
        return Turn(
            state,
            "Recorded: " + "; ".join(GRADES.get(grade, WRONG) for grade in grades) + ".",
            reward=sum(grades),
            over=reached if over else None,
            grading=self._grading(state),
        )

    def _grades(self, state: State) -> dict[str, float]:
        """Return letter -> grade of what was chosen; letters outside the task are worth nothing."""
        aspects = {aspect.letter: aspect for aspect in self._trip.aspects.values()}
        return {
            letter: aspects[letter].grade(option) if letter in aspects else 0.0
            for letter, option in state.chosen
        }

    def _grading(self, state: State) -> dict[str, Any]:
        grades = self._grades(state)
        best = [grades.get(aspect.letter) == 1.0 for aspect in self._trip.aspects.values()]
        return {"told": len(state.told), "grades": grades, "perfect": all(best)}
