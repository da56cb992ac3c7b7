"""Recipes by name, their small form, and where the paths in a packaged recipe lead."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mimesim import config as configs
from mimesim.config import recipes
from mimesim.errors import ConfigError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Inner:
    depth: int = 1
    name: str = "a"


@dataclass(frozen=True, slots=True)
class Toy:
    out: Path = Path("out")
    steps: int = 100
    inner: Inner = field(default_factory=Inner)


TOY = f"{Toy.__module__}:Toy"


def recipe(folder: Path, text: str, name: str = "user-toy.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_name_finds_the_recipe_of_its_verb() -> None:
    assert recipes.find("midtrain", "user").name == "user-midtrain.toml"
    assert recipes.find("midtrain-9b", "user").parent.name == "paper"
    assert {"midtrain", "thought"} <= set(recipes.names("user"))
    assert "midtrain" not in recipes.names("agent")
    with pytest.raises(UnknownNameError, match=r"'midtran' \(did you mean 'midtrain'\?\).*thought"):
        recipes.find("midtran", "user")


def test_a_path_stays_a_path(tmp_path: Path) -> None:
    for path in (tmp_path / "mine.toml", Path("mine.toml"), Path("folder/midtrain")):
        assert recipes.located(path, "user") == path
    assert recipes.located(Path("midtrain"), "user") == recipes.find("midtrain", "user")


def test_a_packaged_recipe_writes_below_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "mimesim" / "recipes"
    package.mkdir(parents=True)
    monkeypatch.setattr(recipes, "_PACKAGED", package)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    recipe(package, 'out = "../out/toy"\n')
    found = recipes.find("toy", "user")
    assert configs.load(Toy, [found], env={}).out == here / "out" / "toy"
    own = recipe(tmp_path, 'out = "../out/toy"\n', "own.toml")
    assert configs.load(Toy, [own], env={}).out.resolve() == (tmp_path.parent / "out" / "toy")


def test_a_recipe_of_the_checkout_writes_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout" / "recipes"
    (checkout / "paper").mkdir(parents=True)
    monkeypatch.setattr(recipes, "_CHECKOUT", checkout)
    recipe(checkout / "paper", 'out = "../../out/toy"\n')
    monkeypatch.chdir(tmp_path)
    for found in (recipes.find("toy", "user"), Path("checkout/recipes/paper/user-toy.toml")):
        assert configs.load(Toy, [found], env={}).out == tmp_path / "out" / "toy"
    monkeypatch.chdir(checkout.parent)
    assert configs.load(Toy, [Path("recipes/paper/user-toy.toml")], env={}).out == (
        checkout.parent / "out" / "toy"
    )


def test_the_small_form_is_laid_over_the_recipe(tmp_path: Path) -> None:
    text = "steps = 50\n[inner]\ndepth = 2\nname = 'b'\n[x-quick]\nsteps = 5\ninner.depth = 3\n"
    path = recipe(tmp_path, text)
    assert configs.load(Toy, [path], env={}).steps == 50
    quick = configs.load(Toy, [path], env={}, quick=True)
    assert (quick.steps, quick.inner) == (5, Inner(3, "b"))
    typed = configs.load(Toy, [path], env={}, quick=True, overrides=["steps=7"])
    assert typed.steps == 7
    other = recipe(tmp_path, "steps = 60\n", "other.toml")
    assert configs.load(Toy, [path, other], env={}, quick=True).steps == 5


def test_the_small_form_is_checked_and_must_be_there(tmp_path: Path) -> None:
    wrong = recipe(tmp_path, "steps = 50\n\n[x-quick]\nstep = 5\n")
    with pytest.raises(ConfigError, match=r"user-toy\.toml:4.*unknown key 'step'"):
        configs.load(Toy, [wrong], env={}, quick=True)
    none = recipe(tmp_path, "steps = 50\n", "none.toml")
    with pytest.raises(ConfigError, match=r"none\.toml: there is no small form"):
        configs.load(Toy, [none], env={}, quick=True)
    with pytest.raises(ConfigError, match="--recipe"):
        configs.load(Toy, [], env={}, quick=True)


def test_a_recipe_for_another_config_is_refused(tmp_path: Path) -> None:
    fitting = recipe(tmp_path, f'x-config = "{TOY}"\nsteps = 1\n')
    assert configs.load(Toy, [fitting], env={}).steps == 1
    foreign = recipe(tmp_path, 'x-config = "some.module:Other"\nsteps = 1\n')
    with pytest.raises(ConfigError, match=r"toml:1: this recipe is for some\.module:Other, not"):
        configs.load(Toy, [foreign], env={})


def test_the_wheel_is_told_to_carry_the_recipes() -> None:
    """What `pyproject.toml` maps into the package is the folder that the lookup reads there."""
    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    mapped = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert mapped == {"recipes": "mimesim/recipes"}
    assert "/recipes" in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert recipes._PACKAGED.relative_to(recipes._CHECKOUT.parent / "src") == Path(
        mapped["recipes"]
    )


def test_paths_of_a_recipe_are_read_without_detours(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    own = recipe(tmp_path / "recipes", 'out = "../out/toy"\n', "own.toml")
    assert configs.load(Toy, [own], env={}).out == tmp_path / "out" / "toy"
    (tmp_path / "link").symlink_to(tmp_path / "recipes" / "far", target_is_directory=True)
    (tmp_path / "recipes" / "far").mkdir()
    linked = recipe(tmp_path / "link", 'out = "../out/toy"\n', "own.toml")
    assert configs.load(Toy, [linked], env={}).out.resolve() == tmp_path / "recipes" / "out" / "toy"
