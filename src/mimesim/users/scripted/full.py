"""The scripted customer of the full desk: neutral and all 13 behaviors, from one scenario.

Each turn has a private thought and an utterance. Withheld facts are told only when asked for. The
opening depends on the scenario alone, so that trials of one task start alike; later turns also
depend on the seed. Every conversation ends: after enough turns the customer leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.dialogue.stop import UserAction
from mimesim.dialogue.types import Reply, Thought
from mimesim.scenarios import behaviors, fields
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.behaviors import Situation
from mimesim.scenarios.rows import fill, scenario_to_row
from mimesim.scenarios.types import Scenario
from mimesim.seeds import generator
from mimesim.users.base import UserRequest
from mimesim.users.first_person import wishes
from mimesim.users.scripted.kinds import Authored, character
from mimesim.users.scripted.moods import MOODS, Mood
from mimesim.users.scripted.talk import Memory, Talk, listen, phrase_bank

_LONGEST = 24
"""Own messages after which the customer leaves, whatever happens."""


class FullUser:
    """One customer in one conversation.

    Args:
        scenario: JSON of a `Scenario`.
        kind: a name of `kinds.KINDS`.
        seed: randomness of everything after the opening.
    """

    def __init__(self, scenario: Mapping[str, Any], *, kind: str, seed: int) -> None:
        self._scenario = Scenario.from_json(scenario, "scenario")
        self._seed = seed
        self._case = _situation(self._scenario)
        uses = {behaviors.get(use.id).id: use.params for use in self._scenario.behavior}
        authored = Authored(self._case is not None or bool(uses), tuple(uses))
        self._drawn = character(kind, authored, generator(0, "character", self._scenario.id))
        self._bank = phrase_bank(self._drawn.bank)
        self._needed = self._needed_fields()
        self._moods = tuple(
            self._mood(name, uses.get(name)) for name in MOODS if name in self._drawn.behaviors
        )
        self._wishes = wishes(self._scenario.goal)
        self._memory = Memory(facts=dict(self._scenario.facts))

    # -- the protocol ----------------------------------------------------------------------

    async def respond(self, request: UserRequest) -> Reply:
        """Open the conversation, or answer the agent."""
        memory = Memory.from_json(self._memory.to_json())
        written = self._written(memory.turn)
        if written is not None:
            memory.turn += 1
            self._memory = memory
            return Reply(None, written)
        if self._scenario.script:
            return Reply(None, "", UserAction.END)
        asked = request.asked_fields or fields.asked_fields(request.agent_text)
        opening = memory.turn == 0 and not asked  # an agent may greet first
        talk = self._talk(memory, request, opening=opening)
        if opening:
            self._open(talk)
        else:
            self._answer(talk)
        memory.turn += 1
        self._memory = memory
        return Reply(
            Thought(" ".join(dict.fromkeys(talk.thoughts))),
            talk.utterance(),
            UserAction.END if talk.end else UserAction.SAY,
            wish=dict(memory.wish),
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as JSON values."""
        return self._memory.to_json()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state from `snapshot`."""
        self._memory = Memory.from_json(state)

    # -- who this is -----------------------------------------------------------------------

    def _needed_fields(self) -> tuple[str, ...]:
        facts = self._scenario.facts
        if self._case is None:
            return tuple(name for name in facts if name in fields.PHRASED)
        return tuple(name for name in self._case.request.required if name in facts)

    def _mood(self, name: str, params: Mapping[str, Any] | None) -> Mood:
        rng = generator(0, "mood", self._scenario.id, name)
        behavior = behaviors.get(name)
        if params is None:
            fits = self._case is not None and behavior.applicable(self._case)
            params = behavior.derive_params(self._case, rng) if self._case and fits else {}
        return MOODS[name](params, rng.random())

    def _talk(self, memory: Memory, request: UserRequest, *, opening: bool) -> Talk:
        asked = request.asked_fields or fields.asked_fields(request.agent_text)
        for name in asked:
            memory.asked[name] = memory.asked.get(name, 0) + 1
        meta = self._scenario.meta
        place = ("opening", self._scenario.id) if opening else ("turn", memory.turn)
        return Talk(
            memory=memory,
            bank=self._bank,
            rng=generator(0 if opening else self._seed, *place),
            heard=listen(request.agent_text, asked),
            issue=self._issue(),
            flow=str(meta.get("flow", "")),
            title=(self._case.request.title if self._case else self._wishes[0]).lower(),
            patience={k: n for m in self._moods for k, n in m.patience(self._needed).items()},
        )

    def _issue(self) -> str:
        """Return the errand in words that tell nothing withheld."""
        meta, bank = self._scenario.meta, self._bank
        facts = {name: _spoken(value) for name, value in self._scenario.facts.items()}
        key = str(meta.get("subflow", ""))
        options = bank["issue"][key if key in bank["issue"] else "other"]
        filled = [self._errand(option, facts) for option in options]
        secrets = [facts[use.fact] for use in self._scenario.withhold]
        safe = [text for text in filled if not any(fields.says(text, s) for s in secrets)]
        vague = bank["vague"].get(str(meta.get("flow", "")), bank["vague"]["other"])
        return generator(0, "issue", self._scenario.id).choice(safe or vague)

    def _errand(self, wording: str, facts: Mapping[str, str]) -> str:
        """Fill a wording; one that names the goal is followed by its further requests."""
        first = fill(wording, {**facts, "goal": self._wishes[0]})
        further = self._wishes[1:] if "{goal}" in wording else []
        also = self._bank["say"]["also"][0]
        # what was written after a semicolon may be a remark about oneself, and no request
        own = ("i ", "my ", "i'")
        return ". ".join(
            [first, *(w if w.startswith(own) else fill(also, {"goal": w}) for w in further)]
        )

    def _written(self, turn: int) -> str | None:
        """Return the exact words the scenario's author wrote for this turn, if any."""
        script = self._scenario.script
        if self._scenario.opening is not None:
            script = (self._scenario.opening, *script)
        return script[turn] if turn < len(script) else None

    # -- what is said ----------------------------------------------------------------------

    def _open(self, talk: Talk) -> None:
        talk.think("open")
        replaced = [mood for mood in self._moods if mood.replaces_issue(talk)]
        if not replaced:
            talk.parts.append(talk.issue)
        volunteers = 0.0 if replaced else self._drawn.volunteers
        for name in self._needed:
            if talk.rng.random() < volunteers and not self._held_back(name):
                talk.parts.append(talk.statement(name))
                talk.mark_told(name)
        for mood in self._moods:
            mood.opens(talk)

    def _held_back(self, name: str) -> bool:
        """Tell whether stating a field would say something that is held back."""
        held = {use.fact for use in self._scenario.withhold}
        for mood in self._moods:
            held.update(mood.held_back(self._needed))
        facts = self._scenario.facts
        secrets = [str(facts[fact]) for fact in held if fact in facts]
        return name in held or any(fields.says(str(facts[name]), secret) for secret in secrets)

    def _answer(self, talk: Talk) -> None:
        if talk.memory.turn >= _LONGEST or talk.memory.gone:
            talk.think("tired")
            talk.say("tired")
            talk.leave()
            return
        if any(mood.takes(talk) for mood in self._moods):
            return
        if talk.heard.asked:
            for name in talk.heard.asked:
                if not any(mood.blocks(talk, name) for mood in self._moods):
                    talk.give(name)
        else:
            self._react(talk)
        for mood in self._moods:
            mood.adds(talk)

    def _react(self, talk: Talk) -> None:
        """Answer a message that asks for no field."""
        heard = talk.heard
        if heard.refusal:
            self._close_by(talk, "refused", "accept_refusal")
        elif heard.done or heard.farewell:
            self._close_by(talk, "done", "thanks")
        elif heard.proposal:
            talk.think("idle")
            talk.say("yes")
        elif heard.question:
            talk.think("idle")
            talk.say("unsure" if talk.count("unsure") % 2 else "remind", issue=talk.issue)
            talk.note("unsure")
        else:
            talk.think("idle")
            talk.say("wait")

    def _close_by(self, talk: Talk, what: str, phrase: str) -> None:
        """Take an outcome in; the second time there is nothing left to say."""
        talk.note("outcome")
        if talk.count("outcome") == 1:
            talk.think(what)
            talk.say(phrase)
        else:
            talk.think("bye")
            talk.say("bye")
            talk.leave()


def _situation(scenario: Scenario) -> Situation | None:
    if "row" not in scenario.meta:
        return None
    manual = manuals.load(str(scenario.meta.get("manual", "company")))
    return Situation.of(scenario_to_row(scenario, "scenario"), manual)


def _spoken(value: Any) -> str:
    """Word a value inside a sentence; lists become `a, b and c`."""
    if not isinstance(value, list | tuple):
        return str(value)
    words = [str(word) for word in value]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""
