"""Were the behaviors shown that were asked for? Per behavior, by a judge of behaviors.

A conversation counts once, by the behavior its customer was to play; one without a behavior counts
by whether the customer was cooperative. What was not judged is counted apart and never a 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mimesim import stats
from mimesim.bench.suites.base import Inputs, SuiteFacts
from mimesim.bench.suites.sessions import Session
from mimesim.errors import DataError
from mimesim.judges.agree import NOBODY, work_on
from mimesim.judges.base import Judge
from mimesim.judges.behavior import BEHAVIOR, EXHIBITED
from mimesim.judges.stored import SCORED, Stored, Work
from mimesim.results.suite import FloorRow, Metric, PerKey, SuiteScore
from mimesim.results.values import Estimate
from mimesim.scenarios import behaviors

NAME = "behavior"
_QUALITIES = ("placement", "naturalness", "on_task")
Judged = tuple[Session, Stored]


class Behavior:
    """The suite `behavior`."""

    facts = SuiteFacts(
        name=NAME,
        title="whether the user shows the behavior it was asked for, and no other",
        needs=("judge",),
        source="the 13 behaviors of docs/behaviors.md",
        judge="rule",
        plays={"gym": "support-desk", "episodes": 60},
    )

    def works(self, inputs: Inputs, judge: Judge) -> list[Work]:
        """Return one question per episode; people's conversations are asked for no behavior."""
        episodes = [one.episode for one in inputs.sessions.sessions if one.episode is not None]
        return work_on(episodes, judge, seed=inputs.seed)

    def score(self, inputs: Inputs) -> SuiteScore:
        """Score; see `Suite.score`.

        Raises:
            DataError: no conversation has a verdict.
        """
        sessions = {one.id: one for one in inputs.sessions.sessions}
        known = [(sessions[v.item], v) for v in inputs.verdicts if v.item in sessions]
        judged = [(session, one) for session, one in known if one.state == SCORED]
        if not judged:
            raise DataError(
                "no conversation with a verdict on its behavior",
                where=inputs.sessions.name,
                expected="episodes with their private side, which tells what was asked",
            )
        asked = [(s, v) for s, v in judged if v.kind == BEHAVIOR]
        plain = [(s, v) for s, v in judged if v.kind != BEHAVIOR]
        metrics = [_share("exhibited", asked, inputs), _share("cooperative", plain, inputs)]
        metrics += [_mean(name, judged, inputs) for name in _QUALITIES]
        metrics.append(_announced(asked, inputs))
        for name in behaviors.ids():
            own = [(s, v) for s, v in asked if v.behavior == name]
            if own:
                metrics.append(_share(f"exhibited_{name}", own, inputs))
        lost = Counter(one.reason or one.state for _, one in known if one.state != SCORED)
        unasked = len(sessions) - len(known)
        return SuiteScore(
            suite=NAME,
            metrics=tuple(one for one in metrics if one.value.n),
            mode=inputs.mode,
            floors=_floors(plain, inputs),
            excluded={**lost, **({"not_judged": unasked} if unasked else {})},
            warnings=tuple(_warnings(judged)),
            by_key=_by_key(inputs, judged),
        )


SUITE = Behavior()


def _shown(one: Stored) -> bool:
    value = one.value or {}
    return float(value["exhibit" if one.kind == BEHAVIOR else "cooperative"]) >= EXHIBITED


def _share(name: str, judged: Sequence[Judged], inputs: Inputs) -> Metric:
    value = stats.rate_ci(
        [_shown(one) for _, one in judged],
        [session.cluster for session, _ in judged],
        inputs.seed,
        inputs.draws,
    )
    note = "rare" if sum(_shown(one) for _, one in judged) < 5 else ""
    return Metric(name, Estimate.of(value).times(100), "%", "higher", "conversations", note=note)


def _mean(name: str, judged: Sequence[Judged], inputs: Inputs) -> Metric:
    known = [(s, float(v.value[name])) for s, v in judged if v.value and name in v.value]
    value = stats.mean_ci(
        [one for _, one in known], [s.cluster for s, _ in known], inputs.seed, inputs.draws
    )
    return Metric(name, Estimate.of(value), "", "higher", "conversations")


def _announced(asked: Sequence[Judged], inputs: Inputs) -> Metric:
    value = stats.rate_ci(
        [bool(one.value and one.value["announced"]) for _, one in asked],
        [session.cluster for session, _ in asked],
        inputs.seed,
        inputs.draws,
    )
    return Metric("announced", Estimate.of(value).times(100), "%", "lower", "conversations")


def _floors(plain: Sequence[Judged], inputs: Inputs) -> tuple[FloorRow, ...]:
    """Return how often a judge calls an ordinary customer difficult: its false alarms, at most."""
    if not plain:
        return ()
    share = _share("", plain, inputs).value
    if share.value is None or share.low is None or share.high is None:
        return ()
    value = Estimate(100 - share.value, 100 - share.high, 100 - share.low, share.n, share.method)
    return (FloorRow("exhibited", "any behavior in neutral conversations", value),)


def _by_key(inputs: Inputs, judged: Sequence[Judged]) -> dict[str, PerKey]:
    names = {session.id: key for key, session in inputs.sessions.keyed().items()}
    clusters = {names[session.id]: session.cluster for session, _ in judged}
    found = {}
    for metric, wanted in (("exhibited", True), ("cooperative", False)):
        own = [(s, v) for s, v in judged if (v.kind == BEHAVIOR) is wanted]
        if own:
            found[metric] = PerKey({names[s.id]: 100.0 * _shown(v) for s, v in own}, clusters)
    for metric in _QUALITIES:
        values = {
            names[s.id]: float(v.value[metric]) for s, v in judged if v.value and metric in v.value
        }
        if values:
            found[metric] = PerKey(values, clusters)
    return found


def _warnings(judged: Sequence[Judged]) -> list[str]:
    names = Counter(one.behavior or NOBODY for _, one in judged)
    few = [f"{name} {n}" for name, n in names.items() if n < 5]
    told = [f"fewer than 5 conversations of: {', '.join(few)}"] if few else []
    if any(one.judge.startswith("rule") for _, one in judged):
        told.append("judged by rules, which know words and order, not meaning")
    return told
