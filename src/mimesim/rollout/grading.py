"""Whether a conversation without a gym succeeded: checks of its scenario, a judge, or a function.

A gym grades its own episodes; a conversation leaves that open, so it is decided here, before the
episode is stored. What cannot be decided has no success, and a verdict that was needed and could
not be had makes the episode a judge's failure: it is never a pass and never a zero.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mimesim import config
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Party, Status, Stop, StopReason
from mimesim.dialogue.types import PublicMessage, Role, Usage
from mimesim.errors import JudgeError, UsageError
from mimesim.judges.base import Judge, required
from mimesim.judges.rubric import rubric_request
from mimesim.scenarios.checks import read_checks, read_criteria
from mimesim.seeds import derive
from mimesim.users.calling import call

Verdict = Callable[[Episode], float | Awaitable[float | None] | None]
"""Decides on an episode: true or false, or a share of 1; None = it cannot be decided.

A share becomes the reward of the episode; a success it is only where it is 1.
"""

FUNCTION = "success"
"""What the verdict of a function is called among the scores."""


@dataclass(frozen=True, slots=True)
class _Found:
    """One part of a verdict; `value` None = not decided, not finite = it came to nothing."""

    name: str
    value: float | None
    scorer: str

    @property
    def known(self) -> float | None:
        return self.value if self.value is not None and math.isfinite(self.value) else None

    def score(self) -> dict[str, Any]:
        state = "skipped" if self.value is None else "failed" if self.known is None else "ok"
        return {
            "value": None if self.value is None else float(self.value),
            "state": state,
            "scorer": self.scorer,
            "version": "1",
            "direction": "higher",
        }


class Grader:
    """Decides on episodes.

    Args:
        verdict: a function of the caller; it stands beside the checks of the scenario.
        judge: reads `success.criteria`; None = criteria stay undecided.
    """

    def __init__(self, verdict: Verdict | None, judge: Judge | None) -> None:
        self._verdict = verdict
        self._judge = judge

    async def grade(self, episode: Episode) -> Episode:
        """Return the episode with its verdict; one that failed otherwise stays as it is.

        Raises:
            UsageError: the checks of the scenario are damaged.
        """
        if not episode.counted:
            return episode
        usage: list[Usage] = []
        try:
            found = await self._found(episode, usage)
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - a verdict that breaks costs one episode
            return _spent(_unjudged(episode, error), usage)
        if not found:
            return episode
        values = [one.known for one in found if one.known is not None]
        worst = min(values) if len(values) == len(found) else None
        if episode.outcome.status is Status.AGENT_FAILURE:
            worst = 0.0
        outcome = replace(
            episode.outcome,
            success=None if worst is None else worst >= 1,
            reward=None if worst is None else float(worst),
            scores={**episode.outcome.scores, **{one.name: one.score() for one in found}},
        )
        return _spent(replace(episode, outcome=outcome), usage)

    async def _found(self, episode: Episode, usage: list[Usage]) -> list[_Found]:
        wanted = (episode.private or {}).get("success", {})
        where = f"scenario {episode.task.id!r}"
        found = [
            _Found(check.name, check.holds(episode), "checks")
            for check in read_checks(wanted, where)
        ]
        criteria = read_criteria(wanted, where)
        if criteria:
            found += await self._judged(episode, criteria, usage)
        if self._verdict is not None:
            found.append(_Found(FUNCTION, await _called(self._verdict, episode), "function"))
        return found

    async def _judged(
        self, episode: Episode, criteria: dict[str, str], usage: list[Usage]
    ) -> list[_Found]:
        if self._judge is None:
            return [_Found(text, None, "judge") for text in criteria.values()]
        heard = [
            PublicMessage(turn.role, turn.content)
            for turn in episode.turns
            if turn.delivered and turn.role in (Role.USER, Role.AGENT)
        ]
        request = rubric_request(
            heard, criteria, levels=(0.0, 1.0), seed=derive(episode.seed, "judge")
        )
        result = await self._judge.judge(request)
        usage.append(result.usage)
        grades = required(result).grades()
        name = self._judge.identity.name
        return [_Found(text, grades[key] == 1.0, name) for key, text in criteria.items()]


async def _called(verdict: Verdict, episode: Episode) -> float | None:
    """Ask a function, sync or async.

    Raises:
        JudgeError: it raised, or returned what is neither a truth value nor a share nor None.
    """
    value = await call(partial(verdict, episode), JudgeError)
    if value is not None and not isinstance(value, int | float):
        raise JudgeError(
            f"the success function returned {type(value).__name__}, which is no number"
        )
    if value is not None and math.isfinite(value) and not 0 <= value <= 1:
        raise JudgeError(f"the success function returned {value}, which is no share of 1")
    return value


def _unjudged(episode: Episode, error: Exception) -> Episode:
    detail = f"no verdict; the conversation itself ended by {episode.stop.reason.value}"
    stop = Stop(StopReason.JUDGE_ERROR, Party.JUDGE, episode.stop.turn, None, detail)
    told = {
        "where": "verdict",
        "type": type(error).__name__,
        "message": config.redact(str(error)),
        "retryable": False,
        "attempt": episode.attempt,
        "turn": len(episode.turns),
        "at": episode.duration_s,
    }
    outcome = replace(episode.outcome, status=stop.status, success=None, reward=None)
    return replace(episode, stop=stop, outcome=outcome, errors=(*episode.errors, told))


def _spent(episode: Episode, usage: list[Usage]) -> Episode:
    if not usage:
        return episode
    before = episode.usage.get("judge", Usage())
    return replace(episode, usage={**episode.usage, "judge": sum(usage, before)})
