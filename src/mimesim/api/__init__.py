"""The door for Python: `mimesim.simulate`, its results, and the pytest plug-in; no logic of its own.

Everything runs through `rollout.prepare` and `rollout.engine`, as `mimesim run` does.
"""

from __future__ import annotations
