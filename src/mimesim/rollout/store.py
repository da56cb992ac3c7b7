"""The run folder: manifest first, episodes as they finish, resumption by episode id.

`--out DIR` is a run folder (`run.json`, `episodes.jsonl`, `failures.jsonl`, `log.txt`); `--out
X.jsonl` names the episode file itself and puts the other files into `X.run/`. An episode is on disk
before it is counted. A killed writer's torn last line is cut and its episode done again; a damaged
complete line is an error with its number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from mimesim import jsonio
from mimesim.config import flatten
from mimesim.dialogue.episode import Episode, read_file
from mimesim.errors import DataError, UsageError
from mimesim.rollout.events import Counts
from mimesim.rollout.record import now, software
from mimesim.seeds import fingerprint

SCHEMA = "mimesim.run/1"
"""Name and version of the manifest format."""


def run_id(identity: Mapping[str, Any]) -> str:
    """Return the id of the run that `identity` (all that decides its results) describes."""
    return fingerprint(jsonio.canonical(identity))


def episode_id(run: str, task_id: str, trial: int) -> str:
    """Return the id of one episode; known before the run, stable across resumption."""
    return fingerprint(jsonio.canonical([run, task_id, trial]))


@dataclass(frozen=True, slots=True)
class Paths:
    """Where the files of a run lie."""

    episodes: Path
    folder: Path

    @classmethod
    def of(cls, out: Path | str) -> Paths:
        """Return the places that `--out` means."""
        path = Path(out)
        if path.suffix == ".jsonl":
            return cls(path, path.with_suffix(".run"))
        if path.suffix == ".gz":
            raise UsageError(
                "a run cannot be written compressed",
                where=f"--out {out}",
                expected="a folder or X.jsonl",
                mend="compress the file afterwards; every reader accepts .gz",
            )
        return cls(path / "episodes.jsonl", path)

    @property
    def manifest(self) -> Path:
        """The manifest `run.json`."""
        return self.folder / "run.json"

    @property
    def failures(self) -> Path:
        """Attempts that a retry replaced."""
        return self.folder / "failures.jsonl"

    @property
    def log(self) -> Path:
        """Plain lines of what happened."""
        return self.folder / "log.txt"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is, for its manifest.

    Attributes:
        identity: all that decides results; a resumed run must have the same.
        config: the resolved configuration without secrets, usable as input again.
        tasks: task id -> hash.
        pairs: (task id, trial) of every episode, in order.
    """

    identity: Mapping[str, Any]
    config: Mapping[str, Any]
    tasks: Mapping[str, str]
    pairs: tuple[tuple[str, int], ...]


class Store:
    """The files of one run, open for writing. Use `Store.open`."""

    def __init__(self, paths: Paths, manifest: dict[str, Any], log: TextIO) -> None:
        self.paths = paths
        self.kept: dict[str, Episode] = {}
        self.failures: list[Episode] = []
        self.warnings: list[str] = []
        self._manifest = manifest
        self._log = log
        self._episodes = jsonio.Appender(paths.episodes)
        self._failures = jsonio.Appender(paths.failures)

    @classmethod
    def open(
        cls, out: Path | str, plan: Plan, *, overwrite: bool = False, force: bool = False
    ) -> Store:
        """Open a run folder: make it, or resume what is there.

        Args:
            out: `--out`.
            plan: the run.
            overwrite: start again; what was there is removed.
            force: resume although the configuration differs; the difference is recorded.

        Raises:
            UsageError: what is there belongs to another run.
            DataError: a damaged file, with the line number.
            EnvironmentFault: not writable, or another process is writing.
        """
        paths = Paths.of(out)
        log = _lock(paths)
        try:
            if overwrite:
                _remove(paths.episodes, paths.failures, paths.manifest)
            manifest = _manifest(paths, plan, force=force)
            jsonio.write_json(paths.manifest, manifest)
            store = cls(paths, manifest, log)
        except BaseException:
            log.close()
            raise
        try:
            store.resume({episode_id(store.run_id, *pair) for pair in plan.pairs})
        except BaseException:
            store.close()
            raise
        return store

    @property
    def run_id(self) -> str:
        """The id of the run; a forced resumption keeps the old one, so that ids stay."""
        return str(self._manifest["run_id"])

    def resume(self, wanted: Collection[str]) -> None:
        """Read what is on disk: keep counted episodes, move the others to the failures."""
        again = []
        for path in (self.paths.failures, self.paths.episodes):
            torn = jsonio.cut_torn_tail(path)
            if torn:
                self.warn(f"{path}: cut an unfinished last line of {torn} bytes; it is done again")
        self.failures = [
            Episode.from_json(line.value, where=f"{self.paths.failures}:{line.number}")
            for line in jsonio.read_jsonl(self.paths.failures)  # one id may have failed many times
        ]
        for episode in read_episodes(self.paths.episodes):
            if episode.counted:
                self.kept[episode.id] = episode
            elif episode.id in wanted:
                again.append(episode)
        if again:
            self._set_aside(again)

    def _set_aside(self, episodes: Sequence[Episode]) -> None:
        """Move not counted episodes to the failure record; the other lines stay byte for byte."""
        ids = {episode.id for episode in episodes}
        path = self.paths.episodes
        told = {(failed.id, failed.attempt, failed.created_at) for failed in self.failures}
        for episode in episodes:
            if (episode.id, episode.attempt, episode.created_at) not in told:
                self.add_failure(episode)  # else a killed resumption has done so already
        self._episodes.close()
        kept = [
            raw
            for number, raw in enumerate(path.read_bytes().split(b"\n"), start=1)
            if raw.strip() and jsonio.parse_line(raw, path, number).get("id") not in ids
        ]
        jsonio.write_text(path, b"".join(raw + b"\n" for raw in kept).decode("utf-8"))
        self._episodes = jsonio.Appender(path)
        self.log(f"{len(ids)} not counted episodes are done again")

    def add(self, episode: Episode) -> None:
        """Append a finished episode.

        Raises:
            EnvironmentFault: the disk is full; everything before stays whole.
        """
        self._episodes.append(episode.to_json())
        self.log(
            f"{episode.id} {episode.task.id} trial {episode.trial}: "
            f"{episode.outcome.status.value}, {episode.stop.reason.value}"
        )

    def add_failure(self, episode: Episode) -> None:
        """Append an attempt that a new one replaces."""
        self._failures.append(episode.to_json())
        self.failures.append(episode)
        self.log(
            f"{episode.id} attempt {episode.attempt}: {episode.outcome.status.value}, "
            f"{episode.stop.detail}"
        )

    def finish(self, counts: Counts, *, wall_s: float, interrupted: bool = False) -> None:
        """Write the totals into the manifest."""
        self._manifest["finished_at"] = None if interrupted else now()
        self._manifest["wall_s"] = round(self._manifest.get("wall_s", 0.0) + wall_s, 3)
        self._manifest["counts"] = counts.to_json()
        jsonio.write_json(self.paths.manifest, self._manifest)

    def warn(self, text: str) -> None:
        """Remember a warning for the caller, and log it."""
        self.warnings.append(text)
        self.log(f"warning: {text}")

    def log(self, text: str) -> None:
        """Write one line into the log; a full disk is told by the episode file, not here."""
        try:
            self._log.write(f"{now()} {' '.join(text.split())}\n")
            self._log.flush()
        except OSError:
            return

    def close(self) -> None:
        """Close all files; closing twice is harmless."""
        self._episodes.close()
        self._failures.close()
        try:
            self._log.close()
        except OSError:
            return


def _lock(paths: Paths) -> TextIO:
    """Open the log, which is also the lock of the folder; make the folders.

    Raises:
        EnvironmentFault: not writable, or another process holds it.
    """
    log = jsonio.open_locked(paths.log)
    try:
        paths.episodes.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        log.close()
        raise jsonio.disk_fault(paths.episodes, error) from error
    return log


def _remove(*paths: Path) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise jsonio.disk_fault(path, error) from error


def _manifest(paths: Paths, plan: Plan, *, force: bool) -> dict[str, Any]:
    """Return the manifest to write: a new one, or the old one after it was compared.

    Raises:
        UsageError: the place holds another run, or episodes of an unknown one.
    """
    fresh: dict[str, Any] = {
        "schema": SCHEMA,
        "run_id": run_id(plan.identity),
        "created_at": now(),
        "finished_at": None,
        "software": dict(software()),
        "identity": plan.identity,
        "config": plan.config,
        "tasks": dict(plan.tasks),
        "episodes": len(plan.pairs),
    }
    if not paths.manifest.exists():
        _refuse_strangers(paths)
        return fresh
    if not any(map(_holds_something, (paths.episodes, paths.failures))):
        return fresh  # a run that came to nothing, e.g. for a wrong key, does not keep the place
    old = _old_manifest(paths)
    found = differences(old, fresh)
    if found and not force:
        raise UsageError(
            "the run there has another configuration: " + "; ".join(found[:4]),
            where=str(paths.manifest),
            mend="choose another --out; `run` can also --overwrite it, or --force itself to go on",
        )
    fresh |= {key: old[key] for key in ("run_id", "created_at", "wall_s") if key in old}
    fresh["tasks"] = {**old.get("tasks", {}), **fresh["tasks"]}
    forced = [*old.get("forced", []), *({"at": now(), "difference": text} for text in found)]
    return fresh | ({"forced": forced} if forced else {})


def _old_manifest(paths: Paths) -> dict[str, Any]:
    """Read the manifest that is there.

    Raises:
        DataError: it is no manifest, or a damaged one; says how to go on.
    """
    mend = "restore the file, or start again with `run --overwrite` or another --out"
    try:
        old = jsonio.read_object(paths.manifest, "schema", "run_id", "identity", "tasks")
    except DataError as error:
        raise DataError(
            error.what, where=error.where, expected=error.expected, mend=mend
        ) from error
    tables = all(isinstance(old[key], dict) for key in ("identity", "tasks"))
    if old["schema"] != SCHEMA or not tables or not isinstance(old["run_id"], str):
        raise DataError(
            "not a run manifest", where=str(paths.manifest), expected=repr(SCHEMA), mend=mend
        )
    return old


def _holds_something(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _refuse_strangers(paths: Paths) -> None:
    if _holds_something(paths.episodes):
        raise UsageError(
            "the file exists, but no manifest says which run it belongs to",
            where=str(paths.episodes),
            expected=str(paths.manifest),
            mend="choose another --out, or --overwrite to start again",
        )


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return how the identities and task hashes of two manifests differ, one line per key."""
    before, after = dict(flatten(old.get("identity", {}))), dict(flatten(new["identity"]))
    found = [
        f"{key} was {before.get(key)!r}, is {after.get(key)!r}"
        for key in sorted(before.keys() | after.keys())
        if jsonio.canonical(before.get(key)) != jsonio.canonical(after.get(key))
    ]
    known = old.get("tasks", {})
    changed = [key for key, value in new["tasks"].items() if known.get(key, value) != value]
    return found + [f"task {key!r} has changed" for key in changed]


def read_episodes(path: Path | str) -> list[Episode]:
    """Read the episodes of a run folder or an episode file, `.gz` accepted.

    The half-written last line of a run that is still going, or was killed, is left out.

    Raises:
        DataError: missing or damaged, with the line number; or one episode stands there twice.
    """
    return list(read_file(episode_file(path)))


def episode_file(path: Path | str) -> Path:
    """Return the episode file that a run folder holds, or that `path` is."""
    path = Path(path)
    return path / "episodes.jsonl" if path.is_dir() else path
