"""MimeSim: learn user simulators, measure them, and train agents against them.

Implements the system of "MIMESIS: Learning User Simulators as Training Environments for
Interactive Agents" (arXiv 2610.09484). Importing this package loads no torch and no network code.
"""

from __future__ import annotations

__version__ = "0.1.0"
