"""Recipes by name: whole runs that come with the project, found in a checkout or in a wheel.

A recipe is `<verb>-<name>.toml` anywhere in `recipes`, or `recipes/<verb>/<name>.toml`:
`--recipe midtrain` of `mimesim train user` means `user-midtrain.toml`. In a checkout the folder
stands beside `src`, in a wheel inside the package.
"""

from __future__ import annotations

from pathlib import Path

from mimesim.registry import unknown_name

_PACKAGED = Path(__file__).parents[1] / "recipes"
_CHECKOUT = Path(__file__).parents[3] / "recipes"


def folder() -> Path:
    """Return the folder of the project's recipes."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


def names(verb: str) -> list[str]:
    """Return the names of the recipes of a verb, e.g. `user` or `agent`, sorted."""
    return sorted(_files(verb))


def find(name: str, verb: str) -> Path:
    """Return the recipe `name` of a verb.

    Raises:
        UnknownNameError: there is none; lists the names.
    """
    known = _files(verb)
    if name not in known:
        raise unknown_name(f"{verb} recipe", name, sorted(known))
    return known[name]


def located(given: Path, verb: str) -> Path:
    """Return the file that `--recipe` means: a path as it is, a bare name as a recipe by name.

    Raises:
        UnknownNameError: a bare name that no recipe has.
    """
    bare = given.parent == Path() and not given.suffix
    return find(given.name, verb) if bare else given


def base(path: Path) -> Path:
    """Return the folder to which the relative paths in a config file are relative.

    That is the file's own folder. The project's own recipes, named or given by path, are read as
    if they lay in `recipes` of the working directory: their results are somebody's own, and nothing
    is written beside code, installed or checked out.
    """
    place, own = path.resolve(), folder().resolve()
    if place.is_relative_to(own):
        return Path.cwd() / "recipes" / place.parent.relative_to(own)
    return path.parent


def _files(verb: str) -> dict[str, Path]:
    prefix, root = f"{verb}-", folder()
    named = {path.stem.removeprefix(prefix): path for path in root.rglob(f"{prefix}*.toml")}
    return {**{path.stem: path for path in (root / verb).glob("*.toml")}, **named}
