"""The arms of CSD: each variant of the method is one switch, `arm = "csd-placebo"` or `--arm`.

An arm pins the keys in which arms differ, so that two runs of one recipe differ in their arm and in
nothing else. Whatever contradicts it in the same place is refused: a key beside it in a recipe, or
a `--set` beside it. An arm that is typed wins over the keys of a recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mimesim.config.sources import Raw, Source, put, wrapped
from mimesim.errors import ConfigError
from mimesim.registry import unknown_name
from mimesim.train.coach import CoachConfig

ALPHA = 0.01
"""Weight of the paper, for arms with CSD where a recipe names none."""


@dataclass(frozen=True, slots=True)
class Pin:
    """What an arm says about one key.

    Attributes:
        value: what it sets; None = it has to be said.
        others: further values that belong to the arm as well.
        expected: both, in words.
    """

    value: Any
    others: Callable[[Any], bool] = lambda value: False
    expected: str = ""

    def holds(self, value: Any) -> bool:
        """Tell whether a run of the arm may have `value`."""
        return bool(value == self.value or self.others(value))


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and value > 0


_CSD: Mapping[str, Pin] = {
    "csd.alpha": Pin(ALPHA, _positive, "a number above 0"),
    "csd.beta": Pin(5.0, _positive, "a number above 0 (the arm csd-gate-const has 0)"),
    "notes.arm": Pin("note", expected="'note' (the arm csd-placebo has the other)"),
    "notes.debias": Pin(True, expected="true (the arm csd-nodebias has it off)"),
    "coach.privileged": Pin(True, expected="true (the arm csd-noprivilege has it off)"),
    "coach.channels": Pin("both", expected="'both'"),
    "coach.style": Pin("prospective", lambda style: style == "small", "'prospective' or 'small'"),
}
_DEFAULTS: Mapping[str, Any] = {
    **{key: pin.value for key, pin in _CSD.items()},
    "csd.alpha": 0.0,
    "coach.name": "rule",
}
"""What a run has where nothing is said."""

ARMS: Mapping[str, Mapping[str, Pin]] = {
    "grpo": {"csd.alpha": Pin(0.0, expected="0")},
    "csd": _CSD,
    "csd-noprivilege": {**_CSD, "coach.privileged": Pin(False, expected="false")},
    "csd-placebo": {**_CSD, "notes.arm": Pin("placebo", expected="'placebo'")},
    "csd-corrective": {**_CSD, "coach.style": Pin("corrective", expected="'corrective'")},
    "csd-thought-only": {**_CSD, "coach.channels": Pin("thought", expected="'thought'")},
    "csd-reaction-only": {**_CSD, "coach.channels": Pin("reaction", expected="'reaction'")},
    "csd-gate-const": {**_CSD, "csd.beta": Pin(0.0, expected="0")},
    "csd-nodebias": {**_CSD, "notes.debias": Pin(False, expected="false")},
    "csd-othercoach": {
        **_CSD,
        "coach.name": Pin(
            None,
            lambda name: isinstance(name, str) and name.startswith("model:"),
            "'model:<model>', another one than the user's",
        ),
    },
}
"""Arm -> the keys that it pins."""


def pins_of(arm: str) -> Mapping[str, Pin]:
    """Return what an arm pins.

    Raises:
        UnknownNameError: there is no such arm.
    """
    if arm not in ARMS:
        raise unknown_name("arm", arm, list(ARMS))
    return ARMS[arm]


def settle(tree: dict[str, Any]) -> None:
    """Set the keys of the arm in a tree of settings that knows where each of them was said.

    Raises:
        UnknownNameError: there is no such arm.
        ConfigError: a key that was said in the same place contradicts the arm.
    """
    chosen = tree.get("arm")
    if not isinstance(chosen, Raw) or chosen.value is None or chosen.text in ("none", "null"):
        return
    arm = str(chosen.value)
    for key, pin in pins_of(arm).items():
        said = _said(tree, key)
        if said is None:
            if pin.value not in (None, _DEFAULTS[key]):
                _set(tree, key, pin.value, arm)
        elif pin.holds(said.value):
            continue
        elif _typed(chosen.source) and not _typed(said.source) and pin.value is not None:
            _set(tree, key, pin.value, arm)
        else:
            raise _contradiction(arm, key, said.value, said.source.at(key.split(".")))


def applied(config: Any) -> Any:
    """Return a run, with `arm`, `csd`, `notes` and `coach`, with the keys of its arm set.

    Here nobody knows where a value was said: one that differs from the default was.

    Raises:
        UnknownNameError: there is no such arm.
        ConfigError: a value contradicts the arm.
    """
    if config.arm is None:
        return config
    for key, pin in pins_of(config.arm).items():
        value = _value(config, key)
        if pin.holds(value):
            continue
        if value != _DEFAULTS[key] or pin.value is None:
            raise _contradiction(config.arm, key, value, "")
        config = _changed(config, key, pin.value)
    return config


def _contradiction(arm: str, key: str, value: Any, where: str) -> ConfigError:
    return ConfigError(
        f"{key!r} cannot be {value!r} in the arm {arm!r}",
        where=where,
        expected=ARMS[arm][key].expected,
        mend=f"leave {key} out, or take another arm",
    )


# -- keys of a tree --------------------------------------------------------------------------


def _typed(source: Source) -> bool:
    """Tell whether something was typed, or stands in the environment: it is in no file."""
    return source.folder is None


def _said(tree: Mapping[str, Any], key: str) -> Raw | None:
    table, _, name = key.partition(".")
    found = tree.get(table)
    if isinstance(found, Raw):  # coach = "rule" says the name alone
        return found if key == "coach.name" else None
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, Raw) else None


def _set(tree: dict[str, Any], key: str, value: Any, arm: str) -> None:
    source = Source(f"arm {arm}")
    table, _, _ = key.partition(".")
    if table == "coach" and not isinstance(tree.get(table), dict):
        name = tree.get(table, Raw(_DEFAULTS["coach.name"], source))
        tree[table] = {"name": name}
    put(tree, key.split("."), wrapped(value, source))


# -- keys of a config ------------------------------------------------------------------------


def _value(config: Any, key: str) -> Any:
    table, _, name = key.partition(".")
    part = config.coach if table == "coach" else getattr(config, table)
    if not isinstance(part, str) and part is not None:
        return getattr(part, name)
    return part if name == "name" else _DEFAULTS[key]


def _changed(config: Any, key: str, value: Any) -> Any:
    table, _, name = key.partition(".")
    part = getattr(config, table)
    if isinstance(part, str):
        part = CoachConfig(part)
    return config if part is None else replace(config, **{table: replace(part, **{name: value})})
