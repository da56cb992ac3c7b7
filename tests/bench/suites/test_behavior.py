"""The suite `behavior`, and the layers on it: judging resumes, scoring is pure, judges do not mix."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mimesim.bench.suites import folder as folders
from mimesim.bench.suites import layers
from mimesim.bench.suites.behavior import SUITE
from mimesim.errors import DataError, UsageError
from mimesim.jsonio import Appender
from mimesim.results.suite import SuiteScore
from tests.judges.test_agree import HURRY, PLAIN, episode
from tests.support.sessions import chats
from tests.support.stub_server import StubServer

HOW = layers.How(draws=200)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run folder: one hurried customer, one who was to be, a neutral one, a public one."""
    with Appender(tmp_path / "episodes.jsonl") as file:
        stored = [episode("a", HURRY), episode("b", PLAIN), episode("c", PLAIN, None)]
        for one in [*stored, episode("d", PLAIN, private=None)]:
            file.append(one.to_json())
    return tmp_path


def ask(run: Path, *judges: str) -> dict[str, list]:
    inputs = layers.inputs_of(SUITE, folders.Asked(str(run)), HOW)
    return asyncio.run(layers.ask(SUITE, inputs, judges, run))


def score(run: Path, judge: str = "", *, mixed: bool = False) -> SuiteScore:
    inputs = layers.inputs_of(SUITE, folders.Asked(str(run)), HOW)
    return layers.scored(SUITE, inputs, layers.stored(SUITE, inputs, run, judge, mixed=mixed))


def test_shown_or_not_per_behavior(run: Path) -> None:
    ask(run, "rule")
    found = score(run)
    assert found.metric("exhibited").value.value == 50
    assert found.metric("exhibited_B9").value.n == 2
    assert found.metric("cooperative").value.value == 100
    assert found.excluded == {"no_private_side": 1}, "what was not judged is never a 0"
    assert found.by_key["exhibited"].values == {"a#0": 100.0, "b#0": 0.0}
    assert found.roles["judge"] == "rule"
    assert found.provenance["judges"]["rule"]["scored"] == 3


def test_layers_resume_and_a_score_changes_nothing(run: Path) -> None:
    ask(run, "rule")
    files = (run / "episodes.jsonl", run / folders.VERDICTS)
    before = [file.read_bytes() for file in files]
    ask(run, "rule")
    one, two = score(run), score(run)
    assert [file.read_bytes() for file in files] == before
    place = folders.keep(one, run, "behavior")
    first = place.read_bytes()
    assert folders.keep(SuiteScore.read(place), run, "behavior").read_bytes() == first
    assert folders.keep(two, run, "behavior").read_bytes() == first


def test_verdicts_of_two_judges_do_not_mix(run: Path) -> None:
    ask(run, "rule", "rule-heldout")
    with pytest.raises(UsageError, match="several judges"):
        score(run)
    found = score(run, "rule-heldout")
    assert found.roles["judge"] == "rule-heldout"
    assert found.provenance["agreement"]["rule-heldout x rule"]["exhibit"]["n"] == 2
    assert score(run, mixed=True).roles["judge"] == "mixed"
    with pytest.raises(UsageError, match="no verdict of judge 'model:x'"):
        score(run, "model:x")


def test_verdicts_on_other_words_are_left_aside(run: Path) -> None:
    ask(run, "rule")
    file = run / "episodes.jsonl"
    file.unlink()
    with Appender(file) as lines:
        lines.append(episode("a", PLAIN).to_json())
        lines.append(episode("b", PLAIN).to_json())
    found = score(run)
    assert found.metric("exhibited").value.n == 1
    assert found.excluded == {"not_judged": 1}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [("I'm sorry, but I can't help with that.", "refused"), ("prose", "failed")],
)
def test_a_judge_that_refuses_or_fails_is_counted_and_never_scored(
    run: Path, reply: str, reason: str
) -> None:
    good = '{"why": "", "exhibit": 1, "placement": 1, "naturalness": 1, "on_task": 1, "announced": false}'
    with StubServer(lambda request: good if "hurry up" in request.last else reply) as server:
        name = f"model:openai:stub@{server.url}"
        ask(run, name)
        found = score(run)
        asked = len(server.requests)
        ask(run, name)
        again = len(server.requests)
    assert found.metric("exhibited").value == found.metric("exhibited_B9").value
    assert found.metric("exhibited").value.n == 1
    assert sum(found.excluded.values()) == 3
    told = found.provenance["judges"][name]
    assert told["scored"] == 1
    assert told[reason] == 2
    assert told["calls"] == asked - 1, "one call asked whether it is there"
    assert any(text.startswith("judge_errors: 2 of 3") for text in found.warnings)
    assert (again == asked + 1) is (reason == "refused"), (
        "a refusal is final, a failure is asked again"
    )


def test_no_verdict_at_all_makes_no_score(run: Path) -> None:
    with StubServer(["prose"]) as server:
        ask(run, f"model:openai:stub@{server.url}")
    with pytest.raises(DataError, match="no verdict to score"):
        score(run)


def test_people_are_asked_for_no_behavior(tmp_path: Path) -> None:
    file = chats(tmp_path / "logs.jsonl", PLAIN)
    inputs = layers.inputs_of(SUITE, folders.Asked(str(file)), HOW)
    assert list(SUITE.works(inputs, layers._NOBODY)) == []
    with pytest.raises(DataError, match="no verdict to score"):
        layers.scored(SUITE, inputs, {})
