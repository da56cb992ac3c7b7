"""Playing the matrix: who takes part in its cells, and several of them at once.

Every cell is a run folder of its own, so that a matrix goes on where it stopped, and a cell that
cannot be finished costs the others nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any, cast

from mimesim import jsonio
from mimesim.bench import averages
from mimesim.bench.agents import plan_of, play
from mimesim.bench.clusters import clusters_of
from mimesim.bench.config import WITHOUT_MODEL, EvaluationConfig, OnCell
from mimesim.bench.outline import Cell, Ground, Outline, folder_of, outline
from mimesim.bench.ready import refuse_missing, self_judge
from mimesim.bench.rows import NOBODY, GymCell
from mimesim.dialogue.stop import Status
from mimesim.envs.actions import get_format
from mimesim.envs.agents.load import make_agent
from mimesim.envs.base import AgentSource, GymEnv, Task, profile_of
from mimesim.envs.load import gym_spec, load_gym, make_gym
from mimesim.errors import EnvironmentFault, MimesimError, UsageError
from mimesim.judges.base import Judge
from mimesim.judges.load import SELF, make_judge
from mimesim.models.load import preflight
from mimesim.results import LostCell
from mimesim.rollout.engine import Cast, EngineConfig, Job
from mimesim.rollout.events import EpisodeFinished, EpisodeRetried, Event
from mimesim.rollout.store import Paths, differences
from mimesim.users.base import User, UserSource
from mimesim.users.load import make_user


@dataclass(frozen=True, slots=True)
class _Parties:
    agents: Mapping[tuple[str, int], AgentSource]
    users: Mapping[str, UserSource]
    judges: Mapping[str, Judge]


async def play_matrix(
    config: EvaluationConfig, on_cell: OnCell | None = None
) -> tuple[list[GymCell], list[LostCell]]:
    """Play all cells, `jobs` of them at once; return those that were finished, and the others.

    Raises:
        UsageError: a wrong name, a missing key or checkpoint, an endpoint that is not fit, or a
            folder of another matrix, all before the first episode; or no cell could be finished.
    """
    plan = outline(config)
    refuse_missing(config)
    places = asyncio.Semaphore(config.jobs)
    started = 0
    async with AsyncExitStack() as stack:
        matrix = _Matrix(config, plan, await _parties(config, plan, stack))
        for cell in plan.cells:
            matrix.refuse_stranger(cell)

        async def attempt(cell: Cell) -> GymCell | Exception:
            nonlocal started
            async with places:
                if on_cell is not None:
                    on_cell(str(cell), started, len(plan.cells))
                started += 1
                try:
                    return await matrix.play(cell)
                except Exception as error:  # noqa: BLE001 - a bad cell never costs the others
                    return error

        found = await asyncio.gather(*map(attempt, plan.cells))
    errors = [(c, e) for c, e in zip(plan.cells, found, strict=True) if isinstance(e, Exception)]
    if len(errors) == len(found):
        raise errors[0][1]
    lost = [LostCell(c.arm.label, c.arm.seed, c.user, c.gym, _reason(e)) for c, e in errors]
    return [one for one in found if isinstance(one, GymCell)], lost


def _reason(error: Exception) -> str:
    if isinstance(error, MimesimError):
        return str(error)
    return f"{type(error).__name__}: {error}"


async def _parties(config: EvaluationConfig, plan: Outline, stack: AsyncExitStack) -> _Parties:
    """Make and check everybody before the first episode; `stack` closes them."""
    written = next(iter(plan.grounds.values())).action_format
    agents: dict[tuple[str, int], AgentSource] = {}
    for arm in config.checkpoints:
        talkless = arm.agent.partition(":")[0] in WITHOUT_MODEL
        options = {**({} if talkless else config.agent_options), **arm.options}
        source = make_agent(arm.agent, action_format=written, options=options or None)
        stack.push_async_callback(source.aclose)
        agents[arm.key] = source
    users: dict[str, UserSource] = {}
    for name in config.users:
        users[name] = make_user(name, options=config.user_options.get(name))
        stack.push_async_callback(users[name].aclose)
    judges: dict[str, Judge] = {}
    if any(gym_spec(gym).needs_judge for gym in plan.grounds):
        names = config.users if config.gyms.judge == SELF else (NOBODY,)
        for user in names:
            judge, given = config.gyms.judge, config.gyms.judge_options
            if user != NOBODY:
                judge, own = self_judge(user, config.user_options.get(user))
                given = {**own, **given}
            judges[user] = make_judge(judge, options=given)
            stack.push_async_callback(judges[user].aclose)
    for party in (*agents.values(), *users.values(), *judges.values()):
        await preflight(party)
    return _Parties(agents, users, judges)


class _Matrix:
    """A matrix with everybody in place."""

    def __init__(self, config: EvaluationConfig, plan: Outline, parties: _Parties) -> None:
        self._config = config
        self._plan = plan
        self._parties = parties

    def refuse_stranger(self, cell: Cell) -> None:
        """Refuse the folder of another cell before anything is played.

        Raises:
            UsageError: what is there belongs to another run.
            DataError: its manifest is damaged.
        """
        paths = Paths.of(self._config.out / folder_of(cell))
        held = [p for p in (paths.episodes, paths.failures) if p.exists() and p.stat().st_size]
        if not held or not paths.manifest.exists():
            return
        plan = plan_of(self._jobs(cell), self._identity(cell))
        old = jsonio.read_object(paths.manifest, "identity", "tasks")
        found = differences(old, {"identity": plan.identity, "tasks": dict(plan.tasks)})
        if found:
            raise UsageError(
                f"the folder of {cell} holds a run of another configuration: "
                + "; ".join(found[:4]),
                where=str(paths.manifest),
                mend="choose another --out, or remove the folder",
            )

    async def play(self, cell: Cell) -> GymCell:
        """Play one cell and score it.

        Raises:
            MimesimError: it cannot be finished; what was played stays on disk.
        """
        config, ground = self._config, self._plan.grounds[cell.gym]
        judge = self._judge(cell)

        def gym_of(task: Task, person: User | None) -> GymEnv:
            own = profile_of(task) if task.public.get("profile") else ground.profile
            # `person` is None only where the gym needs nobody
            return make_gym(
                cell.gym,
                profile=own,
                user=cast(User, person),
                judge=judge,
                options=ground.options or None,
            )

        talks = gym_spec(cell.gym, ground.profile).needs_user
        episodes = await play(
            self._jobs(cell),
            Cast(
                self._agent(cell),
                gym_of,
                get_format(ground.action_format),
                self._parties.users[cell.user] if talks else None,
                judge.identity if judge else None,
            ),
            EngineConfig(
                seed=config.matrix.seed,
                run_id="matrix",
                concurrency=config.matrix.concurrency,
                limits=config.matrix.limits,
            ),
            self._identity(cell),
            config.out / folder_of(cell),
            on_event=_Patience(cell, config.give_up_after).tell,
        )
        aspects = {task.id: len(task.hidden.get("dimensions", ())) for task in ground.tasks}
        compat = bool(ground.options.get("compat"))
        return GymCell(
            gym=cell.gym,
            arm=cell.arm.label,
            seed=cell.arm.seed,
            agent=self._agent(cell).identity.name,
            user=cell.user,
            judge=judge.identity.name if judge else NOBODY,
            judge_mode=self._judge_mode(judge),
            episodes=tuple(
                averages.played(one, aspects=aspects[one.task.id], compat=compat)
                for one in episodes
            ),
            clusters=clusters_of(ground.tasks),
            attainable={task.id: load_gym(cell.gym).attainable(task) for task in ground.tasks},
            known_null={t.id: float(t.meta["floor"]) for t in ground.tasks if "floor" in t.meta},
            settings=self._settings(ground),
        )

    def _settings(self, ground: Ground) -> dict[str, Any]:
        """Return what a number of a gym cannot be compared without."""
        spec = gym_spec(ground.gym, ground.profile)
        search = {"search": ground.options.get("search", "static")} if spec.needs_search else {}
        return {
            "max_steps": spec.max_steps,
            "seed": self._config.matrix.seed,
            "trials": self._config.gyms.trials,
            "profiles": list(dict.fromkeys(map(profile_of, ground.tasks))),
            **ground.options,
            **search,
        }

    def _agent(self, cell: Cell) -> AgentSource:
        return self._parties.agents[cell.arm.key]

    def _judge(self, cell: Cell) -> Judge | None:
        if not gym_spec(cell.gym).needs_judge:
            return None
        return self._parties.judges[cell.user if self._config.gyms.judge == SELF else NOBODY]

    def _judge_mode(self, judge: Judge | None) -> str:
        if judge is None:
            return NOBODY
        if judge.identity.kind != "llm":
            return "rule"
        return SELF if self._config.gyms.judge == SELF else "fixed"

    def _jobs(self, cell: Cell) -> list[Job]:
        tasks = self._plan.grounds[cell.gym].tasks
        return [Job(task, trial) for trial in range(self._config.gyms.trials) for task in tasks]

    def _identity(self, cell: Cell) -> dict[str, Any]:
        """Return all that decides the results of a cell."""
        ground, judge = self._plan.grounds[cell.gym], self._judge(cell)
        user = self._parties.users.get(cell.user)
        return {
            "arm": cell.arm.label,
            "seed": cell.arm.seed,
            "user": cell.user,
            "agent": asdict(self._agent(cell).identity),
            "played_by": asdict(user.identity) if user is not None else None,
            "judge": asdict(judge.identity) if judge else None,
            "matrix": {
                "gym": cell.gym,
                "profile": ground.profile,
                "options": dict(ground.options),
                "action_format": ground.action_format,
                "trials": self._config.gyms.trials,
                "tasks": self._config.matrix.tasks,
                "seed": self._config.matrix.seed,
                "limits": asdict(self._config.matrix.limits),
            },
        }


class _Patience:
    """Ends a cell whose endpoint is gone, so that the others do not wait for its time-outs."""

    def __init__(self, cell: Cell, most: int) -> None:
        self._cell = cell
        self._most = most
        self._lost = 0

    def tell(self, event: Event) -> None:
        """Take note of an attempt at an episode.

        Raises:
            EnvironmentFault: too many in a row were lost to the infrastructure.
        """
        if not isinstance(event, EpisodeFinished | EpisodeRetried):
            return
        gone = event.episode.outcome.status is Status.INFRA_FAILURE
        self._lost = self._lost + 1 if gone else 0
        if self._lost >= self._most:
            raise EnvironmentFault(
                f"{self._lost} attempts in a row were lost, the last one to: "
                f"{event.episode.stop.detail or event.episode.stop.reason.value}",
                where=str(self._cell),
                mend="see to the endpoint and give the same command again: it goes on from here",
            )
