"""The trained user beside the role-play user: counts, samples, and what may be shown."""

from __future__ import annotations

import pytest

from mimesim.corpora.base import HumanDialogue, HumanTurn
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.results import MetricRow
from mimesim.studies.talk import (
    HUMAN,
    ROLEPLAY,
    TRAINED,
    Cut,
    Spoken,
    plain,
    read_metrics,
    read_samples,
    sample_situations,
    score,
)


def said(*texts: str) -> list[Spoken]:
    return [Spoken(f"c{i}", 0, text) for i, text in enumerate(texts)]


def value(rows: list[MetricRow], metric: str, subject: str) -> float | None:
    (row,) = [r for r in rows if r.metric.startswith(metric) and r.subject == subject]
    return row.value.value


def test_counts_by_hand() -> None:
    rows = score(
        {
            TRAINED: [Spoken("a", 0, "where is it?", ("role_flip",)), Spoken("a", 1, "ok")],
            ROLEPLAY: said("can i help you today?"),
        },
        "desk",
    )
    assert value(rows, "words per message", TRAINED) == pytest.approx(2.0)
    assert value(rows, "messages with a question", TRAINED) == pytest.approx(0.5)
    assert value(rows, "messages with a fault", TRAINED) == pytest.approx(0.5)
    assert value(rows, "messages with a fault", ROLEPLAY) == 0.0
    assert value(rows, "words per message", ROLEPLAY) == pytest.approx(5.0)


def test_people_have_no_faults_and_silence_no_row() -> None:
    rows = score({HUMAN: said("hello"), TRAINED: []}, "chats")
    assert {r.subject for r in rows} == {HUMAN}
    assert not [r for r in rows if r.metric.startswith("messages with a fault")]


def test_metrics_survive_the_file() -> None:
    rows = score({TRAINED: said("a b c", "d")}, "desk")
    assert read_metrics({"metrics": [plain(row) for row in rows]}) == tuple(rows)


def cut(identity: str, answer: str) -> Cut:
    turns = (HumanTurn("agent", "hi"), HumanTurn("user", answer))
    history = (PublicMessage(Role.AGENT, "hi there"),)
    return Cut(HumanDialogue(identity, turns), history, answer)


def test_samples_stand_side_by_side_with_people() -> None:
    cuts = [cut("c0", "good and you"), cut("c1", "not much")]
    chat = {TRAINED: said("fine", "nothing"), ROLEPLAY: said("I am well.", "Nothing much.")}
    desk = {TRAINED: said("it broke"), ROLEPLAY: said("My lamp broke.")}
    samples = read_samples({"samples": sample_situations(cuts, chat, desk)})
    assert [len(s.replies) for s in samples] == [2, 3, 3]
    assert [r.text for r in samples[1].replies] == ["fine", "I am well.", "good and you"]
    assert samples[1].context == (("agent", "hi there"),)


@pytest.mark.parametrize("bad", ["what the fuck", "visit http://spam.example now", ""])
def test_nothing_unfit_is_shown(bad: str) -> None:
    chat = {TRAINED: said(bad), ROLEPLAY: said("fine")}
    desk: dict[str, list[Spoken]] = {TRAINED: [], ROLEPLAY: []}
    assert sample_situations([cut("c0", "good")], chat, desk) == []
