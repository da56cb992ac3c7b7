"""A text filter for chats that nobody moderated.

It is a word list and a few patterns: good enough to keep the plainly unsuitable away from training
and from a page that shows what a model trained on such chats says, not a moderation system.
First names stay. `problem` is also applied to whatever such a model writes before it is shown.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_WORDS = {
    "profanity": """arse arsehole ass asses asshole* badass bastard* bitch* bollocks bullshit* cocksuck*
        crap crappy cunt* damn* dammit dick dickhead* dipshit* douche* dumbass* effing fck* fuck* goddamn*
        hell jackass* motherf* omfg piss* prick pricks shit* stfu twat* wank* wtf""",
    "sexual": """anal blowjob* boob* boner* breasts bdsm brothel* climax condom* cum cumming dildo*
        ejaculat* erection* erotic* fetish* foreplay genital* hentai hookup hookups horny incest* kinky
        lewd libido lingerie masturbat* molest* naked nipple* nsfw nude nudes nudity orgasm* orgy
        pedophil* penis* porn* prostitut* pussy rape* raping rapist* semen sex sexes sexting sexual*
        sexy slut* sperm stripper* threesome* tits titties trafficking traffickers vagina* vibrator*
        virgin virginity whore*""",
    "slur": """chink chinks coon coons dyke* fag fags faggot* gook* gyps* homo homos kike* midget* negro*
        nigg* paki pakis raghead* redneck* retard* shemale* spic spics tranny trannies wetback*""",
    "violence": """behead* genocid* massacre* nazi* overdos* selfharm* stab stabbed stabbing suicid*
        tortur*""",
}
"""One reason per row; a star stands for any ending."""

_PHRASES = {
    "violence": "kill myself|kill yourself|kill you|self harm|self-harm|hang myself|cut myself",
    "slur": "white trash",
    "sexual": "strip club",
}
_WORD = re.compile(r"[a-z]+")
_WEB = re.compile(
    r"https?:|www\.\w|(?<![\w-])[\w-]+\.(?:com|net|org|edu|gov|io|co|tv|me|info|biz|games)\b", re.I
)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE = re.compile(
    r"(?<![\w-])(?!(?:19|20)\d\d-(?:19|20)\d\d\b)(?:\+?\d[\s().-]{0,2}){7,15}(?![\w-])"
)
_CONTACT = re.compile(
    r"(?<!\w)@\w{2,}"
    r"|\b(?:insta(?:gram)?|snap(?:chat)?|kik|twitter|discord|skype|whatsapp|telegram|facebook)\b"
    r".{0,20}(?::|@|\bname\b|\bhandle\b)"
    r"|\bmy\s+(?:insta(?:gram)?|snap(?:chat)?|kik|twitter|discord|skype)\b"
    r"|\b(?:add|text|call|follow|dm|email)\s+me\s+(?:at|on)\b"
    r"|\bmy\s+(?:(?:(?:phone|cell|mobile)\s*)?number|e-?mail\s+(?:address\s+)?is|address\s+is|password\s+is)\b"
    r"|\bmy\s+(?:last\s+name|full\s+name|surname)\b"
    r"|\b(?:social\s+security|credit\s+card\s+number|passport\s+number)\b"
    r"|\b\d{1,5}\s+\w+\s+(?:street|avenue|ave|road|rd|lane|ln|boulevard|blvd)\b",
    re.I,
)


class _List(NamedTuple):
    whole: frozenset[str]
    stems: tuple[str, ...]
    phrases: tuple[str, ...]


def _list(reason: str) -> _List:
    words = _WORDS[reason].split()
    return _List(
        frozenset(word for word in words if not word.endswith("*")),
        tuple(word[:-1] for word in words if word.endswith("*")),
        tuple(_PHRASES.get(reason, "").split("|")) if reason in _PHRASES else (),
    )


_LISTS = {reason: _list(reason) for reason in _WORDS}


def problem(text: str) -> str:
    """Return why `text` must not be used or shown, or an empty string.

    Reasons: url, contact, profanity, sexual, slur, violence.
    """
    if _MAIL.search(text) or _PHONE.search(text) or _CONTACT.search(text):
        return "contact"
    if _WEB.search(text):
        return "url"
    return toxicity(text)


def toxicity(text: str) -> str:
    """Return which of profanity, sexual, slur and violence is found first, or an empty string."""
    lowered = text.lower()
    words = set(_WORD.findall(lowered))
    for reason, found in _LISTS.items():
        if not words.isdisjoint(found.whole) or any(w.startswith(found.stems) for w in words):
            return reason
        if any(phrase in lowered for phrase in found.phrases):
            return reason
    return ""
