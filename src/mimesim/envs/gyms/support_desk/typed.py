"""Agents of the compact desk that write lines, as agents that speak typed actions.

So they can be run under any action format, beside agents that write tool calls.
"""

from __future__ import annotations

from dataclasses import replace

from mimesim.envs.actions import get_format
from mimesim.envs.base import Agent, AgentAction, AgentMove, AgentView, Choice, Task
from mimesim.envs.gyms.support_desk.compact import SPEC

_LINE = get_format("line")


class Typed:
    """Reads the inner agent's lines by the line grammar."""

    def __init__(self, inner: Agent) -> None:
        self._inner = inner

    async def act(self, view: AgentView) -> AgentMove:
        """Let the inner agent move and read its line."""
        move = await self._inner.act(view)
        return replace(move, action=_LINE.parse(move, SPEC))

    async def aclose(self) -> None:
        """Close the inner agent."""
        await self._inner.aclose()


class SilentAgent:
    """Says a word without meaning until the steps are used up: the null agent of this profile."""

    def __init__(self, task: Task, seed: int) -> None:
        """Take nothing from the task."""

    async def act(self, view: AgentView) -> AgentMove:
        """Say nothing that matters."""
        return AgentMove("ok .", AgentAction(Choice.ACTION, "ok ."))

    async def aclose(self) -> None:
        """Release nothing."""
