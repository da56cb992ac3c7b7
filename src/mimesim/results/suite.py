"""The score record of a benchmark of users: what one suite says about one set of conversations.

A record names who was measured, who scored, how (`fixed` or `compat`) and on how much; numbers of
two records are set side by side only where these agree. It stands on disk as one JSON file, which
the report and `bench compare` read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from mimesim.jsonio import read_json, write_json
from mimesim.results.reading import read_record
from mimesim.results.values import Estimate

SUITE_SCHEMA = "mimesim.score/1"
Mode = Literal["fixed", "compat"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a suite.

    Attributes:
        name: e.g. `D1` or `politeness_rate`.
        value: with its interval; `n` is what `unit_of_n` says.
        unit: of the value, e.g. "%" (0 to 100), "words", "points".
        direction: which way is better; `nearer` = near the human value, `none` = describes only.
        unit_of_n: e.g. sessions, turns, pairs.
        per_seed: value of each simulation seed, where there are several.
        note: e.g. `rare` where fewer than five hits carry the value.
    """

    name: str
    value: Estimate
    unit: str = ""
    direction: Literal["higher", "lower", "nearer", "none"] = "none"
    unit_of_n: str = "sessions"
    per_seed: tuple[float, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class FloorRow:
    """What a perfect or a worthless user would get: without it a number cannot be read.

    Attributes:
        metric: the metric it belongs to.
        name: e.g. "perfect simulator" or "human against human".
        value: with the range of chance; its `method` says how that was made.
        covers: what the range is: an interval of 95 %, or e.g. the least and the most of some pairs.
    """

    metric: str
    name: str
    value: Estimate
    note: str = ""
    covers: str = "95 %"

    def brief(self) -> dict[str, Any]:
        """Return `{"value", "range", "covers", "method"}`, the shape of `--json` output."""
        told = self.value.brief()["ci95"]
        covers = self.covers if told else None
        return {
            "value": self.value.value,
            "range": told,
            "covers": covers,
            "method": self.value.method,
        }


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """A published row to read beside ours; `scale` says by which agent and judge it was made."""

    subject: str
    values: Mapping[str, float]
    source: str
    scale: str = ""


@dataclass(frozen=True, slots=True)
class PerKey:
    """Values of one metric by key, for paired comparisons of two records.

    Attributes:
        values: key (task, item, session) -> value.
        clusters: key -> what is resampled as one; a key without an entry stands alone.
    """

    values: Mapping[str, float]
    clusters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SuiteScore:
    """What one suite says about one set of conversations.

    Attributes:
        suite: name of the suite as it may be printed, e.g. `usi-own`, never `tau-usi` by mistake.
        mode: `fixed`, or `compat` = with the flaws of the original.
        roles: role (user, agent, judge, people) -> name; several are joined by commas.
        seeds: of the simulation.
        excluded: reason -> conversations or verdicts left out, never scored 0.
        by_key: metric -> values by key, what `bench compare` pairs.
        provenance: files with hashes, versions, settings, command.
    """

    suite: str
    metrics: tuple[Metric, ...]
    mode: Mode = "fixed"
    roles: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    floors: tuple[FloorRow, ...] = ()
    references: tuple[ReferenceRow, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    by_key: Mapping[str, PerKey] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def metric(self, name: str) -> Metric:
        """Return the metric called `name`.

        Raises:
            KeyError: the suite has none.
        """
        for one in self.metrics:
            if one.name == name:
                return one
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, `schema` first."""
        return {"schema": SUITE_SCHEMA, **asdict(self)}

    def brief(self) -> dict[str, Any]:
        """Return what `bench <suite> --json` prints (design: machine-readable results)."""
        return {
            "suite": self.suite,
            "mode": self.mode,
            "roles": dict(self.roles),
            "seeds": list(self.seeds),
            "metrics": {
                one.name: {
                    "value": one.value.value,
                    "ci95": one.value.brief()["ci95"],
                    "n": one.value.n,
                }
                for one in self.metrics
            },
            "floors": {f"{one.metric}: {one.name}": one.brief() for one in self.floors},
            "excluded": dict(self.excluded),
            "warnings": list(self.warnings),
        }

    def write(self, path: Path | str) -> None:
        """Replace the file `path` atomically."""
        write_json(path, self.to_json())

    @classmethod
    def read(cls, path: Path | str) -> SuiteScore:
        """Read a file made by `write`.

        Raises:
            DataError: missing, damaged or another kind of file.
        """
        return read_record(
            cls, read_json(path), SUITE_SCHEMA, what="score record", where=str(path), strict=True
        )
