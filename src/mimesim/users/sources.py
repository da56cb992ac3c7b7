"""Kinds of model-backed users: a model, a prompt template and settings behind the user protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mimesim.dialogue.types import Identity
from mimesim.errors import EnvironmentFault
from mimesim.models.base import ChatModel
from mimesim.models.endpoint import redact
from mimesim.models.load import make_chat_model, preflight
from mimesim.prompts import prompt_hash
from mimesim.scenarios.types import Scenario
from mimesim.users import briefing
from mimesim.users.base import User, UserSource
from mimesim.users.kinds import FRAME, templates
from mimesim.users.settings import TRAINED, Settings, read_settings, trained_as
from mimesim.users.simulator import Simulator

_MODEL_FAMILIES = ("hf", "openai", "embedded", "scripted")


@dataclass(frozen=True, slots=True)
class SimulatorSource:
    """A kind of model-backed user: one model, many conversations."""

    identity: Identity
    model: ChatModel
    template: str
    settings: Settings

    def start(self, scenario: Mapping[str, Any], *, seed: int) -> User:
        """Make the user of one conversation; `seed` comes with every request.

        Raises:
            DataError: a damaged scenario.
        """
        return Simulator(
            self.model,
            briefing.read_scenario(scenario),
            template=self.template,
            settings=self.settings,
        )

    def start_told(self, prompt: str) -> User:
        """Make the user of one conversation whose whole private prompt somebody else wrote."""
        nobody = Scenario(id="told", goal="")
        return Simulator(
            self.model, nobody, template=self.template, settings=self.settings, told=prompt
        )

    def adjusted(self, **settings: Any) -> SimulatorSource:
        """Return the same kind of user with some settings changed.

        Raises:
            ConfigError: a value that no model takes.
        """
        return replace(self, settings=replace(self.settings, **settings))

    async def preflight(self) -> None:
        """Check the endpoint before a run.

        Raises:
            EnvironmentFault: it is not fit; one line that names the user.
        """
        try:
            await preflight(self.model)
        except EnvironmentFault as error:
            where = f"user {self.identity.name}" + (f", {error.where}" if error.where else "")
            raise EnvironmentFault(
                error.what, where=where, expected=error.expected, mend=error.mend
            ) from error

    async def aclose(self) -> None:
        """Release the model."""
        await self.model.aclose()


def make_source(name: str, model: ChatModel, *, template: str, settings: Settings) -> UserSource:
    """Put a model behind the user protocol."""
    identity = Identity(
        kind="llm",
        name=redact(name),
        model=model.identity.model or model.identity.name,
        endpoint_host=model.identity.endpoint_host,
        revision=model.identity.revision,
        prompt_hash=prompt_hash(template, FRAME, *sorted(templates())),
        sampling={
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
            "thinking": settings.thinking,
            "guards": settings.guards.value,
        },
    )
    return SimulatorSource(identity, model, template, settings)


def make_trained(path: str, *, options: Mapping[str, Any] | None = None) -> UserSource:
    """Make `trained:<path>`; a model name such as `openai:…` may stand for the path.

    A checkpoint of ours says in `mimesim.json` with which system text and whether with thoughts it
    was trained, for serving text and training text must be the same, how long its messages get and
    how it ends. User models of others are told by their tokenizer (`settings.trained_as`).

    Raises:
        DataError: a damaged `mimesim.json`.
    """
    name = f"trained:{path}"
    trained = trained_as(path)
    learnt: dict[str, Any] = {"end_marker": trained.end_marker, "speaks_as": trained.speaks_as}
    if trained.max_tokens is not None:
        learnt["max_tokens"] = trained.max_tokens
    settings = read_settings({**learnt, **(options or {})}, where=name, thinking=trained.thinking)
    known = path.partition(":")[0] in _MODEL_FAMILIES
    model = make_chat_model(path if known else f"hf:{path}", options=settings.model_options)
    return make_source(name, model, template=trained.template, settings=settings)


def make_served(url: str, *, options: Mapping[str, Any] | None = None) -> UserSource:
    """Make `http:<url>`: a user that somebody serves; it keeps its thoughts itself."""
    settings = read_settings(options, where=f"http:{url}")
    model = make_chat_model(f"openai:{settings.model}@{url}", options=settings.model_options)
    return make_source(f"http:{url}", model, template=TRAINED, settings=settings)
