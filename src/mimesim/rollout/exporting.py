"""Stored episodes to files for other tools: reads a run, renders private prompts, writes a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.corpora.writing import write_table
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.export import GENERIC_SYSTEM, TARGETS, Options, export_rows
from mimesim.errors import DataError, UsageError
from mimesim.registry import unknown_name
from mimesim.rollout.exports import inspect_log, table, tau2, verifiers
from mimesim.rollout.review import scenario_of
from mimesim.rollout.store import episode_file, read_episodes
from mimesim.users.briefing import system_prompt

_TEMPLATE = "user/trained"
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Exported:
    """How many episodes were read and how many rows written, and where."""

    episodes: int
    written: int
    out: Path


@dataclass(frozen=True, slots=True)
class Target:
    """A shape.

    Attributes:
        ending: of its files.
        summary: what it is, in a few words.
        write: writes the episodes to a file and returns how many it took.
    """

    ending: str
    summary: str
    write: Callable[[Rows, Options, Path], int]


def _lines_of(name: str) -> Callable[[Rows, Options, Path], int]:
    def write(episodes: Rows, options: Options, out: Path) -> int:
        return _lines(list(export_rows(episodes, name, options)), out)

    return write


def _lines(rows: list[dict[str, Any]], out: Path) -> int:
    jsonio.write_text(out, "".join(jsonio.dumps(row) + "\n" for row in rows))
    return len(rows)


def _traces(episodes: Rows, options: Options, out: Path) -> int:
    return _lines(verifiers.rows(episodes, options), out)


def _results(episodes: Rows, options: Options, out: Path) -> int:
    jsonio.write_json(out, tau2.document(episodes, options))
    return len(episodes)


def _log(episodes: Rows, options: Options, out: Path) -> int:
    jsonio.write_json(out, inspect_log.document(episodes, options))
    return len(episodes)


def _csv(episodes: Rows, options: Options, out: Path) -> int:
    rows = table.rows(episodes, options)
    jsonio.write_text(out, table.csv_text(rows))
    return len(rows)


def _parquet(episodes: Rows, options: Options, out: Path) -> int:
    rows = table.rows(episodes, options)
    write_table(rows, table.COLUMNS, out)
    return len(rows)


_SIDES = {
    "openai": "the agent's side as OpenAI messages",
    "openai-user": "the user's side as OpenAI messages, to train a user",
    "sharegpt": "the agent's side as ShareGPT turns",
}
SHAPES: Mapping[str, Target] = {
    **{name: Target(".jsonl", _SIDES[name], _lines_of(name)) for name in TARGETS},
    "tau2": Target(".json", "a results file of tau2-bench", _results),
    "verifiers": Target(".jsonl", "traces of verifiers, user and agent", _traces),
    "inspect": Target(".json", "a log for Inspect", _log),
    "parquet": Target(".parquet", "one flat row per episode", _parquet),
    "csv": Target(".csv", "one flat row per episode", _csv),
}
"""Name of a target -> how it is written."""


def export(
    source: Path | str, out: Path | str, *, target: str, with_private: bool = False
) -> Exported:
    """Write the episodes in the shape of `target`, replacing what is there as a whole.

    Args:
        source: an episode file or run folder.
        out: the file; for `inspect` also a folder, in which the log gets the name it is found by.
        target: a name of `SHAPES`.
        with_private: let the user's private prompt and thoughts out.

    Raises:
        UsageError: unknown target, damaged input, private rows wanted of public copies, or `out`
            is the input itself.
    """
    if target not in SHAPES:
        raise unknown_name("export target", target, list(SHAPES))
    if Path(out).resolve() == episode_file(source).resolve():
        raise UsageError(
            "the export would replace what it is made from",
            where=str(out),
            mend="choose another --out",
        )
    episodes = read_episodes(source)
    if with_private:
        _need_private(episodes, source)
    options = Options(with_private=with_private, user_prompt=user_prompt if with_private else None)
    rows = [episode.to_json() for episode in episodes]
    place = Path(out)
    if target == "inspect" and place.suffix != ".json":
        place = place / inspect_log.file_name(inspect_log.document(rows, options))
    return Exported(len(episodes), SHAPES[target].write(rows, options, place), place)


def user_prompt(episode: Mapping[str, Any]) -> str:
    """Render the private prompt of the user of a stored episode."""
    scenario = scenario_of(Episode.from_json(episode))
    if scenario is None:
        return GENERIC_SYSTEM
    return system_prompt(scenario, _TEMPLATE, thinking=True)


def _need_private(episodes: list[Episode], source: Path | str) -> None:
    for episode in episodes:
        if episode.private is None:
            raise DataError(
                f"episode {episode.id} is a public copy",
                where=str(source),
                mend="leave --with-private out, or export the original run",
            )
