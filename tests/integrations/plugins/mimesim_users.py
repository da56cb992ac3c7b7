"""What a user writes so that verifiers finds our user; docs/integrations.md shows the same."""

from __future__ import annotations

from mimesim.integrations.verifiers_user import UserEnvironment

__all__ = ["UserEnvironment"]
