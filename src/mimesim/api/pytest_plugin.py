"""The pytest plug-in: marker `mimesim`, fixture `simulate`, a table at the end. Light until used.

    @pytest.mark.mimesim(scenarios=["get a refund"], trials=3, min_success=0.8)
    def test_refunds(simulate):
        result = simulate(my_agent)
        assert result.success

A threshold that is missed is a failure, with the transcripts and their ends. A conversation that is
not counted (user, judge or network failed) is an error, or a skip with `--mimesim-skip-invalid`, and
never a pass. Options win over the marker.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mimesim.api.results import Results
    from mimesim.errors import UsageError

_RUNS = pytest.StashKey[list["Results"]]()
_ROWS, _INVALID = "mimesim", "mimesim_invalid"
"""What travels in a test report, between processes too."""
_TRANSCRIPTS = 3
"""Conversations shown below a failed test."""


class InvalidEpisodes(Exception):
    """Conversations that say nothing about the agent: the test could not be run."""


def _count(text: str) -> int:
    """Read a number of conversations.

    Raises:
        ValueError: it is none, which pytest tells as wrong use of the option.
    """
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Name the options."""
    group = parser.getgroup("mimesim", "simulated users")
    add = group.addoption
    add("--mimesim-seed", type=int, metavar="N", help="Run seed of all simulations.")
    add("--mimesim-trials", type=_count, metavar="N", help="Conversations per scenario.")
    add("--mimesim-user", metavar="NAME", help="Who plays the user, e.g. scripted:hostile.")
    add("--mimesim-out", metavar="DIR", help="Keep the episodes, one file per simulation.")
    add("--mimesim-report", metavar="FILE", help="Write one page of all conversations.")
    add("--mimesim-debug", action="store_true", help="Go step by step; needs -s.")
    add(
        "--mimesim-skip-invalid",
        action="store_true",
        help="Skip a test whose conversations are not counted, instead of an error.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and the table."""
    config.addinivalue_line(
        "markers",
        "mimesim(agent, scenarios, user, trials, min_success, seed, ...): what the fixture "
        "'simulate' is told; the arguments of mimesim.simulate.",
    )
    config.pluginmanager.register(_Table(config), "mimesim-table")


@pytest.fixture
def simulate(request: pytest.FixtureRequest) -> Simulation:
    """Return what runs the simulations of this test."""
    return Simulation(request.node)


class Simulation:
    """`mimesim.simulate` with the settings of a test's marker and of the command line."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        marker = item.get_closest_marker("mimesim")
        if marker is not None and marker.args:
            raise pytest.UsageError(f"{item.nodeid}: the marker mimesim takes keywords only")
        self._settings: dict[str, Any] = dict(marker.kwargs) if marker is not None else {}
        self._runs = item.stash.setdefault(_RUNS, [])

    def __call__(self, agent: Any = None, scenarios: Any = None, **settings: Any) -> Results:
        """Simulate and wait; the arguments are those of `mimesim.simulate`."""
        from mimesim.api.simulate import simulate as run
        from mimesim.errors import UsageError

        __tracebackhide__ = True
        chosen = self._chosen(agent, scenarios, settings)
        try:
            found = run(chosen.pop("agent"), chosen.pop("scenarios"), **chosen)
        except UsageError as error:
            raise _pointing_here(error) from None
        return self._taken(found)

    async def asimulate(self, agent: Any = None, scenarios: Any = None, **settings: Any) -> Results:
        """Do the same in an async test."""
        from mimesim.api.simulate import asimulate as run
        from mimesim.errors import UsageError

        __tracebackhide__ = True
        chosen = self._chosen(agent, scenarios, settings)
        try:
            found = await run(chosen.pop("agent"), chosen.pop("scenarios"), **chosen)
        except UsageError as error:
            raise _pointing_here(error) from None
        return self._taken(found)

    def _chosen(self, agent: Any, scenarios: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments: options before the call before the marker."""
        __tracebackhide__ = True
        given = {"agent": agent, "scenarios": scenarios}
        chosen = {"scenarios": None, **self._settings, **settings}
        chosen |= {name: value for name, value in given.items() if value is not None}
        chosen |= _from_options(self._item.config)
        chosen["label"] = f"{self._item.nodeid}#{len(self._runs)}"
        folder = _folder(self._item.config)
        if folder is not None:
            slug = re.sub(r"[^\w.-]+", "-", chosen["label"]).strip("-")
            chosen["out"] = folder / f"{slug}.jsonl"
        if chosen.get("agent") is None:
            raise pytest.UsageError(f"{self._item.nodeid}: no agent, neither given nor marked")
        return chosen

    def _taken(self, result: Results) -> Results:
        __tracebackhide__ = True
        self._runs.append(result)
        if result.not_counted:
            failed = ", ".join(f"{n} {kind}" for kind, n in result.not_counted.items())
            told = f"{failed} of {len(result)} conversations: the test could not be run"
            if self._item.config.getoption("mimesim_skip_invalid"):
                pytest.skip(told)
            raise InvalidEpisodes(told)
        return result


def _pointing_here(error: UsageError) -> UsageError:
    """Return the error of wrong use without the way that it took through our code."""
    return error.with_traceback(None)


def _from_options(config: pytest.Config) -> dict[str, Any]:
    options = {name: config.getoption(f"mimesim_{name}") for name in ("seed", "trials", "user")}
    chosen: dict[str, Any] = {k: value for k, value in options.items() if value is not None}
    if config.getoption("mimesim_debug"):
        if config.getoption("capture") != "no":
            raise pytest.UsageError("--mimesim-debug waits for your keys: add -s")
        chosen |= {"hooks": (_Steps(),), "concurrency": 1}
    return chosen


def _folder(config: pytest.Config) -> Path | None:
    out, report = config.getoption("mimesim_out"), config.getoption("mimesim_report")
    if out is not None:
        return Path(out)
    return None if report is None else Path(report).with_suffix(".episodes")


class _Steps:
    """Shows a conversation turn by turn and waits for a key."""

    async def opened(self, episode_id: str, task: Any, observation: Any, private: Any) -> None:
        _wait(f"\n[{task.id}] user: {observation.first_user}")

    async def stepped(self, step: Any) -> None:
        said = [f"{m.role.value}: {m.content}" for m in step.result.feedback]
        _wait("\n".join([f"agent: {step.action.content}", *said]))


def _wait(text: str) -> None:
    input(f"{text}\n(Enter)")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Hold a test to the threshold of its marker, whether it asserts or not."""
    outcome = yield
    marker = pyfuncitem.get_closest_marker("mimesim")
    if marker is not None and "min_success" in marker.kwargs:
        runs = pyfuncitem.stash.get(_RUNS, [])
        meant = "simulate" in pyfuncitem.fixturenames or marker in pyfuncitem.own_markers
        if meant and not runs:
            pytest.fail("min_success is set, and nothing was simulated", pytrace=False)
        for result in runs:
            if not result.success:
                pytest.fail(repr(result.success), pytrace=False)
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the rows of the table, and the transcripts of a failure, into the report of the test."""
    report = yield
    runs = item.stash.get(_RUNS, [])
    if runs and call.when == "call":
        vars(report)[_ROWS] = [_row(item.nodeid, run) for run in runs]
        invalid = call.excinfo is not None and call.excinfo.errisinstance(InvalidEpisodes)
        vars(report)[_INVALID] = invalid
        if report.failed:
            report.sections += [("simulated conversations", _shown(run)) for run in runs]
    return report


def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, str] | None:
    """Call a test that could not be run an error, not a failure."""
    return ("error", "E", "ERROR") if vars(report).get(_INVALID) and report.failed else None


def _row(test: str, result: Results) -> dict[str, Any]:
    """Return a line of the table as JSON values."""
    told = result.to_json()
    return {
        "test": test,
        "successes": result.counts.successes,
        "scored": told["success"]["n"],
        "counted": result.counts.counted,
        "all": result.counts.all,
        "not_counted": dict(result.not_counted),
        "seed": result.seed,
        "tokens": sum(n or 0 for n in told["tokens"].values()),
        "cost": told["cost_usd"],
        "wall_s": told["wall_s"],
        "file": None if result.out is None else str(result.out),
    }


def _shown(result: Results) -> str:
    """Return the transcripts that tell most: what failed, a few of them."""
    from mimesim.api.results import told

    failed = [e for e in result if not e.outcome.success] or list(result)
    more = len(failed) - _TRANSCRIPTS
    texts = [f"seed {result.seed}", *map(told, failed[:_TRANSCRIPTS])]
    return "\n\n".join([*texts, f"and {more} more"] if more > 0 else texts)


class _Table:
    """Collects the rows of all tests, of other processes too, and prints them at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._rows: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the rows of a test."""
        self._rows += vars(report).get(_ROWS, [])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table, and write the page that was asked for."""
        if not self._rows:
            return
        terminalreporter.section("simulated users")
        for line in _lines(self._rows):
            terminalreporter.write_line(line)
        page = self._config.getoption("mimesim_report")
        if page is not None:
            _write_page(Path(page), [Path(row["file"]) for row in self._rows if row["file"]])
            terminalreporter.write_line(f"report -> {page}")


def _lines(rows: list[dict[str, Any]]) -> list[str]:
    width = max(len(row["test"]) for row in rows)
    lines = [f"{'test':{width}}  counted     all  seed"]
    for row in rows:
        k = row["successes"] if row["scored"] else "-"
        counted, everything = f"{k}/{row['counted']}", f"{k}/{row['all']}"
        lines.append(f"{row['test']:{width}}  {counted:>7} {everything:>7}  {row['seed']}")
    failed: Counter[str] = Counter()
    for row in rows:
        failed.update(row["not_counted"])
    total = {key: sum(row[key] for row in rows) for key in ("successes", "counted", "all")}
    costs = [row["cost"] for row in rows if row["cost"] is not None]
    cost = f"{sum(costs):.4f} dollars" if costs else "cost unknown"
    tokens, wall = sum(row["tokens"] for row in rows), sum(row["wall_s"] for row in rows)
    lost = ", ".join(f"{n} {kind}" for kind, n in failed.items()) or "none"
    k = total["successes"]
    return [
        *lines,
        f"{total['all']} conversations: success {k}/{total['counted']} counted, {k}/{total['all']} "
        f"all; not counted: {lost}; {tokens} tokens, {cost}, {wall:.1f} s",
    ]


def _write_page(page: Path, files: list[Path]) -> None:
    """Write one page of the episodes of all files."""
    from mimesim.api.results import write_page
    from mimesim.rollout.store import read_episodes

    write_page([episode for file in files for episode in read_episodes(file)], page)
