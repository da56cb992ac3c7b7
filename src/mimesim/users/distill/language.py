"""Which language a person writes, so that rules made of English words are kept from other languages."""

from __future__ import annotations

from mimesim.corpora.base import HumanDialogue
from mimesim.corpora.cleaning import checks
from mimesim.corpora.formats.languages import language_code
from mimesim.errors import MissingExtraError
from mimesim.users import guards
from mimesim.users.words import listed

ENGLISH = "en"
OTHER = "und"
"""Some language that is not English and has no name here (the ISO 639-3 code of such)."""

_SURE = 0.25
"""Share of common English words from which on a text is English, whatever else it looks like."""
_LIKELY = 0.15
"""The same where nothing else can tell; some of these words are common in other languages, too."""


def language_of(dialogue: HumanDialogue) -> str:
    """Return the ISO 639-1 code of what a person writes, `und` for unnamed others, empty = unknown.

    What the source states counts first. Else common English words tell, and where they do not,
    py3langid, if it is installed. Where the person wrote too little, both sides are read.
    """
    stated = language_code(dialogue.language)
    if stated:
        return stated
    text = checks.user_text(dialogue)[: checks.SAMPLE]
    if sum(map(str.isalpha, text)) < checks.LETTERS:
        text = "\n".join(turn.text for turn in dialogue.turns)[: checks.SAMPLE]
    words = guards.words(text)
    share = sum(word in listed("empty") for word in words) / max(1, len(words))
    if len(words) >= 4 and share >= _SURE:
        return ENGLISH
    if sum(map(str.isalpha, text)) < checks.LETTERS:
        return ""
    try:
        return checks.told_language(text)
    except MissingExtraError:
        return ENGLISH if share >= _LIKELY else OTHER


def is_english(language: str) -> bool:
    """Tell whether rules of English words fit; what cannot be told is taken for English."""
    return language in ("", ENGLISH)
