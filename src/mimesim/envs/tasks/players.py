"""Who takes the seat of the user model in a task: a chat model, the oracle, the null policy.

A token-level policy under training needs nothing of its own: `rollout.policy.PolicySource` runs
tasks as it runs gyms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mimesim import prompts
from mimesim.config import from_options
from mimesim.dialogue.thinking import join, split
from mimesim.dialogue.types import Identity, Role, Thought
from mimesim.envs.base import Agent, AgentAction, AgentMove, AgentView, Choice, Task
from mimesim.envs.tasks.load import task_of
from mimesim.envs.tasks.partner import PartnerSettings, task_prompts
from mimesim.errors import ContextExceeded
from mimesim.models.base import ChatMessage, ChatModel, Sampling
from mimesim.models.load import ModelParty, make_chat_model
from mimesim.seeds import derive

Kind = Literal["oracle", "null"]


class Ends:
    """The ends of every scale: `oracle` reads the hidden side, `null` does nothing."""

    def __init__(self, kind: Kind) -> None:
        self.identity = Identity("scripted", kind)
        self._kind = kind

    def start(self, *, task: Task, seed: int, key: str) -> Agent:
        """Make the player of one episode."""
        return _End(self._kind, task)

    async def aclose(self) -> None:
        """Release nothing."""


class _End:
    def __init__(self, kind: Kind, task: Task) -> None:
        self._kind = kind
        self._task = task

    async def act(self, view: AgentView) -> AgentMove:
        """Say the line of this turn."""
        task = task_of(self._task)
        told = task.oracle if self._kind == "oracle" else task.null
        text = told(self._task, view.step)
        return AgentMove(text, AgentAction(Choice.ACTION, text))

    async def aclose(self) -> None:
        """Release nothing."""


@dataclass(frozen=True, slots=True)
class PlayerSettings(PartnerSettings):
    """How a chat model is called as user model.

    Attributes:
        thinking: whether it reasons first; its own past turns are then sent again with their
            thoughts, as it was trained. None = say nothing about it.
        max_tokens: cap on one message, reasoning included; doubled after an empty one.
    """

    max_tokens: int = 2048


class ChatPlayers(ModelParty):
    """Makes one player per episode on a shared chat model."""

    def __init__(
        self, model: ChatModel, *, name: str = "", settings: PlayerSettings | None = None
    ) -> None:
        self._settings = settings or PlayerSettings()
        super().__init__(
            model,
            name,
            prompt_hash=prompts.prompt_hash(*task_prompts()),
            sampling=self._settings.sampling(),
        )

    def start(self, *, task: Task, seed: int, key: str) -> Agent:
        """Make the player of one episode."""
        return _ChatPlayer(self._model, self._settings, seed)


class _ChatPlayer:
    """One episode of a chat model; it keeps its own thoughts, which no transcript holds."""

    def __init__(self, model: ChatModel, settings: PlayerSettings, seed: int) -> None:
        self._model = model
        self._settings = settings
        self._seed = seed
        self._thoughts: dict[int, Thought | None] = {}
        self._asked = -1

    async def act(self, view: AgentView) -> AgentMove:
        """Ask the model; asked again for the same turn, it may write twice as much.

        Raises:
            ContextExceeded: the conversation does not fit.
            InfraError: the model could not be reached.
        """
        again = self._asked == view.step
        self._asked = view.step
        sampling = Sampling(
            temperature=self._settings.temperature,
            max_tokens=self._settings.max_tokens << again,
            seed=derive(self._seed, "player", view.step, int(again)),
            thinking=self._settings.thinking,
        )
        try:
            answer = await self._model.chat(self._messages(view), sampling)
        except ContextExceeded as error:
            raise ContextExceeded(error.detail, party="agent") from error
        parts = split(
            answer.text,
            thinking=self._settings.thinking,
            finish_reason=answer.finish_reason,
            reasoning=answer.reasoning,
        )
        self._thoughts[view.step] = parts.thought
        return AgentMove(
            parts.text if parts.complete else "",
            reasoning=parts.thought.reveal() if parts.thought else "",
            usage=answer.usage,
            finish_reason=answer.finish_reason,
        )

    async def aclose(self) -> None:
        """Release nothing; the model is shared."""

    def _messages(self, view: AgentView) -> list[ChatMessage]:
        messages = [
            ChatMessage("system", view.observation.system),
            ChatMessage("user", view.observation.first_user),
        ]
        own = 0
        for message in view.messages:
            if message.role is not Role.AGENT:
                messages.append(ChatMessage("user", message.content))
                continue
            text = message.content
            if self._settings.thinking:
                text = join(self._thoughts.get(own), text)
            messages.append(ChatMessage("assistant", text))
            own += 1
        return messages


def make_player(name: str, *, options: Mapping[str, Any] | None = None) -> Ends | ChatPlayers:
    """Make who plays: `oracle`, `null`, or any chat model that `models.load` knows.

    Args:
        name: door name.
        options: for models the fields of `PlayerSettings`.

    Raises:
        UnknownNameError: no such model.
        ConfigError: an unknown or unusable option.
    """
    if name in ("oracle", "null"):
        return Ends("oracle" if name == "oracle" else "null")
    settings = from_options(PlayerSettings, options, where=f"player {name!r}")
    return ChatPlayers(make_chat_model(name, options=settings.model), settings=settings)
