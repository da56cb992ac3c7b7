"""What an agent reads: first the environment and how to write an action, then what was said."""

from __future__ import annotations

from collections.abc import Sequence

from mimesim import prompts
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.envs.actions import ActionFormat
from mimesim.envs.base import AgentView, GymSpec

_SPEAKERS = {Role.TOOL: "tool", Role.NOTE: "note", Role.AGENT: "you"}


def system_text(view: AgentView, action_format: ActionFormat, spec: GymSpec) -> str:
    """Return the system message of an agent."""
    return prompts.render(
        "agent/system",
        environment=view.observation.system,
        instructions=action_format.instructions(spec),
    )


def opening_text(first: str, spec: GymSpec) -> str:
    """Return the first words of an episode; where nobody is talked to, they are a note."""
    return feedback_text([PublicMessage(Role.USER if spec.needs_user else Role.NOTE, first)], spec)


def feedback_text(messages: Sequence[PublicMessage], spec: GymSpec) -> str:
    """Return what others said since, each line with its speaker."""
    speakers = {**_SPEAKERS, Role.USER: spec.person}
    lines = [{"speaker": speakers[m.role], "text": m.content} for m in messages if m.content]
    return prompts.render("agent/feedback", lines=lines or [{"speaker": "note", "text": "begin"}])
