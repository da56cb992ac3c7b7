"""Middle of a build: which dialogue goes where, decided from the index alone, without any text."""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy

from mimesim.corpora import mixing
from mimesim.corpora.index import Index
from mimesim.corpora.splits import PARTS, TRAIN, Components, Dealt, Member, Shares, deal


@dataclass(frozen=True, slots=True)
class Plan:
    """How kept dialogues are arranged.

    Attributes:
        corpora: name of the corpus of every source.
        shares: what is held out.
        apart: whether a training dialogue that shares a user's text with a held-out one is left
            out.
        mix: parts of the training mix per source; all None = everything.
        mix_by: what the parts are parts of.
    """

    corpora: tuple[str, ...]
    shares: Shares
    apart: bool
    mix: tuple[float | None, ...]
    mix_by: Literal["dialogues", "words"]


@dataclass(frozen=True, slots=True)
class Arranged:
    """The outcome.

    Attributes:
        orders: per part its dialogues in hash order.
        keys: per dialogue the smallest place of its component.
        overlapping: dialogues that left training for a shared text.
        splits: counts per corpus, as `splits.deal` gives them.
        mixed_out: per source, training dialogues that the ratios left out.
        shared: per pair of corpora, how many users' texts occur in both.
    """

    orders: dict[str, list[int]]
    keys: array[int]
    overlapping: list[int]
    splits: dict[str, dict[str, int]]
    mixed_out: list[int]
    shared: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Columns:
    """What the index knows, column by column."""

    sources: array[int]
    places: array[int]
    words: array[int]
    texts: array[int]
    owners: array[int]


def arrange(index: Index, plan: Plan) -> Arranged:
    """Deal out the dialogues of an index."""
    columns = _columns(index)
    names = list(dict.fromkeys(plan.corpora))
    dealt = _dealt(index, [names.index(name) for name in plan.corpora], plan.shares)
    overlapping = _overlapping(columns, dealt) if plan.apart else []
    order = numpy.argsort(numpy.frombuffer(columns.places, dtype=numpy.int64), kind="stable")
    out = set(overlapping)
    orders: dict[str, list[int]] = {part: [] for part in PARTS}
    for number in order.tolist():
        if number not in out:
            orders[PARTS[dealt.parts[number]]].append(number)
    before = Counter(columns.sources[number] for number in orders["train"])
    orders["train"] = _mixed(orders["train"], columns, plan)
    after = Counter(columns.sources[number] for number in orders["train"])
    return Arranged(
        orders=orders,
        keys=dealt.keys,
        overlapping=overlapping,
        splits={names[corpus]: dict(sorted(c.items())) for corpus, c in dealt.counts.items()},
        mixed_out=[before[number] - after[number] for number in range(len(plan.corpora))],
        shared=_shared(columns, plan.corpora),
    )


def _columns(index: Index) -> _Columns:
    columns = _Columns(array("H"), array("q"), array("q"), array("q"), array("q"))
    for entry in index.entries():
        columns.sources.append(entry.source)
        columns.places.append(entry.place)
        columns.words.append(entry.words)
        columns.texts.extend(entry.texts)
        columns.owners.extend(itertools.repeat(entry.number, len(entry.texts)))
    return columns


def _dealt(index: Index, corpora: Sequence[int], shares: Shares) -> Dealt:
    components = Components(index.size)
    for one, other in index.pairs():
        components.join(one, other)
    members = (Member(corpora[e.source], e.place, e.split) for e in index.entries())
    return deal(members, components, index.size, shares)


def _overlapping(columns: _Columns, dealt: Dealt) -> list[int]:
    """Return the training dialogues that share a user's text with a held-out one, in order."""
    texts, owners = _numbers(columns.texts), _numbers(columns.owners)
    parts = numpy.frombuffer(dealt.parts, dtype=numpy.uint8)
    if not len(texts):
        return []
    held = parts[owners] != TRAIN
    shared = _among(texts, numpy.unique(texts[held])) & ~held
    found: list[int] = numpy.unique(owners[shared]).tolist()
    return found


def _among(values: Any, wanted: Any) -> Any:
    """Tell which values are among sorted ones; `numpy.isin` would take several times the memory."""
    if not len(wanted):
        return numpy.zeros(len(values), dtype=bool)
    places = numpy.searchsorted(wanted, values)
    places[places == len(wanted)] = 0
    return wanted[places] == values


def _mixed(order: list[int], columns: _Columns, plan: Plan) -> list[int]:
    if all(share is None for share in plan.mix):
        return order
    weights = columns.words
    if plan.mix_by == "dialogues":
        weights = array("q", [1]) * len(columns.words)
    has: Counter[int] = Counter()
    for number in order:
        has[columns.sources[number]] += weights[number]
    taken = mixing.amounts([has[i] for i in range(len(plan.mix))], plan.mix)
    return mixing.thin_out(order, columns.sources, weights, taken)


def _shared(columns: _Columns, corpora: Sequence[str]) -> dict[str, int]:
    """Return how many users' texts each pair of corpora has in common, where there are any."""
    texts, owners = _numbers(columns.texts), _numbers(columns.owners)
    if not len(texts):
        return {}
    sources = numpy.frombuffer(columns.sources, dtype=numpy.uint16)[owners]
    names = sorted(set(corpora))
    own = {
        name: numpy.unique(
            texts[numpy.isin(sources, [i for i, corpus in enumerate(corpora) if corpus == name])]
        )
        for name in names
    }
    found = {
        f"{one} & {other}": len(numpy.intersect1d(own[one], own[other], assume_unique=True))
        for one, other in itertools.combinations(names, 2)
    }
    return {pair: count for pair, count in found.items() if count}


def _numbers(values: array[int]) -> Any:
    return numpy.frombuffer(values, dtype=numpy.int64) if values else numpy.zeros(0, numpy.int64)
