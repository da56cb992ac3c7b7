"""What a careful clerk reads out of a conversation: values by their shape, never by their truth.

The scripted agents know the house's manual and the pack's pools (names, refund targets, articles)
and nothing of the customer's record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mimesim.scenarios.fields import FIELD_NAMES, asked_fields, field_name, fold, says
from mimesim.scenarios.records import Pools
from mimesim.scenarios.types import Manual, RequestType

_ADDRESS = r"(?<!\d)\d{4} [a-z0-9 .'-]{1,60}?, [a-z .'-]{1,40}?, [a-z]{2} \d{5}"
_PHONE = r"(?<![\w-])\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}(?!\w)"
_SHAPES: dict[str, re.Pattern[str]] = {
    "email": re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "order_id": re.compile(r"(?<![\w-])\d{10}(?!\w)"),
    "account_id": re.compile(r"(?<![\w@.])(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{10}(?![\w@])"),
    "full_address": re.compile(_ADDRESS),
    "new_address": re.compile(_ADDRESS),
    "phone": re.compile(_PHONE),
    "new_phone": re.compile(_PHONE),
    "zip_code": re.compile(r"(?<![\w-])\d{5}(?![\w-])"),
    "username": re.compile(r"(?<![\w@.])[a-z]{2,}\d{2,6}(?![\w@])"),
    "member_level": re.compile(r"(?<!\w)(?:guest|bronze|silver|gold)(?!\w)"),
}
_YES = re.compile(r"(?<!\w)(?:yes|yep|yeah|still|have it|got it|kept)(?!\w)")
_NO = re.compile(r"(?<!\w)(?:no|nope|not|gone|threw|lost|without)(?!\w)|n't")
_NAMES = {name: field for field, name in FIELD_NAMES.items()}


def read_values(text: str, question: str, pools: Pools) -> dict[str, str]:
    """Return field -> value for everything in `text` that has a field's shape.

    Args:
        text: what the customer said.
        question: the agent's message before it; a bare yes or no answers it.
        pools: names, refund targets and articles that exist in this pack.
    """
    folded = fold(text)
    found = {}
    for name, shape in _SHAPES.items():
        matches = shape.findall(_without_addresses(folded) if name == "zip_code" else folded)
        if matches:
            found[name] = matches[-1].strip(" .")
    for name, pool in (("refund_target", pools.refund_targets), ("extra_item", pools.extra_items)):
        named = [value for value in pool if says(folded, value)]
        if named:
            found[name] = max(named, key=len)
    people = [
        f"{first} {last}"
        for first in pools.first_names
        if says(folded, first)
        for last in pools.last_names
        if says(folded, f"{first} {last}")
    ]
    if people:
        found["customer_name"] = people[0]
    about = "packag" in folded or "box" in folded or "packaging" in asked_fields(question)
    if about and (_NO.search(folded) or _YES.search(folded)):
        found["packaging"] = "no" if _NO.search(folded) else "yes"
    return found


def _without_addresses(text: str) -> str:
    return _SHAPES["full_address"].sub(" ", text)


def read_result(text: str) -> dict[str, str]:
    """Return what a tool handed back: its lines are `name: value`, divided by semicolons."""
    _, _, told = text.partition("match; ")
    pairs = (part.partition(": ") for part in told.split("; "))
    return {_NAMES.get(name, name): value for name, mark, value in pairs if mark}


def guess_request(text: str, flow: str, manual: Manual) -> RequestType:
    """Return the request type of `flow` whose title and goal share most words with `text`."""
    said = _words(text)

    def shared(request: RequestType) -> int:
        return len(said & _words(f"{request.title} {request.goal}"))

    return max((r for r in manual.request_types if r.flow == flow), key=shared)


def _words(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[a-z]{4,}", fold(text))}


def question_for(names: tuple[str, ...]) -> str:
    """Return a question for the fields called `names`."""
    listed = [f"your {field_name(name)}" for name in names]
    last = listed.pop()
    return f"Could you tell me {', '.join(listed)} and {last}?" if listed else f"What is {last}?"


def known_limits(facts: Mapping[str, str], reads: tuple[str, ...]) -> bool:
    """Tell whether everything that a limit looks at is known."""
    return all(name in facts for name in reads)
