"""What a model agent is told first: the environment, then how to write an action."""

from __future__ import annotations

from mimesim import prompts
from mimesim.envs.actions import ActionFormat
from mimesim.envs.base import AgentView, GymSpec


def system_text(view: AgentView, action_format: ActionFormat, spec: GymSpec) -> str:
    """Return the system message of an agent."""
    return prompts.render(
        "agent/system",
        environment=view.observation.system,
        instructions=action_format.instructions(spec),
    )
