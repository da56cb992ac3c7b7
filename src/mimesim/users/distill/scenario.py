"""One conversation, distilled by rule and written as a scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora.base import CorpusInfo, HumanDialogue
from mimesim.errors import DataError
from mimesim.scenarios.fields import says
from mimesim.scenarios.types import Scenario, Withhold
from mimesim.users import guards
from mimesim.users.distill.base import Distilled, Evidence, Fact
from mimesim.users.distill.facts import facts_in, unlocked
from mimesim.users.distill.goals import goal_of, quotes
from mimesim.users.distill.language import OTHER, is_english, language_of
from mimesim.users.distill.manner import style_of
from mimesim.users.distill.outcomes import Ending, ending_of

READ = 4000
"""Characters of one message that are read; what is pasted beyond them is no talk."""

_LEAST_TURNS = 6
_ERRAND = 8
"""Words of a goal up to which any first message about it would repeat most of it."""


def distill(dialogue: HumanDialogue) -> Distilled | None:
    """Return what the rules find in a conversation; None = the person wanted nothing.

    Args:
        dialogue: tidied; contact data is taken as it stands.
    """
    turns = [replace(turn, text=turn.text[:READ]) for turn in dialogue.turns]
    spoken = language_of(dialogue)
    english = is_english(spoken)
    goal = goal_of(turns, english=english)
    if goal is None:
        return None
    heard = facts_in(turns, english=english)
    ending = ending_of(turns) if english else Ending("open", None)
    own = [turn.text for turn in turns if turn.role == "user"]
    return Distilled(
        goal=goal.text,
        goal_from=goal.said,
        facts=heard.facts,
        unknown=heard.unknown,
        style=style_of(own, "" if spoken == OTHER else spoken),
        ending=ending.kind,
        ending_from=ending.said,
    )


def to_scenario(
    dialogue: HumanDialogue, found: Distilled, info: CorpusInfo, made: Mapping[str, Any]
) -> Scenario:
    """Return the scenario of a person.

    Args:
        dialogue: the conversation that `found` was distilled from.
        found: what the person wanted, knew and wrote like.
        info: terms of its corpus.
        made: how it was made; stands in `meta.distilled`.

    Raises:
        DataError: it holds something that no scenario may, e.g. an end marker.
    """
    opening = next(turn.text for turn in dialogue.turns if turn.role == "user")
    own = sum(turn.role == "user" for turn in dialogue.turns)
    source = dialogue.source or info.name
    scenario = Scenario(
        id=dialogue.id,
        goal=found.goal,
        facts={fact.key: fact.value for fact in found.facts},
        withhold=tuple(Withhold(fact.key) for fact in found.facts if _held_back(fact, found)),
        unknown=tuple(found.unknown),
        style=dict(found.style),
        max_turns=max(_LEAST_TURNS, 2 * own),
        tags=("from-logs", source, *(["evaluation-only"] if info.evaluation_only else [])),
        source=source,
        license=info.license,
        meta={
            "evidence": {fact.key: _evidence(fact) for fact in found.facts},
            "goal_evidence": [place.to_json() for place in found.goal_from],
            "unknown_evidence": {name: place.to_json() for name, place in found.unknown.items()},
            "outcome": _outcome(dialogue, found),
            "turns": len(dialogue.turns),
            "distilled": dict(made),
        },
        may_state_goal=_states(opening, found.goal),
    )
    return Scenario.from_json(scenario.to_json(), f"conversation {dialogue.id}")


def fit_scenario(
    dialogue: HumanDialogue,
    found: Distilled,
    info: CorpusInfo,
    made: Mapping[str, Any],
    skipped: Counter[str],
) -> Scenario | None:
    """Return the scenario, or None where there can be none; that is counted."""
    try:
        return to_scenario(dialogue, found, info, made)
    except DataError as error:
        skipped["end_marker" if "end marker" in error.what else "unfit"] += 1
        return None


def _states(opening: str, goal: str) -> bool:
    """Tell whether the person's own opening states the goal, or nobody could open without it."""
    wanted = guards.words(goal)
    echoes = guards.echoes(guards.words(opening), wanted)
    return echoes or quotes(opening, goal) or len(wanted) <= _ERRAND


def _held_back(fact: Fact, found: Distilled) -> bool:
    """Tell whether a fact is told only when asked: it was, and nothing else gives it away."""
    if fact.asked is None or not unlocked(fact.key, fact.asked.quote):
        return False
    told = [other.value for other in found.facts if other.asked is None]
    return not any(says(text, fact.value) for text in (found.goal, *told))


def _evidence(fact: Fact) -> dict[str, Any]:
    shown: dict[str, Any] = {**fact.said.to_json(), "by": fact.by}
    if fact.asked is not None:
        shown["asked"] = fact.asked.to_json()
    return shown


def _outcome(dialogue: HumanDialogue, found: Distilled) -> dict[str, Any]:
    shown: dict[str, Any] = {"ending": found.ending}
    place: Evidence | None = found.ending_from
    if place is not None:
        shown.update(place.to_json())
    if dialogue.outcome:
        shown["stated"] = dict(dialogue.outcome)
    return shown
