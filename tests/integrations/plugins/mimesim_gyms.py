"""What a user writes so that verifiers finds the gyms; docs/integrations.md shows the same."""

from __future__ import annotations

from mimesim.integrations.verifiers import GymEnvironment, GymTaskset

__all__ = ["GymEnvironment", "GymTaskset"]
