"""What is watched in a user model's conversations and never rewarded: cues again, thoughts that cite.

A policy that is paid by a judge of words may learn the words. How often it says a cue of the judge
that paid it again is told beside its reward, and so is how often its thoughts speak of their
instruction.
"""

from __future__ import annotations

from collections.abc import Sequence

from mimesim.dialogue.thinking import split
from mimesim.dialogue.types import Thought
from mimesim.envs.base import Task
from mimesim.envs.tasks.behavior_reward import thought_cites_directive
from mimesim.judges.behavior_cues import MAIN, cues, pattern
from mimesim.judges.behavior_talk import bare
from mimesim.scenarios import behaviors

_NOT_CUES = ("accept", "lack", "fetch", "correction", "reason", "oneself", "assistant", "announced")
"""Slots that no behavior is told by."""


def cue_repetition(said: Sequence[str]) -> float | None:
    """Return the share of the judge's cues in a conversation that had been said in it before.

    The judge is `rule`, which trains; None = not one of its cues was said.
    """
    known = cues(MAIN)
    phrases = [p for slot, some in known.slots.items() if slot not in _NOT_CUES for p in some]
    found: list[str] = []
    for text in map(bare, said):
        for phrase in phrases:
            match = pattern(phrase).search(text)
            if match:
                found.append(match.group().strip())
    return 1 - len(set(found)) / len(found) if found else None


def signs(
    task: Task, raw: Sequence[str], said: Sequence[str], *, thinking: bool
) -> dict[str, float]:
    """Return the signs of one conversation of the behavior task.

    Args:
        task: its task line.
        raw: the policy's messages as generated, private blocks included.
        said: the same without them.
        thinking: whether the policy thinks.
    """
    behavior = task.public.get("behavior")
    if not behavior:
        return {}
    found = {}
    repeated = cue_repetition(said)
    if repeated is not None:
        found["cue_repetition"] = repeated
    if thinking:
        thoughts: list[Thought | None] = [split(text, thinking=True).thought for text in raw]
        cites = thought_cites_directive(
            thoughts, str(task.public.get("directive", "")), behaviors.get(behavior).name
        )
        found["thought_cites_directive"] = float(cites)
    return found
