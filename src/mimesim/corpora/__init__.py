"""Human dialogues: one file per source format, cleaning, filtering and fixed splits."""

from __future__ import annotations
