"""The frozen other side of a task: a chat model, or the rule that comes with the request.

The partner is part of the environment: its words carry no gradient, and one that stays silent is
trouble of the infrastructure, never a mark against the user model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from mimesim import prompts
from mimesim.config import from_options
from mimesim.config.ranges import COUNT, NATURAL, check_ranges
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import Identity, Usage
from mimesim.errors import ContextExceeded, InfraError, UsageError
from mimesim.models.base import ChatMessage, ChatModel, Sampling
from mimesim.models.load import ModelParty, make_chat_model
from mimesim.models.structured import visible
from mimesim.registry import unknown_name
from mimesim.seeds import derive

_TRIES = 3


@dataclass(frozen=True, slots=True)
class PartnerRequest:
    """What the partner is asked.

    Attributes:
        system: who the partner is.
        messages: the conversation as it sees it; its own words are the `assistant` side.
        rule: what the partner without a model says.
    """

    system: str
    messages: Sequence[ChatMessage]
    seed: int
    rule: Callable[[], str]


@dataclass(frozen=True, slots=True)
class PartnerReply:
    """What it said; never blank."""

    text: str
    usage: Usage = Usage()


def task_prompts() -> list[str]:
    """Return the names of all templates that user models and partners are shown in tasks."""
    return [name for name in prompts.names() if name.startswith("tasks/")]


class Partner(Protocol):
    """Speaks on the other side of a task."""

    @property
    def identity(self) -> Identity:
        """Who speaks."""
        ...

    async def reply(self, request: PartnerRequest) -> PartnerReply:
        """Answer.

        Raises:
            InfraError: it could not be reached, or said nothing.
        """
        ...

    async def aclose(self) -> None:
        """Release what it holds; twice is harmless."""
        ...


class RulePartner:
    """Says what the rule of the request says: no model, no network, the same every time."""

    def __init__(self) -> None:
        self.identity = Identity("rule", "rule")

    async def reply(self, request: PartnerRequest) -> PartnerReply:
        """Apply the rule.

        Raises:
            InfraError: the rule says nothing.
        """
        text = request.rule().strip()
        if is_blank(text):
            raise InfraError("the partner's rule says nothing")
        return PartnerReply(text, Usage(calls=0, cost=0.0))

    async def aclose(self) -> None:
        """Release nothing."""


@dataclass(frozen=True, slots=True)
class PartnerSettings:
    """How a partner model is called.

    Attributes:
        max_tokens: cap on one reply; doubled when it stayed empty.
        thinking: whether the model is asked to reason first; None = say nothing about it.
        model: options of the model.
    """

    temperature: float = 0.7
    max_tokens: int = 1024
    thinking: bool | None = None
    model: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that no model takes.

        Raises:
            ConfigError: naming the option.
        """
        check_ranges(self, NATURAL, "temperature")
        check_ranges(self, COUNT, "max_tokens")

    def sampling(self) -> dict[str, Any]:
        """Return what records say about it."""
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "thinking": self.thinking,
        }


class ModelPartner(ModelParty):
    """A chat model on the other side."""

    def __init__(
        self, model: ChatModel, *, name: str = "", settings: PartnerSettings | None = None
    ) -> None:
        self._settings = settings or PartnerSettings()
        super().__init__(
            model,
            name,
            prompt_hash=prompts.prompt_hash(*task_prompts()),
            sampling=self._settings.sampling(),
        )

    async def reply(self, request: PartnerRequest) -> PartnerReply:
        """Ask the model; an empty line is asked for again with more room.

        Raises:
            InfraError: it could not be reached, or stayed empty.
        """
        usage, budget = Usage(), self._settings.max_tokens
        asked = [ChatMessage("system", request.system), *request.messages]
        for attempt in range(_TRIES):
            sampling = Sampling(
                temperature=self._settings.temperature,
                max_tokens=budget,
                seed=derive(request.seed, "partner", attempt),
                thinking=self._settings.thinking,
            )
            try:
                completion = await self._model.chat(asked, sampling)
            except ContextExceeded as error:
                raise InfraError("the conversation does not fit the partner model") from error
            usage += completion.usage
            text = visible(completion).strip()
            if not is_blank(text):
                return PartnerReply(text, usage)
            budget *= 2
        raise InfraError(f"the partner said nothing {_TRIES} times", attempts=_TRIES)


def make_partner(name: str, *, options: Mapping[str, Any] | None = None) -> Partner:
    """Make the partner that `name` says: `rule`, or `model:<model>`.

    Args:
        name: its door name.
        options: for models the fields of `PartnerSettings`; none for rules.

    Raises:
        UnknownNameError: no such partner or model.
        UsageError: the name is incomplete, or options make no sense.
        ConfigError: an unknown or unusable option.
    """
    kind, _, rest = name.partition(":")
    if kind == "rule":
        if rest or options:
            raise UsageError(f"partner 'rule' takes neither {rest!r} nor options")
        return RulePartner()
    if kind != "model":
        raise unknown_name("partner", name, ["rule", "model:<model>"])
    if not rest:
        raise UsageError("partner 'model:' is incomplete", expected="model:<model>")
    settings = from_options(PartnerSettings, options, where=f"partner {name!r}")
    model = make_chat_model(rest, options=settings.model)
    return cast(Partner, ModelPartner(model, name=name, settings=settings))
