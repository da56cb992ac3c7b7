"""How rich and how long the user's words are, beside people's: the lexical part of MirrorBench.

Per conversation all user turns are one text. A z-score says by how many standard deviations of
people a conversation lies from their mean; its mean is near 0 for a user who writes as they do, and
its sign tells the direction. What is pooled over all conversations shows what a conversation cannot:
the same sentences again and again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from mimesim import seeds, stats
from mimesim.bench.suites.base import Inputs, SuiteFacts
from mimesim.bench.suites.sessions import Session, SessionSet, read_sessions
from mimesim.errors import DataError
from mimesim.judges.base import Judge
from mimesim.judges.stored import Work
from mimesim.results.suite import FloorRow, Metric, PerKey, SuiteScore
from mimesim.results.values import Estimate
from mimesim.stats.texts import diversity_ci, surface_tokens

NAME = "lexical"
OWN_PEOPLE = "thoughts-pack"
FEW_TOKENS = 5
_T_UP_TO = 31
"""Up to so many conversations the interval of a published z-score is Student's."""
_UNEQUAL = 1.25
"""Amounts of text further apart than this do not compare by what is pooled."""
_RESAMPLED = "no interval: a resampled text repeats its sentences"

Tokens = Sequence[str]
MEASURES: Mapping[str, tuple[str, Callable[[Session, Tokens], float]]] = {
    "mattr": ("", lambda _, tokens: stats.mattr(tokens)),
    "hdd": ("", lambda _, tokens: stats.hdd(tokens)),
    "yule_k": ("", lambda _, tokens: stats.yule_k(tokens)),
    "distinct_1": ("", lambda _, tokens: stats.distinct_n(tokens, 1)),
    "distinct_2": ("", lambda _, tokens: stats.distinct_n(tokens, 2)),
    "words_per_turn": ("words", lambda session, tokens: len(tokens) / len(session.said)),
    "turns": ("user turns", lambda session, _: float(len(session.said))),
}
"""Measure of a conversation -> its unit, and how it is made."""
_POOLED: Mapping[str, Callable[[Tokens], float]] = {
    "pooled_yule_k": stats.yule_k,
    "pooled_distinct_1": lambda tokens: stats.distinct_n(tokens, 1),
    "pooled_distinct_2": lambda tokens: stats.distinct_n(tokens, 2),
}
Values = dict[str, dict[str, float]]
"""Measure -> key of the conversation -> value."""


def tokens_of(session: Session) -> list[str]:
    """Return the words of all user turns, in order."""
    return stats.words(" ".join(session.said))


class Lexical:
    """The suite `lexical`."""

    facts = SuiteFacts(
        name=NAME,
        title="richness and length of the user's words, as z-scores against people",
        adds=("people",),
        source="MirrorBench (arXiv 2601.08118), lexical metrics; UserLM (arXiv 2510.06552), "
        "first-turn diversity",
        license="none of its own; that of the conversations you compare with",
    )

    def works(self, inputs: Inputs, judge: Judge) -> list[Work]:
        """Return nothing: no judge is asked."""
        return []

    def score(self, inputs: Inputs) -> SuiteScore:
        """Score; see `Suite.score`.

        Raises:
            DataError: nobody says a word, or there are fewer than two people to compare with.
        """
        own = inputs.people is None
        people = inputs.people or read_sessions(OWN_PEOPLE)
        compat = inputs.mode == "compat"
        mine = _values(inputs.sessions, compat=compat)
        theirs = _values(people, compat=compat)
        if not mine["turns"] or len(theirs["turns"]) < 2:
            raise DataError(
                "not enough conversations with words",
                where=inputs.sessions.name if not mine["turns"] else people.name,
                expected="at least one of the user, and two of people",
            )
        metrics = [*_scores(inputs, mine, theirs), *_plain(inputs.sessions, mine, inputs)]
        described = _plain(people, theirs, inputs)
        floors = [FloorRow(m.name, f"people ({people.name})", m.value) for m in described]
        floors += _halves(people, theirs, inputs)
        return SuiteScore(
            suite=NAME,
            metrics=tuple(metrics),
            mode=inputs.mode,
            floors=tuple(floors),
            excluded=_wordless(inputs.sessions, mine),
            warnings=tuple(_warnings(inputs.sessions, people, own=own)),
            by_key=_by_key(inputs.sessions, mine),
            roles={"people": people.name},
        )


SUITE = Lexical()


def _values(found: SessionSet, *, compat: bool) -> Values:
    """Measure all conversations; those without a word are left out, in `compat` they are 0."""
    listed = {key: (one, tokens_of(one)) for key, one in found.keyed().items()}
    kept = {key: pair for key, pair in listed.items() if compat or pair[1]}
    return {
        name: {key: measure(session, tokens) for key, (session, tokens) in kept.items()}
        for name, (_, measure) in MEASURES.items()
    }


def _scores(inputs: Inputs, mine: Values, theirs: Values) -> list[Metric]:
    clusters = _clusters(inputs.sessions)
    found = []
    for name in MEASURES:
        scores = _z(mine[name], list(theirs[name].values()))
        keys = [clusters[key] for key in mine[name]]
        interval = _published(scores) if inputs.mode == "compat" else None
        value = interval or stats.mean_ci(scores, keys, inputs.seed, inputs.draws)
        found.append(Metric(f"z_{name}", Estimate.of(value), "sd", "nearer"))
    return found


def _z(values: Mapping[str, float], people: Sequence[float]) -> list[float]:
    """Return the z-scores of values against people's; 0 where people do not differ."""
    mean = math.fsum(people) / len(people)
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in people) / (len(people) - 1))
    return [(value - mean) / spread if spread else 0.0 for value in values.values()]


def _published(scores: Sequence[float]) -> stats.Interval | None:
    """Return the mean with the interval of the original: Student's up to 31, else normal."""
    if len(scores) <= _T_UP_TO:
        return stats.t_interval(scores)
    mean = math.fsum(scores) / len(scores)
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in scores) / (len(scores) - 1))
    half = 1.96 * spread / math.sqrt(len(scores))
    return stats.Interval(mean, mean - half, mean + half, len(scores), "normal")


def _plain(found: SessionSet, values: Values, inputs: Inputs) -> list[Metric]:
    """Return the means over conversations and what is pooled."""
    clusters = _clusters(found)
    metrics = []
    for name, (unit, _) in MEASURES.items():
        keys = [clusters[key] for key in values[name]]
        mean = stats.mean_ci(list(values[name].values()), keys, inputs.seed, inputs.draws)
        metrics.append(Metric(name, Estimate.of(mean), unit, "nearer"))
    pooled = [token for session in found.sessions for token in tokens_of(session)]
    for name, measure in _POOLED.items():
        value = Estimate(measure(pooled), n=len(pooled), method=_RESAMPLED)
        metrics.append(Metric(name, value, "", "nearer", "tokens"))
    first = [session.said[0] for session in found.sessions]
    owners = [session.cluster for session in found.sessions]
    sets = {
        "first_turn_diversity": [frozenset(stats.words(text)) for text in first],
        "first_turn_diversity_userlm": [surface_tokens(text) for text in first],
    }
    for name, one in sets.items():
        value = Estimate.of(diversity_ci(one, owners))
        metrics.append(Metric(name, value, "", "nearer", "first turns"))
    return metrics


def _halves(people: SessionSet, values: Values, inputs: Inputs) -> list[FloorRow]:
    """Return the z-scores of one half of the people against the other: what 0 looks like."""
    clusters = _clusters(people)
    names = sorted(set(clusters.values()), key=lambda name: seeds.fingerprint(f"{NAME}|{name}"))
    first = set(names[::2])
    found = []
    for name in MEASURES:
        half = {k: v for k, v in values[name].items() if clusters[k] in first}
        rest = [v for k, v in values[name].items() if clusters[k] not in first]
        if not half or len(rest) < 2:
            continue
        keys = [clusters[key] for key in half]
        value = stats.mean_ci(_z(half, rest), keys, inputs.seed, inputs.draws)
        found.append(FloorRow(f"z_{name}", "half of the people", Estimate.of(value)))
    return found


def _clusters(found: SessionSet) -> dict[str, str]:
    return {key: one.cluster for key, one in found.keyed().items()}


def _by_key(found: SessionSet, values: Values) -> dict[str, PerKey]:
    clusters = _clusters(found)
    return {name: PerKey(dict(values[name]), clusters) for name in MEASURES}


def _wordless(found: SessionSet, values: Values) -> dict[str, int]:
    lost = len(found.sessions) - len(values["turns"])
    return {"no_words": lost} if lost else {}


def _warnings(found: SessionSet, people: SessionSet, *, own: bool) -> list[str]:
    told = []
    sizes = [sum(len(tokens_of(one)) for one in side.sessions) for side in (found, people)]
    if max(sizes) > _UNEQUAL * min(sizes):
        told.append(
            f"pooled distinct-n falls with the amount of text: {sizes[0]} words against {sizes[1]}"
        )
    short = sum(len(tokens_of(one)) < FEW_TOKENS for one in found.sessions)
    if short:
        told.append(f"{short} conversations of fewer than {FEW_TOKENS} words: unstable measures")
    if own:
        told.append(
            f"compared with {len(people.sessions)} invented conversations, no evidence about "
            "people: name your own by --human"
        )
    elif people.simulated:
        told.append(f"the people of {people.name} are simulated")
    return told
