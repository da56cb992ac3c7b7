"""One registry for everything outsiders may add: lazy names, entry points, one conflict rule.

Built-ins are a table of strings `"name": "package.module:attribute"`, loaded on use, so that
listing names imports nothing. Outsiders advertise an entry point in `mimesim.<kind>`; a built-in
wins a collision, a broken extension is skipped with a warning, and `MIMESIM_DISABLE_PLUGINS=1`
hides all of them. `"package.module:attribute"` works wherever a name does.
"""

from __future__ import annotations

import difflib
import importlib
import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, TypeVar

from mimesim.errors import MimesimError, UnknownNameError, UsageError

T = TypeVar("T")

_OURS = "mimesim."


def closest(name: str, known: list[str]) -> str:
    """Return ` (did you mean 'x'?)` for the nearest of `known`, or an empty string."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""


def unknown_name(
    kind: str, name: str, known: list[str], where: str = "", mend: str = ""
) -> UnknownNameError:
    """Build the error for a name that no entry of `known` bears."""
    return UnknownNameError(
        f"unknown {kind} {name!r}{closest(name, known)}",
        where=where,
        expected="one of " + ", ".join(sorted(known, key=_natural)),
        mend=mend,
    )


def _natural(name: str) -> list[str | int]:
    """Return a key that sorts B2 before B10."""
    return [int(p) if p.isdecimal() else p for p in re.split(r"(\d+)", name)]


@dataclass
class Registry:
    """Names of one kind, e.g. gyms. `kind` is the singular noun used in messages.

    `group` is the last part of the entry-point group, where it is not the kind with an s.
    """

    kind: str
    builtin: dict[str, str]
    group: str = ""
    _extensions: dict[str, str] | None = field(default=None, repr=False)

    def names(self) -> list[str]:
        """Return all names, built-ins first, each part in its own stable order."""
        return [*self.builtin, *(n for n in sorted(self._plugins()) if n not in self.builtin)]

    def target(self, name: str) -> str:
        """Return `package.module:attribute` for `name`.

        Raises:
            UnknownNameError: no such entry; names the closest match and all names.
        """
        if name in self.builtin:
            return self.builtin[name]
        plugins = self._plugins()
        if name in plugins:
            return plugins[name]
        module, _, attribute = name.partition(":")
        if "." in module and attribute.isidentifier():
            return name
        own = "name one of your own as package.module:attribute, with a dot" if attribute else ""
        raise unknown_name(self.kind, name, self.names(), mend=own)

    def load(self, name: str, needs: Sequence[str] = ()) -> Any:
        """Import and return the object behind `name`.

        Args:
            name: a built-in, an extension, or `package.module:attribute`.
            needs: attributes that an outside object must have to be one of this kind.

        Raises:
            UnknownNameError: no such entry, or an outside one that cannot be used.
        """
        module, _, attribute = self.target(name).partition(":")
        if name in self.builtin or module.startswith(_OURS):
            return self._own(name, module, attribute)
        try:
            found = getattr(importlib.import_module(module), attribute)
        except UsageError:  # it says itself what is wrong
            raise
        except (Exception, SystemExit) as error:  # a script that ends itself on import
            raise self._unusable(name, "loaded", error) from error
        return self._fitting(name, found, needs)

    def make(self, name: str, *args: Any, needs: Sequence[str] = (), **options: Any) -> Any:
        """Call the factory behind `name`; `needs` is what an outside one's product must have.

        Raises:
            UnknownNameError: no such entry, or an outside one that cannot be used.
        """
        factory = self.load(name)
        if name in self.builtin:
            return factory(*args, **options)
        try:
            made = factory(*args, **options)
        except MimesimError:
            raise
        except Exception as error:
            raise self._unusable(name, "made", error) from error
        return self._fitting(name, made, needs)

    def each(self, make: Callable[[str], T]) -> list[T]:
        """Apply `make` to all names; an extension that it fails on is left out with a warning."""
        found = []
        for name in self.names():
            try:
                found.append(make(name))
            except Exception as error:
                if name in self.builtin:
                    raise
                warnings.warn(f"extension {self.kind} {name!r} is left out: {error}", stacklevel=3)
        return found

    def _own(self, name: str, module: str, attribute: str) -> Any:
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            if name in self.builtin:
                raise
            raise self._unusable(name, "loaded", error) from error

    def _fitting(self, name: str, found: Any, needs: Sequence[str]) -> Any:
        missing = [need for need in needs if not hasattr(found, need)]
        if isinstance(found, type) and not missing:
            raise UnknownNameError(
                f"{name!r} is the class of a {self.kind}, not one",
                expected=f"an object, such as NAME = {found.__name__}() in its module",
            )
        if missing:
            raise UnknownNameError(
                f"{name!r} is no {self.kind}: it has no {missing[0]!r}",
                expected="an object with " + ", ".join(needs),
            )
        return found

    def _unusable(self, name: str, verb: str, error: BaseException) -> UnknownNameError:
        return UnknownNameError(
            f"{self.kind} {name!r} cannot be {verb}: {type(error).__name__}: {error}",
            expected="an importable package.module:attribute that fits this kind",
        )

    def _plugins(self) -> dict[str, str]:
        if os.environ.get("MIMESIM_DISABLE_PLUGINS") == "1":
            return {}
        if self._extensions is None:
            found: dict[str, str] = {}
            for point in entry_points(group=_OURS + (self.group or f"{self.kind}s")):
                if point.name in self.builtin:
                    warnings.warn(
                        f"extension {self.kind} {point.name!r} is hidden by the built-in one",
                        stacklevel=2,
                    )
                else:
                    found[point.name] = point.value
            self._extensions = found
        return self._extensions
