"""Putting the items of SOUL to a user model: one episode each, judged as it is played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

from mimesim import jsonio
from mimesim.bench.suites.base import Simulation
from mimesim.bench.suites.soul_files import File
from mimesim.dialogue.types import Identity
from mimesim.envs.base import GymEnv, Task
from mimesim.envs.tasks.base import PLAIN
from mimesim.envs.tasks.load import load_rows, load_task, make_env, make_task
from mimesim.envs.tasks.partner import Partner, make_partner
from mimesim.envs.tasks.players import ChatPlayers, Ends, PlayerSettings
from mimesim.errors import DataError, UsageError
from mimesim.judges.base import Judge
from mimesim.judges.load import make_judge
from mimesim.models.load import preflight
from mimesim.rollout.engine import Cast, EngineConfig, Job, RunSummary, run, wait
from mimesim.rollout.record import task_ref
from mimesim.rollout.store import Plan, Store
from mimesim.seeds import fingerprint
from mimesim.users.base import User
from mimesim.users.load import is_scripted, make_user
from mimesim.users.sources import SimulatorSource

_QUICK = 2
"""Items of a file in a quick run."""


def play(files: Sequence[File], asked: Simulation) -> RunSummary:
    """Play every item once for each seed; what `asked.out` holds is not played again.

    Args:
        files: which files.
        asked: user, judge, partner, data folder with `<stem>_val.parquet` (empty = own rows), seeds.

    Raises:
        UsageError: an unknown party, no row at all, a judge or model that cannot be reached.
    """
    tasks = items(files, asked.data, _QUICK if asked.quick else asked.limit)
    judge, partner = make_judge(asked.judge or "rule"), make_partner(asked.partner or "rule")
    player = player_of(asked)
    cast = _cast(player, judge, partner)
    try:
        for party in (player, judge, partner):
            if not isinstance(party, Ends):
                wait(preflight(party))
        store = Store.open(asked.out, _plan(tasks, cast, partner.identity, asked))
        try:
            jobs = [Job(task, trial) for trial in asked.seeds for task in tasks]
            config = EngineConfig(concurrency=asked.concurrency)
            return run(jobs, cast, config, store=store, on_event=asked.on_event)
        finally:
            store.close()
    finally:
        for party in (player, judge, partner):
            wait(party.aclose())


def items(files: Sequence[File], data: str, limit: int | None) -> list[Task]:
    """Return the items of all files; ids begin with the file's stem.

    Args:
        files: which files.
        data: folder of the official files; empty = the own rows, their test part.
        limit: at most so many of each file.

    Raises:
        UsageError: the folder holds none of the files.
    """
    found: list[Task] = []
    for file in files:
        tasks = _official(file, Path(data), limit) if data else _own(file, limit)
        found += [replace(task, id=f"{file.stem}/{task.id}") for task in tasks]
    if not found:
        raise DataError(
            "none of the evaluation files",
            where=data,
            expected="<stem>_val.parquet, e.g. fantom_val",
        )
    return found


def player_of(asked: Simulation) -> ChatPlayers | Ends:
    """Return who takes the seat of the user model.

    A scripted user reads no question; it says what the null policy says, under its own name.

    Raises:
        UsageError: a user without a model.
    """
    source = make_user(asked.user, options=asked.user_options)
    if is_scripted(asked.user):
        silent = Ends("null")
        silent.identity = source.identity
        return silent
    if not isinstance(source, SimulatorSource):
        raise UsageError(
            f"user {asked.user!r} has no model that could read a question",
            expected="roleplay:<model>, trained:<path>, http:<url>, preset:<name> or scripted:<kind>",
        )
    warmth = source.settings.temperature
    settings = PlayerSettings(
        temperature=PlayerSettings().temperature if warmth is None else warmth,
        max_tokens=source.settings.max_tokens,
        thinking=source.settings.thinking,
    )
    return ChatPlayers(source.model, name=source.identity.name, settings=settings)


def _official(file: File, folder: Path, limit: int | None) -> Sequence[Task]:
    for ending in ("parquet", "jsonl", "json"):
        place = folder / f"{file.stem}_val.{ending}"
        if place.is_file():
            return load_rows(file.task, place=str(place), split="test", limit=limit).tasks
    return ()


def _own(file: File, limit: int | None) -> Sequence[Task]:
    tasks = load_rows(file.task, split="test").tasks
    sources = load_task(file.task).info.sources
    if file.stem in sources and len(sources) > 1:  # several files in one pack: by their rows
        own = {
            make_task(file.task, line.value["extra_info"], "test").id
            for line in jsonio.read_jsonl(load_task(file.task).info.rows)
            if line.value.get("data_source") == file.stem
        }
        tasks = tuple(task for task in tasks if task.id in own)
    return tasks[:limit]


def _cast(player: ChatPlayers | Ends, judge: Judge, partner: Partner) -> Cast:
    def make(task: Task, person: User | None) -> GymEnv:
        return cast(GymEnv, make_env(task, judge=judge, partner=partner))

    return Cast(player, make, PLAIN, None, judge.identity)


def _plan(tasks: Sequence[Task], cast: Cast, partner: Identity, asked: Simulation) -> Plan:
    hashes = {task.id: task_ref(task).hash for task in tasks}
    identity = {
        "suite": "soul",
        "data": asked.data,
        "items": fingerprint(jsonio.canonical(hashes)),
        "user": asdict(cast.agent.identity),
        "judge": asdict(cast.judge) if cast.judge else None,
        "partner": asdict(partner),
        "seed": 0,
    }
    pairs = tuple((task.id, trial) for trial in asked.seeds for task in tasks)
    return Plan(identity, {}, hashes, pairs)
