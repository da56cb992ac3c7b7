"""What the full desk shows: first view, policy, tools, look-ups, and what it must never show."""

from __future__ import annotations

from typing import Any

from mimesim import prompts
from mimesim.dialogue.types import Role
from mimesim.envs.base import GymSpec, Task
from mimesim.envs.gyms.support_desk.case import Case
from mimesim.envs.gyms.support_desk.state import State
from mimesim.envs.gyms.support_desk.tools import BadCall
from mimesim.envs.packs import fold, holds_string, public_text
from mimesim.scenarios.types import Manual

LEFT = "the customer has left; one step remains"
_MIN_SECRET = 3
"""Shorter values (2, OR) are ordinary words and hide nothing."""
_LONG = 5


def policy_text(manual: Manual, flow: str) -> str:
    """Return the policy of a flow: general lines, then each of its request types with limits."""
    requests = [
        {
            "title": request.title,
            "lines": [*request.instructions, *(m.text for m in manual.limits_of(request.name))],
        }
        for request in manual.request_types
        if request.flow == flow
    ]
    return prompts.render("envs/support_desk/policy", general=manual.general, requests=requests)


def tools_text(tools: list[dict[str, Any]]) -> str:
    """Return the list of tools."""
    return prompts.render("envs/support_desk/tools", tools=tools)


def system_text(task: Task) -> str:
    """Return the agent's first view, made from the task's public side only."""
    return prompts.render(
        "envs/support_desk/system",
        company=task.public["company"],
        as_of=task.public["as_of"],
        policy=task.public["policy"],
        tools=tools_text(task.public["tools"]),
    )


def look_up(content: str, manual: Manual, task: Task) -> str:
    """Answer a search: `policy`, `policy:<title>` or `tools`.

    Raises:
        BadCall: anything else.
    """
    what, _, title = content.strip().partition(":")
    if fold(what) == "tools" and not title:
        return tools_text(task.public["tools"])
    if fold(what) != "policy":
        raise BadCall('a search is "policy", "policy:<title>" or "tools"')
    if not title.strip():
        return str(task.public["policy"])
    wanted = fold(title)
    for flow in manual.flows:
        titles = [r.title for r in manual.request_types if r.flow == flow.name]
        if wanted in {fold(name) for name in (flow.title, *titles)}:
            return policy_text(manual, flow.name)
    return "no match; titles: " + ", ".join(flow.title for flow in manual.flows)


def invalid_text(reason: str, spec: GymSpec) -> str:
    """Return the feedback to an action that was not carried out."""
    allowed = ", ".join(choice.value for choice in spec.choices)
    return f"invalid action: {reason}. Choices: {allowed}."


def secrets(case: Case) -> list[str]:
    """Return the hidden strings of a task: record values, and what moves the customer."""
    words = [value for key, value in case.truth({}).items() if key != "as_of"]
    words += _directives(case)
    return [word for word in dict.fromkeys(words) if _tells(word)]


def identifying(case: Case) -> list[str]:
    """Return the hidden strings that single this customer out and so may not stand in `public`.

    Values that the manual itself speaks of, such as `gold` or `delivered`, do not.
    """
    long = [s for s in secrets(case) if any(c.isdigit() for c in s) and len(s) >= _LONG]
    return [*long, str(case.row.record.get("customer_name", "")), *_directives(case)]


def _directives(case: Case) -> list[str]:
    return [use.directive for use in case.scenario.behavior if use.directive]


def _tells(word: str) -> bool:
    folded = fold(word)
    return len(folded) >= _MIN_SECRET and folded not in ("yes", "no")


def forbidden(task: Task, case: Case, state: State) -> list[str]:
    """Return the secrets that feedback may not hold now.

    Free are what is public, what the customer or the agent said, and what tools have returned.
    """
    truth = case.truth(state.wish)
    free = "\n".join(
        [
            public_text(task),
            *(m.content for m in state.history if m.role in (Role.USER, Role.AGENT)),
            *(value for call in state.executed for value in call.arguments.values()),
            *(truth[name] for name in state.returned),
        ]
    )
    return [secret for secret in secrets(case) if not holds_string(free, secret)]
