"""Deterministic faults of the user per 100 of its turns: no judge, no data, no opinion.

Roles that flip, private facts that leak, words of the machinery, repetition, conversations that go
in circles or end early, and users that failed altogether. The checks are those of the guards and of
`mimesim review`; on people they find what is left of false alarms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mimesim import stats
from mimesim.bench.suites.base import Inputs, SuiteFacts
from mimesim.bench.suites.sessions import Session, SessionSet
from mimesim.dialogue.loops import loop_detected
from mimesim.dialogue.stop import Status
from mimesim.dialogue.types import PublicMessage
from mimesim.judges.base import Judge
from mimesim.judges.stored import Work
from mimesim.results.suite import FloorRow, Metric, PerKey, SuiteScore
from mimesim.results.values import Estimate
from mimesim.rollout.review import Finding, review, review_talk

NAME = "self-check"
_TAIL = 8
"""Messages that decide whether a conversation goes in circles."""

KINDS: Mapping[str, tuple[str, ...]] = {
    "role_flips": ("role_flip",),
    "leaks": ("withheld_leak", "goal_echo", "prompt_leak"),
    "out_of_part": ("meta_talk", "refusal"),
    "machinery": ("leftover_tag", "speaker_text", "marker"),
    "repeats": ("repeat", "parrot"),
    "too_long": ("too_long",),
    "loops": ("loop",),
    "early_stops": ("early_end",),
}
"""Metric -> the checks behind it."""
ALL = "faults"


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in one conversation.

    Attributes:
        turns: user turns. faults: metric -> how many, each kind at most once a turn.
        redrawn: utterances that the guards of the run held back; None = not known.
    """

    session: Session
    turns: int
    faults: Mapping[str, int]
    redrawn: int | None


def checked(session: Session) -> Checked:
    """Check one conversation."""
    episode = session.episode
    user_sits_right = episode is not None and not episode.task.gym.startswith("task:")
    if episode is not None and user_sits_right:
        findings: Sequence[Finding] = review([episode]).findings
    else:
        findings = review_talk(session.id, session.turns)
    by_turn = {(finding.turn, _metric(finding.guard)) for finding in findings}
    faults = Counter(metric for _, metric in by_turn)
    faults["loops"] += _goes_in_circles(session)
    redrawn = len(episode.guards) if episode is not None and user_sits_right else None
    return Checked(session, len(session.said), dict(faults), redrawn)


class SelfCheck:
    """The suite `self-check`."""

    facts = SuiteFacts(
        name=NAME,
        title="deterministic faults of the user per 100 turns",
        adds=("people",),
        source="the guards of users/guards.py and mimesim review",
    )

    def works(self, inputs: Inputs, judge: Judge) -> list[Work]:
        """Return nothing: no judge is asked."""
        return []

    def score(self, inputs: Inputs) -> SuiteScore:
        """Score; see `Suite.score`."""
        found = {key: checked(one) for key, one in inputs.sessions.keyed().items()}
        rates = _rates(list(found.values()), inputs)
        metrics = [
            Metric(name, value, "per 100 turns", "lower", "turns") for name, value in rates.items()
        ]
        metrics += _failed(inputs.sessions)
        clusters = {key: one.session.cluster for key, one in found.items()}
        by_key = {
            name: PerKey({key: _per_hundred(one, name) for key, one in found.items()}, clusters)
            for name in (ALL, *KINDS)
        }
        return SuiteScore(
            suite=NAME,
            metrics=tuple(metrics),
            mode=inputs.mode,
            floors=tuple(_people(inputs)),
            warnings=tuple(_warnings(list(found.values()))),
            by_key=by_key,
        )


SUITE = SelfCheck()


def _metric(guard: str) -> str:
    return next((name for name, guards in KINDS.items() if guard in guards), "out_of_part")


def _goes_in_circles(session: Session) -> bool:
    messages = [PublicMessage(role, text) for role, text in session.turns]
    return any(
        loop_detected(messages[max(0, end - _TAIL) : end]) for end in range(1, len(messages) + 1)
    )


def _count(one: Checked, name: str) -> int:
    return sum(one.faults.values()) if name == ALL else one.faults.get(name, 0)


def _per_hundred(one: Checked, name: str) -> float:
    return 100 * _count(one, name) / one.turns


def _rates(found: Sequence[Checked], inputs: Inputs) -> dict[str, Estimate]:
    rates = {name: _rate(found, inputs, [_count(c, name) for c in found]) for name in (ALL, *KINDS)}
    known = [(one, one.redrawn) for one in found if one.redrawn is not None]
    if known:
        counts = [redrawn for _, redrawn in known]
        rates["held_back"] = _rate([one for one, _ in known], inputs, counts)
    return rates


def _rate(found: Sequence[Checked], inputs: Inputs, counts: Sequence[int]) -> Estimate:
    """Return faults per 100 turns, conversations of one person or task resampled together."""
    spread: list[float] = []
    clusters: list[str] = []
    for one, count in zip(found, counts, strict=True):
        spread += [100.0 * count, *[0.0] * (one.turns - 1)]
        clusters += [one.session.cluster] * one.turns
    if not any(counts):
        return _nothing(len(spread), len(set(clusters)))
    return Estimate.of(stats.mean_ci(spread, clusters, inputs.seed, inputs.draws))


def _nothing(turns: int, clusters: int) -> Estimate:
    """Return 0 with what it does not exclude: nothing found is not proof of nothing there."""
    bound = stats.wilson(0, clusters)
    high = None if bound.high is None else 100 * bound.high * clusters / turns
    return Estimate(0.0, 0.0, high, turns, f"none; Wilson over {clusters} clusters")


def _failed(found: SessionSet) -> list[Metric]:
    """Return the share of conversations that the user lost: a failure of it is a result."""
    if not found.simulated:
        return []
    lost = found.left_out.get(Status.USER_FAILURE.value, 0)
    share = stats.wilson(lost, lost + len(found.sessions))
    return [Metric("failed", Estimate.of(share).times(100), "%", "lower", "conversations")]


def _people(inputs: Inputs) -> list[FloorRow]:
    if inputs.people is None:
        return []
    found = [checked(one) for one in inputs.people.sessions]
    name = f"people ({inputs.people.name})"
    return [FloorRow(kind, name, value) for kind, value in _rates(found, inputs).items()]


def _warnings(found: Sequence[Checked]) -> list[str]:
    public = sum(one.session.episode is None for one in found)
    if not public:
        return []
    return [
        f"{public} of {len(found)} conversations have no private side: leaks and early stops "
        "cannot be seen in them"
    ]
