"""Conversations as every suite reads them: public text, who spoke, what they were about, how it ended.

A session is cut from a native episode or from a human dialogue of `corpora`. Reasoning has left
both long before; what a session holds is what the two sides said to each other.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim import seeds as seeding
from mimesim.corpora import base, places
from mimesim.corpora.base import CorpusInfo, HumanDialogue
from mimesim.corpora.built import is_built
from mimesim.corpora.cleaning import pii
from mimesim.corpora.formats.normalized import is_normalized
from mimesim.corpora.load import CORPORA, format_of, open_corpus, parse_source, read_source
from mimesim.dialogue.episode import Episode, read_file
from mimesim.dialogue.types import Role
from mimesim.envs.tasks.base import PREFIX
from mimesim.errors import DataError
from mimesim.judges.episodes import played_by
from mimesim.judges.labeling import holds_episodes
from mimesim.rollout.store import Paths

NEUTRAL = "neutral"
"""The kind of people without a behavior."""
_LARGEST = 2.0**53
"""Up to here a number of a file is whole or not without doubt."""
PEOPLE = "people"
"""Who the user of a human dialogue is, where no name is known."""


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation.

    Attributes:
        id: unique in its set.
        task: what pairs it with conversations of another set, e.g. `airline_7`; the id if nothing does.
        person: the person behind it, empty if unknown; conversations of one person are resampled as one.
        trial: repetition of the task.
        turns: (user or agent, text) in order; texts are not empty.
        success: None = unknown. reward: as recorded.
        goal: what the user was after, if known; private to judges that may read it.
        user, agent: who spoke.
        kind: what the simulated person was asked to be: a behavior, several joined by +, or
            neutral; empty = unknown.
        outcome: whatever else is known of the end, e.g. ratings.
        about: what a human dialogue was about, as its corpus has it: assistant, kind, profile.
        episode: the whole record it was cut from, its private side included, for suites that check
            what a user was told; None = a human dialogue.
    """

    id: str
    turns: tuple[tuple[Role, str], ...]
    task: str = ""
    person: str = ""
    trial: int = 0
    success: bool | None = None
    reward: float | None = None
    goal: str = ""
    user: str = ""
    agent: str = ""
    kind: str = ""
    outcome: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)
    episode: Episode | None = field(default=None, repr=False, compare=False)

    @property
    def said(self) -> tuple[str, ...]:
        """What the user said, in order."""
        return tuple(text for role, text in self.turns if role is Role.USER)

    @property
    def key(self) -> str:
        """What pairs it with a session of another set: task and trial, else the id."""
        return f"{self.task}#{self.trial}" if self.task else self.id

    @property
    def cluster(self) -> str:
        """What is resampled as one: the person, else the task, else the session."""
        return self.person or self.task or self.id


@dataclass(frozen=True, slots=True)
class SessionSet:
    """Conversations of one kind of user.

    Attributes:
        name: of the source, for tables.
        left_out: reason -> conversations that are not among `sessions`; never scored.
        simulated: whether a model or script was the user.
        training_allowed: whether its terms allow training; `no` sets are for scoring only.
        seeds: run seeds of a simulation.
        hashes: file -> fingerprint of what was read.
        corpus: whose format it has; empty = native episodes.
    """

    name: str
    sessions: tuple[Session, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    simulated: bool = False
    training_allowed: str = ""
    seeds: tuple[int, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)
    corpus: str = ""

    @property
    def user(self) -> str:
        """Who the users are, joined by commas."""
        return ", ".join(sorted({one.user for one in self.sessions if one.user})) or self.name

    @property
    def agent(self) -> str:
        """Who the agents are, joined by commas."""
        return ", ".join(sorted({one.agent for one in self.sessions if one.agent}))

    def keyed(self) -> dict[str, Session]:
        """Return the sessions by what pairs them with another set's, or by id where that repeats."""
        found = {one.key: one for one in self.sessions}
        whole = len(found) == len(self.sessions)
        return found if whole else {one.id: one for one in self.sessions}

    def shared(self, other: SessionSet | None) -> int:
        """Return how many conversations the other set has too, word for word and by id."""
        own = {(one.id, one.turns) for one in self.sessions}
        return sum((one.id, one.turns) in own for one in (other.sessions if other else ()))

    def where(self, **wanted: Any) -> SessionSet:
        """Return the part whose fields equal `wanted`, e.g. `trial=0`."""
        kept = tuple(
            one for one in self.sessions if all(getattr(one, k) == v for k, v in wanted.items())
        )
        return replace(self, sessions=kept)


def read_sessions(source: str, *, limit: int | None = None, raw: bool = False) -> SessionSet:
    """Return the conversations of an episode file, a run folder, or a corpus source.

    Sessions without a user turn and episodes that do not count are left out and counted.

    Args:
        source: a path, or a source as `data build` takes it, e.g. `star:<path>`.
        limit: at most so many.
        raw: texts of a corpus as recorded: end markers kept, messages of one side not joined, empty
            ones kept. Some scores are defined on these. What a built folder holds was tidied before.

    Raises:
        UsageError: no such source, a damaged file, or an id that occurs twice.
    """
    path = Path(source)
    inside = path / "episodes.jsonl"
    file = inside if inside.is_file() else path
    if file.is_file() and holds_episodes(file):
        found = _of_episodes(itertools.islice(read_file(file), limit), source)
        found = replace(found, hashes={file.name: seeding.file_fingerprint(file)})
    else:
        name = _named(source)
        if is_built(Path(name)) or name == "chitchat":
            corpus = open_corpus(name, limit=limit, strict=False)
            found = _of_people(corpus.dialogues, source, corpus.info)
        else:
            found = _of_records(name, limit, raw=raw)
        if file.is_file():
            found = replace(found, hashes={file.name: seeding.file_fingerprint(file)})
    _check_ids(found)
    return found


def _of_records(source: str, limit: int | None, *, raw: bool) -> SessionSet:
    """Return the conversations of a corpus in the order of its file; what it cannot use is counted."""
    lost: Counter[str] = Counter()
    place = parse_source(source)
    form = format_of(place.corpus)
    options = {"verbatim": True} if raw and "verbatim" in form.options else {}
    rows = read_source(place, options, lambda _, reason, __: lost.update([reason]))
    dialogues = [dialogue for _, dialogue in itertools.islice(rows, limit)]
    if not raw:
        dialogues = [_tidied(dialogue, form.info) for dialogue in dialogues]
    found = _of_people(dialogues, source, form.info)
    if not found.sessions and found.left_out:
        return found
    if not found.sessions:
        raise DataError(
            "no conversation in it" + (f": {dict(lost)}" if lost else ""),
            where=source,
            expected=f"conversations of the format {place.corpus!r}",
        )
    return replace(found, left_out=Counter(found.left_out) + lost)


def _tidied(dialogue: HumanDialogue, info: CorpusInfo) -> HumanDialogue:
    """Return a dialogue as a corpus loads it: neighbors joined, own logs without private data."""
    counts: Counter[str] = Counter()
    fit = replace(dialogue, turns=base.tidy(dialogue.turns, counts))
    return fit if info.moderated else pii.scrub_dialogue(fit, counts)


def _passed_over(where: str, reason: str, detail: str) -> None:
    """Say nothing of a damaged record: whoever reads the file does."""


def _named(source: str) -> str:
    """Return a bare file with the corpus that its first record says it is of.

    A normalized record names its corpus at the start of its id; another one is known by its keys,
    where exactly one format claims them.
    """
    place = Path(source)
    if parse_source(source).corpus != "own" or not place.is_file() or ".json" not in place.name:
        return source
    first = next(places.records(source, files=(".json", ".jsonl"), on_reject=_passed_over), None)
    value = first.value if first else None
    if isinstance(value, dict) and is_normalized(value):
        corpus = str(value.get("id", "")).partition("/")[0].replace("_", "-")
        return f"{corpus}:{source}" if corpus in CORPORA.names() else source
    if format_of("own").claims(value):
        return source
    claiming = [name for name in CORPORA.builtin if name != "csv" and format_of(name).claims(value)]
    return f"{claiming[0]}:{source}" if len(claiming) == 1 else source


def session_of(episode: Episode) -> Session:
    """Return the public side of an episode; in a task's episode the policy is the user."""
    swapped = episode.task.gym.startswith(PREFIX)
    turns = []
    for turn in episode.turns:
        if turn.role in (Role.USER, Role.AGENT) and turn.delivered and turn.content.strip():
            mine = (turn.role is Role.AGENT) if swapped else (turn.role is Role.USER)
            turns.append((Role.USER if mine else Role.AGENT, turn.content))
    sides = [episode.user, episode.agent]
    user, agent = reversed(sides) if swapped else sides
    return Session(
        id=episode.id,
        turns=tuple(turns[1:] if swapped else turns),
        task=episode.task.id,
        trial=episode.trial,
        success=episode.outcome.success,
        reward=episode.outcome.reward,
        goal=str((episode.private or {}).get("goal", "")),
        user=user.name if user else "",
        agent=agent.name if agent else "",
        kind=_kind(episode),
        outcome={"stop": episode.stop.reason.value},
        episode=episode,
    )


def _kind(episode: Episode) -> str:
    played = None if episode.task.gym.startswith(PREFIX) else played_by(episode)
    return "" if played is None else "+".join(sorted(played)) or NEUTRAL


def _of_episodes(episodes: Iterable[Episode], source: str) -> SessionSet:
    kept, lost = [], Counter[str]()
    for episode in episodes:
        session = session_of(episode)
        if not episode.counted:
            lost[episode.outcome.status.value] += 1
        elif not session.said and not episode.task.gym.startswith(PREFIX):
            lost["no_user_turn"] += 1  # of a task it is a result: the user model gave no answer
        else:
            kept.append(session)
    return SessionSet(_name(source), tuple(kept), lost, simulated=True, seeds=_seeds(source))


def _seeds(source: str) -> tuple[int, ...]:
    if source.endswith(".gz"):
        return ()
    file = Paths.of(source).manifest
    if not file.is_file():
        return ()
    seed = jsonio.read_object(file).get("identity", {}).get("seed")
    return (seed,) if isinstance(seed, int) else ()


def _of_people(dialogues: Iterable[HumanDialogue], source: str, info: CorpusInfo) -> SessionSet:
    kept, lost = [], Counter[str]()
    for dialogue in dialogues:
        session = _human(dialogue, info)
        if session.said:
            kept.append(session)
        else:
            lost["no_user_turn"] += 1
    return SessionSet(
        _name(source),
        tuple(kept),
        lost,
        simulated=info.simulated or any(one.outcome.get("simulated") is True for one in kept),
        training_allowed=info.training_allowed,
        corpus=info.name,
    )


def _human(dialogue: HumanDialogue, info: CorpusInfo) -> Session:
    outcome = dialogue.outcome
    reward, trial = (_number(dialogue, name) for name in ("reward", "trial"))
    if trial is not None and trial != int(trial):
        raise _unfit(dialogue, "trial")
    success = outcome.get("success")
    simulated = info.simulated or outcome.get("simulated") is True
    return Session(
        id=dialogue.id,
        turns=tuple(
            (Role.USER if turn.role == "user" else Role.AGENT, turn.text) for turn in dialogue.turns
        ),
        task=str(outcome.get("task", "")),
        person=dialogue.user_key,
        trial=int(trial or 0),
        success=success if isinstance(success, bool) else None,
        reward=reward,
        goal=dialogue.goal,
        user=f"{info.name} users" if simulated else PEOPLE,
        outcome=outcome,
        about=dialogue.hidden,
    )


def _number(dialogue: HumanDialogue, name: str) -> float | None:
    value = dialogue.outcome.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise _unfit(dialogue, name)
    return float(value)


def _unfit(dialogue: HumanDialogue, name: str) -> DataError:
    return DataError(
        f"outcome.{name} is {dialogue.outcome.get(name)!r}",
        where=f"conversation {dialogue.id}",
        expected="a whole number" if name == "trial" else "a finite number",
    )


def _name(source: str) -> str:
    return Path(source.partition(":")[2] or source).name


def _check_ids(found: SessionSet) -> None:
    twice = [one for one, n in Counter(s.id for s in found.sessions).items() if n > 1]
    if twice:
        raise DataError(
            f"the conversation {twice[0]!r} occurs more than once",
            where=found.name,
            expected="an id of its own for every conversation",
        )
