"""The user's side of one conversation that somebody else drives: words in, words out.

Whoever has an agent and a loop of his own (another harness, a server, a few lines of Python) holds a
`UserSession`. The end is a field of what it says, so nothing that the agent prints can be one; a
user that failed raises and says nothing, and the same words can be passed on again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mimesim.dialogue.stop import DIALECTS, LEAVING, StopReason, UserAction, mentions_marker
from mimesim.dialogue.thinking import is_blank, split_agent
from mimesim.dialogue.types import GuardEvent, PublicMessage, Reply, Role, Usage
from mimesim.errors import AgentError, CallerError, EpisodeError, UserError
from mimesim.rollout.record import replace_surrogates
from mimesim.scenarios.types import Scenario
from mimesim.seeds import derive
from mimesim.users import briefing
from mimesim.users.base import UserRequest, UserSource
from mimesim.users.leaving import Presence, check_reply, nobodys_end, presence


@dataclass(frozen=True, slots=True)
class Said:
    """What the user says; everything in it is public.

    Attributes:
        text: the words; empty only when the conversation is over.
        action: whether the user goes on, or how it leaves.
        stop: why the conversation ends, as soon as that is known; None = it goes on.
        over: the agent has no turn any more. While a user leaves with words (`stop` is set and this
            is not), the agent still answers them, and the next `hear` gives the bare end.
    """

    text: str
    action: UserAction = UserAction.SAY
    stop: StopReason | None = None
    over: bool = False

    def worded(self, dialect: str) -> str:
        """Return the words for a harness that reads the end from the text.

        The marker of the dialect stands alone, after the agent had its last turn; a scenario that
        grants no such turn (`end.grace: none`) gives it with the last words.

        Raises:
            UserError: the words hold a marker that the harness would take for an end.
        """
        markers = DIALECTS[dialect]
        if mentions_marker(self.text, {mark: action for action, mark in markers.items()}):
            raise UserError(f"the user's words hold an end marker of {dialect}")
        if not self.over:
            return self.text
        marker = markers.get(self.action, markers.get(UserAction.END, ""))
        return f"{self.text} {marker}".strip()


class UserSession:
    """One person in one conversation, from the first words to the end (single use).

    Args:
        source: what kind of user; it is shared and not closed here.
        scenario: the person, as a `Scenario` or its JSON values.
        seed: everything random of this person comes from it.
        history: what both said before, where the conversation did not begin here.

    Raises:
        DataError: the scenario is damaged.
    """

    def __init__(
        self,
        source: UserSource,
        scenario: Scenario | Mapping[str, Any],
        seed: int,
        *,
        history: Sequence[PublicMessage] = (),
    ) -> None:
        self.scenario = briefing.read_scenario(
            scenario.to_json() if isinstance(scenario, Scenario) else scenario
        )
        self.seed = seed
        self.usage = Usage()
        self.guards: list[GuardEvent] = []
        self._user = source.start(self.scenario.to_json(), seed=derive(seed, "user"))
        self._history = [*self.scenario.history, *history]
        self._seeded = sum(message.role is Role.USER for message in self._history)
        self._replies: list[Reply] = []
        self._failures = 0
        self._end: tuple[UserAction, StopReason] | None = None
        self._closed = False

    @property
    def history(self) -> tuple[PublicMessage, ...]:
        """What both said so far."""
        return tuple(self._history)

    @property
    def turns(self) -> int:
        """How many messages this user has said here."""
        return sum(message.role is Role.USER for message in self._history) - self._seeded

    @property
    def stop(self) -> StopReason | None:
        """Why the conversation ends; None = it goes on."""
        return None if self._end is None else self._end[1]

    async def open(self) -> Said:
        """Speak first.

        Raises:
            CallerError: something was said before.
            EpisodeError: the user failed; nothing was said.
        """
        if self._history:
            raise CallerError("the conversation has begun: pass on what the agent says")
        return await self._speak("")

    async def hear(self, text: str) -> Said:
        """Take in what the agent says and answer it; the agent may also speak first.

        Raises:
            AgentError: the agent's message shows nothing.
            UserError: the user broke its contract, or left a marker where it does not count.
            EpisodeError: model or network failed. Nothing was said, and it can be asked again.
        """
        if self._closed:
            raise CallerError("the session is closed")
        words, odd = replace_surrogates(split_agent(text).text)
        if self._end is not None:
            if not is_blank(words):
                self._history.append(PublicMessage(Role.AGENT, words))
            return Said("", *self._end, over=True)
        if is_blank(words):
            raise AgentError("the agent's message shows nothing")
        if odd:
            self.guards.append(GuardEvent("surrogate", 0, "replaced", "agent's text"))
        if mentions_marker(words):
            self.guards.append(GuardEvent("agent_marker", 0, "flagged"))
        heard = PublicMessage(Role.AGENT, words)
        talk, most = [*self._history, heard], self.scenario.max_turns
        reason = nobodys_end(talk, self.turns, most)
        if reason is not None:
            self._history.append(heard)
            self._end = (UserAction.END, reason)
            return Said("", *self._end, over=True)
        return await self._speak(words)

    def rejoin(self, history: Sequence[PublicMessage]) -> None:
        """Take over the transcript where somebody else spoke for the user, up to its last words.

        Where the user's own words are all there are, nothing changes.
        """
        told = [message.content for message in history if message.role is Role.USER]
        own = [message.content for message in self._history if message.role is Role.USER]
        if told != own:
            self._history = list(history)

    def private(self) -> dict[str, Any]:
        """Return what nobody but the author may see: goal, facts, thoughts and held-back drafts."""
        scenario = self.scenario.to_json()
        thoughts = [
            {"turn": turn, "text": reply.thought.reveal()}
            for turn, reply in enumerate(self._replies)
            if reply.thought is not None
        ]
        drafts = [
            {"turn": turn, "attempt": d.attempt, "text": d.text.reveal(), "guard": d.guard}
            for turn, reply in enumerate(self._replies)
            for d in reply.drafts
        ]
        return {"scenario": scenario, "thoughts": thoughts, "drafts": drafts}

    async def aclose(self) -> None:
        """Take no more words; twice is harmless, and the user's source stays open."""
        self._closed = True

    async def _speak(self, text: str) -> Said:
        if self._closed:
            raise CallerError("the session is closed")
        reply = await self._ask(text)
        if text:
            self._history.append(PublicMessage(Role.AGENT, text))
        if reply.utterance:
            self._history.append(PublicMessage(Role.USER, reply.utterance))
        self._replies.append(reply)
        self._failures = 0
        after = presence(reply.action, reply.utterance, self.scenario.end.grace)
        if after is Presence.STAYS:
            return Said(reply.utterance)
        self._end = (reply.action, LEAVING[reply.action])
        return Said(reply.utterance, *self._end, over=after is Presence.GONE)

    async def _ask(self, text: str) -> Reply:
        """Ask the user; what it said before a failure is as if it was never said."""
        request = UserRequest(
            kind="chat",
            history=tuple(self._history),
            agent_text=text,
            seed=derive(self.seed, "user", self.turns, self._failures),
            asked_fields=briefing.asked_for(text, list(self.scenario.facts)),
        )
        before = self._user.snapshot()
        try:
            reply = await self._user.respond(request)
            self._spent(reply)
            check_reply(reply, reply.utterance)
            if not self._history and not text and is_blank(reply.utterance):
                raise UserError("the user said nothing at the start")
        except BaseException as error:
            self._user.restore(before)
            self._failures += 1
            if isinstance(error, EpisodeError) and isinstance(error.lost, Reply):
                self._spent(error.lost)
            raise
        return reply

    def _spent(self, reply: Reply) -> None:
        self.usage += reply.usage
        self.guards += reply.guards
