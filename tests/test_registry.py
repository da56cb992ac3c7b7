"""Names: lazy, closest match, outside objects, extensions that collide or break."""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from mimesim import registry
from mimesim.errors import UnknownNameError
from mimesim.registry import Registry, closest


def make() -> Registry:
    return Registry("toy", {"alpha": "colorsys:rgb_to_hsv", "beta": "no.such.module:thing"})


@pytest.fixture
def extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that an installed package advertises two names."""
    points = [
        EntryPoint("gamma", "colorsys:hsv_to_rgb", "mimesim.toys"),
        EntryPoint("alpha", "os:getcwd", "mimesim.toys"),
    ]

    def entry_points(**wanted: Any) -> list[EntryPoint]:
        return [point for point in points if point.group == wanted["group"]]

    monkeypatch.setattr(registry, "entry_points", entry_points)
    monkeypatch.delenv("MIMESIM_DISABLE_PLUGINS", raising=False)


def test_listing_imports_nothing() -> None:
    sys.modules.pop("colorsys", None)
    assert make().names() == ["alpha", "beta"]
    assert make().target("alpha") == "colorsys:rgb_to_hsv"
    assert "colorsys" not in sys.modules
    assert callable(make().load("alpha"))


def test_an_unknown_name_lists_the_nearest_and_all() -> None:
    with pytest.raises(UnknownNameError) as caught:
        make().load("alhpa")
    assert (
        str(caught.value)
        == "unknown toy 'alhpa' (did you mean 'alpha'?); expected one of alpha, beta"
    )


def test_a_path_works_wherever_a_name_does() -> None:
    assert make().load("os.path:join")("a", "b") == "a/b"
    for wrong in ("no.such.module:thing", "os.path:absent"):
        with pytest.raises(UnknownNameError, match="cannot be loaded"):
            make().load(wrong)


def test_a_broken_built_in_is_our_bug_and_shows() -> None:
    with pytest.raises(ModuleNotFoundError):
        make().load("beta")


def test_extensions_come_after_and_never_win(extensions: None) -> None:
    with pytest.warns(UserWarning, match="'alpha' is hidden"):
        names = make().names()
    assert names == ["alpha", "beta", "gamma"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert make().target("alpha") == "colorsys:rgb_to_hsv"
        assert callable(make().load("gamma"))


def test_extensions_can_be_switched_off(extensions: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIMESIM_DISABLE_PLUGINS", "1")
    assert make().names() == ["alpha", "beta"]


def test_nothing_near_is_not_suggested() -> None:
    assert closest("zzz", ["alpha"]) == ""
