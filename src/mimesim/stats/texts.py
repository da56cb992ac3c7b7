"""Text statistics: length, diversity and repetition of what somebody wrote.

Plain Python; the same counts for people and for models.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"\w+")


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
