"""From a stored episode to what a judge of behaviors is shown, or the reason why it is not.

In a conversation with a gym the customer is the `user`; in one of the behavior task it is the policy,
which sits in the agent's seat. Thoughts come from the private side; a public copy without it tells
neither behavior nor goal, so it is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.types import Role, Thought
from mimesim.judges.annotate import Dialogue
from mimesim.judges.behavior_talk import Performance, Said, bare
from mimesim.scenarios import behaviors

TASK_GYM = "task:behavior"
"""The gym of the behavior task's episodes."""
_REPLAYED = ("replayed", "seeded")
_SCRIPTED, _AS_PLANNED = "scripted:", "realistic"
_ORDINARY = ("neutral", "cooperative", "easy")
_HELPER = re.compile(
    r"(?<!\w)(?:i have (?:now )?(?:cancelled|canceled|refunded|changed|updated|reset|issued) (?:it|that|this"
    r"|your \w+)(?: \w+)? for you|how (?:can|may) i (?:help|assist) you|could you (?:share|provide) your)"
)
"""What only the other side says: a customer who does has swapped roles."""
_BRIEFED = re.compile(
    r"(?<!\w)(?:"
    r"(?:instructions?|prompt|persona|scenario|script|brief) (?:say|tell|state)s? (?:that )?"
    r"(?:i ?a?m (?:the|an?) |me to (?:act|play|pretend|role-?play))"
    r"|i ?a?m the (?:user|customer|client)\b[^.?!\n]{0,40}\bnot the (?:assistant|agent|ai|bot)\b"
    r"|(?:as|being) an ai (?:language )?(?:model|assistant)\b"
    r"|i (?:was|am|have been) (?:told|instructed) to (?:play|act as|pretend|role-?play)\b)"
)
"""What only somebody says who talks of the part that they play."""


@dataclass(frozen=True, slots=True)
class Unjudged:
    """An episode that no judge is asked about, and why."""

    reason: str


def performance_of(episode: Episode) -> Performance | Unjudged:
    """Return what is judged of an episode.

    Failed episodes, public copies, and conversations whose sides were swapped or whose customer
    talked of their part are not judged.
    """
    if not episode.counted:
        return Unjudged(episode.outcome.status.value)
    found: Performance | Unjudged
    if episode.task.gym == TASK_GYM:
        found = _of_task(episode)
    elif episode.private is None:
        return Unjudged("no_private_side")
    else:
        found = _of_gym(episode, episode.private)
    if isinstance(found, Unjudged):
        return found
    said = [bare(turn.text) for turn in found.own]
    if any(sign.search(text) for sign in (_HELPER, _BRIEFED) for text in said):
        return Unjudged("invalid_transcript")
    return found


def dialogue_of(episode: Episode) -> Dialogue:
    """Return what was said in an episode, whichever seat its customer had."""
    swapped = episode.task.gym.startswith("task:")
    turns = []
    for turn in episode.turns:
        if turn.role in (Role.USER, Role.AGENT) and turn.delivered and turn.content.strip():
            customer = (turn.role is Role.AGENT) if swapped else (turn.role is Role.USER)
            turns.append((Role.USER if customer else Role.AGENT, turn.content))
    return Dialogue(episode.id, tuple(turns[1:] if swapped else turns))


def _of_gym(episode: Episode, private: Mapping[str, Any]) -> Performance | Unjudged:
    played = played_by(episode)
    if played is None or len(played) > 1:
        return Unjudged("several_behaviors")
    behavior = next(iter(played), None)
    thoughts = {one["turn"]: Thought(one["text"]) for one in private.get("thoughts", [])}
    turns = tuple(
        Said(t.role, t.content, thoughts.get(t.i), replayed=t.source in _REPLAYED)
        for t in episode.turns
        if t.role in (Role.USER, Role.AGENT)
        and t.content.strip()
        and (t.delivered or t.role is Role.USER)
    )
    return Performance(
        behavior=behavior,
        goal=str(private.get("goal", "")),
        turns=turns,
        params=played[behavior] if behavior else {},
        facts=private.get("facts", {}),
        left=episode.stop.by.value == "user",
    )


def played_by(episode: Episode) -> Mapping[str, Any] | None:
    """Return behavior -> parameters of what its customer played; None = unknown, or a mixture.

    A scripted user of a fixed kind does as its kind does, whatever its scenario says; parameters
    are known only where the two agree. A public copy does not tell.
    """
    if episode.private is None:
        return None
    planned: dict[str, Any] = {
        str(use["id"]): use.get("params", {}) for use in episode.private.get("behavior") or []
    }
    user = episode.user.name if episode.user else ""
    kind = user.removeprefix(_SCRIPTED)
    if not user.startswith(_SCRIPTED) or kind == _AS_PLANNED:
        return planned
    if kind in behaviors.ids():
        return {kind: planned.get(kind, {})}
    return {} if kind in _ORDINARY else None


def _of_task(episode: Episode) -> Performance:
    shown = episode.task.public
    private = episode.private or {}
    thoughts = {one["turn"]: Thought(one["text"]) for one in private.get("agent_reasoning", [])}
    before = tuple(
        Said(Role(m["role"]), str(m["text"]), replayed=True) for m in shown.get("replay", [])
    )
    said = tuple(
        Said(Role.USER if t.role is Role.AGENT else Role.AGENT, t.content, thoughts.get(t.i))
        for t in episode.turns[1:]  # the first one is what the task tells its policy
        if t.role in (Role.USER, Role.AGENT) and t.content.strip()
    )
    params = dict(shown.get("params", {}))
    if "false_value" in params:
        params["true_value"] = str(shown["facts"].get(params.get("field"), ""))
    return Performance(
        behavior=shown.get("behavior"),
        goal=f"{shown['title']}: {shown['goal']}",
        turns=(*before, *said),
        params=params,
        facts=shown["facts"],
        left=episode.stop.by.value == "agent",
    )
