"""Others' transcripts as episodes, for `bench`, `report`, `review` and `calibrate`.

The formats of `corpora` read them; what happened beside the words (tools, reasoning) is kept. How a
conversation ended is read from the field in which its harness tells it; where none does, from a
marker at the end of the user's own last words, and from nothing that anybody else wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mimesim.corpora import places
from mimesim.corpora.base import Format, HumanDialogue, Record, Unfit
from mimesim.corpora.formats.transcripts import Transcript, read_transcript
from mimesim.corpora.load import CORPORA, Place, converted, format_of, raw_records
from mimesim.dialogue.episode import SCHEMA, Episode, Outcome, TaskRef, Turn
from mimesim.dialogue.foreign_ends import UNTOLD, end_of
from mimesim.dialogue.stop import (
    LEAVING,
    Party,
    Stop,
    StopReason,
    UserAction,
    cut_markers,
    read_marker,
)
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import Identity, PublicMessage, Role, Thought
from mimesim.envs.load import NO_GYM
from mimesim.errors import DataError
from mimesim.rollout.events import count
from mimesim.rollout.record import replace_surrogates, software
from mimesim.rollout.store import Plan, Store, episode_id, run_id

DETECTED = ("tau2", "inspect", "verifiers", "tau-bench", "sharegpt", "openai-messages", "own")
"""Formats that a file is recognized as by its keys, the most particular first."""
_UNTOLD = "the source does not say how it ended"


@dataclass(slots=True)
class Imported:
    """What came of an import.

    Attributes:
        kept: episodes that were there before.
        rejects: reason -> how many records gave no episode. first: where and why the first did not.
    """

    form: str
    episodes: list[Episode] = field(default_factory=list)
    kept: int = 0
    rejects: Counter[str] = field(default_factory=Counter)
    first: str = ""

    def reject(self, where: str, reason: str, detail: str = "") -> None:
        """Count a record that gives no episode."""
        self.rejects[reason] += 1
        self.first = self.first or f"{where}: {reason}{f' ({detail})' if detail else ''}"


def import_episodes(
    source: str,
    out: Path | str,
    *,
    form: str | None = None,
    options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Imported:
    """Read the conversations of `source` and write them as a run.

    Args:
        source: a file, a folder, or `format:place`.
        out: a run folder or X.jsonl; the same import again adds what is not there yet.
        form: name of the format; None = recognized by its keys.
        options: of the format, e.g. the domain of a tau-bench file.
        overwrite: start again.

    Raises:
        UsageError: unknown format, nothing to read, or `out` holds another run.
        DataError: no conversation in it.
    """
    place = _place(source, form)
    found = read_foreign(place, options or {})
    if not found.episodes:
        raise DataError(
            "no conversation in it" + (f"; the first record: {found.first}" if found.first else ""),
            where=str(place),
            expected=f"conversations of the format {place.corpus!r}",
            mend="name another format with --from",
        )
    store = Store.open(out, _plan(place, options or {}, found.episodes), overwrite=overwrite)
    try:
        found.episodes = [replace(e, run_id=store.run_id) for e in found.episodes]
        for episode in found.episodes:
            if episode.id in store.kept:
                found.kept += 1
            else:
                store.add(episode)
        store.finish(count(found.episodes), wall_s=0.0)
    finally:
        store.close()
    return found


def read_foreign(place: Place, options: Mapping[str, Any]) -> Imported:
    """Return the episodes of a place, in its order, and what gave none.

    Raises:
        UsageError: unknown format, or nothing there.
    """
    form = format_of(place.corpus, options)
    found = Imported(place.corpus)
    run = run_id(_identity(place, options))
    seen: set[str] = set()
    for record in raw_records(form, place.place, found.reject):
        for dialogue, transcript in _read(form, record, options, place, found):
            if dialogue.id in seen:
                found.reject(record.where, "duplicate_id", repr(dialogue.id))
                continue
            seen.add(dialogue.id)
            if not any(m.role is Role.USER for m in transcript.messages):
                found.reject(record.where, "no_user_turn")
                continue
            found.episodes.append(_episode(form, run, dialogue, transcript))
    return found


def detect(place: str) -> str:
    """Return the format of a file, by the keys of its first record.

    Raises:
        DataError: it has the keys of none, or holds episodes of ours.
    """
    for name in DETECTED:
        form = format_of(name)
        records = places.records(
            place, files=form.files, splits_lists=form.splits_lists, on_reject=_ignore
        )
        first = next(records, None)
        if first is None:
            continue
        if isinstance(first.value, Mapping) and first.value.get("schema") == SCHEMA:
            raise DataError("these are episodes already", where=place, mend="use them as they are")
        if form.claims(first.value):
            return name
    raise DataError(
        "the file is of no known format",
        where=place,
        expected="one of " + ", ".join(DETECTED),
        mend="name one with --from",
    )


def _ignore(where: str, reason: str, detail: str) -> None:
    """Pass by what cannot be read: another format may read it, and the import tells it."""


def _place(source: str, form: str | None) -> Place:
    name, colon, rest = source.partition(":")
    if form is not None:
        CORPORA.target(form)  # raises, with the nearest name
        return Place(form, source)
    if colon and name in CORPORA.names():
        return Place(name, rest)
    return Place(detect(source), source)


def _identity(place: Place, options: Mapping[str, Any]) -> dict[str, Any]:
    return {"import": place.corpus, "of": Path(place.place).name, "options": dict(options)}


def _plan(place: Place, options: Mapping[str, Any], episodes: list[Episode]) -> Plan:
    identity = _identity(place, options)
    pairs = tuple((episode.links["replay_of"], 0) for episode in episodes)
    return Plan(identity, identity, {}, pairs)


def _read(
    form: Format, record: Record, options: Mapping[str, Any], place: Place, found: Imported
) -> Iterator[tuple[HumanDialogue, Transcript]]:
    try:
        dialogues = converted(form, record, options, place.place)
        raw = form.messages(record.value) if form.messages is not None else None
        whole = None if raw is None else read_transcript(raw, "messages")
    except Unfit as unfit:
        found.reject(record.where, unfit.reason, unfit.detail)
        return
    for dialogue in dialogues:
        goal = replace_surrogates(dialogue.goal)[0]
        yield replace(dialogue, goal=goal), _clean(_of_turns(dialogue) if whole is None else whole)


def _clean(transcript: Transcript) -> Transcript:
    """Return a transcript without what no export can hold: lone surrogates and NUL."""

    def plain(text: str) -> str:
        return replace_surrogates(text)[0]

    messages = tuple(
        replace(
            message,
            content=plain(message.content),
            tool_calls=tuple(
                replace(call, arguments=plain(call.arguments)) for call in message.tool_calls
            ),
        )
        for message in transcript.messages
    )
    thoughts = {i: Thought(plain(one.reveal())) for i, one in transcript.reasoning.items()}
    return Transcript(messages, plain(transcript.system), thoughts)


def _of_turns(dialogue: HumanDialogue) -> Transcript:
    """Return a conversation of which only what was said is known."""
    messages = tuple(
        PublicMessage(Role.USER if t.role == "user" else Role.AGENT, t.text) for t in dialogue.turns
    )
    thoughts = {place: t.thought for place, t in enumerate(dialogue.turns) if t.thought}
    return Transcript(messages, dialogue.context, thoughts)


def _episode(form: Format, run: str, dialogue: HumanDialogue, transcript: Transcript) -> Episode:
    messages, action = _unmarked(transcript.messages, stored=form.info.simulated)
    turns = tuple(_turn(place, message) for place, message in enumerate(messages))
    stop = _stop(dialogue.outcome, turns, action)
    counted = stop.status.counted
    success = dialogue.outcome.get("success")
    task = str(dialogue.outcome.get("task") or dialogue.id)
    trial = dialogue.outcome.get("trial")
    return Episode(
        id=episode_id(run, dialogue.id, 0),
        run_id=run,
        trial=trial if type(trial) is int and trial >= 0 else 0,
        seed=0,
        task=TaskRef(NO_GYM, task, groups=dialogue.group_keys or (task,)),
        agent=Identity("replayed", f"import:{form.info.name}"),
        user=Identity("replayed", f"import:{form.info.name}"),
        system=transcript.system,
        scenario={"id": task, "source": form.info.name, "license": form.info.license},
        turns=turns,
        steps=(),
        stop=stop,
        outcome=Outcome(
            stop.status,
            success if counted and isinstance(success, bool) else None,
            _number(dialogue.outcome.get("reward")) if counted else None,
        ),
        software=software(),
        links={"replay_of": dialogue.id},
        meta={"import": {"format": form.info.name, "terms": form.info.as_dict()}},
        private=_private(dialogue, turns, transcript.reasoning),
    )


def _unmarked(
    messages: tuple[PublicMessage, ...], *, stored: bool
) -> tuple[list[PublicMessage], UserAction]:
    """Return the messages without the user's end markers, and how the user's last words leave.

    Args:
        messages: of the transcript; their places stay, since thoughts are named by them.
        stored: the users are simulators, whose markers count even where they are glued to a word.
    """
    own = [place for place, m in enumerate(messages) if m.role is Role.USER]
    action = UserAction.SAY
    found = list(messages)
    for place in own:
        text = found[place].content
        cut = cut_markers(text) if stored else text
        if place == own[-1]:
            marked = read_marker(text)
            if marked.action is not UserAction.SAY:
                cut, action = marked.text, marked.action
            elif stored and cut != text.strip():
                action = UserAction.END
        found[place] = replace(found[place], content=cut)
    return found, action


def _turn(place: int, message: PublicMessage) -> Turn:
    empty = is_blank(message.content) and not message.tool_calls and message.role is not Role.TOOL
    return Turn(
        i=place,
        role=message.role,
        content=message.content,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        name=message.name,
        owner=message.owner,
        source="replayed",
        delivered=not empty,  # a bare marker was an end and no message
    )


def _stop(outcome: Mapping[str, Any], turns: tuple[Turn, ...], action: UserAction) -> Stop:
    """Return how it ended: as we told it ourselves, as its harness tells it, or by the marker."""
    last = sum(turn.role is Role.USER and turn.delivered for turn in turns) - 1
    told = outcome.get("stop")
    if isinstance(told, Mapping):
        try:
            reason, by = StopReason(told["reason"]), Party(told["by"])
        except (KeyError, ValueError):
            pass  # not ours after all, or of a later version: the other harness tells it too
        else:
            detail = str(told.get("detail") or "")
            return Stop(reason, by, last, _number(told.get("limit")), detail)
    known = end_of(outcome.get("ended_by"))
    if known is not None:
        return Stop(known.reason, known.by, last)
    if action in LEAVING:
        return Stop(LEAVING[action], Party.USER, last)
    return Stop(UNTOLD.reason, UNTOLD.by, last, None, _UNTOLD)


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known else None


def _private(
    dialogue: HumanDialogue, turns: tuple[Turn, ...], reasoning: Mapping[int, Thought]
) -> dict[str, Any]:
    """Return what the agent did not know, and what either side thought."""
    thoughts, own = [], []
    for place, thought in reasoning.items():
        entry = {"turn": place, "text": thought.reveal()}
        if turns[place].role is Role.USER:
            thoughts.append({**entry, "source": "replayed"})
        else:
            own.append(entry)
    found = {
        "goal": dialogue.goal,
        "thoughts": thoughts,
        "agent_reasoning": own,
        "hidden": dict(dialogue.hidden),
    }
    return {key: value for key, value in found.items() if value}
