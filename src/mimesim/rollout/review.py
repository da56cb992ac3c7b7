"""Offline self-check of the user's side of stored episodes: the guards again, and early ends.

Nothing is simulated or asked; a public copy of an episode is checked as far as it goes. The tags
are those that reviewers of simulated users share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mimesim.dialogue.episode import Episode, Turn
from mimesim.dialogue.stop import Party, mentions_marker
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import Role
from mimesim.errors import UsageError
from mimesim.scenarios.types import Scenario
from mimesim.users import briefing
from mimesim.users.guards import Fault, Situation, check

_MAX_CHARS = 2000
_EARLY = 2
"""User messages within which an unsuccessful end by the user is called early."""
_TAGS = {
    "withheld_leak": "revealed_info_early",
    "goal_echo": "revealed_info_early",
    "prompt_leak": "revealed_info_early",
    "early_end": "premature_termination",
    "repeat": "inconsistent_behavior",
    "parrot": "inconsistent_behavior",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a reviewer should look at. `detail` never holds private text.

    Attributes:
        turn: the `i` of the user's message, -1 = the conversation as a whole.
        hard: such a text must not reach an agent.
        tag: shared name of the kind of error.
    """

    episode: str
    turn: int
    guard: str
    hard: bool
    detail: str = ""

    @property
    def tag(self) -> str:
        """The tag of this guard."""
        return _TAGS.get(self.guard, "guideline_violation")


@dataclass(frozen=True, slots=True)
class Review:
    """What was found in a set of episodes.

    Attributes:
        stored: guard events of the run itself, by guard.
        messages: user messages looked at.
    """

    episodes: int = 0
    messages: int = 0
    stored: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def by_guard(self) -> dict[str, int]:
        """Findings by guard."""
        return dict(sorted(Counter(f.guard for f in self.findings).items()))

    @property
    def hard_rate(self) -> float:
        """Share of user messages with a hard finding."""
        hard = {(f.episode, f.turn) for f in self.findings if f.hard}
        return len(hard) / self.messages if self.messages else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        tags = Counter(f.tag for f in self.findings)
        return {
            "episodes": self.episodes,
            "messages": self.messages,
            "stored_guards": dict(self.stored),
            "findings": self.by_guard,
            "tags": dict(sorted(tags.items())),
            "hard_rate": self.hard_rate,
        }


def review(episodes: Iterable[Episode]) -> Review:
    """Check the user's messages of `episodes`."""
    stored: Counter[str] = Counter()
    findings: list[Finding] = []
    number = messages = 0
    for episode in episodes:
        number += 1
        stored.update(str(event.get("guard")) for event in episode.guards)
        messages += sum(_is_user(turn) for turn in episode.turns)
        findings += _check(episode)
    return Review(number, messages, dict(sorted(stored.items())), tuple(findings))


def review_talk(name: str, turns: Sequence[tuple[Role, str]]) -> tuple[Finding, ...]:
    """Check the user's messages of a conversation of which only the words are known.

    Args:
        name: id of the conversation, for the findings.
        turns: (user or agent, text) in order; a finding's `turn` is an index into them.
    """
    return tuple(_talk(name, list(enumerate(turns)), None))


def scenario_of(episode: Episode) -> Scenario | None:
    """Return the user's scenario as far as the private side tells it; None = not there."""
    if not episode.private or not episode.private.get("goal"):
        return None
    names = Scenario.__dataclass_fields__
    known = {key: value for key, value in episode.private.items() if key in names}
    try:
        return Scenario.from_json(
            {"id": str(episode.scenario.get("id", episode.id)), **known}, f"episode {episode.id}"
        )
    except UsageError:
        return None  # written by another gym, with a scenario of its own


def _check(episode: Episode) -> list[Finding]:
    said = [
        (turn.i, (turn.role, turn.content))
        for turn in episode.turns
        if turn.role is Role.AGENT or _is_user(turn)
    ]
    found = _talk(episode.id, said, scenario_of(episode))
    stop = episode.stop
    early = stop.by is Party.USER and not episode.outcome.success and episode.counted
    if early and episode.turns_used <= _EARLY:
        detail = f"after {episode.turns_used} messages"
        found.append(Finding(episode.id, -1, "early_end", hard=False, detail=detail))
    return found


def _talk(
    name: str, turns: Sequence[tuple[int, tuple[Role, str]]], scenario: Scenario | None
) -> list[Finding]:
    found: list[Finding] = []
    own: list[str] = []
    asked: set[str] = set()
    heard = ""
    for i, (role, text) in turns:
        if is_blank(text):
            continue
        if role is Role.AGENT:
            heard = text
            if scenario is not None:
                asked |= set(briefing.asked_for(heard, list(scenario.facts)))
            continue
        scene = replace(_situation(scenario, asked, opening=not own), own=own, agent_text=heard)
        found += [
            Finding(name, i, fault.guard, fault.hard, fault.detail)
            for fault in _faults(text, scene)
        ]
        own = [*own, text]
    return found


def _situation(scenario: Scenario | None, asked: set[str], *, opening: bool) -> Situation:
    if scenario is None:
        return Situation(opening=opening, max_chars=_MAX_CHARS)
    return briefing.situation(
        scenario, prompt="", opening=opening, asked=sorted(asked), max_chars=_MAX_CHARS
    )


def _faults(text: str, scene: Situation) -> list[Fault]:
    found = list(check(text, scene))
    if mentions_marker(text):
        found.append(Fault("marker", hard=True))
    return found


def _is_user(turn: Turn) -> bool:
    return turn.role is Role.USER and turn.delivered and not is_blank(turn.content)
