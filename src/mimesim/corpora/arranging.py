"""Middle of a build: which dialogue goes where, decided from the index alone, without any text."""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy

from mimesim.corpora import mixing
from mimesim.corpora.index import Index
from mimesim.corpora.splits import PARTS, TRAIN, Components, Dealt, Member, Shares, deal

_AT_ONCE = 20_000
"""Dialogues whose texts are compared at once."""
_OUT = len(PARTS)
"""Stands for no part."""


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
        overlapping: dialogues that left training for a shared text -> a held-out one that has it.
        splits: counts per corpus, as `splits.deal` gives them.
        mixed_out: per source, training dialogues that the ratios left out.
        shared: per pair of corpora, how many users' texts occur in both.
    """

    orders: dict[str, array[int]]
    keys: array[int]
    overlapping: dict[int, int]
    splits: dict[str, dict[str, int]]
    mixed_out: list[int]
    shared: dict[str, int]


def arrange(index: Index, plan: Plan) -> Arranged:
    """Deal out the dialogues of an index; what is held in memory is some 60 bytes of each."""
    names = list(dict.fromkeys(plan.corpora))
    dealt = _dealt(index, [names.index(name) for name in plan.corpora], plan.shares)
    overlapping = _overlapping(index, dealt) if plan.apart else {}
    orders = _orders(index, dealt, overlapping)
    sources, words = array("H"), array("q")
    for entry in index.entries():
        sources.append(entry.source)
        words.append(entry.words if plan.mix_by == "words" else 1)
    before = Counter(sources[number] for number in orders["train"])
    orders["train"] = _mixed(orders["train"], sources, words, plan.mix)
    after = Counter(sources[number] for number in orders["train"])
    return Arranged(
        orders=orders,
        keys=dealt.keys,
        overlapping=overlapping,
        splits={names[corpus]: dict(sorted(c.items())) for corpus, c in dealt.counts.items()},
        mixed_out=[before[number] - after[number] for number in range(len(plan.corpora))],
        shared=_shared(index, plan.corpora),
    )


def _dealt(index: Index, corpora: Sequence[int], shares: Shares) -> Dealt:
    components = Components(index.size)
    for one, other in index.pairs():
        components.join(one, other)
    members = (Member(corpora[e.source], e.place, e.split) for e in index.entries())
    return deal(members, components, index.size, shares)


def _orders(index: Index, dealt: Dealt, out: Collection[int]) -> dict[str, array[int]]:
    """Return the dialogues of every part in hash order, without those of `out`."""
    places = array("q", (entry.place for entry in index.entries()))
    parts = array("B", dealt.parts)
    for number in out:
        parts[number] = _OUT
    order = numpy.argsort(_numbers(places), kind="stable")
    ordered = numpy.frombuffer(parts, dtype=numpy.uint8)[order] if parts else order
    return {
        part: array("q", order[ordered == position].tobytes())
        for position, part in enumerate(PARTS)
    }


def _overlapping(index: Index, dealt: Dealt) -> dict[int, int]:
    """Return the training dialogues that share a user's text with a held-out one -> that one."""
    texts, holders = array("q"), array("q")
    for entry in index.entries():
        if dealt.parts[entry.number] != TRAIN:
            texts.extend(entry.texts)
            holders.extend(itertools.repeat(entry.number, len(entry.texts)))
    held, first = numpy.unique(_numbers(texts), return_index=True)
    held_by = _numbers(holders)[first]
    found: dict[int, int] = {}
    training = (entry for entry in index.entries() if dealt.parts[entry.number] == TRAIN)
    while some := list(itertools.islice(training, _AT_ONCE)):
        texts, owners = array("q"), array("q")
        for entry in some:
            texts.extend(entry.texts)
            owners.extend(itertools.repeat(entry.number, len(entry.texts)))
        shared = _among(_numbers(texts), held)
        leaving, at = numpy.unique(_numbers(owners)[shared], return_index=True)
        partners = held_by[numpy.searchsorted(held, _numbers(texts)[shared][at])]
        found.update(zip(leaving.tolist(), partners.tolist(), strict=True))
    return found


def _among(values: Any, wanted: Any) -> Any:
    """Tell which values are among sorted ones; `numpy.isin` would take several times the memory."""
    if not len(wanted):
        return numpy.zeros(len(values), dtype=bool)
    places = numpy.searchsorted(wanted, values)
    places[places == len(wanted)] = 0
    return wanted[places] == values


def _mixed(
    order: array[int], sources: array[int], weights: array[int], mix: Sequence[float | None]
) -> array[int]:
    if all(share is None for share in mix):
        return order
    has: Counter[int] = Counter()
    for number in order:
        has[sources[number]] += weights[number]
    taken = mixing.amounts([has[number] for number in range(len(mix))], mix)
    return array("q", mixing.thin_out(order, sources, weights, taken))


def _shared(index: Index, corpora: Sequence[str]) -> dict[str, int]:
    """Return how many users' texts each pair of corpora has in common, where there are any."""
    texts = {name: array("q") for name in sorted(set(corpora))}
    if len(texts) < 2:
        return {}
    for entry in index.entries():
        texts[corpora[entry.source]].extend(entry.texts)
    distinct = {name: numpy.unique(_numbers(found)) for name, found in texts.items()}
    found = {
        f"{one} & {other}": int(_among(distinct[one], distinct[other]).sum())
        for one, other in itertools.combinations(distinct, 2)
    }
    return {pair: count for pair, count in found.items() if count}


def _numbers(values: array[int]) -> Any:
    return numpy.frombuffer(values, dtype=numpy.int64) if values else numpy.zeros(0, numpy.int64)
