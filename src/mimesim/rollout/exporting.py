"""Stored episodes to rows for other tools: reads a run, renders private prompts, writes a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.export import GENERIC_SYSTEM, Options, export_rows
from mimesim.errors import DataError, UsageError
from mimesim.rollout.review import scenario_of
from mimesim.rollout.store import episode_file, read_episodes
from mimesim.users.briefing import system_prompt

_TEMPLATE = "user/trained"


@dataclass(frozen=True, slots=True)
class Exported:
    """How many episodes were read and how many rows written."""

    episodes: int
    written: int


def export(
    source: Path | str, out: Path | str, *, target: str, with_private: bool = False
) -> Exported:
    """Write the rows of `target` to `out`, replacing it as a whole.

    Raises:
        UsageError: unknown target, damaged input, private rows wanted of public copies, or `out`
            is the input itself.
    """
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
    rows = export_rows((episode.to_json() for episode in episodes), target, options)
    lines = [jsonio.dumps(row) + "\n" for row in rows]
    jsonio.write_text(out, "".join(lines))
    return Exported(len(episodes), len(lines))


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
