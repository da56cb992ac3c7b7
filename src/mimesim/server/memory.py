"""What clients do not send back: the private state of each user, and the thoughts of an episode.

States are kept by the transcript that led to them, so that a request can be sent twice, by any
worker of a caller, in any order. Both memories are bounded and forget the oldest first; a state that
was forgotten costs the thoughts of the past, never the conversation.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mimesim import jsonio, seeds
from mimesim.dialogue.types import PublicMessage, Role, Thought

_EPISODES = 2048
_TURNS = 8
_LONGEST_THOUGHT = 4000


class States:
    """Private state by transcript, up to a number of characters."""

    def __init__(self, most_chars: int) -> None:
        self._most = most_chars
        self._chars = 0
        self._kept: OrderedDict[str, str] = OrderedDict()

    def recall(self, place: str) -> dict[str, Any] | None:
        """Return the state at a place, a copy of its own; None = not known (any more)."""
        text = self._kept.get(place)
        if text is None:
            return None
        self._kept.move_to_end(place)
        state: dict[str, Any] = jsonio.loads(text)
        return state

    def keep(self, place: str, state: Mapping[str, Any]) -> None:
        """Keep a state."""
        text = jsonio.dumps(state)
        self._chars += len(text) - len(self._kept.pop(place, ""))
        self._kept[place] = text
        while self._chars > self._most and self._kept:
            self._chars -= len(self._kept.popitem(last=False)[1])


def place_of(mark: str, episode: str, history: Sequence[PublicMessage]) -> str:
    """Return the place of a transcript: who, which conversation, and all words up to there."""
    words = [[message.role.value, " ".join(message.content.split())] for message in history]
    return seeds.fingerprint(jsonio.canonical([mark, episode, words]), 32)


def own_words(history: Sequence[PublicMessage]) -> Sequence[PublicMessage]:
    """Return the transcript up to the user's last message; none = nothing."""
    places = [i for i, message in enumerate(history) if message.role is Role.USER]
    return history[: places[-1] + 1] if places else ()


@dataclass(slots=True)
class _Pages:
    calls: int = 0
    thoughts: deque[tuple[int, Thought | None]] = field(
        default_factory=lambda: deque(maxlen=_TURNS)
    )


class Diary:
    """The thoughts of the last turns of the last episodes."""

    def __init__(self) -> None:
        self._episodes: OrderedDict[str, _Pages] = OrderedDict()

    def note(self, episode: str, turn: int, thought: Thought | None) -> None:
        """Keep the thought of a turn; a turn that is asked for again has its newest one."""
        pages = self._episodes.setdefault(episode, _Pages())
        self._episodes.move_to_end(episode)
        pages.calls += 1
        for kept in [page for page in pages.thoughts if page[0] >= turn]:
            pages.thoughts.remove(kept)
        pages.thoughts.append((turn, thought))
        while len(self._episodes) > _EPISODES:
            self._episodes.popitem(last=False)

    def read(self, episode: str) -> dict[str, Any] | None:
        """Return the private side of an episode as JSON values; None = no such episode."""
        pages = self._episodes.get(episode)
        if pages is None:
            return None
        told = [
            {"turn": turn, "text": thought.reveal()[:_LONGEST_THOUGHT] if thought else None}
            for turn, thought in pages.thoughts
        ]
        return {"episode": episode, "calls": pages.calls, "thoughts": told}
