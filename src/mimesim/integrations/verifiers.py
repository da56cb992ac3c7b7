"""Verifiers (v1): a gym as taskset and environment, and a text environment of verifiers as a gym.

Tested with verifiers 0.4.0. Verifiers finds an environment by the name of a module, so a module of
yours re-exports `GymTaskset` and `GymEnvironment`; then `--env.taskset.gym turtle` and the like
choose the gym. Whatever our user, judge or network failed fails the episode there, too: it has no
reward.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

from pydantic import Field

from mimesim.envs.load import load_tasks
from mimesim.envs.turns.splits import split_of
from mimesim.errors import EnvError, MissingExtraError, UsageError
from mimesim.integrations.foreign import Bounds, ForeignKind, Said
from mimesim.integrations.sessions import TextGym, open_gym
from mimesim.seeds import generator

try:
    import verifiers.v1 as vf
    from verifiers.v1.configs.agent import resolve_agent
    from verifiers.v1.graph import prepare_turn
    from verifiers.v1.state import state_cls
except ModuleNotFoundError as error:
    raise MissingExtraError.for_extra("verifiers", "verifiers") from error

__all__ = [
    "GymConfig",
    "GymData",
    "GymEnvironment",
    "GymEnvironmentConfig",
    "GymTask",
    "GymTaskset",
    "VerifiersWorld",
    "wrap",
]


class GymData(vf.TaskData):
    """Which task is played; its hidden side stays with the gym."""

    number: int


class GymConfig(vf.TasksetConfig):
    """Which gym, and with whom; see `rollout.prepare.RunConfig`."""

    gym: str = "function"
    profile: str | None = None
    split: Literal["train", "validation", "test"] = "train"
    seed: int = 0
    episodes: int = Field(64, ge=1)
    user: str = "scripted:neutral"
    judge: str | None = None
    action_format: str | None = None
    gym_options: dict[str, Any] = Field(default_factory=dict)
    user_options: dict[str, Any] = Field(default_factory=dict)
    judge_options: dict[str, Any] = Field(default_factory=dict)

    def open(self) -> TextGym:
        """Make the gym ready.

        Raises:
            UsageError: a name or setting is wrong.
        """
        own = set(GymConfig.model_fields) - set(vf.TasksetConfig.model_fields) - {"gym"}
        given = {key: value for key, value in self.model_dump(include=own).items() if value != {}}
        if given["judge"] is None:
            del given["judge"]
        return open_gym(self.gym, "verifiers", given)


class GymTask(vf.Task[GymData]):
    """One task; the environment scores it."""


class GymTaskset(vf.Taskset[GymTask, GymConfig]):
    """The tasks of a gym."""

    def load(self) -> Iterator[GymTask]:
        """Yield them in the gym's order."""
        config = self.config
        tasks = load_tasks(
            config.gym,
            profile=config.profile,
            split=config.split,
            seed=config.seed,
            count=config.episodes,
        )
        for number, task in enumerate(tasks):
            data = GymData(id=task.id, name=task.id, prompt=None, number=number)
            yield GymTask(data, self.config.task)


class GymEnvironmentConfig(vf.EnvConfig):
    """The one seat: a chat without tools, on this machine."""

    agent: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime=vf.SubprocessConfig())


class GymEnvironment(vf.Env[GymEnvironmentConfig]):
    """The gym plays the user: what the agent writes is its action, what comes back its next turn."""

    _gym: TextGym | None = None

    async def stop(self) -> None:
        """Close user and judge."""
        gym, self._gym = self._gym, None
        if gym is not None:
            await gym.aclose()

    async def run(self, task: GymTask, agents: Any) -> None:
        """Play one episode and put its return on the agent's trace."""
        if self._gym is None:
            self._gym = self.config.taskset.open()
        session = await self._gym.open(task.data.number)
        assert session.opened is not None
        told = task.with_system_prompt(session.opened.system)
        total, heard = 0.0, None
        try:
            async with agents.agent.interaction(told) as interaction:
                segment = await interaction.turn(session.opened.text)
                while not segment.terminated:
                    heard = await session.step(segment.last_reply)
                    total += heard.reward
                    if heard.done:
                        break
                    segment = await interaction.turn(heard.text)
        finally:
            await session.aclose()
        trace = interaction.trace
        trace.record_reward("gym_return", total)
        if heard is not None and heard.done:
            trace.record_metric("success", float(bool(heard.success)))
            trace.info["gym_end"] = heard.reason


def wrap(
    name: str,
    env: Callable[[], Any] | Mapping[str, Any],
    *,
    bounds: Bounds,
    seat: str = "",
    system: str = "",
) -> ForeignKind:
    """Make a text environment of verifiers a gym; keep the result where a door name can point.

    Our agent plays one seat: each of its turns is a step. The rewards of the seat's trace, weighted,
    come with the last step. Seats beside it are played by verifiers, with the models that the
    environment's configuration names. Tasks that need tools or a runtime are refused.

    Args:
        name: of the gym: the path that leads to this object, `package.module:ATTRIBUTE`.
        env: what returns an environment, or its configuration, e.g. {"taskset": {"id": "mine"}}.
        bounds: of steps and rewards, which verifiers does not know.
        seat: which seat is ours; "" = the only one, or the first.
        system: what the agent is told beside the task's own system prompt.
    """
    made: list[Any] = []

    def environment() -> Any:
        if not made:
            made.append(env() if callable(env) else _load(env))
        return made[0]

    def rows(split: str, seed: int, count: int) -> list[Mapping[str, Any]]:
        source = environment().taskset
        if not source.bounded:
            source = source.take(4 * count)
        own = [task for task in source if split_of(name, task.key) == split]
        generator(seed, "foreign-rows", split).shuffle(own)
        return [{"id": task.data.idx, "row": task.data.idx} for task in own[:count]]

    def world(row: Mapping[str, Any]) -> VerifiersWorld:
        tasks = environment().taskset.include(idx=[str(row["row"])])
        return VerifiersWorld(environment(), next(iter(tasks)), seat, bounds.max_steps)

    return ForeignKind(name, world, bounds, system=system, rows=rows)


def _load(given: Mapping[str, Any]) -> Any:
    from verifiers.v1.utils.loaders import load_environment, resolve_env_config

    return load_environment(resolve_env_config(dict(given)))


class VerifiersWorld:
    """One episode of an environment of verifiers, our agent in one seat."""

    def __init__(self, env: Any, task: Any, seat: str, max_steps: int) -> None:
        names = list(env.config.agent_harnesses())
        if seat and seat not in names:
            raise UsageError(f"no seat {seat!r}", expected="one of " + ", ".join(names))
        kind = type(task)
        for hook in ("setup", "finalize", "toolsets"):
            if vars(kind).get(hook) is not None:
                raise UsageError(
                    f"{kind.__name__} has a {hook!r} of its own, which needs a runtime",
                    expected="an environment of texts",
                )
        self._env = env
        self._task = task
        self._name = seat or names[0]
        self._left = max_steps
        self._cut = False
        self._shown: asyncio.Queue[str] = asyncio.Queue()
        self._said: asyncio.Queue[str] = asyncio.Queue()
        self._traces: list[Any] = []
        self._run: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Start the environment and return what it says first."""
        self._run = asyncio.create_task(self._play())
        first = await self._next()
        if first is None:
            raise EnvError("the environment ended before its first turn")
        return first

    def check(self, text: str) -> str:
        """Take every text."""
        return ""

    async def step(self, text: str) -> Said:
        """Pass on a turn; at the end of the environment its rewards come back."""
        self._left -= 1
        self._said.put_nowait(text)
        shown = await self._next()
        if shown is not None:
            return Said(shown)
        return Said("", self._reward(), terminated=not self._cut, truncated=self._cut)

    async def finish(self) -> float:
        """Tell the environment that our seat has no more turns, and return its rewards."""
        self._left = 0
        self._said.put_nowait("")
        while await self._next() is not None:
            continue
        return self._reward()

    async def aclose(self) -> None:
        """Stop the environment; twice is harmless."""
        run, self._run = self._run, None
        if run is not None:
            run.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await run

    async def ask(self, shown: str) -> str | None:
        """Show our agent a text and return what it says; None = it has no more turns."""
        if self._left > 0:
            self._shown.put_nowait(shown)
            text = await self._said.get()
            if text:
                return text
        self._cut = True
        return None

    async def _play(self) -> None:
        env, task = self._env, self._task
        episode = vf.Episode(
            env=vf.EnvInfo(id=env.config.env_id), task=_task_of(task), traces=self._traces
        )
        agents = vf.Agents(env.config, self._agent)
        await env.setup(agents)
        await env.run(task, agents)
        episode.traces = self._traces
        await env.finalize(task, episode)

    def _agent(self, name: str, spec: Any) -> Any:
        if name == self._name:
            return _Seat(self, name, spec, self._traces)
        if spec.model is None:
            raise UsageError(
                f"seat {name!r} names no model", expected="a model for every seat but ours"
            )
        return _Recorded(vf.make_agent(resolve_agent(spec)), name, self._traces)

    async def _next(self) -> str | None:
        """Wait for what the environment shows next; None = it ended.

        Raises:
            EnvError: it failed.
        """
        assert self._run is not None
        shown = asyncio.create_task(self._shown.get())
        await asyncio.wait({shown, self._run}, return_when=asyncio.FIRST_COMPLETED)
        if shown.done():
            return shown.result()
        shown.cancel()
        await self._run
        return None

    def _reward(self) -> float:
        ours = [trace for trace in self._traces if trace.agent.name == self._name]
        missing = [name for trace in ours for name, one in trace.rewards.items() if one is None]
        if missing or not ours:
            raise EnvError(f"no reward {missing[0]!r}" if missing else "our seat was never played")
        return float(sum(trace.reward for trace in ours))


class _Recorded:
    """Another seat: its finished traces join the episode."""

    def __init__(self, agent: Any, name: str, traces: list[Any]) -> None:
        self._agent = agent
        self._name = name
        self._traces = traces
        self.trainable = True

    async def run(self, task: Any, **options: Any) -> Any:
        trace = await self._agent.run(task, **options)
        self._keep(trace)
        return trace

    @asynccontextmanager
    async def interaction(self, task: Any, **options: Any) -> AsyncIterator[Any]:
        async with self._agent.interaction(task, **options) as interaction:
            yield interaction
        self._keep(interaction.trace)

    def _keep(self, trace: Any) -> None:
        trace.agent.name, trace.agent.trainable = self._name, self.trainable
        self._traces.append(trace)


class _Seat:
    """The seat that our agent plays; it looks to the environment like an agent of verifiers."""

    def __init__(self, world: VerifiersWorld, name: str, spec: Any, traces: list[Any]) -> None:
        self._world = world
        self._name = name
        self._spec = spec.model_copy(update={"model": spec.model or "mimesim"})
        self._traces = traces
        self.config = self._spec
        self.trainable = True

    async def run(self, task: Any, **options: Any) -> Any:
        """Take one reply to the prompt of a task."""
        async with self.interaction(task) as exchange:
            await exchange.turn()
        return exchange.trace

    @asynccontextmanager
    async def interaction(self, task: Any, **options: Any) -> AsyncIterator[_Exchange]:
        info = vf.AgentInfo(config=resolve_agent(self._spec), name=self._name)
        info.trainable = self.trainable
        trace = vf.Trace(task=_task_of(task), state=state_cls(type(task))(), agent=info)
        yield _Exchange(self._world, task, trace)
        trace.stop("user_closed")
        await task.score(trace)
        trace.is_completed = trace.ok = True
        self._traces.append(trace)


class _Exchange:
    """Our seat's side of a conversation, turn by turn."""

    def __init__(self, world: VerifiersWorld, task: Any, trace: Any) -> None:
        self.trace = trace
        self._world = world
        self._prompt = task.data.prompt
        self._heard: list[Any] = []
        if task.data.system_prompt:
            self._heard.append(vf.SystemMessage(content=task.data.system_prompt))

    async def turn(self, message: str | Sequence[Any] | None = None) -> Any:
        """Show a message, or the task's prompt, and return what our agent answers."""
        given = self._prompt if message is None else message
        self._prompt = None
        fresh = _messages(given)
        told, self._heard = [*self._heard], [*self._heard, *fresh]
        first = told if not self.trace.nodes else []
        text = await self._world.ask("\n\n".join(str(one.content) for one in [*first, *fresh]))
        if text is None:
            return vf.Segment(messages=[], terminated=True)
        answer = vf.AssistantMessage(content=text)
        response = vf.Response(
            id=f"mimesim-{len(self.trace.nodes)}",
            created=int(time.time()),
            model="mimesim",
            message=answer,
            finish_reason="stop",
        )
        prepare_turn(self.trace, list(self._heard)).commit(response)
        self._heard.append(answer)
        return vf.Segment(messages=[answer], root_reply=None)


def _messages(given: str | Sequence[Any] | None) -> list[Any]:
    if given is None:
        raise EnvError("the environment asked for a turn without a message")
    if isinstance(given, str):
        return [vf.UserMessage(content=given)]
    from verifiers.v1.dialects import parse_message

    return [parse_message(one) if isinstance(one, dict) else one for one in given]


def _task_of(task: Any) -> Any:
    return vf.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
