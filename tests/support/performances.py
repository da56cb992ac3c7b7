"""The hand-written dialogues of `tests/data/behaviors` as performances, for the tests of judges."""

from __future__ import annotations

from mimesim.dialogue.types import Role, Thought
from mimesim.judges.behavior_talk import Performance, Said
from mimesim.scenarios.rows import customer_facts, row_to_scenario
from tests.support.behaviors import NAMES, Played, dialogues


def performance(one: Played) -> Performance:
    """Return what a judge is shown of a hand-written dialogue."""
    row, manual = one.case.row, one.case.manual
    thoughts = iter(one.thoughts)
    turns = []
    for place, message in enumerate(one.turns):
        thought = next(thoughts, None) if message.role is Role.USER else None
        turns.append(
            Said(
                message.role,
                message.content,
                Thought(thought) if thought else None,
                replayed=place < len(one.turns) - len(one.generated),
            )
        )
    goal = f"{manual.request(row.subflow).title}: {row_to_scenario(row, manual).goal}"
    return Performance(one.behavior, goal, tuple(turns), one.params, customer_facts(row))


def everything() -> list[Played]:
    """Return all of them."""
    return [one for name in NAMES for one in dialogues(name)]


def talk(*lines: str, behavior: str | None = None, **more: object) -> Performance:
    """Return a conversation: lines `A: ...` are the agent's, `R: ...` were replayed."""
    turns = []
    for line in lines:
        if line.startswith("A:"):
            turns.append(Said(Role.AGENT, line[2:].strip()))
        else:
            text = line.removeprefix("R:").strip()
            turns.append(Said(Role.USER, text, replayed=line.startswith("R:")))
    return Performance(behavior, "send the boots back", tuple(turns), **more)  # type: ignore[arg-type]
