"""Episodes summed up: both denominators, failures apart, nothing counted twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim.dialogue.stop import Status
from mimesim.report.episodes_page import SHOWN, episodes_page, summarize, verdict
from mimesim.report.load import EpisodeFile
from mimesim.stats import wilson
from tests.report import samples


def test_both_denominators() -> None:
    found = summarize(samples.episodes(24))
    assert (found.total, found.counted) == (24, 20)
    assert found.success.value == 12 / 20
    assert (found.success.low, found.success.high) == (wilson(12, 20).low, wilson(12, 20).high)
    assert found.strict == 12 / 24
    assert found.failures == {"user_failure": 4}
    assert found.statuses == {"completed": 16, "truncated": 4, "user_failure": 4}
    assert found.reward.n == 20
    assert found.reward.value == pytest.approx((12 + 8 * 0.3) / 20)
    assert found.guards == {"over_length": 24}
    assert found.cost == "$0.0504"


def test_repeated_tasks_are_clusters() -> None:
    task = samples.episode(0).task
    repeated = [samples.episode(n, success=n % 2 == 0, task=task) for n in range(4)]
    other = samples.episode(9)
    assert "2 clusters" in summarize([*repeated, other]).success.method


def test_nothing_countable_is_unknown() -> None:
    lost = [samples.episode(n, status=Status.USER_FAILURE, success=None) for n in range(2)]
    found = summarize(lost)
    assert (found.success.value, found.strict, found.reward.value) == (None, None, None)
    assert verdict(found) == "None of the 2 conversations can be counted."


def test_the_page_breaks_success_down_and_caps_transcripts() -> None:
    many = [samples.episode(n) for n in range(SHOWN + 3)]
    page = episodes_page(EpisodeFile(Path("x.jsonl"), tuple(many)))
    assert (len(page.transcripts), page.left_out) == (SHOWN, 3)
    page = episodes_page(EpisodeFile(Path("x.jsonl"), tuple(samples.episodes(24))))
    headings = [heading for heading, _ in page.groups]
    assert headings == ["Success by behavior"]
    assert sum(group.total for group in page.groups[0][1]) == 24
    assert page.verdict == (
        "The agent succeeds in 60 % of 20 conversations; 4 of 24 are not counted."
    )


def test_unknown_cost_is_a_lower_bound() -> None:
    from mimesim.dialogue.types import Usage

    usage = {"user": Usage(calls=2, cost=0.035, unknown_cost_calls=1)}
    assert summarize([samples.episode(usage=usage)]).cost == "at least $0.0350"
