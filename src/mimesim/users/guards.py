"""Deterministic checks of a user's reply: deliver whole, or draw again.

`check` looks at a public text and says what is wrong with it; a hard fault means that the text
must not reach the agent. Nothing here edits a text, calls a model or draws again: that is the
simulator's loop. `clean` makes the one permitted change of characters.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from mimesim.dialogue.thinking import has_trace, undisguised

ECHO_RUN = 8
"""Words in a row shared with the goal that make a first message an echo."""
ECHO_SHARE = 0.6
"""Share of the goal's content-word 3-grams that does so too."""
PROMPT_RUN = 12
"""Words in a row copied from the private prompt."""
PARROT_SHARE = 0.9
_PARROT_WORDS = 4
_ECHO_GRAMS = 3
_MARKUP = ("leftover_tag", "speaker_text")
"""Guards against markup, which may come in disguise."""
_COMMONPLACE = {"yes", "no", "none", "null", "true", "false", "na", "unknown"}
_SEPARATORS = r"[\s\-.\u2010-\u2015_/]*"
_STOPWORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by can could do does for from had has have i if in is it"
        " its me my no not of on or our so that the their them then they this to was we were what"
        " when which who will with would you your",
    )
)


class Mode(StrEnum):
    """How faults are treated: redrawn, only marked (a user in training), or not looked for."""

    ENFORCE = "enforce"
    FLAG = "flag"
    OFF = "off"


class Fault(NamedTuple):
    """A guard that fired. `detail` never holds private text."""

    guard: str
    hard: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a reply is checked against.

    Attributes:
        opening: whether this is the user's first message.
        withheld: fact -> value that the agent has not asked for; hard faults.
        until: the same for values with a condition in words, which no rule can read; soft faults.
        prompt: the private prompt; `citable` are its parts that a user may well say.
        own: the user's earlier messages.
        max_chars: length cap, None = no cap.
    """

    opening: bool = False
    goal: str = ""
    may_state_goal: bool = False
    withheld: Mapping[str, object] = field(default_factory=dict)
    until: Mapping[str, object] = field(default_factory=dict)
    prompt: str = ""
    citable: Sequence[str] = ()
    agent_text: str = ""
    own: Sequence[str] = ()
    max_chars: int | None = None


def clean(text: str) -> tuple[str, bool]:
    """Replace lone surrogates and NUL by U+FFFD; tell whether there were any."""
    out = re.sub("[\ud800-\udfff\x00]", "\ufffd", text)
    return out, out != text


def check(text: str, situation: Situation) -> tuple[Fault, ...]:
    """Return all faults of a public text, hard ones first."""
    faults = [*_by_words(text), *_by_scenario(text, situation), *_by_history(text, situation)]
    return tuple(sorted(faults, key=lambda fault: not fault.hard))


def _by_words(text: str) -> Iterator[Fault]:
    folded = fold(text)
    seen = fold(undisguised(text))
    for guard, patterns in word_lists().items():
        forms = {folded, seen} if guard in _MARKUP else {folded}
        traced = guard == "leftover_tag" and has_trace(text)
        if traced or any(pattern.search(form) for pattern in patterns for form in forms):
            yield Fault(guard, hard=True)


def _by_scenario(text: str, situation: Situation) -> Iterator[Fault]:
    spoken = words(text)
    echo = situation.opening and not situation.may_state_goal
    if echo and echoes(spoken, words(situation.goal)):
        yield Fault("goal_echo", hard=True)
    for name, value in situation.withheld.items():
        if says_value(text, value):
            yield Fault("withheld_leak", hard=True, detail=name)
    for name, value in situation.until.items():
        if says_value(text, value):
            yield Fault("withheld_leak", hard=False, detail=name)
    if copies_prompt(spoken, situation):
        yield Fault("prompt_leak", hard=True)


def _by_history(text: str, situation: Situation) -> Iterator[Fault]:
    spoken = words(text)
    heard = words(situation.agent_text)
    if len(heard) >= _PARROT_WORDS and _parrots(spoken, heard):
        yield Fault("parrot", hard=False)
    if any(words(earlier) == spoken for earlier in situation.own):
        yield Fault("repeat", hard=False)
    if situation.max_chars is not None and len(text) > situation.max_chars:
        yield Fault("too_long", hard=False, detail=f"{len(text)} characters")


@cache
def word_lists(language: str = "en") -> dict[str, tuple[re.Pattern[str], ...]]:
    """Return guard -> patterns of a language; a pattern is searched in `fold(text)`."""
    source = files("mimesim.users").joinpath(f"guards_{language}.toml")
    lists = tomllib.loads(source.read_text(encoding="utf-8"))
    return {
        guard: tuple(re.compile(pattern, re.MULTILINE) for pattern in patterns)
        for guard, patterns in lists.items()
    }


def fold(text: str) -> str:
    """Return `text` case-folded, curly quotes made straight, blanks inside lines collapsed."""
    plain = re.sub("[\u2018\u2019\u02bc`\u00b4]", "'", text.casefold())
    return re.sub(r"[^\S\n]+", " ", re.sub("[\u201c\u201d]", '"', plain))


def words(text: str) -> list[str]:
    """Return the words of a text, case-folded, apostrophes inside kept."""
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", fold(text))


def echoes(spoken: Sequence[str], goal: Sequence[str]) -> bool:
    """Tell whether a first message recites the goal."""
    if _grams(spoken, ECHO_RUN) & _grams(goal, ECHO_RUN):
        return True
    theirs = _grams([w for w in goal if w not in _STOPWORDS], _ECHO_GRAMS)
    ours = _grams([w for w in spoken if w not in _STOPWORDS], _ECHO_GRAMS)
    return bool(theirs) and len(theirs & ours) >= ECHO_SHARE * len(theirs)


def copies_prompt(spoken: Sequence[str], situation: Situation) -> bool:
    """Tell whether a long run of words comes from the private prompt and from nowhere else."""
    shared = _grams(spoken, PROMPT_RUN) & _grams(words(situation.prompt), PROMPT_RUN)
    for text in (situation.goal, *situation.citable, situation.agent_text):
        if shared:
            shared -= _grams(words(text), PROMPT_RUN)
    return bool(shared)


def says_value(text: str, value: object) -> bool:
    """Tell whether a value is said, whatever its case, blanks, dashes and dots.

    Values that say nothing by themselves (yes, no, a single character) are not looked for.
    """
    if isinstance(value, Mapping):
        return any(says_value(text, inner) for inner in value.values())
    if isinstance(value, list | tuple):
        return any(says_value(text, inner) for inner in value)
    bare = re.sub(_SEPARATORS, "", str(value).casefold())
    if len(bare) < 2 or bare in _COMMONPLACE:
        return False
    spelled = _SEPARATORS.join(map(re.escape, bare))
    return re.search(rf"(?<![^\W_]){spelled}(?![^\W_])", fold(text)) is not None


def _grams(sequence: Sequence[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(sequence[i : i + size]) for i in range(len(sequence) - size + 1)}


def _parrots(spoken: Sequence[str], heard: Sequence[str]) -> bool:
    least = PARROT_SHARE * len(heard)
    return len(spoken) >= least and _in_order(heard, spoken) >= least


def _in_order(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many words of `left` occur in `right` in the same order (LCS length).

    Bit-parallel: one big number holds a row of the table, so that long texts take no time.
    """
    places: dict[str, int] = {}
    for i, word in enumerate(left):
        places[word] = places.get(word, 0) | 1 << i
    whole = row = (1 << len(left)) - 1
    for word in right:
        found = row & places.get(word, 0)
        row = (row + found | row - found) & whole
    return len(left) - row.bit_count()
