"""The import contracts hold, and each of them can fail: planted violations are caught."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = Path(sys.executable).with_name("lint-imports")
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]

PLANTS = [
    ("one-way", "users/planted.py", "import mimesim.envs.base"),
    ("one-way", "scenarios/planted.py", "def f() -> None:\n    import mimesim.models.base"),
    ("one-way", "judges/planted.py", "import mimesim.users.base"),
    ("one-way", "bench/planted.py", "import mimesim.train"),
    ("one-way", "wing/__init__.py", ""),
    (
        "one-way",
        "jsonio.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import mimesim.dialogue.types",
    ),
    ("report-reads-files", "report/planted.py", "import mimesim.envs.base"),
    ("torch-free", "rollout/planted.py", "def f() -> None:\n    import torch"),
    ("torch-free", "models/load.py", "def f() -> None:\n    import mimesim.models.local"),
    ("no-torch-at-the-top", "cli/planted.py", "def f() -> None:\n    import torch"),
    ("network-door", "judges/planted.py", "import mimesim.models.openai"),
    ("network-clients", "envs/planted.py", "import httpx"),
    ("no-cycles", "dialogue/types.py", "def f() -> None:\n    import mimesim.rollout"),
    (
        "gyms-independent",
        "envs/gyms/planted.py",
        "import mimesim.envs.gyms.support_desk",
    ),
]
"""Contract, file below the package, code appended to it."""


def lint(package_parent: Path, contract: str | None = None) -> subprocess.CompletedProcess[str]:
    """Check the contracts against the package below `package_parent`."""
    selection = ["--contract", contract] if contract else []
    return subprocess.run(
        [str(LINT), "--no-logo", "--no-cache", *selection, str(ROOT / "pyproject.toml")],
        cwd=package_parent,
        env={**os.environ, "PYTHONPATH": str(package_parent)},
        capture_output=True,
        text=True,
    )


def code_copy(target: Path) -> Path:
    """Copy the package's Python files below `target` and return the new parent folder."""
    shutil.copytree(
        ROOT / "src" / "mimesim",
        target / "mimesim",
        ignore=lambda folder, names: [
            n for n in names if not (n.endswith(".py") or (Path(folder) / n).is_dir())
        ],
    )
    return target


def test_the_contracts_hold() -> None:
    done = lint(ROOT / "src")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("contract", "file", "code"), PLANTS)
def test_a_planted_violation_is_caught(contract: str, file: str, code: str, tmp_path: Path) -> None:
    parent = code_copy(tmp_path)
    path = parent / "mimesim" / file
    path.parent.mkdir(exist_ok=True)
    before = path.read_text("utf-8") if path.exists() else ""
    path.write_text(f"{before}\n{code}\n", "utf-8")
    done = lint(parent, contract)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "planted" in done.stdout or "BROKEN" in done.stdout or "wing" in done.stdout


def test_every_contract_has_a_plant() -> None:
    assert {contract for contract, _, _ in PLANTS} == {c["id"] for c in LINTER["contracts"]}


def test_the_torch_free_contract_leaves_out_only_what_needs_torch() -> None:
    """A file of `models` may stay outside the contract only if it really reaches torch."""
    contract = next(c for c in LINTER["contracts"] if c["id"] == "torch-free")
    listed = {m for m in contract["source_modules"] if m.startswith("mimesim.models.")}
    graph = grimp.build_graph("mimesim", include_external_packages=True, cache_dir=None)
    heavy = [m for m in contract["forbidden_modules"] if m in graph.modules]
    free = {
        module
        for module in graph.find_children("mimesim.models")
        if not any(graph.chain_exists(importer=module, imported=name) for name in heavy)
    }
    assert listed == free


def test_ruff_names_the_home_of_a_banned_api(tmp_path: Path) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text(
        '"""A probe file."""\n\nimport httpx\nimport json\n\njson.loads("1")\n', "utf-8"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--no-cache",
            "--config",
            "pyproject.toml",
            str(probe),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    for home in ("mimesim.models.openai", "mimesim.jsonio", "mimesim.models.structured"):
        assert home in done.stdout
