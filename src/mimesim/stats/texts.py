"""Text statistics: length, diversity and repetition of what somebody wrote.

Plain Python; the same counts for people and for models.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from mimesim.stats.intervals import Interval, jackknife

_WORD = re.compile(r"\w+")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"


def words(text: str) -> list[str]:
    """Return the lower-cased words of `text`: runs of letters, digits and underscores."""
    return _WORD.findall(text.lower())


def mattr(tokens: Sequence[str], window: int = 50) -> float:
    """Return the moving-average type-token ratio; types/N when N <= window, 0 when empty."""
    n = len(tokens)
    if n <= window:
        return len(set(tokens)) / n if n else 0.0
    seen = Counter(tokens[:window])
    total = len(seen)
    for i in range(window, n):
        seen[tokens[i]] += 1
        old = tokens[i - window]
        seen[old] -= 1
        if not seen[old]:
            del seen[old]
        total += len(seen)
    return total / window / (n - window + 1)


def hdd(tokens: Sequence[str], sample: int = 42) -> float:
    """Return HD-D: the expected type-token ratio of `sample` tokens drawn without replacement."""
    n = len(tokens)
    if n == 0:
        return 0.0
    size = min(sample, n)
    drawn = math.comb(n, size)
    return math.fsum(1 - math.comb(n - f, size) / drawn for f in Counter(tokens).values()) / size


def yule_k(tokens: Sequence[str]) -> float:
    """Return Yule's K, 10^4 (sum f^2 - N) / N^2; higher = more repetition, 0 when empty."""
    n = len(tokens)
    return 1e4 * (sum(f * f for f in Counter(tokens).values()) - n) / (n * n) if n else 0.0


def ngrams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Return all runs of `n` tokens, in order."""
    return list(zip(*(tokens[i:] for i in range(n)), strict=False))


def distinct_n(tokens: Sequence[str], n: int) -> float:
    """Return distinct n-grams over all n-grams; 0 without any."""
    grams = ngrams(tokens, n)
    return len(set(grams)) / len(grams) if grams else 0.0


_SURFACE = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|[^\w\s]")


def surface_tokens(text: str) -> frozenset[str]:
    """Return the set of lower-cased words, CJK characters and single marks of `text`."""
    return frozenset(_SURFACE.findall(text.lower()))


def diversity(sets: Sequence[frozenset[str]]) -> float | None:
    """Return 1 - the mean Jaccard index over all pairs of token sets; None below two of them.

    Empty sets are left out: somebody who said nothing is like nobody.
    """
    return diversity_ci(sets, range(len(sets))).value


def diversity_ci(sets: Sequence[frozenset[str]], clusters: Sequence[Hashable]) -> Interval:
    """Return the diversity of token sets with a jackknife interval over clusters.

    A bootstrap would put copies of a text beside it and find less diversity than there is.
    """
    kept = [(one, key) for one, key in zip(sets, clusters, strict=True) if one]
    count = math.comb(len(kept), 2)
    if not count:
        return Interval(None, None, None, len(kept), "no pair of texts")
    sums = dict.fromkeys((key for _, key in kept), 0.0)
    touched = dict.fromkeys(sums, 0)
    total = 0.0
    for (a, mine), (b, theirs) in itertools.combinations(kept, 2):
        shared = len(a & b)
        overlap = shared / (len(a) + len(b) - shared)
        total += overlap
        for key in {mine, theirs}:
            sums[key] += overlap
            touched[key] += 1
    without = [
        1 - (total - sums[key]) / (count - touched[key]) for key in sums if touched[key] < count
    ]
    return jackknife(1 - total / count, without, len(kept))


@dataclass(frozen=True, slots=True)
class TextProfile:
    """Lexical statistics of a set of texts, pooled in the order given.

    Attributes:
        n: texts. tokens: words in all of them. mean_words, median_words: per text.
    """

    n: int
    tokens: int
    mean_words: float
    median_words: float
    mattr: float
    hdd: float
    yule_k: float
    distinct_1: float
    distinct_2: float
    method: str


def text_profile(texts: Iterable[str]) -> TextProfile:
    """Measure `texts`, e.g. the user turns of one simulator."""
    split = [words(text) for text in texts]
    pooled = [token for tokens in split for token in tokens]
    sizes = sorted(map(len, split)) or [0]
    middle = len(sizes) // 2
    return TextProfile(
        n=len(split),
        tokens=len(pooled),
        mean_words=sum(sizes) / len(sizes),
        median_words=(sizes[middle] + sizes[-middle - 1]) / 2,
        mattr=mattr(pooled),
        hdd=hdd(pooled),
        yule_k=yule_k(pooled),
        distinct_1=distinct_n(pooled, 1),
        distinct_2=distinct_n(pooled, 2),
        method="pooled lower-cased words, MATTR window 50, HD-D sample 42",
    )
