"""`import mimesim` and `mimesim --help` load nothing heavy; what a verb needs it loads itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = (
    "torch", "transformers", "trl", "datasets", "peft", "accelerate", "numpy", "scipy",
    "matplotlib", "openai", "httpx", "httpx2", "jinja2",
)  # fmt: skip

PROBE = """
import sys
{statement}
print(*sorted({heavy!r} & sys.modules.keys()), sep=",", file=sys.stderr)
"""


def loaded_after(statement: str, heavy: tuple[str, ...] = HEAVY) -> list[str]:
    """Run `statement` in a fresh interpreter and return the heavy modules it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement, heavy=set(heavy))],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
        check=True,
    )
    return [
        name for name in done.stderr.strip().splitlines()[-1:] for name in name.split(",") if name
    ]


def command(*arguments: str) -> str:
    """Return a statement that runs the command line with `arguments` and survives its exit."""
    return (
        f"sys.argv = {['mimesim', *arguments]!r}\n"
        "from mimesim.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit as end:\n    assert not end.code, end.code"
    )


@pytest.mark.parametrize(
    "statement",
    ["import mimesim", command("--help"), command("--version"), command("run", "--help")],
    ids=["import", "help", "version", "run --help"],
)
def test_nothing_heavy_is_loaded(statement: str) -> None:
    assert loaded_after(statement) == []


def test_the_package_itself_loads_no_third_party() -> None:
    assert loaded_after("import mimesim", ("pydantic", "typer", "rich")) == []


def test_the_probe_sees_a_heavy_import() -> None:
    assert "jinja2" in loaded_after("import jinja2")
