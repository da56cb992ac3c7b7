"""The suite `soul`: 27 files of five axes, aggregated in every way that is in print.

The items are the tasks of `envs.tasks`; their rewards are the item scores. What could not be judged
is left out of every mean; a user model that gave no readable answer has 0 (benchmarks.md 1).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mimesim.bench.suites import soul_play
from mimesim.bench.suites.base import Inputs, Simulation, SuiteFacts
from mimesim.bench.suites.references import references
from mimesim.bench.suites.sessions import Session
from mimesim.bench.suites.soul_files import AXES, FILES, FIRST_TEN, MOVED, File
from mimesim.errors import UsageError
from mimesim.judges.base import Judge
from mimesim.judges.stored import Work
from mimesim.results import Estimate
from mimesim.results.suite import FloorRow, Metric, PerKey, SuiteScore
from mimesim.rollout.engine import RunSummary
from mimesim.stats import Panel, panel_means

Sign = str
_MAPS = ("mimesis", "odyssim")
_SIGNS = ("corrected", "faithful")


@dataclass(frozen=True, slots=True)
class Scored:
    """Items of one file: one column per seed, item -> score in [0, 1]."""

    file: File
    columns: tuple[Mapping[str, float], ...]
    clusters: Mapping[str, str]

    @property
    def panel(self) -> Panel:
        """The file as a panel: items that share a story are resampled as one."""
        return Panel(self.columns, self.clusters)

    @property
    def items(self) -> int:
        """Items that have a score in any seed."""
        return len({key for column in self.columns for key in column})


class Soul:
    """The suite."""

    facts = SuiteFacts(
        name="soul",
        title="SOUL-Index: 27 files on five axes, judged as they are played",
        adds=("data", "partner"),
        source="arXiv 2605.20506 (Ditto), 2606.14199 (OdysSim), 2610.09484 (MIMESIS)",
        license="not verified; parts from Enron, WildChat, Reddit, YouTube, Amazon, Eedi: load only",
        options={
            "axis_map": "mimesis (default) or odyssim, whose figure moves two files and joins AlignX",
            "sign": "corrected (default) or faithful: which way UserLLM's overlap with the intent counts",
        },
        plays={},
    )

    def simulate(self, asked: Simulation) -> RunSummary:
        """Put all items to a user model; see `soul_play.play`."""
        return soul_play.play(FILES, asked)

    def works(self, inputs: Inputs, judge: Judge) -> Iterable[Work]:
        """Return nothing: items are judged as they are played, for partners react to them."""
        return ()

    def score(self, inputs: Inputs) -> SuiteScore:
        """Aggregate stored items.

        Raises:
            UsageError: no item among the conversations, or an unknown axis map or sign.
        """
        axis_map = _one_of(inputs, "axis_map", _MAPS)
        sign = _one_of(inputs, "sign", _SIGNS)
        files = _files(inputs.sessions.sessions, sign, compat=inputs.mode == "compat")
        if not files:
            raise UsageError(
                "no item of SOUL among the conversations",
                where=inputs.sessions.name,
                expected="episodes of `mimesim bench soul --user ...`",
            )
        metrics = [_file_metric(one, inputs) for one in files]
        axes = _by_axis(files, axis_map)
        sampling = (inputs.seed, inputs.draws)
        metrics += [_axis_metric(axis, groups, sampling) for axis, groups in axes.items()]
        metrics += _overall(files, axes, sampling)
        missing = [one.title for one in FILES if one.stem not in {f.file.stem for f in files}]
        return SuiteScore(
            suite="soul",
            mode=inputs.mode,
            metrics=tuple(metrics),
            roles={"user": inputs.sessions.user, "judge": _judges(inputs)},
            seeds=tuple(range(max(len(one.columns) for one in files))),
            floors=tuple(_floors(files)),
            references=references("soul"),
            warnings=tuple(_warnings(inputs, missing, axis_map, sign)),
            by_key={one.file.title: PerKey(_means(one), one.clusters) for one in files},
        )


SUITE = Soul()


def _one_of(inputs: Inputs, key: str, known: Sequence[str]) -> str:
    value = str(inputs.options.get(key, known[0]))
    if value not in known:
        raise UsageError(f"{key} {value!r} is unknown", expected=" or ".join(known))
    return value


def _files(sessions: Iterable[Session], sign: Sign, *, compat: bool) -> list[Scored]:
    columns: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    clusters: dict[str, dict[str, str]] = defaultdict(dict)
    for session in sessions:
        stem, slash, item = session.task.partition("/")
        if not slash or session.episode is None:
            continue
        value = _item(stem, session, sign, compat=compat)
        if value is not None:
            columns[stem][session.trial][item] = value
            groups = session.episode.task.groups
            clusters[stem][item] = groups[0] if groups else item
    return [
        Scored(
            file, tuple(per for _, per in sorted(columns[file.stem].items())), clusters[file.stem]
        )
        for file in FILES
        if columns[file.stem]
    ]


def _item(stem: str, session: Session, sign: Sign, *, compat: bool) -> float | None:
    """Return the score of an item; 0 where the user model failed, None where nobody could judge.

    The other sign of UserLLM and the raw scale of Sotopia are made from the parts that every
    episode stores, so nothing is played or judged again.
    """
    parts = _parts(session)
    if stem == "userllm" and sign == "faithful" and "overlap" in parts:
        return (parts["overlap"] + parts["end"] + parts["human"]) / 3
    if stem == "sotopia_hard" and compat and "raw" in parts:
        return float(parts["raw"])
    return 0.0 if session.reward is None else session.reward


def _parts(session: Session) -> Mapping[str, float]:
    private = session.episode.private if session.episode is not None else None
    grading = (private or {}).get("grading") or []
    return dict(grading[-1]) if grading else {}


def _means(one: Scored) -> dict[str, float]:
    """Return the mean of each item over seeds, in per cent."""
    found: dict[str, list[float]] = defaultdict(list)
    for column in one.columns:
        for key, value in column.items():
            found[key].append(value)
    return {key: 100 * math.fsum(values) / len(values) for key, values in found.items()}


def _file_metric(one: Scored, inputs: Inputs) -> Metric:
    interval = panel_means([one.panel], [[1.0]], inputs.seed, inputs.draws)[0]
    return Metric(
        one.file.title,
        Estimate.of(interval).times(100),
        unit="%",
        direction="higher",
        unit_of_n="items",
        per_seed=_per_seed([one], lambda files: files[0].panel.mean),
        note=one.file.axis,
    )


Group = tuple[Scored, ...]
"""Files that count as one."""


def _by_axis(files: Sequence[Scored], axis_map: str) -> dict[str, list[Group]]:
    moved = MOVED if axis_map == "odyssim" else {}
    found: dict[str, list[Group]] = {}
    for axis in AXES:
        own = [one for one in files if moved.get(one.file.stem, one.file.axis) == axis]
        if own:
            found[axis] = _joined(own) if axis_map == "odyssim" else [(one,) for one in own]
    return found


def _joined(files: Sequence[Scored]) -> list[Group]:
    """Return every file alone, but those of one task (AlignX) together."""
    groups: dict[str, list[Scored]] = {}
    for one in files:
        groups.setdefault(one.file.task, []).append(one)
    return [tuple(group) for group in groups.values()]


def _weights(files: Sequence[Scored], groups: Sequence[Group]) -> list[float]:
    """Return the weight of each file in a mean over groups, files of a group sharing theirs."""
    share = {one.file.stem: 1 / len(group) for group in groups for one in group}
    return [share.get(one.file.stem, 0.0) for one in files]


def _mean_metric(
    name: str,
    files: Sequence[Scored],
    weights: Sequence[float],
    sampling: tuple[int, int],
    note: str,
) -> Metric:
    interval = panel_means([one.panel for one in files], [weights], *sampling)[0]

    def mean(part: Sequence[Scored]) -> float | None:
        known = [
            (w, m)
            for w, one in zip(weights, part, strict=True)
            if (m := one.panel.mean) is not None and w
        ]
        total = math.fsum(w for w, _ in known)
        return math.fsum(w * m for w, m in known) / total if total else None

    return Metric(
        name,
        Estimate.of(interval).times(100),
        unit="%",
        direction="higher",
        unit_of_n="items",
        per_seed=_per_seed(files, mean),
        note=note,
    )


def _axis_metric(axis: str, groups: Sequence[Group], sampling: tuple[int, int]) -> Metric:
    files = [one for group in groups for one in group]
    return _mean_metric(
        axis, files, _weights(files, groups), sampling, f"mean of {len(groups)} files"
    )


def _overall(
    files: Sequence[Scored], axes: Mapping[str, Sequence[Group]], sampling: tuple[int, int]
) -> list[Metric]:
    """Return the means over everything (benchmarks.md 5.6).

    micro: over all items, the printed Overall. macro27: over files. macro23: AlignX as one.
    macro5: over axes. micro_v1: over the items of the first ten tasks.
    """
    sizes = [float(one.items) for one in files]
    first = [n if one.file.stem in FIRST_TEN else 0.0 for n, one in zip(sizes, files, strict=True)]
    single = [1.0] * len(files)
    joined = _weights(files, _joined(files))
    five = [0.0] * len(files)
    place = {one.file.stem: i for i, one in enumerate(files)}
    for groups in axes.values():
        for group in groups:
            for one in group:
                five[place[one.file.stem]] = 1 / len(groups) / len(group)
    ways = (
        ("micro", sizes, "all items alike: the printed Overall"),
        ("macro27", single, "files alike"),
        ("macro23", joined, "tasks alike, AlignX as one"),
        ("macro5", five, "axes alike"),
        ("micro_v1", first, "items of the first ten tasks"),
    )
    return [_mean_metric(name, files, w, sampling, note) for name, w, note in ways if any(w)]


def _per_seed(
    files: Sequence[Scored], mean: Callable[[Sequence[Scored]], float | None]
) -> tuple[float, ...]:
    """Return a mean of each seed alone; nothing where there is one seed only."""
    seeds = max(len(one.columns) for one in files)
    if seeds < 2:
        return ()
    found = []
    for seed in range(seeds):
        part = [Scored(one.file, one.columns[seed : seed + 1], one.clusters) for one in files]
        value = mean(part)
        found += [] if value is None else [100 * value]
    return tuple(found)


def _floors(files: Sequence[Scored]) -> list[FloorRow]:
    """Return what a user model that does nothing gets in each file on the own rows, by rule."""
    from mimesim.envs.tasks.load import load_task

    found = []
    for one in files:
        floor = load_task(one.file.task).info.floor
        found.append(
            FloorRow(
                one.file.title, "says nothing", Estimate(100 * floor, method="own rows, rules")
            )
        )
    return found


def _judges(inputs: Inputs) -> str:
    names = Counter(
        one.episode.judge.name
        for one in inputs.sessions.sessions
        if one.episode is not None and one.episode.judge is not None
    )
    return ", ".join(sorted(names))


def _warnings(inputs: Inputs, missing: Sequence[str], axis_map: str, sign: Sign) -> list[str]:
    found = []
    if missing:
        found.append(
            f"{len(FILES) - len(missing)} of {len(FILES)} files measured, so every mean is of other "
            "files than in print; not measured: " + ", ".join(missing)
        )
    if "rule" in _judges(inputs).split(", "):
        found.append("judged by rules: no number compares with a published one")
    if inputs.sessions.user.startswith("scripted:"):
        found.append("a scripted user cannot read a question: these are the scores of silence")
    if inputs.mode == "compat":
        found.append("compat: Sotopia's raw scale stands in every mean")
    if sign == "faithful":
        found.append(
            "UserLLM's overlap with the intent counts as in the public code, wrong way round"
        )
    return found
