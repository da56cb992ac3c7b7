"""Every recipe loads, names the config class it is for, and says where each value comes from.

A recipe carries `x-config = "package.module:Class"`; keys that begin with `x-` are notes, so the
class itself never sees it.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from mimesim import config as configs

RECIPES = sorted((Path(__file__).resolve().parents[2] / "recipes").rglob("*.toml"))


def uncommented(text: str) -> list[str]:
    """Return the assignments that bear no comment, neither behind them nor in the line above."""
    bare, before = [], ""
    for line in text.splitlines():
        stripped = line.strip()
        is_value = "=" in stripped and stripped[0] not in "#[" and not stripped.startswith("x-")
        if is_value and "#" not in stripped and not before.startswith("#"):
            bare.append(stripped)
        before = stripped
    return bare


def unsourced(text: str) -> list[str]:
    """Return the numbers of a paper recipe whose comment says nothing about their origin."""
    number = re.compile(r"\s*[\w.-]+\s*=\s*\[?\s*[-+]?\d[^#]*(?P<comment>#.*)?$")
    found = [(line, number.match(line)) for line in text.splitlines()]
    origin = re.compile(r"\bpublished\b|\bours\b")
    return [line for line, match in found if match and not origin.search(match["comment"] or "")]


def test_there_are_recipes() -> None:
    assert RECIPES, "recipes/ holds no TOML file"


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_the_recipe_loads(path: Path) -> None:
    written = tomllib.loads(path.read_text("utf-8"))
    module, _, name = str(written["x-config"]).partition(":")
    cls = vars(importlib.import_module(module))[name]
    assert configs.dump(configs.load(cls, [path], env={}))


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_every_value_has_its_source(path: Path) -> None:
    assert uncommented(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "path", [p for p in RECIPES if p.parent.name == "paper"], ids=lambda p: p.stem
)
def test_a_number_of_the_paper_is_published_or_not_or_ours(path: Path) -> None:
    assert unsourced(path.read_text("utf-8")) == []


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_the_small_form_loads(path: Path) -> None:
    written = tomllib.loads(path.read_text("utf-8"))
    if "x-quick" in written:
        module, _, name = str(written["x-config"]).partition(":")
        cls = vars(importlib.import_module(module))[name]
        assert configs.dump(configs.load(cls, [path], env={}, quick=True))


def test_an_unsourced_number_is_found() -> None:
    text = "a = 1  # published\nb = [1, 2]  # some\nc = 'x'  # some\nd = -2.5\ne = 1  # not published\n"
    assert unsourced(text) == ["b = [1, 2]  # some", "d = -2.5"]


def test_a_bare_value_is_found() -> None:
    assert uncommented("# source\na = 1\nb = 2\nc = 3  # ours\n[d]\n") == ["b = 2"]
