"""The gym `tau`: tool use with a customer, in a small shop of our own or in tau-bench."""

from __future__ import annotations

from functools import partial

from mimesim.envs.base import Task
from mimesim.envs.gyms.tau import agents, bench, gym, tasks, world
from mimesim.envs.gyms.tau.hidden import domain_of, read_hidden
from mimesim.envs.turns.kind import ProfiledKind, TurnKind

__all__ = ["GYM"]


def _check(task: Task) -> list[str]:
    """Return what `public` must not hold."""
    return [read_hidden(task, domain_of(task)).instruction]


def _check_bench(task: Task) -> list[str]:
    """Open the checkout, so that an episode finds it, and check."""
    bench.open_domain(str(task.public["profile"]))
    return _check(task)


_MINI = TurnKind(
    name="tau",
    episode=gym.MiniTau,
    make_tasks=tasks.make_tasks,
    check=_check,
    best=lambda task: 1.0,
    moves=agents.moves,
    agents={
        "null": agents.TransferAgent,
        "eager": agents.EagerAgent,
        "patient": agents.PatientAgent,
    },
    profiles=(world.NAME,),
)
_BENCH = {
    name: TurnKind(
        name="tau",
        episode=gym.TauGym,
        make_tasks=partial(bench.make_tasks, name),
        check=_check_bench,
        best=lambda task: 1.0,
        moves=agents.moves,
        agents={"null": agents.TransferAgent},
        profiles=(name,),
    )
    for name in bench.DOMAINS
}
GYM = ProfiledKind("tau", {world.NAME: _MINI, **_BENCH})
"""The registry's entry."""
