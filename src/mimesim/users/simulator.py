"""The model-backed user: a private thought and a public message per turn.

The simulator is the assistant of its own chat; the agent's public words are its user side. Its own
past turns are sent again with their thoughts where it was trained so. An authored line goes out
byte for byte with no model call. A drawn reply is delivered whole or drawn again, never edited,
and after the last redraw the user has failed: there is no sentence to fall back on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mimesim.dialogue.stop import MARKERS, UserAction
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import (
    Draft,
    GuardEvent,
    PublicMessage,
    Reply,
    Role,
    Thought,
    Usage,
)
from mimesim.dialogue.views import GREETING, WireMessage, as_user
from mimesim.errors import ContextExceeded, EpisodeError, UserError
from mimesim.models.base import ChatMessage, ChatModel, Completion, Sampling
from mimesim.scenarios.types import Scenario
from mimesim.seeds import fingerprint
from mimesim.users import briefing
from mimesim.users.base import UserRequest
from mimesim.users.guards import Fault, Mode, Situation
from mimesim.users.kinds import Part, part_of, recalled
from mimesim.users.reading import CUT, Drawn, Reader
from mimesim.users.settings import Settings

_SEEDS = 2**63


class Simulator:
    """One person in one conversation, played by a chat model.

    Args:
        model: who writes; shared, not closed here.
        scenario: the person.
        template: prompt template of the private side, e.g. `user/trained`.
        settings: how it thinks, samples and is guarded.
        told: the whole private prompt, where somebody else wrote it; it stands in place of the one
            that `template` makes of the scenario.
    """

    def __init__(
        self,
        model: ChatModel,
        scenario: Scenario,
        *,
        template: str,
        settings: Settings,
        told: str = "",
    ) -> None:
        self._model = model
        self._scenario = scenario
        self._settings = settings
        self._system = told or briefing.system_prompt(
            scenario,
            template,
            thinking=bool(settings.thinking),
            end_marker=settings.end_marker,
        )
        self._lines = (
            *([scenario.opening] if scenario.opening is not None else []),
            *scenario.script,
        )
        own = (settings.end_marker, *scenario.end.markers)
        markers = {**MARKERS, **dict.fromkeys(own, UserAction.END)}
        self._reader = Reader(settings, markers)
        self._thoughts: list[Thought | None] = []  # by turn, where the scenario says who this is
        self._said: list[tuple[str, Thought | None]] = []  # where a gym's questions do
        self._asked: set[str] = set()

    @property
    def prompt_hash(self) -> str:
        """Fingerprint of the whole private prompt, the scenario included."""
        return fingerprint(self._system)

    async def respond(self, request: UserRequest) -> Reply:
        """Answer, or speak first when nothing was said yet.

        Raises:
            UserError: the contract was broken after all redraws, or nothing tells what to answer.
            InfraError: the model could not be reached.
            ContextExceeded: the conversation no longer fits the model, party `user`.
        """
        part = part_of(request, self._settings)
        if part is not None:
            return await self._in_part(request, part)
        history = _with_agent_text(request)
        spoken = sum(message.role is Role.USER for message in history)
        del self._thoughts[spoken:]  # a step that failed after this user spoke is asked again
        self._thoughts += [None] * (spoken - len(self._thoughts))
        authored = self._authored(history)
        if authored is not None:
            return authored
        self._hear(request)
        scene = self._situation(history)
        part = Part(self._system, scene, may_end=request.may_end)
        reply = await self._draw(history, request.seed, part, self._thoughts)
        self._thoughts.append(reply.thought)
        return reply

    async def _in_part(self, request: UserRequest, part: Part) -> Reply:
        """Answer a question of a gym, whose history never holds the words to be answered."""
        text = request.agent_text
        new = () if is_blank(text) else (PublicMessage(Role.AGENT, text),)
        history = (*request.history, *new)
        part = replace(part, scene=_with_talk(part.scene, history))
        reply = await self._draw(history, request.seed, part, recalled(self._said, history))
        self._said.append((reply.utterance, reply.thought))
        return reply

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as JSON values; it is private."""
        return {
            "thoughts": [_revealed(t) for t in self._thoughts],
            "said": [[words, _revealed(t)] for words, t in self._said],
            "asked": sorted(self._asked),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state from `snapshot`."""
        self._thoughts = [_kept(t) for t in state["thoughts"]]
        self._said = [(words, _kept(t)) for words, t in state["said"]]
        self._asked = set(state["asked"])

    def _authored(self, history: Sequence[PublicMessage]) -> Reply | None:
        """Return the author's own line for this turn, if there is one."""
        seeded = sum(message.role is Role.USER for message in self._scenario.history)
        turn = sum(message.role is Role.USER for message in history) - seeded
        if 0 <= turn < len(self._lines):
            return Reply(None, self._lines[turn], source="scripted", attempts=0)
        if self._scenario.script and turn >= len(self._lines):
            return Reply(None, "", UserAction.END, source="scripted", attempts=0)
        return None

    def _hear(self, request: UserRequest) -> None:
        withheld = [entry.fact for entry in self._scenario.withhold]
        heard = [m.content for m in request.history if m.role is Role.AGENT]
        for text in (*heard, request.agent_text):
            self._asked.update(briefing.asked_for(text, withheld))
        self._asked.update(request.asked_fields)

    async def _draw(
        self,
        history: Sequence[PublicMessage],
        seed: int,
        part: Part,
        thoughts: Sequence[Thought | None],
    ) -> Reply:
        rows = as_user(
            history,
            system=part.system,
            thoughts=thoughts if self._settings.thinking else None,
            show_agent_tools=self._settings.show_agent_tools,
        )
        messages = _on_the_wire(rows, speaks_as=self._settings.speaks_as)
        events: list[GuardEvent] = []
        drafts: list[Draft] = []
        usage = Usage()
        once = part.as_is or self._settings.guards is Mode.FLAG
        tries = 1 if once else self._settings.max_regen + 1
        budget, last = self._settings.max_tokens, Fault("empty", hard=True)
        for attempt in range(tries):
            try:
                completion, cut = await self._ask_within(
                    messages, budget, (seed + attempt) % _SEEDS
                )
            except EpisodeError as error:
                error.lost = _nothing(attempt, usage, events, drafts)
                raise
            if cut:
                messages = _without_oldest(messages, cut)
                events.append(GuardEvent("trimmed", attempt, "record", f"{cut} oldest messages"))
            usage += replace(completion.usage, regen_calls=int(attempt > 0))
            drawn = self._reader.read(completion, part)
            held = drawn.held_back
            events += drawn.events(attempt, final=attempt + 1 == tries)
            if held is None:
                return _reply(drawn, attempt, usage, events, drafts)
            last = held
            drafts.append(Draft(attempt, Thought(completion.text), held.guard))
            if held.guard in CUT:
                budget = 2 * self._settings.max_tokens
        failed = UserError(f"{last.guard} after {tries} attempts", attempts=tries)
        failed.lost = _nothing(tries, usage, events, drafts)
        raise failed

    async def _ask_within(
        self, messages: Sequence[ChatMessage], budget: int, seed: int
    ) -> tuple[Completion, int]:
        """Ask; where the conversation does not fit, without its older half, and again."""
        cut = 0
        while True:
            try:
                return await self._ask(_without_oldest(messages, cut), budget, seed), cut
            except ContextExceeded:
                left = len(messages) - cut - 2  # neither the prompt nor the last words
                if not self._settings.trim or left < 2:
                    raise
                cut += max(2, left // 2 // 2 * 2)

    async def _ask(self, messages: Sequence[ChatMessage], budget: int, seed: int) -> Completion:
        sampling = Sampling(
            temperature=self._settings.temperature,
            top_p=self._settings.top_p,
            max_tokens=budget,
            seed=seed,
            thinking=self._settings.thinking,
        )
        try:
            return await self._model.chat(messages, sampling)
        except ContextExceeded as error:
            raise ContextExceeded(error.detail, party="user") from error

    def _situation(self, history: Sequence[PublicMessage]) -> Situation:
        scene = briefing.situation(
            self._scenario,
            prompt=self._system,
            opening=False,
            asked=sorted(self._asked),
            max_chars=self._settings.max_chars,
        )
        return _with_talk(scene, history)


def _with_talk(scene: Situation, history: Sequence[PublicMessage]) -> Situation:
    """Return the scene with what was said so far."""
    own = [m.content for m in history if m.role is Role.USER]
    heard = [m.content for m in history if m.role is Role.AGENT and not is_blank(m.content)]
    return replace(scene, opening=not own, own=own, agent_text=heard[-1] if heard else "")


def _revealed(thought: Thought | None) -> str | None:
    return thought.reveal() if thought is not None else None


def _kept(text: str | None) -> Thought | None:
    return Thought(text) if text is not None else None


def _on_the_wire(rows: Sequence[WireMessage], *, speaks_as: str) -> list[ChatMessage]:
    """Return the messages as the model knows them, its own under the role that it learnt."""
    if speaks_as == "assistant":
        return [ChatMessage(row.role, row.content) for row in rows]
    talk = list(rows[1:])
    if talk and talk[0] == WireMessage("user", GREETING):  # such a model opens by itself
        talk.pop(0)
    swapped = {"user": "assistant", "assistant": "user"}
    own = [ChatMessage(swapped[row.role], row.content) for row in talk]
    return [ChatMessage(rows[0].role, rows[0].content), *own]


def _without_oldest(messages: Sequence[ChatMessage], count: int) -> list[ChatMessage]:
    """Return the messages without the `count` oldest ones after the prompt."""
    return [messages[0], *messages[1 + count :]]


def _with_agent_text(request: UserRequest) -> tuple[PublicMessage, ...]:
    """Return the history with the agent's last words at its end, once."""
    words = request.agent_text.strip()
    visible = [
        m for m in request.history if m.role in (Role.USER, Role.AGENT) and not is_blank(m.content)
    ]
    last = visible[-1] if visible else None
    if not words or (last and last.role is Role.AGENT and words in last.content):
        return request.history
    return (*request.history, PublicMessage(Role.AGENT, request.agent_text))


def _nothing(attempts: int, usage: Usage, events: list[GuardEvent], drafts: list[Draft]) -> Reply:
    """Return what was spent and held back on a turn that came to nothing."""
    return Reply(
        None, "", usage=usage, attempts=attempts, guards=tuple(events), drafts=tuple(drafts)
    )


def _reply(
    drawn: Drawn, attempt: int, usage: Usage, events: list[GuardEvent], drafts: list[Draft]
) -> Reply:
    return Reply(
        thought=drawn.thought,
        utterance=drawn.text,
        action=drawn.action,
        raw=drawn.completion.text,
        finish_reason=drawn.completion.finish_reason,
        usage=usage,
        attempts=attempt + 1,
        guards=tuple(events),
        drafts=tuple(drafts),
    )
