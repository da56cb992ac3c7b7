"""Group-aware splits: what shares a key, directly or through others, never parts.

Keys tie dialogues into components (union-find). What a source fixes is kept. The rest is dealt out
per corpus: components in the order of their hashes fill the test part, then the validation part; one
that is larger than what is still free there goes to training.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

PARTS = ("train", "validation", "test")
"""Names of the parts, in the order in which they are written."""
TRAIN, VALIDATION, TEST = range(3)


class Shares(NamedTuple):
    """Shares of the dialogues of a corpus that are held out."""

    validation: float
    test: float


class Components:
    """Union-find over dialogues 0 … n-1; the root of a component is its first member."""

    def __init__(self, size: int) -> None:
        self._parent = array("I", range(size))

    def join(self, one: int, other: int) -> None:
        """Make two dialogues members of one component."""
        first, second = sorted((self.root(one), self.root(other)))
        self._parent[second] = first

    def root(self, number: int) -> int:
        """Return the first member of a dialogue's component."""
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number


class Member(NamedTuple):
    """What a split needs of a dialogue: corpus, place in the hash order, fixed part or ""."""

    corpus: int
    place: int
    split: str


class Dealt(NamedTuple):
    """The outcome: per dialogue its part and the smallest place of its component, and counts."""

    parts: array[int]
    keys: array[int]
    counts: dict[int, Counter[str]]


def deal(members: Iterable[Member], components: Components, size: int, shares: Shares) -> Dealt:
    """Give every dialogue its part.

    Args:
        members: the dialogues in file order.
        components: which belong together.
        size: how many there are.
        shares: what to hold out per corpus.

    Returns:
        Parts as positions in `PARTS`; counts per corpus: `components`, `largest_component`,
        `fixed_by_source`, `parted_by_source` (components whose members the source itself puts
        into several parts), and the number of dialogues per part.
    """
    roots = _survey(members, components, size)
    filled = _fixed(roots)
    for root in roots.in_hash_order():
        corpus = roots.corpora[root]
        if roots.fixed[root]:  # free members follow the strictest part that others are fixed to
            roots.parts[root] = roots.fixed[root].bit_length() - 1
            filled[corpus, roots.parts[root]] += roots.free[root]
        else:
            roots.parts[root] = _part(roots, root, filled, shares)
            filled[corpus, roots.parts[root]] += roots.sizes[root]
    return _told(roots, components)


class _Roots:
    """What is known per component, at its root; flat arrays, so that memory stays small."""

    def __init__(self, size: int) -> None:
        self.sizes = array("I", bytes(4 * size))
        self.free = array("I", bytes(4 * size))
        self.keys = array("q", bytes(8 * size))
        self.corpora = array("H", bytes(2 * size))
        self.fixed = array("B", bytes(size))
        self.parts = array("B", bytes(size))
        self.pins = array("B", bytes(size))
        self.totals: Counter[int] = Counter()

    def in_hash_order(self) -> Iterator[int]:
        """Yield the roots in the order of their smallest places."""
        import numpy

        if not self.keys:
            return
        order = numpy.argsort(numpy.frombuffer(self.keys, dtype=numpy.int64), kind="stable")
        for root in array("q", order.tobytes()):
            if self.sizes[root]:
                yield root


def _survey(members: Iterable[Member], components: Components, size: int) -> _Roots:
    roots = _Roots(size)
    for number, member in enumerate(members):
        root = components.root(number)
        seen = roots.sizes[root]
        roots.keys[root] = min(roots.keys[root], member.place) if seen else member.place
        roots.sizes[root] = seen + 1
        roots.corpora[number] = member.corpus
        roots.totals[member.corpus] += 1
        if member.split:
            part = PARTS.index(member.split)
            roots.fixed[root] |= 1 << part
            roots.pins[number] = part + 1
        else:
            roots.free[root] += 1
    return roots


def _fixed(roots: _Roots) -> Counter[tuple[int, int]]:
    """Return how many dialogues sources themselves put into each part, by (corpus, part)."""
    filled: Counter[tuple[int, int]] = Counter()
    corpora = roots.corpora
    for number, pin in enumerate(roots.pins):
        if pin:
            filled[corpora[number], pin - 1] += 1
    return filled


def _part(roots: _Roots, root: int, filled: Counter[tuple[int, int]], shares: Shares) -> int:
    corpus, size = roots.corpora[root], roots.sizes[root]
    for part, share in ((TEST, shares.test), (VALIDATION, shares.validation)):
        if filled[corpus, part] + size <= round(share * roots.totals[corpus]):
            return part
    return TRAIN


def _told(roots: _Roots, components: Components) -> Dealt:
    counts: dict[int, Counter[str]] = {corpus: Counter() for corpus in roots.totals}
    parts = array("B", bytes(len(roots.sizes)))
    for number, size in enumerate(roots.sizes):
        root = components.root(number)
        count = counts[roots.corpora[root]]
        if size:
            count["components"] += 1
            count["largest_component"] = max(count["largest_component"], size)
            count["parted_by_source"] += roots.fixed[root].bit_count() > 1
        if roots.pins[number]:
            count["fixed_by_source"] += 1
        parts[number] = roots.pins[number] - 1 if roots.pins[number] else roots.parts[root]
        roots.keys[number] = roots.keys[root]
        count[PARTS[parts[number]]] += 1
    return Dealt(parts, roots.keys, counts)
