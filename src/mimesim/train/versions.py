"""The versions of the engine that the trainers were written for, checked before they are imported.

Private hooks of TRL move between minor releases. Without this a wrong version shows as a missing
attribute in the middle of a run.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from mimesim.errors import EnvironmentFault, MissingExtraError

SUPPORTED = {
    "trl": ("1.16", "1.17"),
    "transformers": ("5.13", "5.18"),
    "torch": ("2.13", "2.14"),
    "accelerate": ("1.15", "2"),
    "peft": ("0.21", "0.22"),
    "datasets": ("5.2", "6"),
}
"""Package -> lowest version, and the first that is too new. A contract test keeps them equal to the
bounds that the extra `train` installs."""


def check_versions() -> None:
    """Make sure that the installed engine is one that the trainers know.

    Raises:
        MissingExtraError: a package is not installed.
        EnvironmentFault: another version; names all that are supported.
    """
    wrong = []
    for name, (low, high) in SUPPORTED.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            raise MissingExtraError.for_extra("training", "train") from None
        if not _numbers(low) <= _numbers(found) < _numbers(high):
            wrong.append(f"{name} {found}")
    if wrong:
        known = ", ".join(f"{name} >= {low}, < {high}" for name, (low, high) in SUPPORTED.items())
        raise EnvironmentFault(
            f"not the versions that the trainers were written for: {', '.join(wrong)}",
            where="training",
            expected=known,
            mend='pip install "mimesim[train]", torch first',
        )


def _numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: 2.13.0+cpu is (2, 13, 0)."""
    parts = text.partition("+")[0].split(".")
    return tuple(int(part) for part in parts if part.isdigit())
