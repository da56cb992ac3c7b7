"""Two-sided Chamfer coverage: does a set of points lie where another set lies, and all over it?

Source: benchmarks.md 13 (persona policies, arXiv 2605.12894). Numpy is loaded when it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

Scale = Literal["z", "z-compat", "raw"]
_FLAT = 1e-9
_NEAR_ZERO = 1e-12


@dataclass(frozen=True, slots=True)
class Coverage:
    """How well a set covers a reference set.

    Attributes:
        value: 0 (far away) to 1 (the same points); two runs of one speaker reach about .6. None
            where no column of the reference varies.
        spread: mean distance between two reference points, in the units of the scale.
        dropped: columns without spread in the reference, which say nothing about distance.
    """

    value: float | None
    spread: float
    dropped: tuple[int, ...] = ()


def coverage(
    points: Sequence[Sequence[float]], reference: Sequence[Sequence[float]], scale: Scale = "z"
) -> Coverage:
    """Return max(0, 1 - (mean nearest distance, both ways) / (2 spread)); 0 where a side is empty.

    Args:
        points: rows of features of the set that is measured.
        reference: rows of the same features of people.
        scale: `z` = columns scaled by the reference's deviation, flat ones dropped; `z-compat` =
            flat columns are kept unscaled, as the original does; `raw` = as given.
    """
    import numpy as np

    if not points or not reference:
        return Coverage(0.0, 1.0)
    p, h = np.asarray(points, dtype=float), np.asarray(reference, dtype=float)
    dropped: tuple[int, ...] = ()
    if scale != "raw":
        spread = h.std(axis=0)
        flat = spread < _FLAT
        if scale == "z":
            dropped = tuple(int(i) for i in np.flatnonzero(flat))
            if flat.all():
                return Coverage(None, 0.0, dropped)
            p, h, spread = p[:, ~flat], h[:, ~flat], spread[~flat]
        else:
            spread = np.where(flat, 1.0, spread)
        center = h.mean(axis=0)
        p, h = (p - center) / spread, (h - center) / spread
    inner = _distances(h, h)
    n = len(h)
    apart = float(inner.sum() / (n * (n - 1))) if n > 1 else 0.0
    apart = apart if apart > _NEAR_ZERO else 1.0
    across = _distances(h, p)
    far = float(across.min(axis=1).mean() + across.min(axis=0).mean())
    return Coverage(max(0.0, 1.0 - min(1.0, far / (2 * apart))), apart, dropped)


def _distances(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return all distances, row by row: exact where two points are equal, unlike the dot form."""
    import numpy as np

    return np.stack([np.sqrt(((b - row) ** 2).sum(axis=1)) for row in a])
