"""The pytest plug-in as a user meets it: pytest in processes of its own, on small test files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAD = """
import pytest
GOALS = ["get a refund for the blue kettle"]
LINES = ["hello", "it is order 41"]

def shop(message):
    return f"noted {message}, all set"
"""
PASSES = """
@pytest.mark.mimesim(user=LINES, trials=2)
def test_it(simulate):
    result = simulate(shop, success=lambda episode: "41" in episode.turns[3].content)
    assert result.success
"""
MISSES = """
@pytest.mark.mimesim(user=LINES, trials=2, min_success=0.8, success=lambda episode: episode.trial == 0)
def test_it(simulate):
    simulate(shop)
"""
INVALID = """
def lost(messages):
    raise ConnectionError("down")

@pytest.mark.mimesim(user=lost, scenarios=GOALS, retries=0)
def test_it(simulate):
    simulate(shop)
"""
UNDECIDED = """
@pytest.mark.mimesim(user=LINES)
def test_it(simulate):
    assert simulate(shop).success
"""
ASYNC = """
@pytest.mark.asyncio
@pytest.mark.mimesim(user=LINES, agent=shop, success=lambda episode: True)
async def test_it(simulate):
    assert (await simulate.asimulate()).success
"""
WRONG = """
@pytest.mark.mimesim(users="nobody", scenarios=GOALS)
def test_it(simulate):
    assert simulate(shop).success
"""
IDLE = """
@pytest.mark.mimesim(scenarios=GOALS, min_success=0.5)
def test_it(simulate):
    pass
"""
UNUSED = """
import sys

def test_it():
    assert [m for m in sys.modules if m.startswith("mimesim.") and "api" not in m] == []
"""


def run(folder: Path, *options: str, keys: str | None = None) -> tuple[int, str]:
    """Run pytest in a folder, with the few plug-ins that matter, and return exit code and output."""
    others = [name for name in ("xdist", "pytest_asyncio") if find_spec(name)]
    plugins = ["mimesim.api.pytest_plugin", *(f"{name}.plugin" for name in others)]
    chosen = [word for name in plugins for word in ("-p", name)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *chosen, "-p", "no:cacheprovider", "-rA", *options, "."],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"},
        input=keys,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(HEAD + text, "utf-8")


def lines(text: str, *words: str) -> Sequence[str]:
    return [line for line in text.splitlines() if all(word in line for word in words)]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the output of one run of all the small files."""
    folder = tmp_path_factory.mktemp("small")
    put(
        folder,
        passes=PASSES,
        misses=MISSES,
        invalid=INVALID,
        undecided=UNDECIDED,
        wrong=WRONG,
        idle=IDLE,
    )
    if find_spec("pytest_asyncio"):
        put(folder, later=ASYNC)
    (folder / "test_a_unused.py").write_text(UNUSED, "utf-8")  # first, before anything is loaded
    code, text = run(folder, "--mimesim-seed", "5", "--strict-markers")
    assert code == 1, text
    return text


def test_a_pass_has_its_row(output: str) -> None:
    assert lines(output, "PASSED test_passes.py::test_it")
    assert lines(output, "test_passes.py::test_it", "2/2     2/2  5")


def test_a_missed_threshold_is_a_failure_with_transcripts(output: str) -> None:
    assert lines(output, "FAILED test_misses.py::test_it", "success 1/2 counted, 1/2 all")
    assert lines(output, "agent: noted it is order 41, all set")
    assert lines(output, "completed: user_stop by user")


def test_what_is_not_counted_is_an_error_and_never_a_pass(output: str) -> None:
    assert lines(output, "ERROR test_invalid.py::test_it", "1 user_failure of 1 conversations")
    assert not lines(output, "FAILED test_invalid.py") + lines(output, "PASSED test_invalid.py")


def test_nothing_decided_fails_and_says_how_to_mend(output: str) -> None:
    assert lines(output, "FAILED test_undecided.py::test_it")
    assert lines(output, "success.checks")


def test_a_threshold_over_nothing_is_missed(output: str) -> None:
    assert lines(output, "FAILED test_idle.py::test_it", "nothing was simulated")


def test_no_trials_are_wrong_use(tmp_path: Path) -> None:
    put(tmp_path, passes=PASSES)
    code, text = run(tmp_path, "--mimesim-trials", "0")
    assert (code, bool(lines(text, "--mimesim-trials", "'0'"))) == (4, True), text


def test_wrong_use_is_one_line_below_the_test(output: str) -> None:
    assert lines(output, "FAILED test_wrong.py::test_it", "no setting 'users'")
    for internal in ("api/simulate.py", "rollout/engine.py", "no running event loop"):
        assert internal not in output


def test_async_tests_await(output: str) -> None:
    pytest.importorskip("pytest_asyncio", reason="pytest-asyncio is not installed")
    assert lines(output, "PASSED test_later.py::test_it")


def test_it_costs_nothing_until_used(output: str) -> None:
    assert lines(output, "PASSED test_a_unused.py::test_it")


def test_the_last_line_has_both_denominators(output: str) -> None:
    n = 7 if find_spec("pytest_asyncio") else 6
    told = f"{n} conversations: success {n - 3}/{n - 1} counted, {n - 3}/{n} all"
    assert lines(output, told, "not counted: 1 user_failure")


def test_workers_options_and_files(tmp_path: Path) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    put(tmp_path, passes=PASSES, invalid=INVALID)
    page = tmp_path / "page.html"
    options = ("--mimesim-trials", "1", "--mimesim-report", str(page), "--mimesim-skip-invalid")
    code, text = run(tmp_path, "-n", "1", *options)
    assert code == 0, text
    assert lines(text, "1 passed, 1 skipped")
    assert lines(text, "2 conversations: success 1/1 counted, 1/2 all")
    assert "order 41" in page.read_text("utf-8")
    files = sorted(path.name for path in (tmp_path / "page.episodes").glob("*.jsonl"))
    assert files == ["test_invalid.py-test_it-0.jsonl", "test_passes.py-test_it-0.jsonl"]


def test_debugging_goes_step_by_step(tmp_path: Path) -> None:
    put(tmp_path, passes=PASSES)
    code, text = run(tmp_path, "-s", "--mimesim-debug", "--mimesim-trials", "1", keys="\n" * 9)
    assert code == 0, text
    assert lines(text, "user: hello")
    assert lines(text, "agent: noted hello, all set")


def test_the_example_passes() -> None:
    """With the plug-in as it is found after an installation."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "examples/test_my_agent.py",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "4 conversations: success 4/4 counted" in done.stdout
