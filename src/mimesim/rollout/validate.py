"""Checking input files before anything runs: every problem at once, with file, line and key."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import config as configs
from mimesim import jsonio
from mimesim.config.sources import read_file
from mimesim.dialogue.episode import SCHEMA, Episode
from mimesim.envs.load import check_tasks
from mimesim.envs.packs import task_from_json
from mimesim.errors import DataError, UsageError
from mimesim.registry import Registry, unknown_name
from mimesim.rollout.prepare import RunConfig
from mimesim.scenarios import worlds
from mimesim.scenarios.types import Row, Scenario

_CONFIGS = (".toml", ".yaml", ".yml")
_READERS: dict[str, Callable[[Any, str], object]] = {
    "episodes": lambda value, where: Episode.from_json(value, where=where),
    "tasks": lambda value, where: task_from_json(value, where),
    "scenarios": lambda value, where: Scenario.from_json(value, where),
    "rows": lambda value, where: Row.from_json(value, where),
}
_BUILD = "mimesim.corpora.build:BuildConfig"
_VERBS = {
    _BUILD: "data build",
    "mimesim.train.midtrain:UserConfig": "train user",
    "mimesim.train.user_rl:UserRlConfig": "train user",
    "mimesim.train.user_warmstart:SpeakerConfig": "train user",
    "mimesim.train.agent:AgentConfig": "train agent",
    "mimesim.train.warmstart:WarmConfig": "train warm-start",
}
"""Config class of a recipe -> the command that takes it."""
KINDS = ("config", "manual", *_READERS)
"""Kinds of files that can be checked."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One checked file.

    Attributes:
        count: entries that were read (1 for a config, request types of a manual).
        problems: one line each, in file order; empty = sound.
        torn: bytes of an unfinished last line, which a resumed run would cut.
    """

    path: Path
    kind: str
    count: int
    problems: tuple[str, ...]
    torn: int = 0


def validate(path: Path | str, kind: str = "auto") -> list[Checked]:
    """Check a file, or the files of a run folder.

    Args:
        path: config, manual, scenario, task, row or episode file (`.gz` accepted), or a run folder.
        kind: one of `KINDS`, or auto = by extension and content.

    Raises:
        UsageError: there is no such file, or no such kind.
    """
    path = Path(path)
    if kind != "auto" and kind not in KINDS:
        raise unknown_name("kind", kind, ["auto", *KINDS])
    if path.is_dir():
        files = [p for p in (path / "run.json", path / "episodes.jsonl") if p.exists()]
        if not files:
            raise UsageError("no run in this folder", where=str(path), expected="run.json")
        return [_validate(file, kind) for file in files]
    if not path.is_file():
        raise UsageError("file not found", where=str(path))
    return [_validate(path, kind)]


def _validate(path: Path, kind: str) -> Checked:
    if kind == "auto":
        kind = _kind_of(path)
    if kind == "config":
        return _config(path)
    if kind == "manual":
        return _manual(path)
    if path.suffix == ".json":
        return _entries(path, kind, iter([(1, path.read_bytes())]))
    return _entries(path, kind, _lines(path))


def _config(path: Path) -> Checked:
    """Check a config against the command that it is for; without a word on that, `run`."""
    target = configs.meant_for([path]) or (_BUILD if _lists(path, "source") else "")
    verb = _VERBS.get(target)
    kind = f"config of `mimesim {verb}`" if verb else "config"
    try:
        cls = Registry("config", {}).load(target) if verb else RunConfig
    except UsageError as error:  # e.g. a training config where no training is installed
        return Checked(path, kind, 1, (f"{path}: {error}",))
    return Checked(path, kind, 1, tuple(str(found) for found in configs.check(cls, [path])))


def _manual(path: Path) -> Checked:
    """Check that a company's manual holds together and that its cases can be drawn."""
    try:
        world = worlds.open_world(str(path))
    except UsageError as error:
        return Checked(path, "manual", 0, (str(error),))
    return Checked(path, "manual", len(world.manual.request_types), ())


def _lists(path: Path, key: str) -> bool:
    """Tell whether a file has a list of tables under `key`."""
    try:
        return isinstance(read_file(path)[0].get(key), list)
    except UsageError:
        return False


def _kind_of(path: Path) -> str:
    """Tell what a file holds from its extension and its first entry.

    Raises:
        UsageError: it cannot be told.
    """
    if path.suffix in _CONFIGS:
        return "manual" if any(_lists(path, key) for key in ("requests", "general")) else "config"
    first: Any = None
    try:
        if path.suffix == ".json":
            first = jsonio.read_json(path)
        else:
            first = next((line.value for line in jsonio.read_jsonl(path)), None)
    except DataError:
        first = None
    keys = first if isinstance(first, Mapping) else {}
    if _is_talk(keys):
        raise UsageError(
            "this holds conversations of people, not a run",
            where=str(path),
            mend="look at them with `mimesim data inspect FILE`",
        )
    if "turns" in keys or str(keys.get("schema", "")).startswith(SCHEMA.partition("/")[0] + "/"):
        return "episodes"
    if {"gym", "hidden"} & set(keys) and "id" in keys:
        return "tasks"
    if {"record", "subflow"} & set(keys):
        return "rows"
    if "goal" in keys:
        return "scenarios"
    if path.suffix == ".json":
        return "config"
    raise UsageError(
        "cannot tell what this file holds",
        where=str(path),
        expected="a config, or lines that are tasks, scenarios, rows or episodes",
        mend="say so: --kind " + "|".join(KINDS),
    )


def _is_talk(keys: Mapping[str, Any]) -> bool:
    """Tell whether this is what people said, raw or built, which has the turns of an episode, too."""
    if str(keys.get("schema", "")).startswith("mimesim.dialogue/"):
        return True
    return "messages" in keys or ("turns" in keys and not {"schema", "task", "run_id"} & set(keys))


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as stream:
        yield from enumerate(stream, start=1)


def _entries(path: Path, kind: str, lines: Iterator[tuple[int, bytes]]) -> Checked:
    read = _READERS[kind]
    problems: list[str] = []
    seen: dict[str, int] = {}
    values: list[object] = []
    torn = 0
    for number, raw in lines:
        if path.suffix == ".jsonl" and not raw.endswith(b"\n"):
            torn = len(raw)
            continue
        if not raw.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = jsonio.parse_line(raw, path, number)
            values.append(read(value, where))
        except UsageError as error:
            problems.append(str(error))
            continue
        key = str(value.get("id", number))
        first = seen.setdefault(key, number)
        if first != number:
            problems.append(f"{where}: id {key!r} stands in line {first} too")
    if kind == "tasks" and not problems:
        problems += [f"{path}: {text}" for text in check_tasks(values)]  # type: ignore[arg-type]
    return Checked(path, kind, len(values), tuple(problems), torn)
