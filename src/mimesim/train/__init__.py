"""Training: supervised stages, reinforcement learning, and the pure functions between them.

Trainers must not phone home; this is set here, before any of them is imported.
"""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
