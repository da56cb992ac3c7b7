"""What a model-backed user is told about the person it plays: scenario to prompt values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mimesim import prompts
from mimesim.dialogue.stop import END_MARKER
from mimesim.errors import DataError
from mimesim.scenarios.behaviors import get
from mimesim.scenarios.fields import PHRASED, asked_fields
from mimesim.scenarios.types import Scenario
from mimesim.users.guards import Situation, words
from mimesim.users.questions import asks_for, questions_in

_UNSAID = {"customer", "full", "user", "the", "of", "current", "id", "number"}
"""Words of a fact's name that agents leave out when they ask for it."""


def read_scenario(value: Mapping[str, Any]) -> Scenario:
    """Read a task's scenario strictly.

    Raises:
        DataError: a damaged scenario, or one whose user owns tools.
    """
    where = f"scenario {value.get('id', '?')}"
    scenario = Scenario.from_json(value, where)
    if scenario.tools:
        raise DataError("the user owns tools", where=where, expected="a scenario without tools")
    return scenario


def system_prompt(
    scenario: Scenario, template: str, *, thinking: bool, end_marker: str = END_MARKER
) -> str:
    """Render the private prompt; what only scorers and the agent may know is left out.

    Args:
        scenario: the person.
        template: a template `user/*`.
        thinking: whether the person is told to think first.
        end_marker: what the model ends with, where the scenario names nothing else.
    """
    values = prompt_values(scenario, end_marker=end_marker)
    return prompts.render(template, thinking=thinking, **values)


def prompt_values(scenario: Scenario, *, end_marker: str = END_MARKER) -> dict[str, Any]:
    """Return the values that the templates `user/*` need, all but `thinking`."""
    known = {**scenario.facts, **({"you": scenario.persona} if scenario.persona else {})}
    return {
        # What a user trained on human chats reads in place of everything below; how it was told
        # about people in training decides where this stands (`user/midtrain`, `_goal`).
        "topic": "\n".join(part for part in (scenario.goal, lines(known)) if part),
        "wanted": "",
        "context": "",
        "persona": lines(scenario.persona),
        "goal": scenario.goal,
        "facts": [(key.replace("_", " "), spoken(v)) for key, v in scenario.facts.items()],
        "unknown": list(scenario.unknown),
        "style": lines(scenario.style),
        "directives": directives(scenario),
        "stop_when": scenario.end.on,
        "withheld": [(w.fact.replace("_", " "), w.until) for w in scenario.withhold],
        "end_marker": scenario.end.markers[0] if scenario.end.markers else end_marker,
    }


def directives(scenario: Scenario) -> list[str]:
    """Return how the user behaves, in words; empty = an ordinary customer.

    Raises:
        UnknownNameError: no such behavior.
    """
    return [use.directive or get(use.id).directive(use.params) for use in scenario.behavior]


def situation(
    scenario: Scenario, *, prompt: str, opening: bool, asked: Sequence[str], max_chars: int
) -> Situation:
    """Return what the guards check a reply against, apart from what was said so far."""
    late = {w.fact: w.until for w in scenario.withhold if w.fact not in asked}
    return Situation(
        opening=opening,
        goal=scenario.goal,
        may_state_goal=scenario.may_state_goal,
        withheld={fact: scenario.facts[fact] for fact, until in late.items() if until == "asked"},
        until={fact: scenario.facts[fact] for fact, until in late.items() if until != "asked"},
        prompt=prompt,
        citable=[spoken(value) for value in scenario.facts.values()],
        max_chars=max_chars,
    )


def asked_for(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the facts among `names` that an agent's text asks for.

    Fields of customer records are known by their usual phrases; other facts by their own name, or
    by a question that they answer ("when will you arrive?" asks for `arrival_time`).
    """
    phrased = asked_fields(text)
    heard = set(words(text))
    questions = questions_in(text)
    return tuple(
        name
        for name in names
        if (
            name in phrased
            if name in PHRASED
            else _mentions(heard, name) or asks_for(questions, name)
        )
    )


def lines(value: str | Mapping[str, Any]) -> str:
    """Return a text, or a map as one line per key."""
    if isinstance(value, str):
        return value
    return "\n".join(f"{key.replace('_', ' ')}: {spoken(v)}" for key, v in value.items())


def spoken(value: Any) -> str:
    """Return a value as a person would read it out."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {spoken(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(spoken(inner) for inner in value)
    return str(value)


def _mentions(heard: set[str], name: str) -> bool:
    parts = [part for part in words(name.replace("_", " ")) if part not in _UNSAID]
    return bool(parts) and all(part in heard for part in parts)
