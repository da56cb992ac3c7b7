"""Exports: `__all__`, where a module has one, is true and complete; every core module imports."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import tomllib
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "mimesim"
MODULES = sorted(SOURCE.rglob("*.py"))
HEAVY = ("train", "bench", "studies")
FOREIGN = {
    "gymnasium": "gymnasium", "verifiers": "verifiers", "verifiers_user": "verifiers",
    "openenv": "openenv", "deepeval": "deepeval", "inspect": "inspect_ai", "langwatch": "scenario",
    "mlflow": "mlflow", "openevals": "openevals", "strands": "strands_evals",
    "tau_bench": "tau_bench", "tau2": "tau2", "nemo_gym": "nemo_gym",
}  # fmt: skip
"""Module of `integrations` -> the library that it is for and needs."""
LINTER = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text("utf-8"))["tool"][
    "importlinter"
]
TORCH_FREE = next(c for c in LINTER["contracts"] if c["id"] == "torch-free")["source_modules"]


def module_name(path: Path) -> str:
    """Return the dotted name of a source file."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def light_modules() -> list[str]:
    """Return the modules that must import without the `train` extra."""
    names = []
    for path in MODULES:
        room, name = path.relative_to(SOURCE).parts[0], module_name(path)
        needs_torch = room in HEAVY or (room == "models" and name not in TORCH_FREE)
        peer = FOREIGN.get(path.stem, "") if room == "integrations" else ""
        absent = bool(peer) and importlib.util.find_spec(peer) is None
        if not needs_torch and not absent and path.stem != "__main__":
            names.append(name)
    return names


def declared(tree: ast.Module) -> list[str] | None:
    """Return the literal value of `__all__`, or None."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
        ):
            return [str(name) for name in ast.literal_eval(node.value)]
    return None


def definitions(tree: ast.Module) -> set[str]:
    """Return the public functions and classes that a module defines."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {n.name for n in tree.body if isinstance(n, kinds) and not n.name.startswith("_")}


@pytest.mark.parametrize("name", light_modules())
def test_the_module_imports_and_its_exports_are_true(name: str) -> None:
    module = importlib.import_module(name)
    for exported in vars(module).get("__all__", ()):
        assert exported in vars(module), f"{name}.__all__ names {exported!r}, which is not there"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_exports_are_complete(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    names = declared(tree)
    if names is None:
        return  # everything without an underscore is public
    assert len(names) == len(set(names)), "a name stands twice in __all__"
    assert definitions(tree) <= set(names), "public definitions missing from __all__"


def test_a_package_re_exports_nothing_silently() -> None:
    silent = []
    for path in (p for p in MODULES if p.name == "__init__.py"):
        tree = ast.parse(path.read_text("utf-8"))
        imported = {
            alias.asname or alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mimesim.")
            for alias in node.names
        }
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        silent += [f"{module_name(path)}: {n}" for n in imported - used - set(declared(tree) or ())]
    assert silent == []
