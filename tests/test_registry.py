"""Names: lazy, closest match, outside objects, extensions that collide or break."""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import EntryPoint
from pathlib import Path
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


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("raise RuntimeError('boom')", "cannot be loaded: RuntimeError: boom"),
        ("def broken(:", "cannot be loaded: SyntaxError"),
        ("thing = 5", "cannot be made: TypeError: 'int' object is not callable"),
        ("def thing(a): return a", "cannot be made: TypeError"),
        ("def thing(a, b): return a", "has no 'identity'"),
    ],
)
def test_whatever_is_wrong_with_an_outside_object_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, told: str
) -> None:
    package = tmp_path / "outsider"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "mod.py").write_text(body)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("outsider", "outsider.mod"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(UnknownNameError) as caught:
        make().make("outsider.mod:thing", "", {}, needs=("identity",))
    assert told in str(caught.value)
    assert "'outsider.mod:thing'" in str(caught.value)
    for name in ("outsider", "outsider.mod"):
        sys.modules.pop(name, None)


def test_an_outside_object_of_another_kind_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"'os\.path:join' is no toy: it has no 'spec'"):
        make().load("os.path:join", needs=("spec",))


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
