"""Every third-party import is declared: in the core, or in the extra of its room."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "mimesim"
MODULES = sorted(SOURCE.rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DISTRIBUTIONS = packages_distributions()

EXTRAS_OF_ROOM = {
    "corpora": {"data"},
    "train": {"train"},
    "bench": {"bench", "train"},
    "studies": {"bench", "train"},
    "models": {"train"},
    "integrations": {
        "integrations",
        "verifiers",
        "openenv",
        "deepeval",
        "inspect",
        "mlflow",
        "openevals",
        "scenario",
        "strands",
    },
    "report": {"report"},
    "server": {"serve"},
    "stats": {"bench"},
}
"""Room (first part of the path in the package) -> the extras whose packages it may import."""


OPTIONAL_IN_ROOM = {"config": {"pyyaml"}, "api": {"pytest"}}
"""Room -> packages it uses where they happen to be installed, and says so where they are not."""


MODULES_OF = {
    "scenario": "langwatch-scenario",
    "strands": "strands-agents-evals",
    "strands_evals": "strands-agents-evals",
}
"""Module -> its distribution, where that is not installed here and bears another name."""
CHECKOUTS = ("tau_bench", "tau2", "nemo_gym", "fastapi")
"""Modules that come from a checkout, or with one (FastAPI with NeMo-Gym); who imports them says so."""


def normal(name: str) -> str:
    """Return a distribution name in its normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(names: list[str]) -> set[str]:
    """Return the normal names of requirement strings."""
    return {normal(re.split(r"[\s<>=!~;\[]", name, maxsplit=1)[0]) for name in names}


CORE = requirements(PROJECT["dependencies"])
EXTRAS = {k: requirements(v) for k, v in PROJECT["optional-dependencies"].items()}


def foreign_imports(path: Path) -> dict[str, int]:
    """Return third-party top-level modules imported anywhere in a file, with a line."""
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            top = name.split(".")[0]
            ours = top in ("mimesim", "__future__", *CHECKOUTS)
            if top not in sys.stdlib_module_names and not ours:
                found.setdefault(top, node.lineno)
    return found


def undeclared(imports: dict[str, int], allowed: set[str]) -> list[str]:
    """Return the imported modules that no allowed distribution provides."""
    return [
        f"line {line}: {module}"
        for module, line in imports.items()
        if not {normal(d) for d in DISTRIBUTIONS.get(module, [MODULES_OF.get(module, module)])}
        & allowed
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_every_import_is_declared(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0]
    extras = [EXTRAS[extra] for extra in EXTRAS_OF_ROOM.get(room, ())]
    allowed = CORE.union(OPTIONAL_IN_ROOM.get(room, set()), *extras)
    assert undeclared(foreign_imports(path), allowed) == []


def test_tests_use_declared_packages_only() -> None:
    allowed = CORE.union(*(v for k, v in EXTRAS.items() if k not in ("vllm", "verl", "ray")))
    for path in sorted((ROOT / "tests").rglob("*.py")):
        imports = foreign_imports(path)
        imports.pop("tests", None)
        assert undeclared(imports, allowed) == [], path


def test_the_core_declares_nothing_it_does_not_use() -> None:
    used = {
        normal(d) for p in MODULES for m in foreign_imports(p) for d in DISTRIBUTIONS.get(m, [])
    }
    assert used >= CORE, f"declared but never imported: {sorted(CORE - used)}"


def test_the_constraints_admit_every_declared_range() -> None:
    from packaging.requirements import Requirement

    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pins = {normal(name): version for name, version in pins.items()}
    installed = ("data", "train", "report", "bench", "serve", "dev")
    wanted = [*PROJECT["dependencies"]]
    for extra in installed:
        wanted += PROJECT["optional-dependencies"][extra]
    for requirement in map(Requirement, wanted):
        pin = pins.get(normal(requirement.name))
        assert pin is not None, f"{requirement.name} is not pinned"
        assert requirement.specifier.contains(pin), f"{requirement} excludes the pinned {pin}"


def test_an_undeclared_import_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("def f():\n    import tenacity\n", "utf-8")
    assert undeclared(foreign_imports(planted), CORE) == ["line 2: tenacity"]
