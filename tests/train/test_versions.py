"""Other versions of the engine are refused before they are imported, in one line."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError

import pytest

from mimesim.errors import EnvironmentFault, MissingExtraError
from mimesim.train import versions
from mimesim.train.versions import SUPPORTED, check_versions

Pretend = Callable[..., None]


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Pretend:
    def install(**changed: str | None) -> None:
        usual = {name: f"{low}.1+cpu" for name, (low, _) in SUPPORTED.items()}

        def version(name: str) -> str:
            found = {**usual, **changed}[name]
            if found is None:
                raise PackageNotFoundError(name)
            return found

        monkeypatch.setattr(versions, "version", version)

    return install


def test_the_installed_engine_is_supported() -> None:
    check_versions()


@pytest.mark.parametrize(
    ("package", "number"),
    [
        ("trl", "1.15.9"),
        ("trl", "1.17.0"),
        ("transformers", "5.18.0"),
        ("torch", "2.14.0+cu130"),
        ("torch", "2.9"),
        ("accelerate", "2.0"),
    ],
)
def test_another_version_is_named_with_all_that_are_supported(
    pretend: Pretend, package: str, number: str
) -> None:
    pretend(**{package: number})
    with pytest.raises(EnvironmentFault) as caught:
        check_versions()
    line = str(caught.value)
    assert f"{package} {number}" in line
    for name, (low, high) in SUPPORTED.items():
        assert f"{name} >= {low}, < {high}" in line
    assert "\n" not in line


def test_versions_inside_the_bounds_are_taken(pretend: Pretend) -> None:
    pretend(trl="1.16.12", torch="2.13.0+cpu", transformers="5.17.0rc1", accelerate="1.99.3")
    check_versions()


def test_a_missing_package_names_the_extra(pretend: Pretend) -> None:
    pretend(trl=None)
    with pytest.raises(MissingExtraError, match=r"mimesim\[train\]"):
        check_versions()
