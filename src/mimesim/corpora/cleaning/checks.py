"""Which dialogues are fit to be learnt from: shape, size, language, toxicity.

Every refusal is an `Unfit` with a short reason. Reasons of `FILTERED` were asked for or are in the
nature of chats; all others mean a damaged source, and too many of those fail a build.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from mimesim.corpora import base, filters
from mimesim.corpora.base import HumanDialogue, Unfit
from mimesim.errors import MissingExtraError

FILTERED = frozenset(
    {
        # the source itself does not offer it
        *("deleted", "incomplete", "invalid_dialogue", "no_dialogue", "not_kept", "not_ready"),
        *("synthetic", "too_short"),
        # it is no conversation to learn a person from
        *("empty_dialogue", "no_user_turn", "one_sided", "too_few_turns", "too_many_turns"),
        # it was asked to stay out
        *("denied", "duplicate", "flagged", "group_full", "language", "near_duplicate", "overlap"),
        *("no_training", "toxic"),
    }
)
"""Reasons that say nothing against a source."""

_FLAGS = frozenset({"toxic", "redacted"})
LETTERS = 24
"""Letters that a language can be told by; a shorter text is let pass."""
SAMPLE = 600
"""Characters of a person's text that its language is told from."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a dialogue must keep to.

    Attributes:
        min_turns: fewest turns.
        max_turns: most turns; 0 = no limit.
        max_chars: most characters of one message; 0 = no limit.
        languages: ISO 639-1 codes of the languages kept; empty = all.
        toxicity: what happens at the first toxic turn: nothing, the dialogue is left out, or it
            ends before it. Dialogues that their source flags as toxic or redacted are left out
            unless nothing happens.
    """

    min_turns: int = 2
    max_turns: int = 1000
    max_chars: int = 20_000
    languages: tuple[str, ...] = ()
    toxicity: Literal["keep", "drop", "cut"] = "keep"


def checked(dialogue: HumanDialogue, limits: Limits, counts: Counter[str]) -> HumanDialogue:
    """Return the dialogue tidied and, where so asked, cut.

    Raises:
        Unfit: it is not fit to be learnt from.
    """
    turns = base.tidy(dialogue.turns, counts)
    if not turns:
        raise Unfit("empty_dialogue", "no message with text")
    _check_sizes(turns, limits)
    if limits.toxicity != "keep":
        turns = _without_toxicity(dialogue, turns, limits, counts)
    _check_shape(turns, limits)
    fit = replace(dialogue, turns=turns)
    if limits.languages:
        _check_language(fit, limits.languages)
    return fit


def is_damage(reason: str) -> bool:
    """Tell whether a reason speaks against the source itself."""
    return reason not in FILTERED


def user_text(dialogue: HumanDialogue) -> str:
    """Return all that the learnt side says, one message per line."""
    return "\n".join(texts_of(dialogue))


def _check_sizes(turns: tuple[base.HumanTurn, ...], limits: Limits) -> None:
    longest = max(len(turn.text) for turn in turns)
    if limits.max_chars and longest > limits.max_chars:
        raise Unfit("message_too_long", f"{longest} characters, at most {limits.max_chars}")
    if limits.max_turns and len(turns) > limits.max_turns:
        raise Unfit("too_many_turns", f"{len(turns)} turns, at most {limits.max_turns}")


def _check_shape(turns: tuple[base.HumanTurn, ...], limits: Limits) -> None:
    roles = {turn.role for turn in turns}
    if "user" not in roles:
        raise Unfit("no_user_turn", "nobody to learn from")
    if len(roles) == 1:
        raise Unfit("one_sided", "the other side says nothing")
    if len(turns) < limits.min_turns:
        raise Unfit("too_few_turns", f"{len(turns)} turns, at least {limits.min_turns}")


def _without_toxicity(
    dialogue: HumanDialogue,
    turns: tuple[base.HumanTurn, ...],
    limits: Limits,
    counts: Counter[str],
) -> tuple[base.HumanTurn, ...]:
    flags = sorted(_FLAGS.intersection(dialogue.flags))
    if flags:
        raise Unfit("flagged", ", ".join(flags))
    if limits.toxicity == "cut":
        return base.cut_at_problem(turns, filters.toxicity, counts)
    for turn in turns:
        reason = filters.toxicity(turn.text)
        if reason:
            raise Unfit("toxic", reason)
    return turns


def _check_language(dialogue: HumanDialogue, wanted: tuple[str, ...]) -> None:
    text = user_text(dialogue)[:SAMPLE]
    if sum(map(str.isalpha, text)) < LETTERS:
        if dialogue.language and dialogue.language not in wanted:
            raise Unfit("language", dialogue.language)
        return
    found = told_language(text)
    if found not in wanted:
        raise Unfit("language", found)


def told_language(text: str) -> str:
    """Return the ISO 639-1 code of the language of a text.

    Raises:
        MissingExtraError: py3langid is not installed.
    """
    try:
        import py3langid
    except ImportError as error:
        raise MissingExtraError.for_extra("the language filter", "data") from error
    return str(py3langid.classify(text)[0])


def texts_of(dialogue: HumanDialogue) -> Iterator[str]:
    """Yield the texts of the learnt side, message by message."""
    return (turn.text for turn in dialogue.turns if turn.role == "user")
