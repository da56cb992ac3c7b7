"""The scripted customer of the compact desk: neutral and all 13 behaviors as a state machine.

Every turn is a private thought and an utterance. The behavior and the opening depend on the
scenario and the kind alone, later turns on the conversation's own seed, so that the members of a
training group start alike and then differ.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from mimesim.dialogue.stop import UserAction
from mimesim.dialogue.types import Reply, Thought
from mimesim.scenarios.compact import FIELD_NAMES, ITEMS, ORDERS, REQUIRED, SLOT, VALUES
from mimesim.seeds import from_state, generator, state_of
from mimesim.users.base import UserRequest
from mimesim.users.scripted.kinds import Authored, character

_UNDECIDED = Authored(decides=False, behaviors=())
"""A compact scenario leaves the behavior to the kind."""


@cache
def phrase_bank(name: str) -> dict[str, tuple[str, ...]]:
    """Return a bank of phrases, `main` or `heldout`."""
    source = files("mimesim.users.scripted").joinpath("compact_phrases.toml")
    banks = tomllib.loads(source.read_text(encoding="utf-8"))
    return {key: tuple(lines) for key, lines in banks[name].items()}


class CompactUser:
    """One customer in one conversation.

    Args:
        scenario: a compact scenario (`scenarios.compact.compose_scenario`).
        kind: a name of `kinds.KINDS`.
        seed: randomness of everything after the opening.
    """

    def __init__(self, scenario: Mapping[str, Any], *, kind: str, seed: int) -> None:
        meta = scenario["meta"]
        self._rng = generator(meta["opening_seed"], kind)
        self._later = seed
        drawn = character(kind, _UNDECIDED, self._rng)
        self._volunteers = drawn.volunteers
        self._behaviors = set(drawn.behaviors)
        self._bank = phrase_bank(drawn.bank)
        self._item: str = meta["item"]
        self._values: dict[str, str] = dict(scenario["facts"])
        self._intent = self._suited_intent(meta["intent"])
        self._said_intent: str | None = None
        self._told: dict[str, str] = {}
        self._turn = 0
        self._pressed = False
        self._gone = False
        self._withheld = self._draw_withheld()
        self._patience = self._rng.choice((2, 3)) if "B10" in self._behaviors else 99
        self._shift_at = self._draw_shift()
        self._exclusions = 1 if "B7" in self._behaviors else 0
        self._false_field = self._draw_false_field()

    # -- the protocol ----------------------------------------------------------------------

    async def respond(self, request: UserRequest) -> Reply:
        """Open the conversation, or answer the agent's question."""
        if not request.history and not request.agent_text:
            parts = self._open()
            self._rng = generator(self._later, "after-opening")
            return self._reply(parts)
        return self._answer(request.asked_fields)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as JSON values."""
        return {
            "rng": state_of(self._rng),
            "later": self._later,
            "behaviors": sorted(self._behaviors),
            "values": dict(self._values),
            "intent": self._intent,
            "said_intent": self._said_intent,
            "told": dict(self._told),
            "turn": self._turn,
            "pressed": self._pressed,
            "gone": self._gone,
            "withheld": dict(self._withheld),
            "patience": self._patience,
            "shift_at": self._shift_at,
            "exclusions": self._exclusions,
            "false_field": self._false_field,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state from `snapshot`."""
        self._rng = from_state(state["rng"])
        self._later = state["later"]
        self._behaviors = set(state["behaviors"])
        self._values, self._told = dict(state["values"]), dict(state["told"])
        self._intent, self._said_intent = state["intent"], state["said_intent"]
        self._turn, self._pressed, self._gone = state["turn"], state["pressed"], state["gone"]
        self._withheld = dict(state["withheld"])
        self._patience, self._shift_at = state["patience"], state["shift_at"]
        self._exclusions, self._false_field = state["exclusions"], state["false_field"]

    # -- who this customer is --------------------------------------------------------------

    def _suited_intent(self, intent: str) -> str:
        """Bend the request to one in which the behaviors can show."""
        rng, behaviors = self._rng, self._behaviors
        if behaviors & {"B8", "B4"} and intent in ("address", "cancel"):
            intent = rng.choice(("refund", "exchange"))
        if behaviors & {"B7", "B1"} and rng.random() < 0.7:
            intent = "refund"
        if "B2" in behaviors and "B6" not in behaviors and intent not in SLOT:
            intent = rng.choice(tuple(SLOT))
        return intent

    def _draw_withheld(self) -> dict[str, int]:
        if "B3" not in self._behaviors:
            return {}
        fields = REQUIRED[self._intent]
        count = min(len(fields), self._rng.choice((1, 2)))
        return {f: self._rng.choice((1, 1, 2)) for f in self._rng.sample(fields, count)}

    def _draw_shift(self) -> int:
        if "B2" not in self._behaviors:
            return 99
        return 2 if "B6" in self._behaviors else self._rng.choice((1, 2))

    def _draw_false_field(self) -> str | None:
        if "B11" not in self._behaviors:
            return None
        return self._rng.choice([f for f in REQUIRED[self._intent] if f != "status"])

    def _other(self, field: str) -> str:
        """Return a value of `field` that is not the true one."""
        return self._rng.choice([v for v in VALUES[field] if v != self._values[field]])

    # -- what the customer says ------------------------------------------------------------

    def _phrase(self, key: str, **values: str) -> str:
        return self._rng.choice(self._bank[key]).format(**values)

    def _state(self, field: str, value: str | None = None) -> str:
        value = self._values[field] if value is None else value
        self._told[field] = value
        return self._phrase(field, v=value)

    def _request(self) -> str:
        self._said_intent = self._intent
        return self._phrase(self._intent, i=self._item)

    def _missing(self) -> list[str]:
        """Return what the agent has not been told truly yet, the request itself included."""
        fields = [f for f in REQUIRED[self._intent] if self._told.get(f) != self._values[f]]
        return fields if self._said_intent == self._intent else ["intent", *fields]

    def _thought(self) -> Thought:
        missing = [FIELD_NAMES[f] for f in self._missing()]
        told = (
            "they know all" if not missing else "i have not told the " + " and the ".join(missing)
        )
        push = " . i push them" if self._behaviors & {"B4", "B8", "B9", "B13"} else ""
        return Thought(f"i want {self._intent} . {told}{push}")

    def _reply(self, parts: Sequence[str], action: UserAction = UserAction.SAY) -> Reply:
        wish = {
            "intent": self._intent,
            "values": dict(self._values),
            "missing": self._missing(),
            "said_intent": self._said_intent,
            "false_claim": self._pressed,
        }
        return Reply(self._thought(), " . ".join(p for p in parts if p), action, wish=wish)

    def _open(self) -> list[str]:
        parts = [self._phrase("greet")]
        parts.append(
            self._phrase("vague", i=self._item) if "B5" in self._behaviors else self._request()
        )
        for field in self._volunteered():
            lie = field == self._false_field
            parts.append(self._state(field, self._other(field) if lie else None))
        if "B1" in self._behaviors and self._intent == "refund":
            parts.append(self._phrase("criterion", a=self._other("method")))
        if "B12" in self._behaviors:
            for _ in range(self._rng.choice((2, 3))):
                parts.insert(self._rng.randint(1, len(parts)), self._distraction())
        parts += self._pressure(0.5)
        parts.append(self._phrase("thanks"))
        return parts

    def _volunteered(self) -> list[str]:
        fields = list(REQUIRED[self._intent])
        self._rng.shuffle(fields)
        chosen = [
            f for f in fields if self._rng.random() < self._volunteers and f not in self._withheld
        ]
        if self._behaviors & {"B2", "B3", "B6", "B9", "B10"} and len(chosen) == len(fields):
            chosen = chosen[1:]  # the behavior needs something left to happen
        if self._behaviors & {"B1", "B7"}:
            chosen = [f for f in chosen if f != "method"]
        if self._false_field is not None:
            others = [f for f in chosen if f != self._false_field]
            chosen = [self._false_field, *others[: len(fields) - 2]]
        return chosen

    def _distraction(self) -> str:
        return self._phrase("distract", x=self._rng.choice(ORDERS), i=self._rng.choice(ITEMS))

    def _pressure(self, share: float) -> list[str]:
        parts: list[str] = []
        for behavior, key in (
            ("B8", "claim"),
            ("B4", "persist"),
            ("B13", "insult"),
            ("B9", "terse"),
        ):
            if behavior in self._behaviors and self._rng.random() < share:
                parts.append(self._phrase(key, w=self._rng.choice(("60", "90"))))
                self._pressed = self._pressed or behavior in ("B4", "B8")
        return parts

    # -- how the customer answers ----------------------------------------------------------

    def _answer(self, asked: Sequence[str]) -> Reply:
        self._turn += 1
        if self._leaves():
            self._gone = True
            return self._reply([self._phrase("leave")], UserAction.END)
        if "B6" in self._behaviors:
            self._behaviors.discard("B6")
            self._intent = self._rng.choice([i for i in REQUIRED if i != self._intent])
            return self._reply([self._phrase("switch", r=self._request()), *self._pressure(0.3)])
        parts = self._speak_of_request(asked)
        outburst = self._outburst(parts)
        if outburst is not None:
            return self._reply(outburst)
        parts += self._give(asked)
        parts += self._shift_goal()
        parts += self._pressure(0.35)
        return self._reply(parts or [self._phrase("nothing")])

    def _leaves(self) -> bool:
        if self._turn < self._patience or not self._missing():
            return False
        return self._turn > self._patience or self._rng.random() < 0.6

    def _speak_of_request(self, asked: Sequence[str]) -> list[str]:
        """Say the request where it is due; B5 says it with blame."""
        if "B5" in self._behaviors and self._said_intent is None:
            self._behaviors.discard("B5")
            return [self._phrase("blame", r=self._request())]
        return [self._request()] if "intent" in asked else []

    def _outburst(self, parts: list[str]) -> list[str] | None:
        """Return a whole turn without an answer, for the behaviors that have such turns."""
        if "B13" in self._behaviors and self._rng.random() < 0.25:
            return [*parts, self._phrase("insult"), *self._pressure(0.5)]
        if "B9" in self._behaviors and self._rng.random() < 0.35:
            return [*parts, self._phrase("terse")]
        return None

    def _give(self, asked: Sequence[str]) -> list[str]:
        """Answer the fields asked for, as far as this customer does."""
        needed = [f for f in asked if f in REQUIRED[self._intent]]
        if "B9" in self._behaviors:
            needed = needed[:1]
        parts: list[str] = []
        dodged = False
        for field in needed:
            if self._withheld.get(field, 0) > 0:
                self._withheld[field] -= 1
                dodged = True
            elif field == "method" and self._exclusions > 0:
                self._exclusions -= 1
                parts.append(self._exclude())
            else:
                parts.append(self._state(field))
        parts += self._contradict(needed)
        if dodged:
            parts.append(self._phrase("dodge"))
        if "B7" in self._behaviors and self._rng.random() < 0.4:
            parts.append(self._phrase("constraint"))
        if not needed and any(f != "intent" for f in asked):
            parts.append(self._phrase("irrelevant"))
        return parts

    def _exclude(self) -> str:
        others = [m for m in VALUES["method"] if m != self._values["method"]]
        first, second = self._rng.sample(others, 2)
        return self._phrase("exclude", a=first, b=second)

    def _contradict(self, needed: Sequence[str]) -> list[str]:
        """B11: state the true value in passing, as if the false one had never been said."""
        field = self._false_field
        if field is None or not needed or self._told.get(field) == self._values[field]:
            return []
        if self._rng.random() < 0.7:
            return [self._state(field)]
        return []

    def _shift_goal(self) -> list[str]:
        """B2: want another slot value once the first one was told."""
        slot = SLOT.get(self._intent)
        if self._turn < self._shift_at or slot is None or slot not in self._told:
            return []
        self._shift_at = 99
        self._values[slot] = self._other(slot)
        self._told[slot] = self._values[slot]
        return [self._phrase("change", v=self._values[slot])]
