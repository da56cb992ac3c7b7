"""The episodes of a run arranged for the page: rates with both denominators, ends, transcripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mimesim import stats
from mimesim.dialogue.episode import SIDES, Episode
from mimesim.report.figures import (
    UNKNOWN,
    duration,
    measured,
    measured_range,
    number,
    percent,
    percent_range,
    plain,
    words,
)
from mimesim.report.load import EpisodeFile
from mimesim.report.transcripts import Transcript, behavior_name, transcript
from mimesim.results import Estimate, Tile

SHOWN = 250
"""Conversations put into a page; more would make the tab slow."""
PARTS = 16
"""Parts shown in one breakdown, the largest first."""


@dataclass(frozen=True, slots=True)
class Share:
    """A bar: how many of the episodes, and their share in percent."""

    label: str
    count: int
    share: float
    tone: str = "neutral"


@dataclass(frozen=True, slots=True)
class Group:
    """Success of a part of the episodes, e.g. of one behavior; positions in percent."""

    label: str
    counted: int
    total: int
    value: str
    interval: str
    position: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """What the episodes come to.

    Attributes:
        total: all episodes. counted: those that enter scores.
        success, reward: over the counted.
        strict: success over all, failures as misses.
        failures: status to number, of the episodes that are not counted.
    """

    total: int
    counted: int
    success: Estimate
    strict: float | None
    reward: Estimate
    user_turns: Estimate
    words_per_turn: Estimate
    stops: Mapping[str, int]
    statuses: Mapping[str, int]
    failures: Mapping[str, int]
    guards: Mapping[str, int]
    cost: str
    seconds: float


def summarize(episodes: Sequence[Episode]) -> Summary:
    """Sum up the episodes of one run."""
    counted = [e for e in episodes if e.counted]
    judged = [e for e in counted if e.outcome.success is not None]
    wins = [bool(e.outcome.success) for e in judged]
    rewards = [(e.outcome.reward, e.task.id) for e in counted if e.outcome.reward is not None]
    utterances = [len(stats.words(t.content)) for e in counted for t in e.turns if t.role == "user"]
    turns = [float(e.turns_used) for e in counted]
    return Summary(
        total=len(episodes),
        counted=len(counted),
        success=_rate(wins, [e.task.id for e in judged]),
        strict=sum(wins) / len(episodes) if judged and episodes else None,
        reward=Estimate.of(stats.mean_ci([r for r, _ in rewards], [t for _, t in rewards])),
        user_turns=Estimate.of(stats.mean_ci(turns, [e.task.id for e in counted])),
        words_per_turn=Estimate.of(stats.mean_ci([float(n) for n in utterances])),
        stops=_counts(e.stop.reason.value for e in episodes),
        statuses=_counts(e.outcome.status.value for e in episodes),
        failures=_counts(e.outcome.status.value for e in episodes if not e.counted),
        guards=_counts(str(g.get("guard", "")) for e in episodes for g in e.guards),
        cost=_cost(episodes),
        seconds=sum(e.duration_s for e in episodes),
    )


@dataclass(frozen=True, slots=True)
class EpisodesPage:
    """All that the page shows of a run.

    Attributes:
        left_out: conversations that the page has no room for.
        groups: (heading, bars) of success by part.
    """

    title: str
    source: str
    verdict: str
    facts: tuple[tuple[str, str], ...]
    tiles: tuple[Tile, ...]
    stops: tuple[Share, ...]
    statuses: tuple[Share, ...]
    guards: tuple[Share, ...]
    groups: tuple[tuple[str, tuple[Group, ...]], ...]
    transcripts: tuple[Transcript, ...]
    left_out: int
    settings: tuple[tuple[str, str], ...]


def episodes_page(run: EpisodeFile) -> EpisodesPage:
    """Arrange the episodes of a run."""
    episodes, found = run.episodes, summarize(run.episodes)
    return EpisodesPage(
        title=_title(episodes),
        source=run.path.name,
        verdict=verdict(found),
        facts=_facts(episodes, found),
        tiles=tiles(found),
        stops=_shares(found.stops, found.total, lambda _: "neutral"),
        statuses=_shares(found.statuses, found.total, _status_tone(episodes)),
        guards=_shares(found.guards, max(found.guards.values(), default=1), lambda _: "void"),
        groups=_groups(episodes),
        transcripts=tuple(transcript(e) for e in episodes[:SHOWN]),
        left_out=max(0, len(episodes) - SHOWN),
        settings=_settings(run),
    )


def verdict(found: Summary) -> str:
    """Say in one sentence what came out."""
    if not found.counted:
        return f"None of the {found.total} conversations can be counted."
    lost = found.total - found.counted
    tail = f"; {lost} of {found.total} are not counted" if lost else ", all of them counted"
    if found.success.value is None:
        return f"{found.counted} conversations{tail}."
    rate = percent(found.success.value)
    return f"The agent succeeds in {rate} % of {found.counted} conversations{tail}."


def tiles(found: Summary) -> tuple[Tile, ...]:
    """Return the big numbers at the top."""
    success, reward = found.success, found.reward
    bounds = percent_range(success)
    lost = found.total - found.counted
    kinds = ", ".join(f"{n} {words(kind)}" for kind, n in found.failures.items())
    return (
        Tile(
            "Success, counted episodes",
            f"{percent(success.value)} %" if success.value is not None else UNKNOWN,
            f"95 % interval {bounds}, n = {success.n}" if bounds else f"n = {success.n}",
        ),
        Tile(
            "Success, all episodes",
            f"{percent(found.strict)} %" if found.strict is not None else UNKNOWN,
            f"failures as misses, n = {found.total}",
        ),
        Tile("Mean reward", measured(reward), _bounds(reward)),
        Tile("Not counted", f"{lost} of {found.total}", kinds or "no failure"),
    )


def _bounds(estimate: Estimate) -> str:
    found = measured_range(estimate)
    return f"95 % interval {found}, n = {estimate.n}" if found else f"n = {estimate.n}"


def _rate(wins: Sequence[bool], tasks: Sequence[str]) -> Estimate:
    repeated = len(set(tasks)) < len(tasks)
    return Estimate.of(stats.rate_ci(wins, tasks) if repeated else stats.rate_ci(wins))


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0])))


def _shares(counts: Mapping[str, int], total: int, tone: Callable[[str], str]) -> tuple[Share, ...]:
    return tuple(
        Share(words(name), n, round(100 * n / total, 2), tone(name)) for name, n in counts.items()
    )


def _status_tone(episodes: Sequence[Episode]) -> Callable[[str], str]:
    counted = {e.outcome.status.value for e in episodes if e.counted}
    return lambda name: "good" if name in counted else "void"


def _groups(episodes: Sequence[Episode]) -> tuple[tuple[str, tuple[Group, ...]], ...]:
    """Return success by part, where the parts cover most episodes and there are several."""
    parts: dict[str, Callable[[Episode], str]] = {
        "Success by user": lambda e: e.user.name if e.user else "",
        "Success by behavior": lambda e: behavior_name(e.private),
        "Success by kind of task": _kind_of_task,
    }
    out = []
    for heading, key in parts.items():
        names = _counts(name for e in episodes if (name := key(e)))
        if len(names) > 1 and sum(names.values()) >= 0.8 * len(episodes):
            shown = list(names)[:PARTS]
            out.append((heading, tuple(_group(name, key, episodes) for name in shown)))
    return tuple(out)


def _kind_of_task(episode: Episode) -> str:
    flow = episode.task.public.get("flow")
    if isinstance(flow, str):
        return words(flow)
    shared = [group for group in episode.task.groups if not group.startswith("record:")]
    return words(shared[0]) if shared else ""


def _group(name: str, key: Callable[[Episode], str], episodes: Sequence[Episode]) -> Group:
    mine = [e for e in episodes if key(e) == name]
    judged = [e for e in mine if e.counted and e.outcome.success is not None]
    rate = _rate([bool(e.outcome.success) for e in judged], [e.task.id for e in judged])
    at = [None if v is None else round(100 * v, 2) for v in (rate.value, rate.low, rate.high)]
    return Group(
        name, len(judged), len(mine), percent(rate.value), percent_range(rate), at[0], at[1], at[2]
    )


def _title(episodes: Sequence[Episode]) -> str:
    agents = dict.fromkeys(e.agent.name for e in episodes)
    users = dict.fromkeys(e.user.name for e in episodes if e.user)
    return f"{_some(agents)} × {_some(users)}" if users else _some(agents)


def _some(names: Iterable[str]) -> str:
    known = list(names)
    rest = f" and {len(known) - 2} more" if len(known) > 2 else ""
    return ", ".join(known[:2]) + rest


def _facts(episodes: Sequence[Episode], found: Summary) -> tuple[tuple[str, str], ...]:
    first = episodes[0]
    gyms = dict.fromkeys(f"{e.task.gym}/{e.task.profile}" for e in episodes)
    judges = dict.fromkeys(e.judge.name for e in episodes if e.judge)
    facts = [
        ("gym", _some(gyms)),
        ("judge", _some(judges)),
        ("run", first.run_id),
        ("user turns", f"{number(found.user_turns.value)} per conversation"),
        ("words", f"{number(found.words_per_turn.value)} per user turn"),
        ("cost", found.cost),
        ("conversation time", duration(found.seconds)),
        ("mimesim", str(first.software.get("version", ""))),
    ]
    return tuple((key, value) for key, value in facts if value)


def _cost(episodes: Sequence[Episode]) -> str:
    usages = [e.usage[side] for e in episodes for side in SIDES if side in e.usage]
    known = [u.cost for u in usages if u.cost is not None]
    unknown = sum(u.unknown_cost_calls for u in usages)
    if not known:
        return ""
    return f"{'at least ' if unknown else ''}${sum(known):.4f}"


def _settings(run: EpisodeFile) -> tuple[tuple[str, str], ...]:
    first = run.episodes[0]
    shown: dict[str, Any] = {"software": dict(first.software), "limits": dict(first.limits)}
    for side, who in (("agent", first.agent), ("user", first.user), ("judge", first.judge)):
        if who is not None:
            shown[side] = f"{who.name} {who.model} {who.prompt_hash} {plain(who.sampling)}".strip()
    return tuple((words(key), plain(value)) for key, value in {**shown, **run.manifest}.items())
