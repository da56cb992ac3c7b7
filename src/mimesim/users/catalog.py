"""The kinds of users by door name, for looking at: nothing is loaded or called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mimesim.dialogue.stop import END_MARKER
from mimesim.models.endpoint import redact
from mimesim.prompts import prompt_hash
from mimesim.registry import unknown_name
from mimesim.scenarios.types import BehaviorUse, Scenario, Withhold
from mimesim.users import briefing
from mimesim.users.load import REGISTRY
from mimesim.users.presets import PREFIX, find, presets, resolve
from mimesim.users.settings import TRAINED, trained_as


@dataclass(frozen=True, slots=True)
class Entry:
    """One kind of user."""

    name: str
    summary: str

    def as_json(self) -> dict[str, Any]:
        """Return the entry as JSON values."""
        return {"name": self.name, "family": self.name.partition(":")[0], "summary": self.summary}


_SCRIPTED = {
    "cooperative": "states everything at once and answers everything",
    "easy": "volunteers each field with probability .8, answers everything",
    "neutral": "volunteers each field with probability .35, answers everything",
    "realistic": "one third neutral, else one of the 13 behaviors",
    "hostile": "guarded and pushy: holds back, presses, insists, insults",
    "heldout-1": "held out: says everything, in words never trained on",
    "heldout-2": "held out: quiet, volunteers little",
    "heldout-3": "held out: guarded, holds back and hurries",
    "heldout-4": "held out: shifting, changes errand and target",
    "heldout-5": "held out: pushy, claims, insists and insults",
    "heldout-6": "held out: flighty, blames and leaves",
    "heldout-7": "held out: overloads, stacks limits, judges in silence",
    "B1": "hidden evaluation criteria",
    "B2": "incremental goalpost shifting",
    "B3": "clarification non-cooperation",
    "B4": "infeasibility persistence",
    "B5": "underspecified, then blames",
    "B6": "abrupt intent switching",
    "B7": "artificial constraint stacking",
    "B8": "fabricated or false premise",
    "B9": "impatient low-signal pressure",
    "B10": "unresolved thread abandonment",
    "B11": "self-contradiction",
    "B12": "request overloading",
    "B13": "belittling or entitled pressure",
}
_BACKED = {
    "roleplay": ("roleplay:<model>", "a prompted chat model, the usual control"),
    "trained": ("trained:<path>", "a simulator trained on human chats, e.g. trained:out/user"),
    "http": ("http:<url>", "a simulator that somebody serves at an OpenAI-compatible endpoint"),
}
_TEMPLATES = {"roleplay": "user/roleplay", "http": TRAINED}

EXAMPLE = Scenario(
    id="example",
    goal="send back a teapot that arrived cracked and have the money returned",
    persona="Mira Olten, buys from the shop now and then",
    facts={"order_id": "7301188264", "email": "mira.olten@example.com"},
    withhold=(Withhold("order_id"),),
    behavior=(BehaviorUse("B9", {}, "A few words at a time, all of them pressing."),),
)
"""The person that `users show` renders prompts for."""


def catalog() -> list[Entry]:
    """Return every kind of user; kinds of extensions come last."""
    rows = [Entry(f"scripted:{kind}", summary) for kind, summary in _SCRIPTED.items()]
    rows += [Entry(name, summary) for name, summary in _BACKED.values()]
    rows += [
        Entry(f"{PREFIX}{name}", f"{one.title}, {one.plays}: {one.weights or one.model}")
        for name, one in presets().items()
    ]
    known = {"scripted", "preset", *_BACKED}
    return rows + [Entry(name, "extension") for name in REGISTRY.names() if name not in known]


def describe(name: str) -> dict[str, Any]:
    """Return what there is to know about one kind of user.

    Raises:
        UnknownNameError: no such kind.
    """
    family, _, rest = name.partition(":")
    if family in _BACKED:
        return _backed(family, rest)
    if name.startswith(PREFIX):
        return _preset(rest)
    for entry in catalog():
        if entry.name == name:
            return entry.as_json()
    raise unknown_name("user", name, [entry.name for entry in catalog()])


def _backed(family: str, rest: str) -> dict[str, Any]:
    said = trained_as(rest) if family == "trained" else None
    template = said.template if said else _TEMPLATES[family]
    name, summary = _BACKED[family]
    return {
        **Entry(name, summary).as_json(),
        "template": template,
        "prompt_hash": prompt_hash(template),
        "example_prompt": briefing.system_prompt(
            EXAMPLE,
            template,
            thinking=said is not None and said.thinking,
            end_marker=said.end_marker if said else END_MARKER,
        ),
    }


def _preset(name: str) -> dict[str, Any]:
    preset = find(name)
    door, settings = resolve(name)
    return {
        "name": f"{PREFIX}{preset.name}",
        "family": "preset",
        "stands_for": redact(door),
        "settings": settings,
        "address_from": preset.variable,
        "key_from": preset.key or "no key is needed",
        "weights": preset.weights,
        "source": preset.source,
        "note": preset.note,
        "tags": dict(preset.tags),
    }
