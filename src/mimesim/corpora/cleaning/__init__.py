"""What a dialogue goes through before it may be learnt from; each step counts what it does."""

from __future__ import annotations
