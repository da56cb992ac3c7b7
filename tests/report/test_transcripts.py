"""Transcripts: what was private stays beside the public line, and nothing is lost."""

from __future__ import annotations

from mimesim.dialogue.stop import Status
from mimesim.dialogue.types import Role
from mimesim.report.transcripts import LONG, behavior_name, transcript
from tests.report import samples


def test_thoughts_stand_beside_their_message_only() -> None:
    shown = transcript(samples.episode())
    assert [line.role for line in shown.lines] == ["user", "agent"] * 3
    thoughts = [[p.text for p in line.private if p.kind == "thoughts"] for line in shown.lines]
    assert [len(found) for found in thoughts] == [1, 0, 1, 0, 1, 0]
    public = " ".join(line.text for line in shown.lines)
    assert all(text not in public for found in thoughts for text in found)


def test_a_changed_wish_and_a_reward_are_told() -> None:
    shown = transcript(samples.episode())
    assert [(p.label, p.text) for p in shown.lines[4].private[1:]] == [
        ("Wish changed", "intent: refund; values: method: card")
    ]
    assert [(p.label, p.text) for p in shown.lines[5].private] == [("Reward", "1")]


def test_a_public_copy_shows_nothing_private() -> None:
    shown = transcript(samples.episode(private=None))
    assert shown.brief == ()
    assert not any(line.private for line in shown.lines)


def test_a_thought_without_words_gets_its_own_row() -> None:
    gone = {"thoughts": [{"turn": 6, "text": "Enough. I am leaving."}]}
    shown = transcript(samples.episode(private=gone))
    last = shown.lines[-1]
    assert (last.role, last.text) == ("", "")
    assert last.private[0].text == "Enough. I am leaving."


def test_events_of_the_runner_are_public_marks() -> None:
    errors = ({"type": "InfraError", "message": "endpoint is gone", "turn": 3},)
    shown = transcript(samples.episode(errors=errors))
    assert shown.lines[2].marks == ("guard over length: redraw",)
    assert shown.lines[3].marks == ("InfraError: endpoint is gone",)


def test_badges_keep_failures_apart_from_misses() -> None:
    found = [
        (transcript(samples.episode(status=status, success=success)).tone)
        for status, success in (
            (Status.COMPLETED, True),
            (Status.COMPLETED, False),
            (Status.COMPLETED, None),
            (Status.TRUNCATED, False),
            (Status.USER_FAILURE, None),
        )
    ]
    assert found == ["good", "bad", "neutral", "bad", "void"]
    cut = transcript(samples.episode(status=Status.TRUNCATED, success=False))
    assert (cut.verdict, cut.ending) == ("cut off", "max steps (by runner, limit 8)")


def test_long_texts_are_folded() -> None:
    shown = transcript(samples.episode(said="x" * (LONG + 1)))
    assert [line.fold for line in shown.lines[:2]] == [True, False]
    assert len(shown.preview) < 200


def test_tool_calls_are_kept_as_text() -> None:
    shown = transcript(samples.episode())
    assert shown.lines[5].calls[0].name == "close_case"
    assert shown.lines[5].role == Role.AGENT.value


def test_arguments_of_calls_are_readable_and_kept_raw() -> None:
    call = transcript(samples.episode()).lines[5].calls[0]
    assert (call.arguments, call.raw) == ("resolution: granted", '{"resolution": "granted"}')


def test_behaviors_of_all_shapes_are_named() -> None:
    several = [{"id": "B3", "params": {"patience": 1}, "directive": "Hold back."}, {"id": "B9"}]
    assert behavior_name({"behavior": several}) == "B3 + B9"
    assert behavior_name({"behavior": "B1"}) == "B1"
    assert behavior_name({"goal": "a refund"}) == "neutral"
    assert behavior_name(None) == ""
    brief = transcript(samples.episode(private={"behavior": several})).brief
    assert [(fact.label, fact.text, fact.fold) for fact in brief] == [
        ("behavior", "B3 + B9", False),
        ("told to", "Hold back.", True),
        ("parameters", "params: patience: 1", False),
    ]
