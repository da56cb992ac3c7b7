"""The learned discriminator, coverage, and the replay that puts a user into people's situations."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mimesim.bench.suites.base import Inputs
from mimesim.bench.suites.discriminator import SUITE
from mimesim.bench.suites.goldens.discriminator import CHECKS
from mimesim.bench.suites.learned import forest, out_of_fold
from mimesim.bench.suites.replay import replay, tasks_of
from mimesim.bench.suites.sessions import Session, SessionSet, read_sessions
from mimesim.dialogue.types import Role
from mimesim.errors import InfraError, UsageError
from mimesim.models.base import ChatMessage, Sampling
from mimesim.models.scripted import Scripted
from mimesim.rollout.engine import EngineConfig
from mimesim.stats.coverage import coverage
from mimesim.stats.separation import auc
from mimesim.users.settings import Settings
from mimesim.users.sources import make_source

_CITIES = ("Oslo", "Rome", "Lima", "Bern", "Riga", "Baku")


def _people(count: int, *, polite: bool = False, name: str = "people") -> SessionSet:
    """Return people who book a train, each in words of their own."""
    rng = random.Random(count + polite)
    sessions = []
    for i in range(count):
        city, day = rng.choice(_CITIES), rng.randint(1, 28)
        first = (
            f"train to {city} on the {day}th pls"
            if not polite
            else (
                f"Good evening! I would greatly appreciate a train to {city} on day {day}, thank you."
            )
        )
        last = (
            "ok " * rng.randint(1, 9)
            if not polite
            else "Thank you so much, I truly appreciate your kind assistance!"
        )
        turns = (
            (Role.USER, first),
            (Role.AGENT, "Which class?"),
            (Role.USER, last),
            (Role.AGENT, "Done."),
        )
        sessions.append(Session(f"d{i}", turns, task=f"d{i}", user=name))
    return SessionSet(name, tuple(sessions))


def test_a_user_who_writes_unlike_people_is_caught_and_one_who_does_not_is_not() -> None:
    people = _people(30)
    polite = SUITE.score(
        Inputs(_people(30, polite=True, name="polite"), people, options={"learners": "text"})
    )
    assert polite.metric("text: AUC").value.value == 1
    assert polite.metric("text: Turing distance").value.value == 50
    same = SUITE.score(Inputs(_people(30, name="same"), people, options={"learners": "text"}))
    assert same.metric("text: accuracy").value.value == 50  # equal texts cannot be told apart
    assert same.metric("text: Turing distance").value.low == 0
    assert same.metric("coverage").value.value == 1
    assert polite.metric("coverage").value.value < 0.2
    assert [floor.name for floor in same.floors] == [
        "people against people",
        "half of the people by the other half",
    ]
    assert (
        same.to_json()
        == SUITE.score(
            Inputs(_people(30, name="same"), people, options={"learners": "text"})
        ).to_json()
    )


def test_other_situations_give_a_warning_and_no_pairs() -> None:
    user = _people(12, polite=True)
    moved = SessionSet(
        "user", tuple(Session(f"x{s.id}", s.turns, task=f"x{s.task}") for s in user.sessions)
    )
    score = SUITE.score(Inputs(moved, _people(12), options={"learners": "text"}))
    assert "same situations" in score.warnings[0]
    assert "text: accuracy" not in [m.name for m in score.metrics]


@pytest.mark.parametrize(
    ("people", "options", "message"),
    [
        (None, {}, "compares with people"),
        (3, {}, "only 3 separate"),
        (9, {"learners": "svm"}, "unknown learner"),
    ],
)
def test_what_cannot_be_learned_is_told(
    people: int | None, options: dict[str, str], message: str
) -> None:
    given_people = None if people is None else _people(people)
    with pytest.raises(UsageError, match=message):
        SUITE.score(Inputs(_people(9, polite=True), given_people, options=options))


def test_no_row_is_judged_by_a_learner_that_saw_its_group() -> None:
    """Rows of one group are copies with random labels: who sees a copy knows the label."""
    rng = random.Random(3)
    rows, human, groups = [], [], []
    for group in range(40):
        label, point = rng.random() < 0.5, (rng.random(), rng.random())
        for _ in range(4):
            rows.append(point), human.append(label), groups.append(str(group))
    leaking = auc(
        out_of_fold(forest, rows, human, [str(i) for i in range(len(rows))]), human, draws=1
    )
    clean = auc(out_of_fold(forest, rows, human, groups), human, draws=1)
    assert leaking.value == 1
    assert clean.value is not None
    assert clean.value < 0.75


@hypothesis_settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=20))
def test_the_area_is_the_share_of_pairs_in_the_right_order(pairs: list[tuple[int, bool]]) -> None:
    found = auc([float(s) for s, _ in pairs], [p for _, p in pairs], draws=20)
    high, low = [s for s, p in pairs if p], [s for s, p in pairs if not p]
    if not high or not low:
        assert found.value is None
        return
    expected = sum((h > v) + 0.5 * (h == v) for h in high for v in low) / (len(high) * len(low))
    assert found.value == pytest.approx(expected)


def test_columns_without_spread_in_people_do_not_decide() -> None:
    people = [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)]
    odd = [(0.0, 9.0), (1.0, 9.0), (2.0, 9.0)]
    assert coverage(odd, people, "z").value == 1
    assert coverage(odd, people, "z").dropped == (1,)
    assert coverage(odd, people, "z-compat").value < 0.5
    assert coverage([], people).value == 0


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_goldens(check, test_data: Path) -> None:  # type: ignore[no-untyped-def]
    outcome = check.outcome(test_data)
    assert outcome.verdict == "passed", outcome.reason


def _user(replies) -> object:  # type: ignore[no-untyped-def]
    model = Scripted(replies)
    return make_source("roleplay:test", model, template="user/roleplay", settings=Settings()), model


def test_a_replayed_user_reads_what_people_said_never_its_own_words(tmp_path: Path) -> None:
    def answer(messages: Sequence[ChatMessage], sampling: Sampling) -> str:
        return f"message number {len(messages)}"

    user, model = _user(answer)
    people = _people(3)
    summary = replay(people, user, tmp_path / "run", config=EngineConfig(seed=1))
    assert summary.counts.counted == 3
    asked = "\n".join(m.content for request, _ in model.requests for m in request)
    assert "message number" not in asked
    assert "train to" in asked
    again = read_sessions(str(tmp_path / "run"))
    assert {s.id for s in again.sessions} != {s.id for s in people.sessions}
    assert {s.task for s in again.sessions} == {s.id for s in people.sessions}
    by_task = {s.task: s for s in again.sessions}
    for session in people.sessions:
        mine = by_task[session.id]
        assert [r for r, _ in mine.turns] == [r for r, _ in session.turns]
        assert [t for r, t in mine.turns if r is Role.AGENT] == [
            t for r, t in session.turns if r is Role.AGENT
        ]
    calls = len(model.requests)
    replay(people, user, tmp_path / "run", config=EngineConfig(seed=1))
    assert len(model.requests) == calls  # nothing is written twice


def test_a_user_that_leaves_without_a_word_ends_there_and_one_that_fails_is_not_counted(
    tmp_path: Path,
) -> None:
    def leave(messages: Sequence[ChatMessage], sampling: Sampling) -> str:
        return (
            "hello there" if not any("Which class" in m.content for m in messages) else "###STOP###"
        )

    user, _ = _user(leave)
    replay(_people(2), user, tmp_path / "left", config=EngineConfig())
    assert [s.said for s in read_sessions(str(tmp_path / "left")).sessions] == [
        ("hello there",)
    ] * 2

    def broken(messages: Sequence[ChatMessage], sampling: Sampling) -> str:
        raise InfraError("no answer")

    user, _ = _user(broken)
    replay(_people(2), user, tmp_path / "lost", config=EngineConfig(retries=0))
    lost = read_sessions(str(tmp_path / "lost"))
    assert lost.sessions == ()
    assert lost.left_out == {"infra_failure": 2}


def test_conversations_of_one_side_are_no_replay(tmp_path: Path) -> None:
    alone = SessionSet("x", (Session("a", ((Role.AGENT, "hi"), (Role.USER, "hello"))),))
    assert tasks_of(alone.sessions) == []
    user, _ = _user(["x"])
    with pytest.raises(UsageError, match="somebody answers the user"):
        replay(alone, user, tmp_path / "r", config=EngineConfig())
