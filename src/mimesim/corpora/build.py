"""From human conversations to rows: the whole of `mimesim data build`, top to bottom.

Read and clean every source into a spool on disk (`reading`), decide what goes where from an index
alone (`arranging`), write the parts (`writing`), the card, and last the manifest. Memory stays flat
whatever the size; a build that was killed goes on and ends in the same bytes; equal settings give
equal bytes. What is left out is counted, and noted with its line in `rejects.jsonl`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from mimesim import __version__, jsonio, seeds
from mimesim.config.build import HUB
from mimesim.config.ranges import NATURAL, POSITIVE, SHARE, check_ranges
from mimesim.corpora import built, card, folder, load, mixing, places, reading, writing
from mimesim.corpora.arranging import Arranged, Plan, arrange
from mimesim.corpora.base import CorpusInfo
from mimesim.corpora.cleaning import checks, overlap
from mimesim.corpora.cleaning.checks import Limits
from mimesim.corpora.index import Index
from mimesim.corpora.reading import Reading, Rules, Source
from mimesim.corpora.splits import PARTS, Shares
from mimesim.errors import ConfigError, DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """One source of a build.

    Attributes:
        corpus: a name of `corpora.load`.
        place: file, folder, glob or `hub:<owner>/<name>[@<split>]`, relative to the folder where
            the command runs.
        share: part of the training mix; all sources have one, or none.
        limit: most dialogues kept, the first in file order; 0 = all.
        per_group: most dialogues kept of one group (person, tree); 0 = all.
        options: of the format, e.g. the columns of a table.
    """

    corpus: str
    place: str = ""
    share: float | None = None
    limit: int = 0
    per_group: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that make no source.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, POSITIVE, "share")
        check_ranges(self, NATURAL, "limit", "per_group")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildConfig:
    """One build.

    Attributes:
        out: folder of the result.
        source: what it is made from.
        validation, test: shares of the dialogues of each corpus that are held out, by groups.
        format: of the rows.
        min_turns, max_turns, max_chars, languages, toxicity: see `cleaning.checks.Limits`.
        pii: whether contact data is replaced; `auto` = where nobody moderated the texts.
        region: country (ISO 3166-1) whose phone numbers are told without a country code.
        duplicates: which repeated dialogues are left out.
        near: share of common runs of words from which on two users' sides count as repeated.
        apart: whether a training dialogue that shares a user's text of eight words or more with
            validation or test is left out.
        deny: further lists of fingerprints whose texts must not be learnt.
        mix_by: what the shares of sources are shares of.
        max_rejects: share of damaged records of a source above which the build fails.
        i_have_rights: whether sources are taken that are for evaluation only or not for training.
        tokenizer: a `tokenizer.json` or its folder, to count tokens.
        seed: of the order of dialogues, and so of splits and mixes.
    """

    out: Path = Path("out/data")
    source: tuple[SourceConfig, ...] = ()
    validation: float = 0.1
    test: float = 0.1
    format: Literal["jsonl", "parquet"] = "jsonl"
    min_turns: int = 2
    max_turns: int = 1000
    max_chars: int = 20_000
    languages: tuple[str, ...] = ()
    toxicity: Literal["keep", "drop", "cut"] = "keep"
    pii: Literal["auto", "on", "off"] = "auto"
    region: str = "US"
    duplicates: Literal["near", "equal", "keep"] = "near"
    near: float = 0.85
    apart: bool = True
    deny: tuple[Path, ...] = ()
    mix_by: Literal["dialogues", "words"] = "dialogues"
    max_rejects: float = 0.05
    i_have_rights: bool = False
    tokenizer: str = ""
    seed: int = 0
    resume: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers that make no build.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, NATURAL, "min_turns", "max_turns", "max_chars")
        check_ranges(self, SHARE, "validation", "test", "near", "max_rejects")
        if self.validation + self.test >= 1:
            raise ConfigError(
                f"'validation' and 'test' leave nothing to train on: {self.validation} + {self.test}",
                expected="shares that sum to less than 1",
            )
        mixing.check_shares([source.share for source in self.source])


def build(
    cfg: BuildConfig, *, on_progress: Callable[[str, Reading], None] | None = None
) -> dict[str, Any]:
    """Build a data set, or return the result of a finished build with the same settings.

    Args:
        cfg: settings.
        on_progress: is told the source and how far reading got.

    Returns:
        The manifest: schema, digest, mimesim, settings, sources, splits, shared_texts,
        tokens_known, files.

    Raises:
        ConfigError: no source.
        DataError: a place is missing, a source is too damaged, or nothing of it is left.
        UsageError: `out` holds another build, or a source is not for training.
        EnvironmentFault: the disk is full, or another process builds there.
    """
    sources = _sources(cfg)
    infos = [load.format_of(source.corpus, source.options).info for source in sources]
    _check_rights(cfg, infos)
    settings = _settings(cfg, sources)
    digest = seeds.fingerprint(jsonio.canonical(settings))
    with jsonio.locked(cfg.out / folder.LOCK):
        if cfg.resume and built.is_built(cfg.out):
            return folder.finished(cfg.out, digest)
        folder.check_free(cfg.out)
        work = folder.work_folder(cfg.out, settings, fresh=not cfg.resume)
        (cfg.out / built.MANIFEST).unlink(missing_ok=True)
        with Index(work) as index:
            _read(cfg, sources, index, on_progress)
            arranged = arrange(index, _plan(cfg, sources))
            made = _write(cfg, infos, index, arranged)
        manifest = {
            "schema": built.SCHEMA,
            "digest": digest,
            "mimesim": __version__,
            "settings": settings,
            **made,
        }
        jsonio.write_json(cfg.out / built.MANIFEST, manifest)
        shutil.rmtree(work)
    return manifest


def _sources(cfg: BuildConfig) -> list[Source]:
    if not cfg.source:
        raise ConfigError("no source to build from", expected="name:place, once or more")
    found = []
    for source in cfg.source:
        info = load.format_of(source.corpus, source.options).info
        found.append(
            Source(
                corpus=source.corpus,
                place=load.source_place(load.Place(source.corpus, source.place)),
                options=source.options,
                limit=source.limit,
                per_group=source.per_group,
                scrub=cfg.pii == "on" or (cfg.pii == "auto" and not info.moderated),
                rights=cfg.i_have_rights,
                guarded=not info.evaluation_only,
            )
        )
    return found


def _settings(cfg: BuildConfig, sources: Sequence[Source]) -> dict[str, Any]:
    """Return all that decides the result, keys sorted; files are known by their bytes, too."""
    left_out = ("out", "resume", "source", "deny", "max_rejects")
    kept = {name: value for name, value in asdict(cfg).items() if name not in left_out}
    tokenizer = writing.tokenizer_file(cfg.tokenizer) if cfg.tokenizer else None
    settings = {
        **kept,
        "tokenizer": _fingerprint(tokenizer) if tokenizer else "",
        "deny": [_fingerprint(_existing(path)) for path in cfg.deny],
        "source": [
            {**asdict(given), "files": _hashes(source)}
            for given, source in zip(cfg.source, sources, strict=True)
        ],
    }
    plain: dict[str, Any] = jsonio.loads(jsonio.canonical(settings))
    return plain


def _fingerprint(path: Path) -> str:
    try:
        return seeds.file_fingerprint(path)
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror or error}", where=str(path)) from error


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DataError("file not found", where=str(path), expected="a deny-list")
    return path


def _hashes(source: Source) -> dict[str, str]:
    """Return the hash of every file of a source; what lies on the hub is known by its name only."""
    if source.place.startswith(HUB):
        return {}
    form = load.format_of(source.corpus, source.options)
    paths = sorted({file.path for file in places.sources(source.place, form.files)})
    return {str(path): _fingerprint(path) for path in paths}


def _check_rights(cfg: BuildConfig, infos: Sequence[CorpusInfo]) -> None:
    for info in infos:
        if not cfg.i_have_rights:
            load.check_rights(info)


def _read(
    cfg: BuildConfig,
    sources: Sequence[Source],
    index: Index,
    on_progress: Callable[[str, Reading], None] | None,
) -> None:
    denied = overlap.own_deny_list().union(*map(overlap.read_deny_list, cfg.deny))
    limits = Limits(cfg.min_turns, cfg.max_turns, cfg.max_chars, cfg.languages, cfg.toxicity)
    rules = Rules(limits, cfg.duplicates, cfg.near, denied, cfg.region, cfg.seed)

    def tell(state: Reading) -> None:
        if on_progress:
            on_progress(sources[state.source].corpus, state)

    reading.read_all(index, sources, rules, tell)
    folder.write_rejects(cfg.out, index)
    for source, counts in zip(sources, reading.counts_of(index), strict=True):
        _check_rejects(cfg, source, counts)


def _check_rejects(cfg: BuildConfig, source: Source, counts: Counter[str]) -> None:
    """Refuse a source of which too much is damaged, or nothing is left.

    Raises:
        DataError: naming the most frequent reasons.
    """
    left = Counter(reading.left_out(counts))
    damaged = Counter({reason: n for reason, n in left.items() if checks.is_damage(reason)})
    total = max(1, counts["records"] + counts["unreadable"])
    where = str(cfg.out / built.REJECTS)
    if damaged.total() / total > cfg.max_rejects:
        raise DataError(
            f"{damaged.total()} of {total} records of {source.corpus!r} are damaged: "
            f"{_top(damaged)}",
            where=where,
            expected=f"a share of at most {cfg.max_rejects:g}",
            mend="mend the lines that this file names, or raise --max-rejects (what was read is kept);"
            " is it another format, name it (name:place), and the columns of a csv with --option",
        )
    if not counts["kept"]:
        raise DataError(
            f"nothing of {source.corpus!r} is left: {_top(left) or 'it holds no record'}",
            where=where,
            expected="dialogues of two sides",
        )


def _top(reasons: Counter[str]) -> str:
    most = reasons.most_common(3)
    others = reasons.total() - sum(count for _, count in most)
    told = ", ".join(f"{reason} {count}" for reason, count in most)
    return f"{told}, others {others}" if others else told


def _plan(cfg: BuildConfig, sources: Sequence[Source]) -> Plan:
    return Plan(
        corpora=tuple(source.corpus for source in sources),
        shares=Shares(cfg.validation, cfg.test),
        apart=cfg.apart,
        mix=tuple(source.share for source in cfg.source),
        mix_by=cfg.mix_by,
    )


def _write(
    cfg: BuildConfig, infos: Sequence[CorpusInfo], index: Index, arranged: Arranged
) -> dict[str, Any]:
    """Write parts, rejects and card; return what the manifest says of them."""
    tokens = writing.token_counter(cfg.tokenizer) if cfg.tokenizer else None
    totals = writing.write_parts(index, arranged, cfg.out, cfg.format, tokens)
    counts = reading.counts_of(index)
    folder.write_rejects(cfg.out, index, _overlaps(index, arranged.overlapping, counts))
    for count, mixed_out in zip(counts, arranged.mixed_out, strict=True):
        count["left_out_mixing"] += mixed_out
    summary = {
        "sources": [
            {
                "name": source.corpus,
                "place": source.place,
                "terms": info.as_dict(),
                "counts": {name: n for name, n in sorted(count.items()) if n},
                "parts": {
                    part: {
                        name: n if tokens is not None or not name.endswith("tokens") else None
                        for name, n in totals.get((number, part), {}).items()
                    }
                    for part in PARTS
                },
            }
            for number, (source, info, count) in enumerate(
                zip(cfg.source, infos, counts, strict=True)
            )
        ],
        "splits": arranged.splits,
        "shared_texts": arranged.shared,
        "tokens_known": tokens is not None,
    }
    card.write(cfg.out, summary)
    return {**summary, "files": _files(cfg, totals)}


def _overlaps(
    index: Index, partners: Mapping[int, int], counts: Sequence[Counter[str]]
) -> Iterator[dict[str, str]]:
    """Yield the notes of training dialogues that left for a shared text, and count them."""
    for number, partner in partners.items():
        source, row = index.row(number)
        counts[source]["left_out_overlap"] += 1
        other = index.row(partner)[1]
        yield {
            "where": index.origin(number),
            "kind": "filtered",
            "reason": "overlap",
            "detail": f"{row['source']}:{row['id']} shares a user's text with "
            f"{other['source']}:{other['id']} ({index.origin(partner)}), which is held out",
        }


def _files(cfg: BuildConfig, totals: writing.Totals) -> dict[str, Any]:
    return {
        part: {
            "name": f"{part}.{cfg.format}",
            "sha256": seeds.file_fingerprint(cfg.out / f"{part}.{cfg.format}", 64),
            "dialogues": sum(n["dialogues"] for (_, where), n in totals.items() if where == part),
        }
        for part in PARTS
    }
