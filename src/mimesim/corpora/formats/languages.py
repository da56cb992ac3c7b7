"""Languages as sources name them: codes, locales and English names become ISO 639-1 codes."""

from __future__ import annotations

import re
from typing import Any

_CODE = re.compile(r"([a-z]{2})(?:[-_][a-z0-9]+)*", re.IGNORECASE)
_NAMES = """
afrikaans af|albanian sq|arabic ar|armenian hy|azerbaijani az|basque eu|belarusian be|bengali bn
bosnian bs|bulgarian bg|catalan ca|chinese zh|croatian hr|czech cs|danish da|dutch nl|english en
esperanto eo|estonian et|finnish fi|french fr|ganda lg|georgian ka|german de|greek el|gujarati gu
hebrew he|hindi hi|hungarian hu|icelandic is|indonesian id|irish ga|italian it|japanese ja
kazakh kk|korean ko|latin la|latvian lv|lithuanian lt|macedonian mk|malay ms|maori mi|marathi mr
mongolian mn|norwegian no|bokmal nb|nynorsk nn|persian fa|polish pl|portuguese pt|punjabi pa
romanian ro|russian ru|serbian sr|shona sn|slovak sk|slovene sl|slovenian sl|somali so|sotho st
spanish es|swahili sw|swedish sv|tagalog tl|tamil ta|telugu te|thai th|tsonga ts|tswana tn
turkish tr|ukrainian uk|urdu ur|vietnamese vi|welsh cy|xhosa xh|yoruba yo|zulu zu
"""
_BY_NAME = dict(entry.split() for line in _NAMES.split("\n") for entry in line.split("|") if entry)


def language_code(name: Any) -> str:
    """Return the two-letter code of a language, or an empty string for what is none."""
    if not isinstance(name, str):
        return ""
    known = _BY_NAME.get(name.strip().lower())
    code = _CODE.fullmatch(name.strip())
    return known or (code.group(1).lower() if code else "")
