"""Whom a caller meets who names nobody, and that it is the same person until the end.

An episode or a seed chooses the person. A caller who gives neither meets a new one in every
conversation; since clients send back words and no names, the words tell who said them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mimesim import seeds
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.server.memory import States, own_words, place_of

_NAMESAKES = 20
"""People who said the same so far and are kept apart."""


class Strangers:
    """Chooses among people by their ids.

    Args:
        ids: of the people.
        seed: of the server.
        most_chars: of memory; a conversation that was forgotten goes on with somebody whom its
            first words choose.
    """

    def __init__(self, ids: Sequence[str], seed: int, most_chars: int) -> None:
        self._ids = ids
        self._seed = seed
        self._met = States(most_chars)
        self._count = 0

    def place(
        self, model: str, history: Sequence[PublicMessage], episode: str, seed: int | None
    ) -> int:
        """Return the place of the person whom a caller meets.

        Args:
            model: the served user.
            history: what both said.
            episode: the name of the conversation; "" = it has none.
            seed: of the request.
        """
        if episode:
            return self._drawn(self._seed, episode)
        past = own_words(history)
        if seed is not None:
            drawn = self._drawn(seed)
        elif past:
            first = [message.role for message in past].index(Role.USER)
            drawn = self._drawn(self._seed, place_of(model, "", past[: first + 1]))
        else:
            self._count += 1
            drawn = self._drawn(self._seed, self._count)
        known = self._known(place_of(model, "", past)) if past else []
        return drawn if not known or self._ids[drawn] in known else self._ids.index(known[-1])

    def met(self, model: str, history: Sequence[PublicMessage], words: str, who: str) -> None:
        """Remember who said these words after all that was said before."""
        place = place_of(model, "", (*history, PublicMessage(Role.USER, words)))
        known = self._known(place)
        if who not in known:
            self._met.keep(place, {"who": [*known[1 - _NAMESAKES :], who]})

    def _drawn(self, seed: int, *name: str | int) -> int:
        return seeds.derive(seed, "scenario", *name) % len(self._ids)

    def _known(self, place: str) -> list[str]:
        return [str(name) for name in (self._met.recall(place) or {}).get("who", [])]
