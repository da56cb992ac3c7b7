"""Tasks of UserRL from the user's own copy of its repository; nothing of that data is shipped.

One file per gym says where its records lie and how one becomes a task in the gym's own schema.
"""

from __future__ import annotations

from mimesim.envs.userrl.load import SPLIT_SOURCES, Loaded, load_userrl
from mimesim.envs.userrl.overlap import Contamination, contamination

__all__ = ["SPLIT_SOURCES", "Contamination", "Loaded", "contamination", "load_userrl"]
