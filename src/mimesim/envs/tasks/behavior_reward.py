"""The reward of the behavior task: from a verdict to a number, the format gate, what is only logged.

    behavior row:  (2 exhibit + 1.5 placement + naturalness + 0.5 on_task) / 5, halved if announced
    neutral row:   (2 cooperative + naturalness + 0.5 on_task) / 3.5

Rule checks never enter it. A verdict that could not be had is missing data (`compat`: 0). The format
gate belongs to training: there a malformed reply costs everything, in evaluation it is logged.
"""

from __future__ import annotations

from collections.abc import Sequence

from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import Reply, Thought
from mimesim.judges.behavior import BehaviorVerdict, NeutralVerdict, Verdict
from mimesim.stats.texts import ngrams, words

LEAST_THOUGHT = 4
"""Words that a thought must have."""
_CITED_RUN = 5
"""Words in a row that make a thought a citation of its instruction."""


def reward_of(verdict: Verdict) -> float:
    """Return the reward of a verdict, in [0, 1]."""
    if isinstance(verdict, NeutralVerdict):
        total = 2.0 * verdict.cooperative + 1.0 * verdict.naturalness + 0.5 * verdict.on_task
        return total / 3.5
    total = 2.0 * verdict.exhibit + 1.5 * verdict.placement
    total += 1.0 * verdict.naturalness + 0.5 * verdict.on_task
    return total / 5.0 * (0.5 if verdict.announced else 1.0)


def paid(
    verdict: Verdict | None, faults: Sequence[str] = (), *, training: bool, compat: bool = False
) -> float | None:
    """Return what an episode is paid; None = missing data, to be left out of groups and means.

    Args:
        verdict: None = the judge failed.
        faults: of the format, from `format_faults`.
        training: whether the format gate is closed to faulty replies.
        compat: pay 0 for a failed judge, as the original does.
    """
    if training and faults:
        return 0.0
    if verdict is None:
        return 0.0 if compat else None
    return reward_of(verdict)


def format_faults(replies: Sequence[Reply], *, thinking: bool) -> tuple[str, ...]:
    """Return what is wrong with the form of generated replies, each kind once.

    Args:
        replies: what the policy generated, in order.
        thinking: whether it was to think before every message.
    """
    found = []
    for reply in replies:
        if thinking and reply.thought is None:
            found.append("malformed_thought")
        elif thinking and len(words(_words(reply.thought))) < LEAST_THOUGHT:
            found.append("short_thought")
        if is_blank(reply.utterance):
            found.append("empty_utterance")
        if reply.finish_reason == "length":
            found.append("cut")
    return tuple(dict.fromkeys(found))


def check_gap(check: float | None, verdict: Verdict | None) -> float | None:
    """Return rule check minus exhibit; a positive gap marks a transcript worth reading."""
    if check is None or not isinstance(verdict, BehaviorVerdict):
        return None
    return round(check - verdict.exhibit, 4)


def thought_cites_directive(thoughts: Sequence[Thought | None], directive: str, name: str) -> bool:
    """Tell whether a thought speaks of its instruction: the behavior's name, or a run of its words.

    Args:
        thoughts: of the policy.
        directive: what it was told; empty for a neutral row.
        name: code name of the behavior.
    """
    if not directive:
        return False
    told = set(ngrams(words(directive), _CITED_RUN))
    for thought in thoughts:
        own = words(_words(thought))
        if name.replace("_", " ") in " ".join(own) or told & set(ngrams(own, _CITED_RUN)):
            return True
    return False


def _words(thought: Thought | None) -> str:
    return thought.reveal() if thought is not None else ""
