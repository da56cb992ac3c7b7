"""The arms: one switch each, differing in one thing, refusing what contradicts them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mimesim import config as configs
from mimesim.config.recipes import find
from mimesim.errors import ConfigError, UnknownNameError, UsageError
from mimesim.train.agent import AgentConfig
from mimesim.train.arms import ARMS, applied
from mimesim.train.coach import CoachConfig, read_coach
from mimesim.train.csd import CsdConfig
from mimesim.train.notes import NoteConfig

COACH = 'coach = "model:scripted:echo"\n'
DIFFERS: dict[str, dict[str, Any]] = {
    "grpo": {"csd.alpha": 0.0},
    "csd": {},
    "csd-noprivilege": {"coach.privileged": False},
    "csd-placebo": {"notes.arm": "placebo"},
    "csd-corrective": {"coach.style": "corrective"},
    "csd-thought-only": {"coach.channels": "thought"},
    "csd-reaction-only": {"coach.channels": "reaction"},
    "csd-gate-const": {"csd.beta": 0.0},
    "csd-nodebias": {"notes.debias": False},
    "csd-othercoach": {},
}
"""Arm -> the keys in which it differs from `csd`."""


def load(
    folder: Path, text: str, *, arm: str | None = None, typed: Sequence[str] = ()
) -> AgentConfig:
    """Load a recipe as the command line does."""
    recipe = folder / "recipe.toml"
    recipe.write_text(text, "utf-8")
    flags = [configs.Flag("--arm", "arm", arm)]
    return configs.load(AgentConfig, [recipe], overrides=typed, flags=flags, env={})


def keys(config: AgentConfig) -> dict[str, Any]:
    """Return the settings as flat keys, the coach always as a table."""
    coach = read_coach(config.coach)
    assert coach is not None
    flat = dict(configs.flatten(configs.dump(config)))
    return {
        **{k: v for k, v in flat.items() if not k.startswith(("coach", "arm", "out", "init"))},
        **{f"coach.{k}": v for k, v in configs.dump(coach).items()},
    }


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("how", ["flag", "key", "python"])
def test_an_arm_differs_from_csd_in_one_thing(tmp_path: Path, arm: str, how: str) -> None:
    def made(name: str) -> AgentConfig:
        if how == "flag":
            return load(tmp_path, COACH, arm=name)
        if how == "key":
            return load(tmp_path, f'arm = "{name}"\n{COACH}')
        config: AgentConfig = applied(AgentConfig(arm=name, coach="model:scripted:echo"))
        return config

    usual, this = keys(made("csd")), keys(made(arm))
    assert {k: v for k, v in this.items() if v != usual[k]} == DIFFERS[arm]
    assert usual["csd.alpha"] == 0.01
    assert made(arm).arm == arm


def test_the_defaults_are_those_of_the_configs() -> None:
    """An arm writes nothing where a run has the arm's value anyway."""
    assert keys(applied(AgentConfig(arm="csd"))) == {**keys(AgentConfig()), "csd.alpha": 0.01}
    assert applied(AgentConfig(arm="csd")).coach == "rule"
    assert applied(AgentConfig(arm="grpo")) == AgentConfig(arm="grpo")
    assert applied(AgentConfig()) == AgentConfig()


def test_alpha_is_that_of_the_recipe(tmp_path: Path) -> None:
    text = "[csd]\nalpha = 0.1\n"
    assert load(tmp_path, text, arm="csd").csd.alpha == 0.1
    assert load(tmp_path, text, arm="csd-placebo").csd.alpha == 0.1
    assert load(tmp_path, text, arm="grpo").csd.alpha == 0.0
    assert load(tmp_path, "[csd]\nalpha = 0.0\n", arm="csd").csd.alpha == 0.01
    assert load(tmp_path, text, arm="csd", typed=["csd.alpha=0.2"]).csd.alpha == 0.2
    assert load(tmp_path, text).csd.alpha == 0.1


def test_a_typed_arm_wins_over_the_recipe(tmp_path: Path) -> None:
    text = (
        'arm = "csd-placebo"\n[notes]\narm = "placebo"\n[coach]\nname = "user"\nstyle = "small"\n'
    )
    own = load(tmp_path, text)
    assert (own.arm, own.notes.arm) == ("csd-placebo", "placebo")
    other = load(tmp_path, text, arm="csd-corrective")
    assert (other.arm, other.notes.arm) == ("csd-corrective", "note")
    assert read_coach(other.coach) == CoachConfig("user", style="corrective")
    small = load(tmp_path, text, arm="csd")
    assert read_coach(small.coach) == CoachConfig("user", style="small"), "a style of csd, too"
    assert load(tmp_path, text, typed=["arm=csd-nodebias", "notes.arm=note"]).notes.debias is False


@pytest.mark.parametrize(
    ("text", "typed", "arm", "where"),
    [
        (
            'arm = "grpo"\n[csd]\nalpha = 0.1\n',
            (),
            None,
            "recipe.toml:3: 'csd.alpha' cannot be 0.1",
        ),
        ('arm = "csd"\n[csd]\nalpha = 0.0\n', (), None, "'csd.alpha' cannot be 0.0"),
        ("", ("csd.alpha=0.3",), "grpo", "--set csd.alpha: 'csd.alpha' cannot be 0.3"),
        ("", ("csd.beta=5.0",), "csd-gate-const", "'csd.beta' cannot be 5.0"),
        ('arm = "csd-gate-const"\n[csd]\nbeta = 5.0\n', (), None, "recipe.toml:3: 'csd.beta'"),
        ('arm = "csd"\n', ("csd.beta=0",), None, "the arm csd-gate-const has 0"),
        ('arm = "csd"\n[notes]\ndebias = false\n', (), None, "the arm csd-nodebias has it off"),
        ("", ("notes.arm=note",), "csd-placebo", "expected 'placebo'"),
        (
            'arm = "csd"\n[coach]\nname = "user"\nprivileged = false\n',
            (),
            None,
            "recipe.toml:4: 'coach.privileged' cannot be False in the arm 'csd'",
        ),
        ("", (), "csd-othercoach", "'coach' cannot be 'rule'"),
        (COACH, ("coach=user",), "csd-othercoach", "'coach.name' cannot be 'user'"),
        ("", (), "csd-corrective", "the rule coach"),
    ],
)
def test_a_contradiction_is_told_in_one_line(
    tmp_path: Path, text: str, typed: Sequence[str], arm: str | None, where: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, text, arm=arm, typed=typed)
    line = str(caught.value)
    assert where.replace("'coach' cannot", "'coach.name' cannot") in line
    assert "\n" not in line


def test_contradictions_in_python_are_values_that_are_no_default() -> None:
    with pytest.raises(ConfigError, match=r"'csd.alpha' cannot be 0.1 in the arm 'grpo'"):
        AgentConfig(arm="grpo", csd=CsdConfig(alpha=0.1))
    with pytest.raises(ConfigError, match=r"'notes.debias' cannot be False in the arm 'csd'"):
        AgentConfig(arm="csd", notes=NoteConfig(debias=False))
    with pytest.raises(ConfigError, match=r"'coach.name' cannot be 'rule'"):
        AgentConfig(arm="csd-othercoach")
    gate = applied(AgentConfig(arm="csd-gate-const", csd=CsdConfig(alpha=0.05)))
    assert (gate.csd.alpha, gate.csd.beta) == (0.05, 0.0)


def test_an_unknown_arm_is_named(tmp_path: Path) -> None:
    for made in (
        lambda: AgentConfig(arm="csd-privilege"),
        lambda: load(tmp_path, "", arm="csd-privilege"),
    ):
        with pytest.raises(UnknownNameError, match="csd-noprivilege"):
            made()


def test_no_arm_leaves_the_recipes_as_they_are() -> None:
    recipe = find("realistic-csd", "agent")
    config = configs.load(AgentConfig, [recipe], env={})
    assert (config.arm, config.csd.alpha, config.coach) == (None, 0.1, "rule")
    for text in ("arm=none", "arm=null"):
        typed = configs.load(AgentConfig, [recipe], overrides=[text], env={})
        assert typed.arm is None


def test_a_style_that_is_set_beside_a_mere_name_asks_for_the_name(tmp_path: Path) -> None:
    """The name would be lost without a word: a key of a table takes the place of the string."""
    with pytest.raises(ConfigError, match=r"'coach.name' is missing"):
        load(tmp_path, COACH, typed=["coach.style=corrective"])
    table = load(tmp_path, COACH, typed=['coach={name="user", style="corrective"}'])
    assert read_coach(table.coach) == CoachConfig("user", style="corrective")
