"""How each behavior shows in a scripted customer: hooks around the neutral conversation.

A mood may speak in the opening, take a whole turn over, block or change the answer to a question,
and add to what is said. It holds no state; what happened stands in the memory's counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mimesim.scenarios.fields import field_name, says
from mimesim.users.scripted.talk import Talk

FOR_GOOD = 10_000
"""More questions than any conversation holds."""


@dataclass(frozen=True, slots=True)
class Mood:
    """A behavior with its parameters; `draw` in [0, 1) is fixed per scenario."""

    params: Mapping[str, Any]
    draw: float = 0.0

    def held_back(self, needed: tuple[str, ...]) -> tuple[str, ...]:
        """Return the fields that are not volunteered."""
        return ()

    def patience(self, needed: tuple[str, ...]) -> dict[str, int]:
        """Return how many questions for a field are dodged."""
        return {}

    def replaces_issue(self, talk: Talk) -> bool:
        """Word the opening differently; True = the plain issue is not stated."""
        return False

    def opens(self, talk: Talk) -> None:
        """Add to the opening."""

    def takes(self, talk: Talk) -> bool:
        """Take the whole turn over; True = nothing else is said."""
        return False

    def blocks(self, talk: Talk, name: str) -> bool:
        """Answer a question for `name` in an own way; True = it is answered."""
        return False

    def adds(self, talk: Talk) -> None:
        """Add to an ordinary answer."""


class Hidden(Mood):
    """B1: unimpressed until the secret standard comes up."""

    def takes(self, talk: Talk) -> bool:
        """React to offers and results by the standard, twice at most."""
        heard = talk.heard
        offered = (heard.proposal or heard.done) and not heard.asked
        if not offered or talk.count("hidden") >= 2:
            return False
        talk.note("hidden")
        talk.think("hidden", text=str(self.params.get("criterion", "what I care about")))
        field = str(self.params.get("field", ""))
        value = str(talk.memory.facts.get(field, ""))
        met = bool(field) and (says(heard.text, field_name(field)) or says(heard.text, value))
        talk.say("content" if met else "unimpressed")
        return True


class Shifting(Mood):
    """B2: one more condition once something is under way."""

    def adds(self, talk: Talk) -> None:
        """Add the condition once, and move the wish it replaces."""
        heard, memory = talk.heard, talk.memory
        moving = heard.done or heard.proposal or len(memory.told) >= 2 or memory.turn >= 3
        if not moving or memory.turn < 2 or talk.count("shift") or talk.end:
            return
        talk.note("shift")
        field, value = str(self.params.get("field", "")), str(self.params.get("value", ""))
        if field:
            memory.facts[field] = value
            memory.wish[field] = value
        talk.think("shift")
        talk.say("shift", text=str(self.params.get("constraint", "it has to be quick")))


class Withholding(Mood):
    """B3: dodges questions for some fields, `patience` times each (null = for good)."""

    def held_back(self, needed: tuple[str, ...]) -> tuple[str, ...]:
        """Return the withheld fields; the first needed one where nothing says which."""
        return tuple(self.params.get("withheld_fields") or needed[:1])

    def patience(self, needed: tuple[str, ...]) -> dict[str, int]:
        """Return how many questions each withheld field outlasts."""
        given = self.params.get("patience", 1)
        return dict.fromkeys(self.held_back(needed), FOR_GOOD if given is None else int(given))

    def blocks(self, talk: Talk, name: str) -> bool:
        """Dodge; one dodge answers a whole message."""
        if talk.memory.asked.get(name, 0) > talk.patience.get(name, 0):
            return False
        talk.think("dodge", field=field_name(name))
        if not talk.dodged:
            talk.dodged = True
            talk.say("dodge", field=field_name(name))
        return True


class Insisting(Mood):
    """B4: does not take no for an answer, two or three times."""

    def takes(self, talk: Talk) -> bool:
        """Push after a refusal, then give in."""
        tries = 2 + int(self.draw * 2)
        if not talk.heard.refusal or talk.heard.asked or talk.count("insist") > tries:
            return False
        talk.note("insist")
        key = "insist" if talk.count("insist") <= tries else "give_in"
        talk.think(key)
        talk.say(key)
        return True


class Blaming(Mood):
    """B5: vague first, cross afterwards."""

    def replaces_issue(self, talk: Talk) -> bool:
        """Open vaguely."""
        options = talk.bank["vague"]
        talk.parts.append(talk.phrase("vague", talk.flow if talk.flow in options else "other"))
        return True

    def takes(self, talk: Talk) -> bool:
        """Scold at once when the agent asks nothing that can be answered."""
        if talk.heard.asked or talk.count("blame"):
            return False
        self._blame(talk)
        return True

    def adds(self, talk: Talk) -> None:
        """Scold once the agent has gone some way."""
        if talk.memory.turn >= 2 and not talk.count("blame"):
            self._blame(talk)

    def _blame(self, talk: Talk) -> None:
        talk.note("blame")
        talk.think("blame")
        detail = str(self.params.get("omitted_detail", "it is urgent"))
        talk.say("blame", text=detail, issue=talk.issue)


class Switching(Mood):
    """B6: another errand in the middle."""

    def takes(self, talk: Talk) -> bool:
        """Turn to the other topic in the second message after the opening."""
        if talk.memory.turn < 2 or talk.count("switch"):
            return False
        talk.note("switch")
        talk.memory.wish["topic"] = self._topic()
        talk.think("switch")
        talk.say("switch", text=self._topic())
        return True

    def adds(self, talk: Talk) -> None:
        """Come back to the new topic once."""
        if talk.count("switch") == 1 and not talk.count("switch_more"):
            talk.note("switch_more")
            talk.say("switch_more", text=self._topic())

    def _topic(self) -> str:
        return str(self.params.get("target_topic", "my newsletter"))


class Excluding(Mood):
    """B7: closes one way after another."""

    def adds(self, talk: Talk) -> None:
        """Take a means away, three times at most, never the same twice."""
        options = talk.bank["say"]["exclude"]
        happened = talk.count("exclude")
        talking = talk.heard.proposal or talk.heard.done or bool(talk.heard.asked)
        if happened < 3 and talking:
            talk.note("exclude")
            start = int(self.draw * len(options))
            talk.think("exclude")
            talk.parts.append(options[(start + happened) % len(options)])


class FalsePremise(Mood):
    """B8: claims something untrue, defends it once, then gives it up."""

    def held_back(self, needed: tuple[str, ...]) -> tuple[str, ...]:
        """Never volunteer the truth."""
        return (str(self.params["field"]),) if self.params else ()

    def opens(self, talk: Talk) -> None:
        """Take the false value for granted."""
        if not self.params:
            return
        field, value = str(self.params["field"]), str(self.params["false_value"])
        talk.memory.claims[field] = value
        talk.think("false", text=f"{field_name(field)} {value}")
        talk.say("false_claim", text=talk.statement(field))

    def takes(self, talk: Talk) -> bool:
        """Defend, then drop the claim when the agent says that it does not agree."""
        return not talk.heard.asked and self._contested(talk)

    def blocks(self, talk: Talk, name: str) -> bool:
        """The same when the agent asks for the field again."""
        again = talk.memory.asked.get(name, 0) > 1 or talk.heard.mismatch
        return name == self.params.get("field") and again and self._contested(talk, asked=True)

    def _contested(self, talk: Talk, *, asked: bool = False) -> bool:
        field = str(self.params.get("field", ""))
        if field not in talk.memory.claims or not (asked or talk.heard.mismatch):
            return False
        talk.note("contested")
        if talk.count("contested") == 1:
            talk.think("false", text=f"{field_name(field)} {talk.value(field)}")
            talk.say("false_defend", text=talk.statement(field))
            return True
        del talk.memory.claims[field]
        talk.think("false_drop")
        talk.say("false_drop", text=talk.statement(field))
        talk.mark_told(field)
        return True


class Contradicting(Mood):
    """B11: one value first, another later, and no sign of noticing."""

    def opens(self, talk: Talk) -> None:
        """State the first value."""
        if self.params and str(self.params["field"]) not in talk.memory.told:
            talk.parts.append(talk.statement(str(self.params["field"])))
            talk.mark_told(str(self.params["field"]))

    def adds(self, talk: Talk) -> None:
        """State the other value; take it back silently when the agent contests it."""
        if not self.params or talk.end:
            return
        field = str(self.params["field"])
        if talk.memory.turn >= 2 and not talk.count("contradict"):
            talk.note("contradict")
            talk.memory.claims[field] = str(self.params["value_b"])
            talk.think("contradict")
            talk.say("contradict", text=talk.statement(field))
        elif field in talk.memory.claims and (
            talk.heard.mismatch or talk.memory.asked.get(field, 0) > 1
        ):
            del talk.memory.claims[field]
            talk.parts.append(talk.statement(field))


class Impatient(Mood):
    """B9: bursts of pressure; a field is given only when asked for a second time."""

    LIMIT = 60

    def replaces_issue(self, talk: Talk) -> bool:
        """Name the errand in as few words as possible."""
        talk.parts.append(talk.title[: self.LIMIT])
        return True

    def takes(self, talk: Talk) -> bool:
        """Press, or hand over bare values that fit into one short line."""
        if talk.heard.refusal or talk.heard.done or talk.heard.farewell:
            return False
        if talk.count("press") >= 6:
            return False
        line = ""
        for name in talk.heard.asked:
            if talk.heard.mismatch or talk.memory.asked.get(name, 0) > 2:
                talk.memory.claims.pop(name, None)  # no time to argue about it
            value = talk.value(name)
            waits = max(1, talk.patience.get(name, 0))
            ready = talk.memory.asked.get(name, 0) > waits and value is not None
            longer = f"{line}, {value}" if line else str(value)
            if ready and (len(longer) <= self.LIMIT or not line):
                line = longer
                talk.mark_told(name)
        talk.note("press")
        talk.think("press")
        if line:
            talk.parts.append(line)
        else:
            talk.say("press")
        return True


class Leaving(Mood):
    """B10: walks out in the third to fifth message."""

    def takes(self, talk: Talk) -> bool:
        """Leave when it has been enough."""
        if talk.memory.turn < 2 + int(self.draw * 3):
            return False
        talk.think("leave")
        talk.say("leave")
        talk.leave()
        return True


class Overloading(Mood):
    """B12: everything in the opening."""

    def opens(self, talk: Talk) -> None:
        """Pile other wishes onto the errand."""
        options = talk.bank["say"]["overload"]
        wanted = min(int(self.params.get("n_requests", 3)), len(options))
        talk.think("overload")
        talk.parts.append("and " + " and also ".join(talk.rng.sample(options, wanted)))


class Belittling(Mood):
    """B13: contempt or entitlement, now and then as the whole message."""

    def takes(self, talk: Talk) -> bool:
        """Answer with contempt alone, twice at most."""
        if talk.count("contempt") >= 2 or talk.rng.random() >= 0.25:
            return False
        talk.note("contempt")
        self._speak(talk)
        return True

    def adds(self, talk: Talk) -> None:
        """Season the first answers with it."""
        if talk.count("belittle") < 2 and not talk.end:
            talk.note("belittle")
            self._speak(talk)

    def _speak(self, talk: Talk) -> None:
        tone = str(self.params.get("register", "condescension")).split()[-1]
        talk.think("belittle")
        talk.say(tone)


MOODS: dict[str, type[Mood]] = {
    "B4": Insisting,
    "B10": Leaving,
    "B6": Switching,
    "B8": FalsePremise,
    "B5": Blaming,
    "B13": Belittling,
    "B3": Withholding,
    "B9": Impatient,
    "B1": Hidden,
    "B2": Shifting,
    "B7": Excluding,
    "B11": Contradicting,
    "B12": Overloading,
}
"""Behavior -> mood, in the order in which moods of one customer come to speak."""
