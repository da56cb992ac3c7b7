"""The folder of a benchmark: which conversations, their verdicts, the scores.

bench.json          what is benchmarked here: suite -> conversations, people, options
episodes.jsonl      where the conversations were simulated here
verdicts.jsonl      all judges' verdicts; they resume
scores/<suite>.json the last score
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.bench.suites.base import Suite
from mimesim.bench.suites.load import get_suite
from mimesim.config import from_options
from mimesim.config.ranges import COUNT, check_ranges
from mimesim.errors import DataError, UsageError
from mimesim.registry import closest
from mimesim.results.suite import SuiteScore
from mimesim.rollout.store import Paths

SCHEMA = "mimesim.bench/1"
NOTE = "bench.json"
SCORES = "scores"
VERDICTS = "verdicts.jsonl"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a suite is asked to score; kept in `bench.json`.

    Attributes:
        episodes: source of the conversations, see `read_sessions`. people: to compare with.
        limit: at most so many conversations.
        seed: of orders, permutations and resampling; verdicts belong to it.
        options: of the suite.
    """

    episodes: str
    people: str = ""
    limit: int | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a limit that leaves nothing.

        Raises:
            ConfigError: naming it.
        """
        check_ranges(self, COUNT, "limit")


def folder_of(source: str, suite: str) -> Path:
    """Return where verdicts and scores of a source go unless told: beside a run, else `out/bench`."""
    path = Path(source)
    if path.is_dir() and (path / "episodes.jsonl").is_file():
        return path
    if path.suffix == ".jsonl" and Paths.of(path).manifest.is_file():
        return Paths.of(path).folder
    place = Path(source.partition(":")[2] or source).name.partition(".")[0]
    return Path("out") / "bench" / f"{suite}-{place or 'own'}"


def remember(folder: Path, suite: str, asked: Asked) -> None:
    """Note in `folder` what `suite` scores there."""
    known = _noted(folder)
    told = asdict(replace(asked, episodes=_there(asked.episodes), people=_there(asked.people)))
    known[suite] = told
    jsonio.write_json(folder / NOTE, {"schema": SCHEMA, "suites": known})


def remembered(folder: Path) -> dict[str, Asked]:
    """Return suite -> what it scores in `folder`.

    Raises:
        DataError: nothing is noted there, or the note is damaged.
    """
    file = folder / NOTE
    found = _noted(folder)
    if not found:
        raise DataError(
            "no benchmark was made here",
            where=str(folder),
            expected="a folder of `mimesim bench`",
            mend="name the conversations: mimesim bench <suite> --episodes <file>",
        )
    try:
        return {name: from_options(Asked, told, where=str(file)) for name, told in found.items()}
    except (TypeError, ValueError) as error:  # a ConfigError, too
        raise DataError(f"not what a benchmark notes: {error}", where=str(file)) from error


def _noted(folder: Path) -> dict[str, Any]:
    file = folder / NOTE
    if not file.is_file():
        return {}
    found = jsonio.read_object(file, "suites")["suites"]
    if not isinstance(found, dict):
        raise DataError("'suites' is no object", where=str(file))
    return found


def _there(source: str) -> str:
    """Return a source that means the same from every working folder."""
    name, colon, place = source.rpartition(":")
    path = Path(place or ".")
    return f"{name}{colon}{path.resolve()}" if place and path.exists() else source


def keep(score: SuiteScore, folder: Path, suite: str) -> Path:
    """Write a score where the folder keeps it, and return the file."""
    file = folder / SCORES / f"{suite}.json"
    score.write(file)
    return file


def replaced(score: SuiteScore, folder: Path, suite: str) -> str:
    """Return in what the score that `keep` would replace differs; empty = in nothing, or none."""
    file = folder / SCORES / f"{suite}.json"
    try:
        old = SuiteScore.read(file)
    except DataError:
        return ""  # none there, or no record at all: nothing is lost
    sides = [
        {
            "mode": one.mode,
            **{role: one.roles.get(role, "") for role in ("user", "agent", "judge", "people")},
            "the conversations": one.provenance.get("conversations"),
            "the people's conversations": one.provenance.get("people"),
            "options": one.provenance.get("options"),
        }
        for one in (old, score)
    ]
    return ", ".join(
        f"{key} {value}"
        if isinstance(value, str) and value
        else f"other {key.removeprefix('the ')}"
        for key, value in sides[0].items()
        if jsonio.canonical(value) != jsonio.canonical(sides[1][key])
    )


def score_files(path: Path) -> list[Path]:
    """Return the score records at a place: the file itself, or all of a folder and those below.

    Raises:
        DataError: there is none.
    """
    found = [path] if path.is_file() else sorted(path.rglob(f"{SCORES}/*.json"))
    if not found and path.is_dir():
        found = [file for file in sorted(path.glob("*.json")) if file.name != NOTE]
    if not found:
        raise DataError(
            "no score here", where=str(path), expected=f"{SCORES}/<suite>.json, of mimesim bench"
        )
    return found


def asked_suites(folder: Path, names: Iterable[str]) -> dict[str, tuple[Suite, Asked]]:
    """Return the suites to work on in a folder: those named, else all that it remembers.

    Raises:
        UsageError: a suite that nothing was scored of here.
    """
    known = remembered(folder)
    wanted = list(names) or list(known)
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"suite {name!r} was not made here{closest(name, list(known))}",
                where=str(folder),
                expected="one of " + ", ".join(known),
            )
    return {name: (get_suite(name), known[name]) for name in wanted}
