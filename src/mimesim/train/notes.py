"""The notes of a generation batch: which turns get one, asking for them, leaks, placebos.

All notes of a batch are asked for at once, so many at a time; what comes back is put in order
again before a placebo is drawn, so the result does not depend on who answered first. Whatever goes
wrong with a note costs that note, is counted, and nothing else.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mimesim.config.ranges import COUNT, NATURAL, check_ranges
from mimesim.dialogue.types import CoachNote, Role
from mimesim.errors import ConfigError, EpisodeError
from mimesim.models.base import ChatCodec
from mimesim.rollout.tokens import TokenRollout
from mimesim.seeds import derive, generator
from mimesim.train import launch
from mimesim.train.coach import Coach, CoachConfig, CoachTurn, shown
from mimesim.train.teacher import NotedTurn

ARMS = ("note", "placebo")
PLACES = ("message", "inline")


@dataclass(frozen=True, slots=True)
class NoteConfig:
    """Which notes the teacher gets.

    Attributes:
        debias: score every note against an unrelated one as well.
        max_noted: most noted turns of an episode.
        leak_check: reject notes that give private specifics away.
        arm: `note` as written, or `placebo`: an unrelated note in its place (control arm).
        require_reaction: leave out turns after which the user said nothing.
        place: `message` of its own before the reply, or `inline` at the end of the last message.
        concurrency: most notes that are asked for at a time.
    """

    debias: bool = True
    max_noted: int = 16
    leak_check: bool = True
    arm: str = "note"
    require_reaction: bool = False
    place: str = "message"
    concurrency: int = 16


def check_notes(config: Any) -> None:
    """Refuse settings of the table `notes` of a run that cannot be trained with.

    Raises:
        ConfigError: naming the key.
    """
    notes: NoteConfig = config.notes
    check_ranges(config, NATURAL, "notes.max_noted")
    check_ranges(config, COUNT, "notes.concurrency")
    for key, value, known in (
        ("notes.arm", notes.arm, ARMS),
        ("notes.place", notes.place, PLACES),
    ):
        if value not in known:
            raise ConfigError(f"{key!r} cannot be {value!r}", expected=" or ".join(known))


@dataclass(slots=True)
class NoteCounts:
    """What became of the notes asked for.

    Attributes:
        asked: turns for which the coach was asked.
        written, none, failed, leaked: its notes that were taken, "nothing to say", calls that came
            to nothing, and notes that gave private specifics away.
        with_thought, with_reaction: calls in which the coach was shown one.
        timed_out: those of the failed that took too long.
        leaked_specifics, leaked_copies: what leaked: names and numbers, runs of private words.
        cut: turns without their end token, which are not noted.
        skipped: notes whose teacher row would be longer than the model's context.
    """

    asked: int = 0
    written: int = 0
    none: int = 0
    failed: int = 0
    leaked: int = 0
    with_thought: int = 0
    with_reaction: int = 0
    timed_out: int = 0
    leaked_specifics: int = 0
    leaked_copies: int = 0
    cut: int = 0
    skipped: int = 0

    def numbers(self) -> dict[str, float]:
        """Return all counts for the curve."""
        return {f"notes/{key}": value for key, value in asdict(self).items()}


# -- the leak check ------------------------------------------------------------------------

_TOKEN = re.compile(r"[\w@.,:/-]*\w")
_OPENING = re.compile(r"(^|[.!?]\s+)$")


def leaks(note: str, private: str, history: str) -> list[str]:
    """Return what a note gives away: specifics and 5-word copies of the private text.

    A specific is a number, date, id, address or capitalised name that occurs in the private text
    and not in the public history. Sentence openers are not names.
    """
    known, hidden = _words(history), _words(private)
    found = [
        match.group()
        for match in _TOKEN.finditer(note)
        if _specific(match.group(), note[: match.start()])
        and match.group().casefold() in hidden
        and match.group().casefold() not in known
    ]
    words, known_text, hidden_text = _words(note), " ".join(known), " ".join(hidden)
    for i in range(len(words) - 4):
        run = " ".join(words[i : i + 5])
        if run in hidden_text and run not in known_text:
            found.append(run)
    return found


def _specific(token: str, before: str) -> bool:
    if "@" in token or any(c.isdigit() for c in token):
        return True
    return len(token) > 2 and token[0].isupper() and _OPENING.search(before) is None


def _words(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


def _private_text(turn: CoachTurn) -> str:
    thoughts = [t.reveal() for t in (turn.thought_before, turn.thought_after) if t]
    return "\n".join([*thoughts, turn.next_utterance])


def _public_text(turn: CoachTurn) -> str:
    # Not the reply: a note that repeats a value it guessed would tell that the guess was right.
    return "\n".join(m.content for m in turn.history if m.role is not Role.NOTE)


# -- one note --------------------------------------------------------------------------------


async def write_note(
    coach: Coach,
    turn: CoachTurn,
    counts: NoteCounts,
    *,
    seed: int,
    leak_check: bool = True,
    asking: CoachConfig | None = None,
) -> CoachNote | None:
    """Ask for one note; None when there is none, it failed, or it leaks. Everything is counted.

    The leak check knows all of the private side, also what was withheld from the coach, so that
    arms are measured by one rule.

    Args:
        coach: who is asked.
        turn: with the whole private side.
        counts: where it is counted.
        seed: of the call.
        leak_check: reject what gives private specifics away.
        asking: what the coach may see and how long it may take; None = everything, and no limit.
    """
    seen = turn if asking is None else shown(turn, asking)
    counts.asked += 1
    counts.with_thought += bool(seen.thought_before or seen.thought_after or seen.wish_before)
    counts.with_reaction += bool(seen.next_utterance)
    try:
        async with asyncio.timeout(None if asking is None else asking.timeout_s):
            note = await coach.note(turn if asking is None else seen, seed=seed)
    except (EpisodeError, TimeoutError) as error:
        counts.failed += 1
        counts.timed_out += isinstance(error, TimeoutError)
        return None
    if note is None:
        counts.none += 1
        return None
    given_away = leaks(note.text, _private_text(turn), _public_text(turn)) if leak_check else []
    if given_away:
        copies = sum(" " in leak for leak in given_away)
        counts.leaked += 1
        counts.leaked_copies += copies
        counts.leaked_specifics += len(given_away) - copies
        return None
    counts.written += 1
    return note


def coach_seed(run_seed: int, episode: str, turn: int) -> int:
    """Return the seed of one coach call."""
    return derive(run_seed, "coach", episode, turn)


def chosen_turns(count: int, limit: int, has_thought: Sequence[bool], seed: int) -> list[int]:
    """Return at most `limit` of `count` turns to note: those with a thought first, uniformly.

    `has_thought[t]`: the turn's predecessor produced a thought.
    """
    if count <= limit:
        return list(range(count))
    rng = generator(seed, "noted-turns")
    order = sorted(range(count), key=lambda t: (not has_thought[t], rng.random()))
    return sorted(order[:limit])


# -- placebos --------------------------------------------------------------------------------


class PlaceboRing:
    """The last notes of other episodes, from which unrelated notes are drawn."""

    def __init__(self, seed: int, size: int = 256, active_from: int = 8) -> None:
        self._seed = seed
        self._size = size
        self._active_from = active_from
        self._notes: list[tuple[str, str]] = []
        self._draws = 0

    def add(self, episode: str, note: str) -> None:
        """Remember a note; the oldest one falls out."""
        self._notes = [*self._notes, (episode, note)][-self._size :]

    def draw(self, episode: str, note: str) -> str | None:
        """Return a note of another episode with another text, None while too few are known."""
        if len(self._notes) < self._active_from:
            return None
        others = [text for owner, text in self._notes if owner != episode and text != note]
        if not others:
            return None
        self._draws += 1
        return generator(self._seed, "placebo", self._draws).choice(others)

    def state(self) -> dict[str, Any]:
        """Return the whole state as JSON values, for checkpoints."""
        return {"notes": [list(n) for n in self._notes], "draws": self._draws}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state from `state`."""
        self._notes = [(owner, text) for owner, text in state["notes"]]
        self._draws = int(state["draws"])


# -- the notes of a batch --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Talk:
    """One counted episode of which notes are taken.

    Attributes:
        episode: its name, unique in the run.
        record: what the policy read and wrote.
        turns: what a coach may be shown, one entry an executed step.
    """

    episode: str
    record: TokenRollout
    turns: Sequence[CoachTurn]


@dataclass(frozen=True, slots=True)
class NoteTaker:
    """Takes the notes of a generation batch.

    Attributes:
        coach: who writes them.
        asking: what it may see, and how long it may take; None = everything, and no limit.
        config: which turns get one, and where it goes.
        seed: run seed.
        counts: where everything is counted.
        ring: the notes of other episodes.
        context: most tokens of a teacher row; 0 = no limit.
    """

    coach: Coach
    asking: CoachConfig | None
    config: NoteConfig
    seed: int
    counts: NoteCounts
    ring: PlaceboRing
    context: int = 0

    async def take(self, talks: Sequence[Talk], codec: ChatCodec) -> list[tuple[NotedTurn, ...]]:
        """Return the noted turns of every episode, in order.

        Raises:
            UsageError: the coach's endpoint is wrong (key, model), so no note would ever come.
        """
        wanted = [(talk, index) for talk in talks for index in self._chosen(talk, codec)]
        notes = await self._ask(wanted)
        written = [
            (talk, index, note.text)
            for (talk, index), note in zip(wanted, notes, strict=True)
            if note is not None
        ]
        placebos = self._placebos([(talk.episode, text) for talk, _, text in written])
        noted: dict[str, list[NotedTurn]] = {talk.episode: [] for talk in talks}
        for (talk, index, text), placebo in zip(written, placebos, strict=True):
            turn = self._noted(talk, index, (text, placebo), codec)
            if turn is not None:
                noted[talk.episode].append(turn)
        return [tuple(noted[talk.episode]) for talk in talks]

    def _chosen(self, talk: Talk, codec: ChatCodec) -> list[int]:
        """Return the turns to note: whole ones, those after a thought first."""
        fit = []
        for index, (turn, span) in enumerate(zip(talk.turns, talk.record.spans, strict=False)):
            if talk.record.completion_ids[span.end - 1] != codec.end_id:
                self.counts.cut += 1
            elif turn.next_utterance or not self.config.require_reaction:
                fit.append(index)
        thought = [bool(talk.turns[index].thought_before) for index in fit]
        seed = derive(self.seed, "noted", talk.episode)
        return [fit[i] for i in chosen_turns(len(fit), self.config.max_noted, thought, seed)]

    async def _ask(self, wanted: Sequence[tuple[Talk, int]]) -> list[CoachNote | None]:
        free = asyncio.Semaphore(self.config.concurrency)

        async def one(talk: Talk, index: int) -> CoachNote | None:
            async with free:
                return await write_note(
                    self.coach,
                    talk.turns[index],
                    self.counts,
                    seed=coach_seed(self.seed, talk.episode, index),
                    leak_check=self.config.leak_check,
                    asking=self.asking,
                )

        calls = [asyncio.ensure_future(one(talk, index)) for talk, index in wanted]
        try:
            return list(await asyncio.gather(*calls))
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    def _placebos(self, written: Sequence[tuple[str, str]]) -> list[str | None]:
        """Draw an unrelated note for each note of this process.

        The ring sees the notes of all processes in one order, so it is one ring.

        Args:
            written: episode and text of each note.
        """
        drawn: list[list[str | None]] = []
        for part in launch.shared(list(written)):
            drawn.append([])
            for episode, note in part:
                drawn[-1].append(self.ring.draw(episode, note))
                self.ring.add(episode, note)
        return drawn[launch.rank()]

    def _noted(
        self, talk: Talk, index: int, pair: tuple[str, str | None], codec: ChatCodec
    ) -> NotedTurn | None:
        """Put a note before its turn, with a placebo beside it or in its place."""
        real, placebo = pair
        if self.config.arm == "placebo":
            if placebo is None:
                return None
            real, placebo = placebo, None
        span, inline = talk.record.spans[index], self.config.place == "inline"
        ids = codec.inline_ids if inline else codec.note_ids
        turn = NotedTurn(
            span.start,
            span.end,
            span.header + (codec.closing if inline else 0),
            tuple(ids(real)),
            tuple(ids(placebo)) if self.config.debias and placebo else None,
        )
        longest = max(len(turn.note_ids), len(turn.placebo_ids or ()))
        if self.context and len(talk.record.prompt_ids) + span.end + longest > self.context:
            self.counts.skipped += 1
            return None
        return turn
