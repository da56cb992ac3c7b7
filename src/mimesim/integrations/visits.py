"""Our user in somebody else's harness: what every drop-in shares.

A drop-in translates; the person, the end and the private side are a `rollout.usersession`. Whatever
thread or loop the harness calls from, users live on one loop of their own. Nothing that failed here
becomes a sentence: it is raised, and the harness sees an error.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.errors import AgentError, CallerError, MissingExtraError
from mimesim.integrations.sessions import Loop
from mimesim.rollout.usersession import Said, UserSession
from mimesim.scenarios.types import Scenario
from mimesim.seeds import derive
from mimesim.users.base import UserSource
from mimesim.users.load import make_user

Person = Scenario | Mapping[str, Any]
"""Who the user is: a scenario, or its JSON values."""
Heard = str | None | Sequence[Mapping[str, Any]]
"""What the agent said: its words, nothing yet, or all chat messages so far."""


class Visits:
    """One kind of user, ready for any number of conversations somewhere else.

    Args:
        user: door name, e.g. `scripted:realistic` or `trained:out/user`, or a source.
        options: settings of a user named by its door.
        seed: conversation `n` with a scenario is seeded by this, the scenario's id and `n`.

    Raises:
        UsageError: the user cannot be made.
    """

    def __init__(
        self,
        user: str | UserSource = "scripted:neutral",
        *,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.source = make_user(user, options=options) if isinstance(user, str) else user
        self.seed = seed
        self._loop = Loop()
        self._lock = threading.Lock()
        self._trials: dict[str, int] = {}
        self._closed = False

    def visit(
        self,
        person: Person,
        *,
        seed: int | None = None,
        dialect: str = "plain",
    ) -> Visit:
        """Begin a conversation with a person.

        Args:
            person: who the user is.
            seed: of this conversation; None = the next one of this scenario.
            dialect: how the harness reads an end; see `dialogue.stop.DIALECTS`.

        Raises:
            DataError: the scenario is damaged.
        """
        if self._closed:
            raise CallerError("the user's visits are over: they were closed")
        name = person.id if isinstance(person, Scenario) else str(person.get("id", ""))
        with self._lock:
            trial = self._trials.get(name, 0)
            self._trials[name] = trial + 1
        own = derive(self.seed, "visit", name, trial) if seed is None else seed
        session = UserSession(self.source, person, own)
        return Visit(session, self._loop, dialect)

    def close(self) -> None:
        """Close the user and its loop; twice is harmless."""
        if not self._closed:
            self._closed = True
            self._loop.run(self.source.aclose())
            self._loop.close()


class Visit:
    """One conversation, with and without `await`.

    Some harnesses ask for the end before they ask for the user's next words: `ahead` answers, and
    keeps the words for the `turn` that follows.
    """

    def __init__(self, session: UserSession, loop: Loop, dialect: str) -> None:
        self.session = session
        self.dialect = dialect
        self._loop = loop
        self._ready: Said | None = None

    @property
    def stop(self) -> str:
        """Why the conversation ends, for records; "" = it goes on."""
        return str(self.session.stop or "")

    def turn(self, heard: Heard) -> Said:
        """Answer what the agent said.

        Args:
            heard: its words; None = it said nothing yet, so the user opens; or the messages so far,
                of which other harnesses may have written some for the user.

        Raises:
            EpisodeError: the user failed, or the agent's message shows nothing.
        """
        return self._loop.run(self._turn(heard))

    async def aturn(self, heard: Heard) -> Said:
        """Answer what the agent said, from any loop; see `turn`."""
        return await self._loop.wait(self._turn(heard))

    def ahead(self, heard: Heard) -> Said:
        """Answer as `turn` does; the next `turn` gives the same answer."""
        self._ready = self.turn(heard)
        return self._ready

    async def aahead(self, heard: Heard) -> Said:
        """Answer ahead, from any loop; see `ahead`."""
        self._ready = await self.aturn(heard)
        return self._ready

    async def _turn(self, heard: Heard) -> Said:
        ready, self._ready = self._ready, None
        if ready is not None:
            return ready
        session = self.session
        if not isinstance(heard, str | None):
            before, heard = talk_of(heard)
            session.rejoin(before)
        said = await (session.open() if heard is None else session.hear(heard))
        said.worded(self.dialect)  # words that the harness would misread are not said
        return said


def person_of(goal: str, *, name: str = "", persona: Any = "", guidelines: Any = "") -> Scenario:
    """Make a person of what a harness says about its simulated user.

    Args:
        goal: what the user wants, as the harness has it.
        name: of the scenario; "" = the goal itself.
        persona: who the user is, a text or a map.
        guidelines: how the user talks, a text or several.

    Raises:
        DataError: it holds an end marker, or the goal is empty.
    """
    several = [guidelines] if isinstance(guidelines, str) else list(guidelines or ())
    value: dict[str, Any] = {"id": name or goal[:80], "goal": goal}
    if persona:
        value["persona"] = persona
    if any(several):
        value["style"] = {"guidelines": "\n".join(filter(None, several))}
    return Scenario.from_json(value, f"scenario {value['id']!r}")


def text_of(content: Any) -> str:
    """Return the words of a message's content: a text, or parts of which some are texts.

    Raises:
        AgentError: there are parts, and none is a text.
    """
    if content is None or isinstance(content, str):
        return content or ""
    parts = [part for part in content if isinstance(part, Mapping)]
    texts = [str(part["text"]) for part in parts if isinstance(part.get("text"), str)]
    if parts and not texts:
        kinds = ", ".join(sorted({str(part.get("type")) for part in parts}))
        raise AgentError(f"the agent's message holds {kinds} without text")
    return "\n".join(texts)


def talk_of(messages: Sequence[Mapping[str, Any]]) -> tuple[list[PublicMessage], str | None]:
    """Part chat messages into the talk up to the user's last words, and what the agent said since.

    None = nobody said anything. Tool calls and results are not the user's to see; several messages
    of the agent are one, a blank line apart.
    """
    roles = {"user": Role.USER, "assistant": Role.AGENT}
    talk = [
        PublicMessage(roles[message["role"]], text_of(message.get("content")))
        for message in messages
        if message.get("role") in roles
    ]
    spoken = [place for place, message in enumerate(talk) if message.role is Role.USER]
    since = spoken[-1] + 1 if spoken else 0
    before = [message for message in talk[:since] if message.content]
    if not talk:
        return before, None
    return before, "\n\n".join(message.content for message in talk[since:] if message.content)


def missing(part: str, extra: str, tested: str) -> MissingExtraError:
    """Return the error for a library that is not there; it names the version tested with."""
    error = MissingExtraError.for_extra(part, extra)
    return MissingExtraError(f"{error.what} (tested with {tested})", mend=error.mend)


def not_on_a_registry(part: str, needs: str) -> MissingExtraError:
    """Return the error for a harness that is installed from its own repository."""
    return MissingExtraError(f"{part} is not installed", expected=needs)


def left_already(visit: Visit, how: str) -> CallerError:
    """Return the error for a harness that asks a user who left; `how` tells it of the end."""
    return CallerError(f"the user has left ({visit.stop}); {how}")
