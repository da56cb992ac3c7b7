"""Signs that a user model games its reward: copying, announcing, length, repetition.

Each check is a plain function from a conversation to a number in [0, 1], 0 = no sign of it. They
are logged with every episode; whether they lower the reward, a weight per check decides.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.types import Role
from mimesim.errors import ConfigError
from mimesim.registry import closest
from mimesim.stats.texts import ngrams, words

COPY_RUN = 5
"""Words in a row that count as copied (Turing-RL)."""
LONG_TURN = 60
"""Words of a message that people rarely write in a chat; from twice as many on, the sign is full."""
_ANNOUNCES = re.compile(
    r"\bas (?:instructed|requested by the prompt|the (?:user|persona|character) (?:described|above))\b"
    r"|\bmy (?:persona|character|role|instructions?|directives?) (?:is|are|says?|tells?|requires?)\b"
    r"|\bi(?:['’]m| am) (?:supposed|meant|told|instructed) to (?:act|play|behave|withhold|pretend)\b"
    r"|\bi(?:['’]ll| will| am going to|['’]m going to) (?:now )?(?:pretend|simulate|role-?play|play the)\b"
    r"|\b(?:staying|remaining) in character\b|\b(?:simulated|role-?play(?:ed|ing)?) user\b"
    r"|\bas an? (?:ai|language model|assistant)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Talk:
    """What the user model was shown, and what it said, in order."""

    shown: tuple[str, ...]
    said: tuple[str, ...]


def talk_of(episode: Episode) -> Talk:
    """Return the conversation of a stored task episode; its policy sits in the agent's seat."""
    own = tuple(t.content for t in episode.turns if t.role is Role.AGENT)
    others = [t.content for t in episode.turns if t.role is not Role.AGENT]
    return Talk((episode.system, *others), own)


def copying(talk: Talk) -> float:
    """Return the share of its words that stand in runs of five taken over from what it saw."""
    seen = {gram for text in talk.shown for gram in ngrams(words(text), COPY_RUN)}
    copied = total = 0
    for text in talk.said:
        own = words(text)
        total += len(own)
        inside: set[int] = set()
        for start, gram in enumerate(ngrams(own, COPY_RUN)):
            if gram in seen:
                inside.update(range(start, start + COPY_RUN))
        copied += len(inside)
    return copied / total if total else 0.0


def announcing(talk: Talk) -> float:
    """Return the share of its messages that speak about the role instead of playing it."""
    found = sum(bool(_ANNOUNCES.search(text)) for text in talk.said)
    return found / len(talk.said) if talk.said else 0.0


def length(talk: Talk) -> float:
    """Return how far its longest message goes beyond what people write: 0 up to 60 words, 1 at 120."""
    longest = max((len(words(text)) for text in talk.said), default=0)
    return min(1.0, max(0.0, longest / LONG_TURN - 1))


def repetition(talk: Talk) -> float:
    """Return the share of its word trigrams that it had used before."""
    grams: Counter[tuple[str, ...]] = Counter()
    for text in talk.said:
        grams.update(ngrams(words(text), 3))
    total = sum(grams.values())
    return 1 - len(grams) / total if total else 0.0


CHECKS: dict[str, Callable[[Talk], float]] = {
    "copying": copying,
    "announcing": announcing,
    "length": length,
    "repetition": repetition,
}
"""All checks by name."""


def check(talk: Talk) -> dict[str, float]:
    """Return every check of a conversation."""
    return {name: round(function(talk), 4) for name, function in CHECKS.items()}


def check_episode(episode: Episode) -> dict[str, float]:
    """Return every check of a stored task episode."""
    return check(talk_of(episode))


def check_weights(weights: Mapping[str, float]) -> None:
    """Refuse weights that no reward can use.

    Raises:
        ConfigError: a weight for a check that does not exist, or one that is no number from 0 on.
    """
    for name, weight in weights.items():
        if name not in CHECKS:
            raise ConfigError(
                f"no hack check {name!r}{closest(name, list(CHECKS))}",
                expected="one of " + ", ".join(CHECKS),
            )
        if not 0 <= weight < math.inf:
            raise ConfigError(f"weight {weight!r} of {name!r}", expected="a number from 0 on")


def penalized(reward: float, checks: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the reward less the weighted checks, never below 0; no weights, no change."""
    return max(0.0, reward - sum(weight * checks[name] for name, weight in weights.items()))
