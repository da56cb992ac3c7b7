"""First half of a build: every source is read, cleaned and spooled, one record at a time.

Nothing is held but one record; what is kept lies in the `Index`. Every so many records there is a
checkpoint, from which a killed build goes on.
"""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from mimesim.corpora import base, load, rows
from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Record, Unfit
from mimesim.corpora.cleaning import checks, overlap, pii
from mimesim.corpora.cleaning.checks import Limits
from mimesim.corpora.cleaning.dedup import Duplicates
from mimesim.corpora.index import Entry, Index

_EVERY = 5000
"""Records between two checkpoints."""


@dataclass(frozen=True, slots=True)
class Source:
    """One source of a build, as the reading needs it.

    Attributes:
        corpus: a name of `load.CORPORA`.
        place: where it is read from.
        options: of its format.
        limit: most dialogues kept, the first in file order; 0 = all.
        per_group: most dialogues kept of one group key; 0 = all.
        scrub: whether contact data is replaced.
        rights: whether records are taken that say of themselves that none may train on them.
        guarded: whether the deny-list holds for it.
    """

    corpus: str
    place: str
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: int = 0
    per_group: int = 0
    scrub: bool = True
    rights: bool = False
    guarded: bool = True


@dataclass(frozen=True, slots=True)
class Rules:
    """What all sources go through.

    Attributes:
        duplicates: which repeated dialogues are left out.
        threshold: share of common runs of words from which on two users' sides are near.
        denied: fingerprints of texts that must not be learnt.
        region: country whose phone numbers are told without a country code.
        seed: of the hash order.
    """

    limits: Limits
    duplicates: Literal["near", "equal", "keep"]
    threshold: float
    denied: frozenset[int]
    region: str = "US"
    seed: int = 0


class Reading(NamedTuple):
    """How far reading got: source by position, its records, and all counts so far."""

    source: int
    records: int
    counts: list[Counter[str]]


Tell = Callable[[Reading], None]


def read_all(index: Index, sources: Sequence[Source], rules: Rules, tell: Tell) -> None:
    """Read what the index does not yet hold of every source.

    Raises:
        DataError: a place does not exist.
        UnknownNameError: no such corpus.
    """
    state = index.state("reading") or {"source": 0, "records": 0, "counts": []}
    counts = [Counter(found) for found in state["counts"]]
    counts += [Counter() for _ in sources[len(counts) :]]
    for number in range(state["source"], len(sources)):
        skip = state["records"] if number == state["source"] else 0
        _Reader(index, sources[number], number, rules, counts, tell).read(skip)
        _save(index, Reading(number + 1, 0, counts))


def counts_of(index: Index) -> list[Counter[str]]:
    """Return the counts per source as of the last checkpoint."""
    return [Counter(found) for found in (index.state("reading") or {"counts": []})["counts"]]


def _save(index: Index, reading: Reading) -> None:
    index.checkpoint(
        reading={
            "source": reading.source,
            "records": reading.records,
            "counts": [dict(sorted(count.items())) for count in reading.counts],
        }
    )


class _Reader:
    """Reads one source."""

    def __init__(
        self,
        index: Index,
        source: Source,
        number: int,
        rules: Rules,
        counts: list[Counter[str]],
        tell: Tell,
    ) -> None:
        self._index = index
        self._number = number
        self._source = source
        self._rules = rules
        self._all = counts
        self._counts = counts[number]
        self._tell = tell
        self._form: Format = load.format_of(source.corpus, source.options)
        self._silent = False
        self._duplicates = Duplicates(index, self._earlier, rules.threshold)

    def read(self, skip: int) -> None:
        """Read from the record after the first `skip` ones to the end, or to the limit."""
        if self._full():
            return
        records = load.raw_records(self._form, self._source.place, self._unreadable)
        done = skip
        for record in self._resumed(records, skip):
            done += 1
            self._counts["records"] += 1
            self._take(record)
            if self._full():
                break
            if done % _EVERY == 0:
                _save(self._index, Reading(self._number, done, self._all))
                self._tell(Reading(self._number, done, self._all))
        self._tell(Reading(self._number, done, self._all))

    def _resumed(self, records: Iterator[Record], skip: int) -> Iterator[Record]:
        """Return the records after those that an earlier run took; their rejects are known."""
        self._silent = True
        for _ in itertools.islice(records, skip):
            pass
        self._silent = False
        return records

    def _full(self) -> bool:
        return 0 < self._source.limit <= self._counts["kept"]

    def _take(self, record: Record) -> None:
        try:
            dialogues = load.converted(self._form, record, self._source.options, self._source.place)
        except Unfit as unfit:
            self._refuse(record.where, unfit.reason, unfit.detail)
            return
        info = self._form.info
        if load.forbids_training(record.value):
            info = replace(info, training_allowed="no")
            if not self._source.rights:
                self._refuse(record.where, "no_training", "the record itself says so")
                return
        for dialogue in dialogues:
            self._counts["dialogues"] += 1
            self._counts.update(dialogue.left_out)
            try:
                self._keep(dialogue, info, record.where)
            except Unfit as unfit:
                self._refuse(record.where, unfit.reason, unfit.detail)
            if self._full():
                return

    def _keep(self, raw: HumanDialogue, info: CorpusInfo, where: str) -> None:
        self._check_id(raw)
        dialogue = checks.checked(raw, self._rules.limits, self._counts)
        texts = overlap.user_fingerprints(dialogue.turns)
        if self._source.guarded and not self._rules.denied.isdisjoint(texts):
            raise Unfit("denied", "shares a user's text with the deny-list")
        keys = self._group(dialogue)
        if self._source.scrub:
            dialogue = pii.scrub_dialogue(dialogue, self._counts, self._rules.region)
        bands: list[int] = []
        if self._rules.duplicates != "keep":
            self._duplicates.check_equal(dialogue)
        if self._rules.duplicates == "near":
            bands = self._duplicates.near(dialogue)
        entry = Entry(
            number=self._index.size,
            source=self._number,
            place=base.order_key(dialogue.id, self._rules.seed),
            split=dialogue.split,
            words=sum(len(text.split()) for text in checks.texts_of(dialogue)),
            texts=array("q", texts),
        )
        row = rows.to_row(replace(dialogue, split=""), info)
        self._index.add(row, entry, bands=bands, keys=keys, origin=where)
        self._counts["kept"] += 1

    def _check_id(self, raw: HumanDialogue) -> None:
        """Take note of an id and of what stands under it.

        Raises:
            Unfit: it was there before; with the same words that is a copy and no damage.
        """
        name = f"{raw.source}\x1f{raw.id}"
        words = [f"{turn.role}\x1f{turn.text}" for turn in raw.turns]
        new = self._index.first_time(overlap.fingerprint(["id", name]))
        other = self._index.first_time(overlap.fingerprint(["whole", name, *words]))
        if not new:
            reason, how = ("duplicate_id", "other") if other else ("duplicate", "the same")
            raise Unfit(reason, f"the id {raw.id!r} stands here again, with {how} words")

    def _group(self, dialogue: HumanDialogue) -> list[int]:
        """Return the group keys as fingerprints.

        Raises:
            Unfit: enough dialogues of one of its groups are kept.
        """
        names = dialogue.group_keys or ((dialogue.user_key,) if dialogue.user_key else ())
        keys = [overlap.fingerprint(["key", dialogue.source, name]) for name in names]
        most = self._source.per_group
        if most and any(self._index.members(key) >= most for key in keys):
            raise Unfit("group_full", f"{most} of its group are kept")
        return keys

    def _unreadable(self, where: str, reason: str, detail: str) -> None:
        """Take note of a piece of a file that did not even become a record."""
        if not self._silent:
            self._counts["unreadable"] += 1
            self._refuse(where, reason, detail)

    def _refuse(self, where: str, reason: str, detail: str) -> None:
        self._counts[f"left_out_{reason}"] += 1
        kind = "damaged" if checks.is_damage(reason) else "filtered"
        self._index.reject({"where": where, "kind": kind, "reason": reason, "detail": detail})

    def _earlier(self, number: int) -> HumanDialogue:
        return rows.from_row(self._index.row(number)[1], f"spool:{number}")


def left_out(counts: Mapping[str, int]) -> dict[str, int]:
    """Return how many were left out per reason, from the counts of a source."""
    prefix = "left_out_"
    return {name.removeprefix(prefix): n for name, n in counts.items() if name.startswith(prefix)}
