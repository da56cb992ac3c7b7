"""Repeated dialogues: equal ones by fingerprint, near ones by MinHash and a table on disk.

The first in file order stays. Near means that what the two users say shares most of its runs of
three words. Candidates share a band of a MinHash signature (datasketch); each is then compared
exactly with the earlier text, read back from disk, so no signature needs to be kept.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

from mimesim.corpora.base import HumanDialogue, Unfit
from mimesim.corpora.cleaning import checks
from mimesim.corpora.cleaning.overlap import fingerprint, words_of
from mimesim.corpora.index import Index
from mimesim.errors import MissingExtraError

BANDS, ROWS = 12, 8
"""Of 96 hash values: two texts of the similarity .85 share a band with p = .98, of .5 with .05."""
SHINGLE = 3
LEAST_SHINGLES = 12
"""Runs of words below which people say alike what is not the same."""
_MOST_CANDIDATES = 64
"""Earlier dialogues of one band that are compared; the first of them, in file order."""


class Duplicates:
    """Finds what was already there, in an index on disk.

    Args:
        index: where fingerprints and bands are kept.
        earlier: returns a kept dialogue by its number.
        threshold: share of common runs of words from which on two are near.
    """

    def __init__(
        self, index: Index, earlier: Callable[[int], HumanDialogue], threshold: float
    ) -> None:
        self._index = index
        self._earlier = earlier
        self._threshold = threshold

    def check_equal(self, dialogue: HumanDialogue) -> None:
        """Take note of a dialogue.

        Raises:
            Unfit: an earlier one consists of the same messages, case and punctuation aside.
        """
        words = [
            word for turn in dialogue.turns for word in (f"/{turn.role}", *words_of(turn.text))
        ]
        if not self._index.first_time(fingerprint(["equal", *words])):
            raise Unfit("duplicate", "equal to an earlier dialogue")

    def near(self, dialogue: HumanDialogue) -> list[int]:
        """Return the bands of a dialogue, to be noted with it once it is kept.

        Raises:
            Unfit: a user said nearly the same in an earlier one.
        """
        runs = shingles(dialogue)
        if len(runs) < LEAST_SHINGLES:
            return []
        bands = self._bands(runs)
        for number in self._index.sharing(bands, _MOST_CANDIDATES):
            similarity = jaccard(runs, shingles(self._earlier(number)))
            if similarity >= self._threshold:
                raise Unfit("near_duplicate", f"{similarity:.2f} like an earlier dialogue")
        return bands

    def _bands(self, runs: set[str]) -> list[int]:
        signature = _empty_signature().copy()
        signature.update_batch([run.encode("utf-8", "surrogatepass") for run in runs])
        values = signature.hashvalues.tolist()
        return [
            fingerprint(["band", str(i), *map(str, values[i * ROWS : (i + 1) * ROWS])])
            for i in range(BANDS)
        ]


def shingles(dialogue: HumanDialogue) -> set[str]:
    """Return the runs of three words of what the user says."""
    words = [word for text in checks.texts_of(dialogue) for word in words_of(text)]
    return {" ".join(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1)}


def jaccard(one: set[str], other: set[str]) -> float:
    """Return the share of common members of two sets; 0 for two empty ones."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


@functools.cache
def _empty_signature() -> Any:
    try:
        from datasketch import MinHash
    except ImportError as error:
        raise MissingExtraError.for_extra("finding near duplicates", "data") from error
    return MinHash(BANDS * ROWS, seed=1, hashfunc=zlib.crc32)
