"""The settings of verl that CSD needs; the defaults of most of them would train something else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mimesim.errors import ConfigError

NAME = "csd"
"""Under which the loss is registered."""

TABLE = "distillation.distillation_loss"

NEEDED: dict[str, tuple[Any, str]] = {
    "loss_mode": (NAME, "any other is not this term"),
    "use_task_rewards": (True, "CSD is added to the policy gradient and does not replace it"),
    "use_policy_gradient": (False, "true makes of the term an advantage without gradient"),
    "loss_max_clamp": (None, "a cap takes the gradient of unlikely tokens away"),
}
"""Value and reason by key."""


def check_settings(loss: Mapping[str, Any]) -> None:
    """Refuse a table `distillation_loss` under which the term would not be the one meant.

    Args:
        loss: the table; a key that is missing has verl's default, which is refused as well.

    Raises:
        ConfigError: naming the first key that is wrong.
    """
    for key, (value, reason) in NEEDED.items():
        found = loss.get(key, "verl's default")
        if found is not value and (isinstance(value, bool | None) or found != value):
            raise _wrong(key, found, value, reason)
    found = loss.get("distillation_loss_coef", "verl's default")
    number = isinstance(found, int | float) and not isinstance(found, bool)
    if not number or not 0 < found < math.inf:
        raise _wrong("distillation_loss_coef", found, 0.01, "it is the alpha of CSD, above 0")


def _wrong(key: str, found: Any, value: Any, reason: str) -> ConfigError:
    shown = "null" if value is None else str(value).lower()
    return ConfigError(
        f"{key!r} cannot be {found!r}: {reason}",
        where=f"{TABLE}.{key}",
        expected=shown,
        mend=f"{TABLE}.{key}={shown}",
    )
