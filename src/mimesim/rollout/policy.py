"""A token-level policy as an agent: the same driver evaluates it and trains it.

The agent keeps one `TokenRecord` for its episode; new public messages become suffix ids, replies
are sampled ids kept as they are. The source hands the finished records to a trainer by episode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mimesim.config import from_options
from mimesim.config.ranges import COUNT, NATURAL, check_ranges
from mimesim.dialogue.types import Identity, PublicMessage, Role, Usage
from mimesim.envs.base import AgentMove, AgentView, Observation, Task
from mimesim.errors import InfraError, MimesimError
from mimesim.models.base import ChatMessage, Sampling, TokenModel, TokenSession
from mimesim.models.load import make_token_model
from mimesim.rollout.tokens import TokenRecord, TokenRollout
from mimesim.seeds import derive


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """How the policy samples.

    Attributes:
        temperature: 1 for training (anything else biases the importance ratio), 0 = greedy.
        max_tokens: cap on one reply.
        one_turn: a reply ends where the policy begins the message of another speaker.
    """

    temperature: float = 1.0
    max_tokens: int = 16
    one_turn: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be sampled with.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, NATURAL, "temperature")
        check_ranges(self, COUNT, "max_tokens")


Start = Callable[[Task, Observation], Sequence[ChatMessage]]
"""Task and opening -> the messages before the policy's first reply, the last one not its own.

They are context: `assistant` turns among them were not sampled and carry no gradient.
"""


class PolicySource:
    """Makes one `PolicyAgent` an episode and keeps the token records by episode key."""

    def __init__(
        self, model: TokenModel, config: PolicyConfig | None = None, start: Start | None = None
    ) -> None:
        self._model = model
        self.config = config or PolicyConfig()
        self._start = start
        self._agents: dict[str, PolicyAgent] = {}

    @property
    def identity(self) -> Identity:
        """Who acts, with its sampling."""
        inner = self._model.identity
        sampling = {"temperature": self.config.temperature, "max_tokens": self.config.max_tokens}
        return Identity("policy", inner.name, model=inner.model, sampling=sampling)

    def start(self, *, task: Task, seed: int, key: str) -> PolicyAgent:
        """Make the agent of one episode; a retried episode replaces its record."""
        opened = partial(self._start, task) if self._start is not None else opening
        agent = PolicyAgent(self._model, self.config, seed, key, opened)
        self._agents[key] = agent
        return agent

    def take(self, key: str) -> TokenRollout | None:
        """Return and forget the record of an episode; None if the policy never spoke."""
        agent = self._agents.pop(key, None)
        return None if agent is None else agent.record()

    async def aclose(self) -> None:
        """Forget all records."""
        self._agents.clear()


def make_policy(
    rest: str, action_format: str, options: Mapping[str, Any] | None = None
) -> PolicySource:
    """Make the agent `policy:<path>`; options are the fields of `PolicyConfig`.

    Raises:
        EnvironmentFault: no checkpoint at that path.
        ConfigError: an unknown or unusable option.
    """
    name = f"policy:{rest}"
    settings = from_options(PolicyConfig, options, where=f"agent {name!r}")
    return PolicySource(make_token_model(name), settings)


class PolicyAgent:
    """One episode of the policy."""

    def __init__(
        self,
        model: TokenModel,
        config: PolicyConfig,
        seed: int,
        key: str,
        start: Callable[[Observation], Sequence[ChatMessage]],
    ) -> None:
        self._start = start
        self._codec = model.codec
        self._session: TokenSession = model.session(key)
        self._config = config
        opening = self._codec.opening
        self._ends = (opening,) if config.one_turn and opening is not None else ()
        self._seed = seed
        self._record: TokenRecord | None = None
        self._seen = 0
        self._cut = False

    async def act(self, view: AgentView) -> AgentMove:
        """Feed what is new in public, sample one reply.

        Raises:
            ContextExceeded: the conversation does not fit the model.
            InfraError: the model broke; that is no move of the agent and scores nothing.
        """
        new_ids = self._new_ids(view)
        sampling = Sampling(
            temperature=self._config.temperature,
            max_tokens=self._config.max_tokens,
            seed=derive(self._seed, "reply", view.step),
            ends=self._ends,
        )
        try:
            reply = await self._session.extend(new_ids, sampling)
        except MimesimError:
            raise
        except Exception as error:
            raise InfraError(f"the policy broke: {type(error).__name__}: {error}") from error
        assert self._record is not None
        self._record.add_reply(reply.ids, reply.logprobs)
        self._cut = reply.ids[-1] != self._codec.end_id
        return AgentMove(
            self._codec.decode(reply.ids),
            usage=Usage(completion_tokens=len(reply.ids), calls=1, cost=0.0),
            finish_reason=reply.finish_reason,
        )

    def _new_ids(self, view: AgentView) -> list[int]:
        """Return the ids that the model has not seen, and write them into the record."""
        header = self._codec.header
        if self._record is None:
            messages = list(self._start(view.observation))
            heard = [messages.pop().content, *(m.content for m in view.messages)]
            text = "\n\n".join(t for t in heard if t)
            ids = self._codec.prompt_ids([*messages, ChatMessage("user", text)])
            self._record = TokenRecord(tuple(ids), header)
        else:
            ids = self._codec.suffix_ids(_heard(view.messages[self._seen :]))
            # A reply cut by its cap has no end token: close it, masked, so the context is sound.
            ids = [self._codec.end_id, *ids] if self._cut else ids
            self._record.add_context(ids, header)
        self._seen = len(view.messages)
        return ids

    def record(self) -> TokenRollout | None:
        """Return the finished record; None if the policy never spoke."""
        if self._record is None or self._record.replies == 0:
            return None
        return self._record.finish()

    async def aclose(self) -> None:
        """Leave the model, so that the other rows do not wait."""
        self._session.close()


def opening(observation: Observation) -> list[ChatMessage]:
    """Return an opening as chat messages: what the policy is told, and the user's first words."""
    return [
        ChatMessage("system", observation.system),
        ChatMessage("user", observation.first_user),
    ]


def _heard(messages: Sequence[PublicMessage]) -> str:
    """Return what others said, in order, as one user message."""
    return "\n\n".join(m.content for m in messages if m.role is not Role.AGENT and m.content)
