"""tau-bench from the user's own checkout: its data, tools, policy and tasks, and nothing else.

The checkout is named by an environment variable, which is read where tasks come in and never in an
episode. Only four kinds of modules are loaded, under empty parent packages: the packages themselves
would import model clients. Afterwards `tau_bench` is as it was in `sys.modules`.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.gyms.tau.calls import written
from mimesim.envs.gyms.tau.domain import Call, Tables, Tool, copied
from mimesim.errors import EnvironmentFault, UsageError
from mimesim.seeds import generator

VARIABLE = "MIMESIM_TAU_BENCH_PATH"
DOMAINS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "retail": {
        "test": ("test", "retail"),
        "train": ("train", "retail-train"),
        "validation": ("dev", "retail-dev"),
    },
    "airline": {"test": ("test", "airline")},
}
"""Domain -> split -> name of the task module after `tasks_`, and what ids begin with."""
TRANSFER = "transfer_to_human_agents"
FLOORS: Mapping[str, tuple[int, ...]] = {
    "airline": (12, 13, 15, 17, 18, 21, 24, 29, 35, 36, 37, 38, 39, 40, 41, 42, 47, 48, 49),
    "retail": (10, 12, 25, 50, 57, 65, 106),
    "retail-train": (161, 214, 229, 288, 349),
    "retail-dev": (17,),
}
"""What ids begin with -> tasks that an agent wins which hands over at once."""
_PACKAGE = "tau_bench"
_MEND = f"clone tau-bench and set {VARIABLE} to the folder that holds {_PACKAGE}/"
_LOCK = threading.Lock()
_OPENED: dict[str, Bench] = {}


class Bench:
    """One domain of a checkout; see `domain.Domain`.

    Attributes:
        entries: its tasks by split, as they stand in the checkout.
    """

    endings = frozenset({TRANSFER})
    whole_words = False
    heavy = True

    def __init__(self, name: str, parts: Mapping[str, ModuleType]) -> None:
        self.name = name
        self.policy = str(parts["wiki"].WIKI)
        self._classes = {c.get_info()["function"]["name"]: c for c in parts["tools"].ALL_TOOLS}
        told = [kind.get_info()["function"] for kind in self._classes.values()]
        self.tools: Mapping[str, Tool] = {
            one["name"]: Tool(one["name"], one.get("description", ""), one.get("parameters", {}))
            for one in told
        }
        self._shared: Tables = parts["data"].load_data()
        self.entries = {
            split: _entries(parts[f"tasks_{file}"]) for split, (file, _) in DOMAINS[name].items()
        }

    def tables(self, ref: str) -> Tables:
        """Return the shared tables; there is one set."""
        return self._shared

    def use(self, tables: Tables, call: Call) -> str:
        """Carry out a call; what a tool raises is what it says, as in tau-bench."""
        try:
            return str(self._classes[call.tool].invoke(data=tables, **copied(call.arguments)))
        except Exception as error:  # noqa: BLE001 - tools of the checkout raise whatever they like
            return f"Error: {error}"


def open_domain(name: str) -> Bench:
    """Read the environment and return a domain of the checkout that it names.

    Raises:
        EnvironmentFault: the variable is not set, or names no checkout of tau-bench.
    """
    root = os.environ.get(VARIABLE, "").strip()
    if not root:
        raise EnvironmentFault(
            f"tasks of tau-bench ({name}) need a checkout, and {VARIABLE} is not set",
            expected=f"{VARIABLE} = folder of a checkout",
            mend=_MEND,
        )
    with _LOCK:
        _OPENED[name] = _load(str(Path(root).expanduser().absolute()), name)
    return _OPENED[name]


def opened_domain(name: str) -> Bench:
    """Return a domain that `open_domain` opened in this process.

    Raises:
        EnvironmentFault: it did not.
    """
    if name not in _OPENED:
        raise EnvironmentFault(
            f"domain {name!r} of tau-bench was not opened in this process",
            mend="load its tasks through envs.load.load_tasks",
        )
    return _OPENED[name]


def make_tasks(name: str, split: str, seed: int, count: int) -> list[Task]:
    """Return tasks of the checkout in seeded order; all of a split when there are fewer.

    Raises:
        EnvironmentFault: there is no checkout.
        UsageError: the domain has no such split.
    """
    if split not in DOMAINS[name]:
        raise UsageError(
            f"domain {name!r} of tau-bench has no split {split!r}",
            expected="one of " + ", ".join(DOMAINS[name]),
        )
    domain = open_domain(name)
    prefix = DOMAINS[name][split][1]
    tasks = [
        _task(domain, entry, split, f"{prefix}-{index:03d}")
        for index, entry in enumerate(domain.entries[split])
    ]
    generator(seed, "tau-bench", name, split).shuffle(tasks)
    return tasks[:count]


def is_floor(task_id: str) -> bool:
    """Tell whether a task of tau-bench is won by handing over at once."""
    prefix, _, index = task_id.rpartition("-")
    return index.isdecimal() and int(index) in FLOORS.get(prefix, ())


def _task(domain: Bench, entry: Any, split: str, task_id: str) -> Task:
    actions = [{"name": a.name, "kwargs": dict(a.kwargs)} for a in entry.actions]
    calls = [Call(a["name"], a["kwargs"]) for a in actions if a["name"] not in domain.endings]
    closing = " ".join(["Everything is done.", *entry.outputs])
    return Task(
        gym="tau",
        id=task_id,
        split=split,
        groups=(f"{domain.name}:{entry.user_id}",),
        public={"profile": domain.name},
        hidden={
            "instruction": entry.instruction,
            "actions": actions,
            "outputs": list(entry.outputs),
            "user_id": entry.user_id,
            "oracle_trace": [*(["answer", written(call)] for call in calls), ["action", closing]],
            "scenario": {
                "id": task_id,
                "goal": entry.instruction,
                "meta": {"profile": "asked"},
            },
        },
        meta={
            "source": "tau-bench",
            "license": "MIT",
            "schema": 1,
            "cues": "derived",
            "floor": int(is_floor(task_id)),
        },
    )


def _entries(module: ModuleType) -> list[Any]:
    """Return the one list of tasks in a module, whatever it is called."""
    for key, value in vars(module).items():
        if key.startswith("TASKS") and isinstance(value, list):
            return value
    raise EnvironmentFault(f"{module.__name__} holds no list of tasks", mend=_MEND)


@lru_cache(maxsize=8)
def _load(root: str, name: str) -> Bench:
    wanted = ["data", "tools", "wiki", *(f"tasks_{file}" for file, _ in DOMAINS[name].values())]
    folder = Path(root) / _PACKAGE
    if not (folder / "envs" / name).is_dir():
        raise EnvironmentFault(
            f"{VARIABLE} names no checkout of tau-bench: there is no {_PACKAGE}/envs/{name}",
            where=root,
            mend=_MEND,
        )
    with _hollow_packages(folder, name):
        try:
            home = f"{_PACKAGE}.envs.{name}"
            return Bench(name, {p: importlib.import_module(f"{home}.{p}") for p in wanted})
        except UsageError:
            raise
        except Exception as error:
            raise EnvironmentFault(
                f"the checkout of tau-bench cannot be read: {type(error).__name__}: {error}",
                where=root,
                mend=_MEND,
            ) from error


@contextmanager
def _hollow_packages(folder: Path, name: str) -> Iterator[None]:
    """Put packages without code in the place of `tau_bench` and its like, and take them out again."""
    own = {k: m for k, m in sys.modules.items() if k.partition(".")[0] == _PACKAGE}
    for key in own:
        del sys.modules[key]
    for parts in ((), ("envs",), ("envs", name)):
        module = ModuleType(".".join((_PACKAGE, *parts)))
        module.__path__ = [str(folder.joinpath(*parts))]
        sys.modules[module.__name__] = module
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for key in [k for k in sys.modules if k.partition(".")[0] == _PACKAGE]:
            del sys.modules[key]
        sys.modules.update(own)
