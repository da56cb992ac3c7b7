"""The support agent of the behavior task: what it is told, and the agent by rule with the same policy.

It knows the policy and what only the company can know (`env`), and of the customer nothing that was
not said. Its replies are tidied, never refused: a long one is cut, a label or a doubling taken out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mimesim import prompts
from mimesim.envs.tasks.base import POLICY, Line
from mimesim.scenarios.fields import PHRASED, field_name, says_field
from mimesim.scenarios.manual import policy_lines
from mimesim.scenarios.procedure import limits_holding, required_fields, verdict
from mimesim.scenarios.replay import disclosed_fields
from mimesim.scenarios.types import DENIED, GRANTED, Manual, Row

MOST_WORDS = 200
_ASKED_TWICE = 2
_LABEL = re.compile(r"^\s*(?:support|agent|support agent|assistant)\s*:\s*", re.IGNORECASE)


def agent_prompt(row: Row, manual: Manual) -> str:
    """Return what the agent is told: policy of this errand, facts of the company, manners."""
    request = manual.request(row.subflow)
    known = {key.replace("_", " "): value for key, value in row.env.items()}
    return prompts.render(
        "tasks/partner/support",
        company=manual.company,
        title=request.title,
        lines=policy_lines(manual, request.name),
        known=sorted(known.items()),
        required=[field_name(name) for name in required_fields(row, manual)],
        verified=bool(disclosed_fields(row, manual)) and row.replay == "identity",
    )


def tidy_reply(text: str) -> str:
    """Return an agent's reply without a speaker's label, not said twice over, of at most 200 words."""
    said = _LABEL.sub("", text.strip())
    half = len(said) // 2
    first, second = said[:half].strip(), said[half:].strip()
    if first == second and len(first) > 3:
        said = first
    pieces = re.split(r"(\s+)", said)
    return "".join(pieces[: 2 * MOST_WORDS - 1]).strip()


def rule_reply(row: Row, manual: Manual, lines: Sequence[Line]) -> str:
    """Return what the agent by rule says next: ask, then propose, then act or refuse, and stand by it."""
    said = [line.text for line in lines if line.by == POLICY]
    own = [line.text for line in lines if line.by != POLICY]
    title = manual.request(row.subflow).title.lower()
    told = [n for n in required_fields(row, manual) if n not in disclosed_fields(row, manual)]
    wanted = [n for n in told if n in PHRASED and n in row.record]
    open_ = [n for n in wanted if not any(says_field(text, n, row.record[n]) for text in said)]
    for name in open_:
        question = _say("ask", field=field_name(name))
        again = _say("ask_again", field=field_name(name))
        times = sum(text in (question, again) for text in own)
        if times < _ASKED_TWICE:
            return again if times else question
    outcome = _say(_outcome(row, manual), title=title, reason=_reason(row, manual))
    proposal = _say("propose", title=title)
    if outcome in own:
        return _say("stand_by" if verdict(row, manual) != GRANTED else "more", title=title)
    if verdict(row, manual) == GRANTED and proposal not in own:
        return proposal
    return outcome


def _outcome(row: Row, manual: Manual) -> str:
    found = verdict(row, manual)
    return {GRANTED: "done", DENIED: "refuse"}.get(found, "hand_over")


def _reason(row: Row, manual: Manual) -> str:
    standing = limits_holding(row, manual)
    return standing[0].text if standing else ""


def _say(what: str, **values: str) -> str:
    return prompts.render("tasks/partner/support_lines", what=what, **values)
