"""A chat model as an agent: `model:<model>` and `http:<url>`.

Where the endpoint supports tools, the agent makes native calls of `interact_with_env`; elsewhere
it writes its action as text. It keeps its own wire history, without reasoning, so that what it
reads does not depend on how a transcript is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mimesim import config, prompts
from mimesim.config.ranges import COUNT, NATURAL, check_ranges
from mimesim.dialogue import thinking
from mimesim.dialogue.types import Role
from mimesim.envs.actions import ActionFormat, read_tool_calls
from mimesim.envs.agents.prompting import feedback_text, opening_text, system_text
from mimesim.envs.base import Agent, AgentMove, AgentSource, AgentView, GymSpec, Task, profile_of
from mimesim.envs.load import gym_spec
from mimesim.errors import ConfigError, ContextExceeded, InfraError, MimesimError
from mimesim.models.base import ChatMessage, ChatModel, Completion, Sampling
from mimesim.models.endpoint import redact
from mimesim.models.load import ModelParty, make_chat_model
from mimesim.seeds import derive

_TOOL_USE = ("auto", "native", "text")
_PROMPTS = ("agent/system", "agent/feedback", "agent/tool_call", "agent/line", "agent/plain")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model agent is called.

    Attributes:
        temperature: 0 = greedy.
        max_tokens: cap on one move, reasoning included; doubled after an empty answer.
        thinking: whether the model is asked to reason first; None = say nothing about it.
        tools: native calls, text, or auto (native for OpenAI-compatible endpoints).
        model: the model's name, for `http:<url>` only.
        model_options: settings of the model behind the agent (`models.load`).
    """

    temperature: float = 0.0
    max_tokens: int = 2048
    thinking: bool | None = None
    tools: str = "auto"
    model: str = "agent"
    model_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that no model takes.

        Raises:
            ConfigError: naming the option.
        """
        check_ranges(self, NATURAL, "temperature")
        check_ranges(self, COUNT, "max_tokens")


def make_model(
    rest: str, action_format: ActionFormat, options: Mapping[str, Any] | None
) -> AgentSource:
    """Make the agent that speaks through model `rest`, any name that `models.load` knows.

    Raises:
        UnknownNameError: no such model.
        ConfigError: an unknown option.
    """
    settings = _settings(options, redact(f"model:{rest}"))
    model = make_chat_model(rest, options=settings.model_options)
    return ChatAgents(model, redact(f"model:{rest}"), action_format, settings)


def make_http(
    rest: str, action_format: ActionFormat, options: Mapping[str, Any] | None
) -> AgentSource:
    """Make the agent behind an OpenAI-compatible endpoint; its actions are written as text.

    Raises:
        ConfigError: an unknown option.
    """
    settings = _settings(options, redact(rest))
    if settings.tools == "auto":
        settings = replace(settings, tools="text")
    model = make_chat_model(f"openai:{settings.model}@{rest}", options=settings.model_options)
    return ChatAgents(model, redact(rest), action_format, settings)


def _settings(options: Mapping[str, Any] | None, who: str) -> Settings:
    settings = config.from_options(Settings, options, where=f"agent {who!r}")
    if settings.tools not in _TOOL_USE:
        raise ConfigError(
            f"tools is {settings.tools!r}", where=who, expected="one of " + ", ".join(_TOOL_USE)
        )
    return settings


class ChatAgents(ModelParty):
    """Makes one agent per conversation on a shared model."""

    def __init__(
        self, model: ChatModel, name: str, action_format: ActionFormat, settings: Settings
    ) -> None:
        self._format = action_format
        self._settings = settings
        self._native = settings.tools == "native" or (
            settings.tools == "auto" and model.identity.endpoint_host != ""
        )
        super().__init__(
            model,
            name,
            prompt_hash=prompts.prompt_hash(*_PROMPTS),
            sampling={
                "temperature": settings.temperature,
                "max_tokens": settings.max_tokens,
                "thinking": settings.thinking,
                "tools": "native" if self._native else "text",
                "action_format": action_format.name,
            },
        )

    def start(self, *, task: Task, seed: int, key: str) -> Agent:
        """Make the agent of one conversation."""
        spec = gym_spec(task.gym, profile_of(task))
        tools = self._format.tool_schema(spec) if self._native else ()
        return ChatAgent(self._model, self._format, self._settings, spec, tools=tools, seed=seed)


class ChatAgent:
    """One conversation of a chat model as an agent."""

    def __init__(
        self,
        model: ChatModel,
        action_format: ActionFormat,
        settings: Settings,
        spec: GymSpec,
        *,
        tools: Sequence[Mapping[str, Any]],
        seed: int,
    ) -> None:
        self._model = model
        self._format = action_format
        self._settings = settings
        self._spec = spec
        self._tools = tools
        self._seed = seed
        self._wire: list[ChatMessage] = []
        self._read = 0
        self._asked = -1

    async def act(self, view: AgentView) -> AgentMove:
        """Ask the model; asked again for the same step, it may write twice as much.

        The driver asks once more after an empty answer, e.g. one that was all reasoning.

        Raises:
            ContextExceeded: the conversation does not fit.
            InfraError: the model could not be reached.
        """
        self._hear(view)
        again = self._asked == view.step
        self._asked = view.step
        sampling = Sampling(
            temperature=self._settings.temperature,
            max_tokens=self._settings.max_tokens << again,
            seed=derive(self._seed, "agent", view.step, int(again)),
            thinking=self._settings.thinking,
        )
        try:
            answer = await self._model.chat(self._wire, sampling, tools=self._tools)
        except ContextExceeded as error:
            raise ContextExceeded(error.detail, party="agent") from error
        except MimesimError:
            raise
        except Exception as error:  # ours broke, not the agent: nothing is scored
            raise InfraError(f"the model broke: {type(error).__name__}: {error}") from error
        move = self._move(answer)
        if answer.tool_calls or not thinking.is_blank(move.text):
            self._wire.append(ChatMessage("assistant", move.text, answer.tool_calls))
        return move

    async def aclose(self) -> None:
        """Release nothing; the model is shared."""

    def _move(self, answer: Completion) -> AgentMove:
        parts = thinking.split_agent(
            answer.text,
            thinking=self._settings.thinking,
            finish_reason=answer.finish_reason,
            reasoning=answer.reasoning,
        )
        action = read_tool_calls(answer.tool_calls, self._spec) if answer.tool_calls else None
        return AgentMove(
            parts.text,
            action,
            reasoning=parts.reasoning,
            usage=answer.usage,
            finish_reason=answer.finish_reason,
        )

    def _hear(self, view: AgentView) -> None:
        """Append what is new in the view; the agent's own messages are in the wire already."""
        if not self._wire:
            self._wire.append(ChatMessage("system", system_text(view, self._format, self._spec)))
            opening = opening_text(view.observation.first_user, self._spec)
            self._wire.append(ChatMessage("user", opening))
        fresh = [m for m in view.messages[self._read :] if m.role is not Role.AGENT]
        self._read = len(view.messages)
        if not fresh:
            return
        text = feedback_text(fresh, self._spec)
        calls = self._wire[-1].tool_calls
        for call in calls:
            self._wire.append(ChatMessage("tool", text, tool_call_id=call.id))
        if not calls:
            self._wire.append(ChatMessage("user", text))
