"""Word patterns that checks and scripted customers listen for, on folded text.

People drop apostrophes in chats, so every apostrophe of a pattern is optional.
"""

from __future__ import annotations

import re


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)(?:" + "|".join(alternatives).replace("'", "'?") + r")(?!\w)")


REFUSAL = _any(
    r"(?:can(?:'t|not| not)|could not|couldn't|unable to|not able to|won't be able)",
    r"not (?:possible|allowed|permitted|eligible|entitled|something i can)",
    r"(?:ineligible|impossible|against (?:the|our) (?:rules?|policy)|no exceptions?)",
    r"(?:expired|past the|outside (?:the|of the)|no longer|too late|final sale)",
    r"(?:policy|rules?) (?:does|do|will) ?(?:not|n't) (?:allow|let|permit)",
    r"(?:refuse|decline|denied|have to say no|must say no)",
)
"""An agent's refusal: inability, ineligibility, expiry, policy."""

PERSISTENCE = _any(
    r"(?:an? )?exception",
    r"just this once",
    r"(?:check|look|try) (?:\w+ )?(?:again|once more)",
    r"(?:supervisor|manager|superior|boss|someone (?:else|higher|who (?:can|may)))",
    r"are you (?:really )?(?:sure|certain)",
    r"(?:has|have|got) to be (?:a|some|another) (?:other )?way",
    r"must be (?:a|some|another) (?:other )?way",
    r"(?:some|any|no|an)other way",
    r"bend the rules?",
    r"(?:can't|cannot|couldn't) (?:that|this) be right",
    r"(?:that|this) (?:can't|cannot) be (?:right|true|it|all)",
    r"don't (?:believe|accept)",
    r"only (?:\w+ ){1,3}(?:over|late|past|off)",
    r"why not\?",
    r"not (?:accepting|taking) (?:that|a no)",
    r"(?:do|make) it anyway",
    r"last time (?:it|you)",
)
"""A customer who does not let go; closing courtesies are no such cue."""

EXCLUSION = _any(
    r"(?:can't|cannot|can not|couldn't|unable to|no way to|not able to) (?!believe|wait)\w+",
    r"(?:don't|do not|doesn't|does not) (?:have|own|work|fit|possess)",
    r"(?:have|has|got|there is|there's) no",
    r"no (?:printer|car|scanner|access|app|phone|smartphone|card|time at|one (?:is )?(?:at )?home)",
    r"(?:lost|broke|broken|threw (?:it |that |them )?(?:away|out)|forgot|forgotten|gone|closed|cancell?ed)",
    r"(?:isn't|is not|not) (?:available|possible|an option|working|reachable)",
    r"won't work",
)
"""A means the customer says they lack."""

PRESSURE = _any(
    r"(?:hurry|quick(?:ly|er)?|fast(?:er)?|asap|right (?:now|away)|at once|immediately)",
    r"(?:now|today)!*",
    r"(?:still|been|keep) waiting",
    r"(?:no|nope|wrong|useless|not that|not it)",
    r"(?:well|and|so)\?+",
    r"come on",
    r"(?:seriously|really)\?*",
    r"get (?:on with it|it done|moving)",
    r"(?:just )?(?:do|fix|sort) it",
    r"how (?:much )?long(?:er)?",
    r"i don't have (?:all day|time)",
    r"any day now",
    r"hello\?+",
    r"waiting",
    r"get going",
    r"what is taking",
)
"""Rejection or haste."""

LEAVING = _any(
    r"forget (?:it|about it|this|the whole thing)",
    r"never ?mind",
    r"(?:i'm|i am|im) (?:done|out|off|leaving|gone|giving up)",
    r"(?:i )?give up",
    r"i've had enough|had enough",
    r"not worth (?:it|my time|the trouble)|isn't worth",
    r"waste of (?:my )?time",
    r"(?:good)?bye",
    r"(?:i'll|i will|ill) (?:just )?(?:do it myself|go (?:else|some)where(?: else)?|leave it|keep (?:it|them|the \w+))",
    r"(?:i'll|i will) (?:buy|shop) (?:else|some)where",
    r"don't bother",
    r"leave it(?: then)?",
    r"let's drop (?:it|this)|drop it",
    r"(?:gotta|have to|got to) go",
)
"""A customer who goes."""

REQUEST = _any(
    r"(?:i )?(?:need|want|would like|'d like)",
    r"(?:please|pls)",
    r"(?:can|could|would|will) (?:you|i|we)",
    r"(?:tell|give|send|mail|email|e-mail|check|change|add|remove|cancel|refund|update|confirm|make sure|look|find|put|list|explain|fix|return|wrap|hold|move|use|reset|call)(?= )",
    r"(?:how|why|when|where|what|which|is there|do you|does it|has it)",
)
"""A wish or question inside one clause."""

MISMATCH = _any(
    r"(?:does|do|did)(?: not|n't) (?:match|agree|fit)",
    r"(?:no|not) (?:a )?match",
    r"mismatch",
    r"(?:can't|cannot|could not|couldn't) (?:find|confirm|verify)",
    r"not (?:what|the one) (?:i see|we have|is on file)",
    r"(?:our )?(?:records?|system|account) (?:says?|shows?|has|lists?)",
    r"(?:is|are) (?:not right|wrong|incorrect|different)",
    r"double[- ]check|check (?:it|that) again",
    r"on file",
)
"""An agent saying that something does not agree with the system."""

DONE = _any(
    r"(?:all|everything is|it is|that is|that's|it's|you(?:'re| are)(?: all)?) (?:set|done|sorted|taken care of|settled|arranged)",
    r"(?:has|have) been (?:done|refunded|paid|sent|cancell?ed|changed|updated|issued|processed|added|reset|extended|arranged|credited|set)",
    r"(?:i|we)(?:'ve| have) (?:now |just )?(?:refunded|paid|sent|cancell?ed|changed|updated|issued|processed|added|reset|extended|arranged|set)",
    r"anything else",
    r"is (?:now )?(?:complete|finished|done|resolved)",
    r"on its way",
)
"""An agent reporting that something is finished."""

FAREWELL = _any(
    r"(?:good)?bye",
    r"have a (?:nice|good|great|lovely) (?:day|evening|one)",
    r"take care",
    r"case is closed|closing (?:the|this|your) (?:case|chat)",
    r"thank you for (?:contacting|chatting|reaching)",
)
"""An agent taking leave."""

PROPOSAL = _any(
    r"(?:shall|should|may) i",
    r"would you (?:like|prefer|want)",
    r"(?:is|would) (?:that|this|it) (?:be )?(?:ok(?:ay)?|fine|all right|alright|right|good)",
    r"do you want (?:me|us) to",
    r"(?:i|we) (?:can|could|will|would) (?:offer|arrange|send|refund|do|change|issue|mail|pay|set|add)",
    r"you (?:can|could|may|need to|have to|would)",
    r"is that correct|correct\?",
)
"""An agent proposing a way."""
