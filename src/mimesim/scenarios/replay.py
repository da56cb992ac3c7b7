"""The identity check that a conversation may begin with: said before, not said by the policy.

Without it a short conversation is over before any decision is reached. Turns are rebuilt from the
row whenever they are needed, so row and replay cannot differ. Modes of a row:

- none: nothing was said before (the support desk, where asking is the agent's work);
- identity: the whole check, as far as the record holds its fields;
- cut: the check up to the first field that the row's behavior keeps back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.prompts import render
from mimesim.scenarios.fields import field_name
from mimesim.scenarios.types import Manual, RequestType, Row, Step


def identity_check(request: RequestType, manual: Manual) -> tuple[Step, ...]:
    """Return the steps at the head of a procedure that identify the customer."""
    return tuple(takewhile(lambda s: manual.tool(s.tool).identifies, request.procedure))


def identity_fields(row: Row, manual: Manual) -> tuple[str, ...]:
    """Return the fields that the identity check asks for and the record holds, in order."""
    head = identity_check(manual.request(row.subflow), manual)
    names = dict.fromkeys(name for step in head for name in step.fields)
    return tuple(name for name in names if name in row.record)


def disclosed_fields(row: Row, manual: Manual) -> tuple[str, ...]:
    """Return the fields that the customer has given in the replayed turns, in order."""
    if row.replay == "none":
        return ()
    names = identity_fields(row, manual)
    if row.replay == "cut":
        kept = row.params.get("withheld_fields", ())
        names = tuple(takewhile(lambda name: name not in kept, names))
    return names


def replayed(row: Row, manual: Manual) -> tuple[PublicMessage, ...]:
    """Return the turns that come before the customer's first own one; they end on the agent."""
    asked = identity_fields(row, manual)
    if row.replay == "none" or not asked:
        return ()
    given = disclosed_fields(row, manual)
    title = manual.request(row.subflow).title.lower()
    turns = [PublicMessage(Role.USER, render("scenarios/replay_issue", title=title))]
    for group, more in ((given[:1], False), (given[1:], True)):
        if group:
            turns += [_question(group, more=more), _answer(row, group)]
    rest = asked[len(given) :]
    if rest:
        turns.append(_question(rest, more=bool(given)))
    else:
        confirmed = render("scenarios/replay_confirm", title=title)
        turns.append(PublicMessage(Role.AGENT, confirmed))
    return tuple(turns)


def _question(names: Sequence[str], *, more: bool) -> PublicMessage:
    words = [field_name(name) for name in names]
    return PublicMessage(Role.AGENT, render("scenarios/replay_ask", fields=words, more=more))


def _answer(row: Row, names: Sequence[str]) -> PublicMessage:
    given = [(field_name(name), str(row.record[name])) for name in names]
    return PublicMessage(Role.USER, render("scenarios/replay_answer", given=given))
