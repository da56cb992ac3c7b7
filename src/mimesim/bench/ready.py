"""What a matrix needs before it starts, found without network and without loading a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mimesim.bench.config import WITHOUT_MODEL, Arm, EvaluationConfig
from mimesim.envs.agents.load import REGISTRY as AGENTS
from mimesim.envs.agents.load import make_agent
from mimesim.errors import ConfigError, EnvironmentFault
from mimesim.judges.load import REGISTRY as JUDGES
from mimesim.judges.load import SELF
from mimesim.models.endpoint import redact
from mimesim.models.load import CHAT, check_ready
from mimesim.users.load import REGISTRY as USERS
from mimesim.users.load import make_user
from mimesim.users.presets import PREFIX, resolve


def missing(config: EvaluationConfig) -> list[str]:
    """Return what is not there yet, one line each: keys, checkpoints, model folders.

    Raises:
        UnknownNameError: an agent, a user, a preset, a model or a judge that does not exist.
        UsageError: a malformed name.
    """
    wanted = [*_agents(config), *_users(config), *_judges(config)]
    return list(dict.fromkeys(line for line in wanted if line))


def refuse_missing(config: EvaluationConfig) -> None:
    """Refuse to start while something is missing.

    Raises:
        EnvironmentFault: naming all of it.
    """
    found = missing(config)
    if found:
        raise EnvironmentFault("not ready: " + "; ".join(found))


def self_judge(user: str, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    """Return the judge, with its options, that is the model behind a user.

    Raises:
        ConfigError: no model is known behind this user.
    """
    door, given = _resolved(user, options)
    family, _, rest = door.partition(":")
    if family == "scripted":
        return "rule", {}
    behind = _model_behind(family, rest, given)
    if not behind:
        raise ConfigError(
            f"'gyms.judge' is {SELF!r}, but no model is known behind the user {user!r}",
            expected="a user that is a model, or a judge by name",
        )
    options = given.get("model_options")
    return f"model:{behind}", {"model": options} if options else {}


def speaks_through(name: str, options: Mapping[str, Any] | None = None) -> str:
    """Return where the calls of a party go: a host, `this machine`, or "" where no model answers."""
    door, _ = _resolved(name, options)
    _, found, url = door.partition("://")
    if found:
        return url.rpartition("@")[2].partition("/")[0]
    family = door.partition(":")[0]
    return "this machine" if family in ("roleplay", "trained", "policy", "model") else ""


def _resolved(name: str, options: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """Return a door name and its options, a preset as what it stands for."""
    if name.startswith(PREFIX):
        return resolve(name, options)
    bare = name.startswith(("http://", "https://"))
    return f"http:{name}" if bare else name, dict(options or {})


def _is_model(name: str) -> bool:
    return name.partition(":")[0] in CHAT.names()


def _agents(config: EvaluationConfig) -> Iterator[str]:
    for arm in config.checkpoints:
        family, _, rest = _resolved(arm.agent, None)[0].partition(":")
        if "." not in family:
            AGENTS.target(family)
        if family in WITHOUT_MODEL:
            make_agent(arm.agent)
        where = f"arm {arm.name!r}"
        if family == "policy" and not (Path(rest) / "config.json").is_file():
            yield f"{where}: no model checkpoint in {rest!r}"
        elif family == "model":
            yield _lack(rest, _model_options(config, arm), where)
        elif family == "http":
            model = {**config.agent_options, **arm.options}.get("model", "agent")
            yield _lack(f"openai:{model}@{rest}", _model_options(config, arm), where)


def _model_options(config: EvaluationConfig, arm: Arm) -> Mapping[str, Any]:
    merged: Mapping[str, Any] = {**config.agent_options, **arm.options}.get("model_options", {})
    return merged


def _users(config: EvaluationConfig) -> Iterator[str]:
    for name in config.users:
        door, given = _resolved(name, config.user_options.get(name))
        family, _, rest = door.partition(":")
        if "." not in family:
            USERS.target(family)
        if family == "scripted":
            make_user(name)
        shown = name if name.startswith(PREFIX) else f"user {redact(name)!r}"
        model = _model_behind(family, rest, given)
        if model:
            yield _lack(model, given.get("model_options"), shown)


def _model_behind(family: str, rest: str, options: Mapping[str, Any]) -> str:
    if family == "http":
        return f"openai:{options.get('model', 'user')}@{rest}"
    if family == "trained" and not _is_model(rest):
        return f"hf:{rest}"
    return rest if family in ("roleplay", "trained") else ""


def _judges(config: EvaluationConfig) -> Iterator[str]:
    if config.gyms.judge == SELF:
        for user in config.users:
            self_judge(user, config.user_options.get(user))
        return
    family, _, rest = config.gyms.judge.partition(":")
    if "." not in family:
        JUDGES.target(family)
    if family == "model":
        options = config.gyms.judge_options.get("model", {})
        yield _lack(rest, options, f"judge {config.gyms.judge!r}")


def _lack(model: str, options: Mapping[str, Any] | None, where: str) -> str:
    """Return what a model lacks, as a line; "" = nothing that can be seen from here."""
    try:
        check_ready(model, options)
    except EnvironmentFault as error:
        return f"{where}: {error.what}, expected {error.expected}"
    return ""
