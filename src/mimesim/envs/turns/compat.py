"""How a gym may be made to behave like the originals: one flag for each known flaw.

A profile is only a preset of flags; every flag can be set alone, and all that were set stand in the
record of a run (`gym_options`). Without any, every flaw is repaired (specification of the gyms,
section 0). `compat` reproduces rewards, endings and what is shown, never anybody's wording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from mimesim.errors import ConfigError
from mimesim.registry import closest

PROFILES = ("userrl", "mimesis")
"""Presets: the code of UserRL, and the same with the repairs of the MIMESIS paper."""
_OWNERS = ("function", "intention", "persuade", "tau", "travel", "turtle")
"""Gyms with flags of their own, whose names begin with the gym's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compat:
    """The flags; the defaults are the repaired behavior.

    Attributes:
        profile: the preset that was asked for, "" = none.
        phase: which of two phases that the originals treat differently is played.
        show_reward: in which phase the reward is written into the feedback.
        executed_steps: actions that are carried out; 15 = the sixteenth is not (training only).
        error_policy: what becomes of an episode whose user or judge failed or could not be reached;
            `zero_reward` makes an ordinary step of it that earns nothing.
        json_parser: how verdicts of models are read.
        no_tool_call: what a message does in which no call can be read.
        multi_call: what several calls in one message do; `last_reward` is the trainer's way, and
            means `first` in evaluation. The trainer carries out all calls at once, shows all their
            results and keeps the last reward; here the last call alone is carried out, so that what
            the others change and show is not reproduced.
        plain_choices: all three choices are taken whatever the gym, and handled by its own tests;
            calls are read without mending anything.
        travel_path, travel_volunteer, travel_rewards: see the gym `travel`.
        persuade_reward: gain over the best stance so far, or over the previous one.
        turtle_feedback, turtle_tol: what an answer is told, and how near to 1 is solved.
        function_probe: whether probes are four integers, or any numbers found in the text.
        intention_user_knowledge: what the user model is told of the missing details.
        tau_policy_visible, tau_first_message: what the agent of `tau` sees first.
        finish_reveals_answer: whether giving up tells the answer.
    """

    profile: str = ""
    phase: Literal["eval", "train"] = "eval"
    show_reward: Literal["never", "train", "eval", "both"] = "never"
    executed_steps: Literal[16, 15] = 16
    error_policy: Literal["invalid_episode", "zero_reward"] = "invalid_episode"
    json_parser: Literal["tolerant", "python_literal"] = "tolerant"
    no_tool_call: Literal["nudge", "end"] = "nudge"
    multi_call: Literal["reject", "first", "last_reward"] = "reject"
    plain_choices: bool = False
    travel_path: Literal["fixed", "async", "sync"] = "fixed"
    travel_volunteer: Literal["third_turn", "fourth_turn", "broken"] = "third_turn"
    travel_rewards: Literal["uniform", "train_eval_split"] = "uniform"
    persuade_reward: Literal["best", "previous"] = "best"
    turtle_feedback: Literal["count", "statements"] = "count"
    turtle_tol: Literal["tolerant", "exact"] = "tolerant"
    function_probe: Literal["ints", "floats"] = "ints"
    intention_user_knowledge: Literal["answers", "none", "full"] = "answers"
    tau_policy_visible: bool = True
    tau_first_message: Literal["live", "stored"] = "live"
    finish_reveals_answer: bool = False

    @property
    def rewards_shown(self) -> bool:
        """Whether the agent reads its rewards in this phase."""
        return self.show_reward in ("both", self.phase)

    @property
    def steps(self) -> int:
        """How many actions are carried out in this phase."""
        return self.executed_steps if self.phase == "train" else 16

    @property
    def kept_call(self) -> Literal["reject", "first", "last"]:
        """Which of several calls is carried out in this phase."""
        if self.multi_call == "last_reward":
            return "last" if self.phase == "train" else "first"
        return self.multi_call


_USERRL = Compat(
    profile="userrl",
    show_reward="train",
    executed_steps=15,
    error_policy="zero_reward",
    json_parser="python_literal",
    no_tool_call="end",
    multi_call="last_reward",
    plain_choices=True,
    travel_path="async",
    travel_volunteer="broken",
    travel_rewards="train_eval_split",
    persuade_reward="previous",
    turtle_feedback="statements",
    turtle_tol="exact",
    function_probe="floats",
    intention_user_knowledge="full",
    tau_policy_visible=False,
    tau_first_message="stored",
    finish_reveals_answer=True,
)
_PRESETS = {
    "userrl": _USERRL,
    "mimesis": replace(
        _USERRL, profile="mimesis", json_parser="tolerant", travel_volunteer="fourth_turn"
    ),
}


def flags_of(gym: str) -> dict[str, dict[str, Any]]:
    """Return the flags that mean something in a gym: the repaired value, and that of each preset."""
    shown: dict[str, dict[str, Any]] = {}
    for flag in fields(Compat):
        owner = flag.name.partition("_")[0]
        if flag.name == "profile" or (owner in _OWNERS and owner != gym):
            continue
        values = {"repaired": Compat(), **_PRESETS}
        shown[flag.name] = {name: asdict(one)[flag.name] for name, one in values.items()}
    return shown


def read_options(
    options: Mapping[str, Any] | None, own: Mapping[str, Any], gym: str
) -> tuple[Compat, dict[str, Any]]:
    """Split the options of a gym into compat flags and the gym's own settings.

    Args:
        options: as given; `compat` names a preset, `true` means `userrl`.
        own: the gym's own settings with their defaults.
        gym: its name, for messages.

    Returns:
        the flags, and `own` with what was given.

    Raises:
        ConfigError: an unknown option, or a value that it cannot take.
    """
    given = dict(options or {})
    flags = _preset(given.pop("compat", ""), gym)
    kinds = get_type_hints(Compat)
    names = {f.name for f in fields(Compat)} - {"profile"}
    settings = dict(own)
    changed = {}
    for key, value in given.items():
        if key in own:
            settings[key] = _typed(key, value, type(own[key]), gym)
        elif key in names:
            changed[key] = _allowed(key, value, kinds[key], gym)
        else:
            known = sorted({*own, *names, "compat"})
            raise ConfigError(
                f"gym {gym!r} has no option {key!r}{closest(key, known)}",
                expected="one of " + ", ".join(known),
            )
    return replace(flags, **changed), settings


def _preset(value: Any, gym: str) -> Compat:
    if value is None or value is False or value == "":
        return Compat()
    name = PROFILES[0] if value is True else value
    if not isinstance(name, str) or name not in _PRESETS:
        raise ConfigError(
            f"gym {gym!r}: 'compat' is {value!r}", expected="true, " + " or ".join(PROFILES)
        )
    return _PRESETS[name]


def _allowed(key: str, value: Any, kind: Any, gym: str) -> Any:
    choices = (True, False) if kind is bool else get_args(kind)
    if not any(value == one and type(value) is type(one) for one in choices):
        raise ConfigError(
            f"gym {gym!r}: {key!r} is {value!r}",
            expected="one of " + ", ".join(repr(one) for one in choices),
        )
    return value


def _typed(key: str, value: Any, kind: type, gym: str) -> Any:
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ConfigError(f"gym {gym!r}: {key!r} is {value!r}", expected=f"a {kind.__name__}")
    return value
