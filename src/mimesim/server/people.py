"""Who answers: the served users by model name, and the person that one request means.

A model name is `<user>[/<scenario id>][+<behavior>][:natural|:flipped]`; the same can be said in the
field `mimesim`, which counts more. What a request says about the person is data: it names no file
and no code, although scenario files may.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from mimesim import jsonio, seeds
from mimesim.envs.load import load_tasks
from mimesim.errors import UsageError
from mimesim.registry import closest
from mimesim.scenarios import behaviors
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.behaviors import Situation
from mimesim.scenarios.rows import scenario_to_row
from mimesim.scenarios.types import BehaviorUse, Scenario
from mimesim.server.settings import Refusal, Roles, ServeSettings
from mimesim.server.strangers import Strangers
from mimesim.server.wire import Asked, Call, check_size
from mimesim.users.base import User, UserSource
from mimesim.users.guards import clean
from mimesim.users.load import make_user
from mimesim.users.sources import SimulatorSource

ALIAS = "user"
"""Model name that always means the first served user."""
_REST = re.compile(r"(?:/(?P<scenario_id>[^+:]+))?(?:\+(?P<behavior>[\w-]+))?(?::(?P<roles>\w+))?")
_PACK = re.compile(r"[\w-]+")
_SHOWN = 20
_DESK = ("support-desk", "full", 64)
"""Gym, profile and number of the people who are met where a server has no scenarios."""


@dataclass(frozen=True, slots=True)
class Meant:
    """A model name, taken apart."""

    name: str
    source: UserSource
    asked: Asked


@dataclass(frozen=True, slots=True)
class Person:
    """Whom one request means, ready to be started.

    Attributes:
        mark: tells this person from all others.
        scenario: None = the caller wrote the whole prompt.
        prompt: that prompt.
        replays: a lost state can be had again by going through the conversation.
        stranger: the server chose this person, and nothing but the conversation tells it again.
    """

    source: UserSource
    mark: str
    scenario: Scenario | None = None
    prompt: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    stranger: bool = False

    @property
    def replays(self) -> bool:
        """Whether a lost state can be had again by going through the conversation, free of cost."""
        return self.source.identity.kind == "scripted"

    def start(self, seed: int) -> User:
        """Make the user.

        Raises:
            Refusal: 400, nobody can play this scenario.
        """
        if self.scenario is None:
            return cast(SimulatorSource, self.source).start_told(self.prompt)
        try:
            return self.source.start(self.raw, seed=seed)
        except UsageError as error:
            raise unplayable(str(error)) from None
        except (KeyError, TypeError, ValueError, LookupError) as error:
            raise unplayable(f"something is missing in it ({type(error).__name__})") from None


class People:
    """The served users and the scenarios that the server knows."""

    def __init__(self, sources: Mapping[str, UserSource], settings: ServeSettings) -> None:
        self._sources = dict(sources)
        self._settings = settings
        given = settings.scenarios or _desk(settings.seed)
        self._scenarios = {str(one.get("id", "")): one for one in given}
        self._ids = list(self._scenarios)
        self._strangers = Strangers(self._ids, settings.seed, settings.memory_chars)

    @property
    def names(self) -> list[str]:
        """The model names, the alias last."""
        return [*self._sources, *([] if ALIAS in self._sources else [ALIAS])]

    def meant(self, model: object, asked: Asked) -> Meant:
        """Take a model name apart.

        Raises:
            Refusal: 404, no such user.
        """
        if not isinstance(model, str) or not model:
            raise Refusal(400, "model is missing", "invalid_value", param="model")
        for name in sorted(self.names, key=len, reverse=True):
            said = _REST.fullmatch(model, len(name)) if model.startswith(name) else None
            if said is None or said["roles"] not in (None, "natural", "flipped"):
                continue
            both = replace(
                asked,
                scenario_id=asked.scenario_id or said["scenario_id"] or "",
                behavior=asked.behavior or said["behavior"] or "",
                roles=asked.roles or said["roles"] or "",
            )
            source = self._sources.get(name) or next(iter(self._sources.values()))
            return Meant(name, source, both)
        raise Refusal(
            404,
            f"no model {model[:80]!r}{closest(model, self.names)}; served: {', '.join(self.names)}",
            "model_not_found",
            param="model",
        )

    def roles(self, asked: Asked) -> Roles:
        """Return whose words the chat roles are."""
        return cast(Roles, asked.roles or self._settings.roles)

    def person(self, meant: Meant, call: Call) -> Person:
        """Find out whom a request means.

        A scenario of the field `mimesim` counts most, then its instructions, then the system text,
        then whom the server would choose itself.

        Raises:
            Refusal: 400, a scenario that nobody can play; 404, one that is not there.
        """
        try:
            return self._person(meant, call)
        except UsageError as error:
            raise unplayable(str(error)) from None

    def _person(self, meant: Meant, call: Call) -> Person:
        asked, source = meant.asked, _sampled(meant.source, call)
        warnings: tuple[str, ...] = ()
        raw: Mapping[str, Any] | None = asked.scenario or self._named(asked.scenario_id)
        if not raw and asked.instructions:
            return self._told(meant, source, asked.instructions)
        if not raw and call.prompt:
            raw = _as_scenario(call.prompt)
            if raw is None and isinstance(source, SimulatorSource):
                if self._settings.system == "passthrough":
                    return self._told(meant, source, call.prompt)
                raw = _wrapped(call.prompt)
            elif raw is None and self._settings.system == "wrap":
                raw = _wrapped(call.prompt)
            elif raw is None:
                warnings = ("system was not read: scripted users play scenarios, not prose",)
        own = not raw
        if not raw:
            raw = self._own(meant, call)
        foreign = raw is not self._scenarios.get(str(raw.get("id", "")))
        scenario = _checked(raw) if foreign else Scenario.from_json(raw, "scenario")
        if asked.behavior:
            source, scenario = _behaving(source, scenario, asked.behavior)
        raw = scenario.to_json()
        mark = seeds.fingerprint(jsonio.canonical([meant.name, asked.behavior, raw]))
        stranger = own and not asked.episode
        return Person(source, mark, scenario, raw=raw, warnings=warnings, stranger=stranger)

    def met(self, meant: Meant, call: Call, person: Person, words: str) -> None:
        """Remember by the conversation whom a stranger met, once that person has said something."""
        if person.stranger and person.scenario is not None and words:
            self._strangers.met(meant.name, call.history, words, person.scenario.id)

    async def aclose(self) -> None:
        """Release the users."""
        for source in self._sources.values():
            await source.aclose()

    def _told(self, meant: Meant, source: UserSource, prompt: str) -> Person:
        if meant.asked.behavior:
            raise unplayable("a behavior needs a scenario; write it into your own prompt instead")
        if not isinstance(source, SimulatorSource):
            raise unplayable("instructions are prose, which only users with a model can follow")
        return Person(source, seeds.fingerprint(f"{meant.name}\n{prompt}"), prompt=prompt)

    def _named(self, name: str) -> Mapping[str, Any] | None:
        if not name:
            return None
        if name not in self._scenarios:
            shown = ", ".join(self._ids[:_SHOWN]) + (", ..." if len(self._ids) > _SHOWN else "")
            told = f"no scenario {name[:80]!r}{closest(name, self._ids)}; there are: {shown}"
            raise Refusal(404, told, "scenario_not_found", param="mimesim.scenario_id")
        return self._scenarios[name]

    def _own(self, meant: Meant, call: Call) -> Mapping[str, Any]:
        """Return whom a caller meets who names nobody.

        A behavior goes to the next one whose errand it fits.
        """
        ids, behavior, episode = self._ids, meant.asked.behavior, meant.asked.episode
        place = self._strangers.place(meant.name, call.history, episode, call.draws.seed)
        people = [self._scenarios[name] for name in (*ids[place:], *ids[:place])]
        if behavior in ("", "neutral"):
            return people[0]
        known = _known_behavior(behavior)
        fitting = (one for one in people if _fits(known, Scenario.from_json(one, "scenario")))
        return next(fitting, people[0])


def unplayable(told: str) -> Refusal:
    """Return the answer to a scenario that nobody can play."""
    return Refusal(400, told, "invalid_scenario", param="mimesim")


def model_name(door: str) -> str:
    """Return what a user is called as a model: its door name without addresses and folders."""
    family, colon, rest = door.partition(":")
    if "://" in door and family in ("http", "https"):
        return "http"
    bare = rest.partition("@http")[0].rstrip("/").rpartition("/")[2]
    kept = bare if family in ("scripted", "preset") else bare.rpartition(":")[2]
    return f"{family}{colon}{kept}" if kept else family


def _desk(seed: int) -> Sequence[Mapping[str, Any]]:
    gym, profile, count = _DESK
    tasks = load_tasks(gym, profile=profile, split="test", seed=seed, count=count)
    return [{**task.scenario, "history": []} for task in tasks]


def _as_scenario(prompt: str) -> Mapping[str, Any] | None:
    """Return the scenario that a system text is, if it is one: a JSON object with a goal."""
    if not prompt.lstrip().startswith("{"):
        return None
    try:
        read = jsonio.loads(prompt)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) and "goal" in read else None


def _wrapped(prompt: str) -> Mapping[str, Any]:
    return {"id": "system", "goal": prompt, "may_state_goal": True}


def _checked(raw: Mapping[str, Any]) -> Scenario:
    """Read a scenario that came over the network strictly, and refuse what could reach out of it."""
    check_size(raw, "the scenario")
    scenario = Scenario.from_json(_clean({"id": "given", **raw}), "scenario")
    for use in scenario.behavior:
        _known_behavior(use.id)
    if scenario.tools or scenario.history:
        raise unplayable("a served user has no tools, and its history is the caller's messages")
    if not _PACK.fullmatch(str(scenario.meta.get("manual", "company"))):
        raise unplayable("meta.manual is not the name of a shipped manual")
    if scenario.meta.get("profile", "full") not in ("full", "compact"):
        raise unplayable("such people answer inside their gym only")
    return scenario


def _clean(value: Any) -> Any:
    """Return JSON values without what no answer and no file can hold; they are not deep."""
    if isinstance(value, str):
        return clean(value)[0]
    if isinstance(value, Mapping):
        return {_clean(name): _clean(one) for name, one in value.items()}
    return [_clean(one) for one in value] if isinstance(value, list) else value


def _known_behavior(name: str) -> behaviors.Behavior:
    if ":" in name:  # the path of an object: a request must not import code
        raise unplayable("a behavior is named by id or name here")
    return behaviors.get(name)


def _behaving(source: UserSource, scenario: Scenario, name: str) -> tuple[UserSource, Scenario]:
    """Return user and scenario with another behavior, or none (`neutral`)."""
    known = None if name == "neutral" else _known_behavior(name)
    plain = replace(scenario, behavior=())
    if source.identity.kind == "scripted":
        return make_user(f"scripted:{known.id if known else name}"), plain
    if known is None:
        return source, plain
    params = _params(known, scenario)
    try:
        directive = known.directive(params)
    except KeyError as error:
        raise unplayable(
            f"behavior {known.id} needs {error} here: give scenario.behavior with id and params"
        ) from None
    return source, replace(plain, behavior=(BehaviorUse(known.id, params, directive),))


def _params(behavior: behaviors.Behavior, scenario: Scenario) -> Mapping[str, Any]:
    """Return the parameters that the behavior takes in a composed case."""
    case = _case(scenario)
    if case is None:
        return {}
    if not behavior.applicable(case):
        raise unplayable(f"{behavior.id} does not fit the errand of scenario {scenario.id}")
    return behavior.derive_params(case, seeds.generator(0, "mood", scenario.id, behavior.id))


def _fits(behavior: behaviors.Behavior, scenario: Scenario) -> bool:
    case = _case(scenario)
    return case is None or behavior.applicable(case)


def _case(scenario: Scenario) -> Situation | None:
    if "row" not in scenario.meta:
        return None
    manual = manuals.load(str(scenario.meta.get("manual", "company")))
    return Situation.of(scenario_to_row(scenario, "scenario"), manual)


def _sampled(source: UserSource, call: Call) -> UserSource:
    """Return the user with what the caller says about sampling."""
    if not isinstance(source, SimulatorSource):
        return source
    draws = call.draws
    given = {
        "temperature": draws.temperature,
        "top_p": draws.top_p,
        "max_tokens": draws.max_tokens,
    }
    return source.adjusted(trim=True, **{k: v for k, v in given.items() if v is not None})
