"""Agents that every turn-taking gym has: the oracle's trace, one that does nothing, a random one."""

from __future__ import annotations

from collections.abc import Sequence

from mimesim import jsonio
from mimesim.envs.base import AgentAction, AgentMove, AgentView, Choice, Task
from mimesim.errors import AgentError, DataError
from mimesim.seeds import generator


class TraceAgent:
    """Plays `hidden.oracle_trace`: pairs of choice and content, in order."""

    def __init__(self, task: Task, seed: int) -> None:
        self._trace = trace_of(task)

    async def act(self, view: AgentView) -> AgentMove:
        """Take the next action of the trace; the last one again when it is used up.

        Raises:
            AgentError: the task has no trace.
        """
        if not self._trace:
            raise AgentError("this task has no oracle trace")
        return move(*self._trace[min(view.step, len(self._trace) - 1)])

    async def aclose(self) -> None:
        """Release nothing."""


class NullAgent:
    """Never does anything that can be executed: the lower end of a scale."""

    def __init__(self, task: Task, seed: int) -> None:
        """Take nothing from the task."""

    async def act(self, view: AgentView) -> AgentMove:
        """Give up."""
        return AgentMove("", AgentAction(Choice.ACTION, "", problem="nothing was said"))

    async def aclose(self) -> None:
        """Release nothing."""


class RandomAgent:
    """Draws among the moves that a gym names; it knows nothing hidden."""

    def __init__(self, moves: Sequence[tuple[str, str]], seed: int) -> None:
        self._moves = list(moves)
        self._seed = seed

    async def act(self, view: AgentView) -> AgentMove:
        """Draw one."""
        return move(*generator(self._seed, view.step).choice(self._moves))

    async def aclose(self) -> None:
        """Release nothing."""


def move(choice: str, content: str) -> AgentMove:
    """Return a typed move."""
    action = AgentAction(Choice(choice), content)
    return AgentMove(jsonio.dumps({"choice": choice, "content": content}), action)


def trace_of(task: Task) -> list[tuple[str, str]]:
    """Return the oracle's actions; empty = the task has none.

    Raises:
        DataError: it cannot be read.
    """
    found = []
    for entry in task.hidden.get("oracle_trace", []):
        if not isinstance(entry, list | tuple) or len(entry) < 2 or entry[0] not in set(Choice):
            raise DataError(
                f"oracle_trace holds {entry!r:.60}",
                where=f"task {task.id!r}",
                expected="[choice, content] pairs",
            )
        found.append((str(entry[0]), str(entry[1])))
    return found
