"""One reply: the user as it was after its last words, asked what it says now.

The guards, the redraws and the splitting of thoughts are the simulator's own, as in a rollout. What
is done here is to find the state that belongs to a transcript, and to say how the user leaves:
words that come with an end are delivered, the agent has one more turn, and then the end is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mimesim.dialogue.stop import (
    LEAVING,
    Party,
    Stop,
    StopReason,
    UserAction,
    mentions_marker,
)
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import PublicMessage, Reply, Role, Usage
from mimesim.errors import UserError
from mimesim.seeds import derive
from mimesim.server.memory import Diary, States, own_words, place_of
from mimesim.server.people import Person
from mimesim.server.settings import Refusal, ServeSettings
from mimesim.server.wire import Call
from mimesim.users import briefing
from mimesim.users.base import User, UserRequest
from mimesim.users.leaving import Presence, check_reply, nobodys_end, presence

_FAILURES = 4096
"""Failed turns that are remembered."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the caller gets.

    Attributes:
        content: the words, and the marker where the caller reads markers.
        action: what the user does with this message.
        stop: why it is over; None = the agent has another turn.
        guards: names of the checks that fired, on either side.
    """

    content: str
    action: UserAction = UserAction.SAY
    stop: Stop | None = None
    turn: int = 0
    usage: Usage = Usage()
    guards: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Answering:
    """Gets replies of users and keeps their states between requests."""

    def __init__(self, settings: ServeSettings) -> None:
        self.diary = Diary()
        self._states = States(settings.memory_chars)
        self._seed = settings.seed
        self._detect_loops = settings.detect_loops
        self._strangers = 0
        self._failures: dict[str, int] = {}

    async def answer(self, person: Person, call: Call) -> Answer:
        """Let the user answer.

        Raises:
            UserError: the contract was broken after all redraws.
            InfraError, ContextExceeded, EnvironmentFault: the model could not answer.
            Refusal: 400, nobody can play this scenario.
        """
        past = own_words(call.history)
        place = place_of(person.mark, call.asked.episode, past)
        state = self._states.recall(place) or {}
        seed = self._conversation_seed(call, state.get("seed"))
        left = UserAction(state["left"]) if state.get("left") else None
        user: User | None = None
        if left is None:
            user = person.start(seed)
            if state:
                user.restore(state["user"])
            elif person.replays:
                last = await self._replay(user, person, past, seed)
                left = _left(call, person, last) if last else None
        if left is not None:
            return _told(call, person, "", left)
        stop = self._limit(person, call)
        if stop is not None:
            return replace(_told(call, person, "", UserAction.END), stop=stop)
        assert user is not None
        reply = await self._asked(user, place, _request(person, call.history, seed), call)
        self._remember(person, call, reply, {"seed": seed, "user": user.snapshot()})
        return _told(call, person, reply.utterance, reply.action, reply)

    def _limit(self, person: Person, call: Call) -> Stop | None:
        """Return the end that no participant decides: the scenario's limit, or a loop."""
        most = person.scenario.max_turns if person.scenario else None
        reason = nobodys_end(call.history, call.turn, most, loops=self._detect_loops)
        if reason is None:
            return None
        limit = float(most) if most is not None and reason is StopReason.MAX_TURNS else None
        return Stop(reason, Party.RUNNER, call.turn - 1, limit)

    async def _asked(self, user: User, place: str, request: UserRequest, call: Call) -> Reply:
        """Ask the user; whoever asks again after a failure gets another draw."""
        failures = self._failures.pop(place, 0)
        if failures:
            request = replace(request, seed=derive(request.seed, "again", failures))
        try:
            reply = await user.respond(request)
            said = _stopped(reply.utterance, call.draws.stop)
            if is_blank(said) and not is_blank(reply.utterance):
                told = "nothing is left of what the user says before the first stop string"
                raise Refusal(400, told, "invalid_value", param="stop")
            check_reply(reply, said)
            if mentions_marker(said, {mark: action for action, mark in call.markers.items()}):
                raise UserError("the user's words hold a marker that the caller takes for an end")
        except UserError:
            self._failures[place] = failures + 1
            while len(self._failures) > _FAILURES:
                del self._failures[next(iter(self._failures))]
            raise
        return replace(reply, utterance=said)

    def _remember(self, person: Person, call: Call, reply: Reply, state: dict[str, object]) -> None:
        episode = call.asked.episode
        if episode:
            self.diary.note(episode, call.turn, reply.thought)
        if not reply.utterance:
            return  # nothing can follow, and asking again gives the same end
        left = _left(call, person, reply)
        place = place_of(
            person.mark, episode, (*call.history, PublicMessage(Role.USER, reply.utterance))
        )
        self._states.keep(place, {**state, "left": left.value if left else None})

    async def _replay(
        self, user: User, person: Person, past: Sequence[PublicMessage], seed: int
    ) -> Reply | None:
        """Bring a scripted user to where the conversation is; returns what it said last there."""
        reply: Reply | None = None
        for place, message in enumerate(past):
            if message.role is Role.USER:
                reply = await user.respond(_request(person, past[:place], seed))
        return reply

    def _conversation_seed(self, call: Call, remembered: int | None) -> int:
        """Return the seed: the caller's, the conversation's, or a new one where both are unknown."""
        given, episode = call.draws.seed, call.asked.episode
        if given is not None:
            return derive(given, "serve", episode)
        if remembered is not None:
            return remembered
        if episode:
            return derive(self._seed, "serve", episode)
        self._strangers += 1
        return derive(self._seed, "stranger", self._strangers)


def _request(person: Person, history: Sequence[PublicMessage], seed: int) -> UserRequest:
    turn = sum(message.role is Role.USER for message in history)
    if person.replays and turn == 0:
        history = ()  # a script opens with its errand, whatever the agent's greeting is
    text = history[-1].content if history else ""
    facts = list(person.scenario.facts) if person.scenario else []
    return UserRequest(
        kind="chat",
        history=tuple(history),
        agent_text=text,
        seed=derive(seed, "turn", turn),
        asked_fields=briefing.asked_for(text, facts),
    )


def _mode(call: Call, person: Person) -> str:
    """Return what follows words that come with an end (`users.leaving`), as the caller wants it."""
    if call.asked.end:
        return {"deliver_then_stop": "one_turn", "together": "none"}[call.asked.end]
    return person.scenario.end.grace if person.scenario else "one_turn"


def _left(call: Call, person: Person, reply: Reply) -> UserAction | None:
    """Return how the user has left for good with these words; None = it may speak again."""
    after = presence(reply.action, reply.utterance, _mode(call, person))
    return None if after is Presence.STAYS else reply.action


def _told(
    call: Call, person: Person, text: str, action: UserAction, reply: Reply | None = None
) -> Answer:
    """Return the answer to a caller who reads the end as `call.markers` say."""
    stop = None
    content = text
    if presence(action, text, _mode(call, person)) is Presence.GONE:
        stop = Stop(LEAVING[action], Party.USER, call.turn - (0 if text else 1))
        content = f"{text} {call.markers.get(action, '')}".strip()
    guards = tuple(event.guard for event in reply.guards) if reply else ()
    return Answer(
        content,
        action,
        stop,
        call.turn,
        reply.usage if reply else Usage(),
        tuple(dict.fromkeys((*guards, *call.flags))),
        (*call.warnings, *person.warnings),
    )


def _stopped(text: str, stops: Sequence[str]) -> str:
    """Return the words up to the first of the caller's stop strings."""
    places = [place for place in (text.find(stop) for stop in stops) if place >= 0]
    return text[: min(places)].rstrip() if places else text
