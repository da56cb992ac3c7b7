"""Shapes of a whole run for other programs, one file each; rows per episode are `dialogue.export`."""

from __future__ import annotations
