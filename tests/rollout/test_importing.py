"""Others' transcripts as episodes: there and back, ends as fields, what cannot be read is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Party, Status, StopReason
from mimesim.errors import ConfigError, DataError, UsageError
from mimesim.report.make import write as report
from mimesim.rollout.exporting import SHAPES, export
from mimesim.rollout.importing import Imported, import_episodes
from mimesim.rollout.review import review
from mimesim.rollout.store import read_episodes
from mimesim.scenarios.checks import Check
from tests.rollout.test_exports import run  # noqa: F401 - the same run of two conversations

CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]


def put(folder: Path, *rows: Any, name: str = "x.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def take(source: Path, **options: Any) -> list[Episode]:
    out = source.parent / ("imported" if source.stem == "x" else f"imported-{source.stem}")
    return import_episodes(str(source), out, **options).episodes


def said(episode: Episode) -> list[tuple[str, str]]:
    return [(turn.role.value, turn.content) for turn in episode.turns if turn.delivered]


@pytest.mark.parametrize("target", ["openai", "sharegpt", "tau2", "verifiers", "inspect"])
def test_there_and_back(run: Path, tmp_path: Path, target: str) -> None:  # noqa: F811
    before = export(run, tmp_path / f"x{SHAPES[target].ending}", target=target).out
    found = import_episodes(str(before), tmp_path / "back")
    stored = read_episodes(tmp_path / "back")
    assert len(stored) == len(found.episodes) == 2
    assert found.form == {"openai": "openai-messages"}.get(target, target)
    for episode, own in zip(stored, read_episodes(run), strict=True):
        assert said(episode)[0] == said(own)[0]
        calls = [call.arguments for turn in episode.turns for call in turn.tool_calls]
        assert [json.loads(text) for text in calls] == (
            [{"id": "7"}] if own.task.id == "tools" else []
        )
        if target not in ("openai", "sharegpt"):
            assert (episode.stop.reason, episode.stop.by) == (own.stop.reason, own.stop.by)
            assert (episode.task.id, episode.outcome.reward) == (own.task.id, own.outcome.reward)
    again = export(tmp_path / "back", tmp_path / f"y{SHAPES[target].ending}", target=target).out
    if target in ("openai", "sharegpt"):
        assert again.read_text("utf-8") == before.read_text("utf-8")
    assert import_episodes(str(before), tmp_path / "back").kept == 2, "nothing is there twice"
    assert len(read_episodes(tmp_path / "back")) == 2


def test_thoughts_come_back_as_private(run: Path, tmp_path: Path) -> None:  # noqa: F811
    for target in ("tau2", "verifiers", "inspect"):
        out = tmp_path / f"{target}{SHAPES[target].ending}"
        export(run, out, target=target, with_private=True)
        for episode in take(out):
            assert "ZQX" not in json.dumps(said(episode))
            assert (episode.private or {})["thoughts"][0]["text"] == "ZQX they must not know"


def test_what_reads_episodes_reads_these(tmp_path: Path) -> None:
    source = put(tmp_path, {"id": "a1", "messages": CHAT})
    (episode,) = take(source)
    assert episode.counted
    assert (episode.outcome.success, episode.stop.by) == (None, Party.RUNNER)
    assert episode.stop.reason is StopReason.UNTOLD, "nobody said that the user left"
    assert Check("ended_by", ("user_stop",)).holds(episode) is False
    assert episode.turns[0].source == "replayed"
    assert review([episode]).episodes == 1
    assert "Hello." in report(tmp_path / "imported", tmp_path / "page.html").text


@pytest.mark.parametrize(
    ("last", "text", "reason"),
    [
        ("fine, bye ###STOP###", "fine, bye", StopReason.USER_STOP),
        ("hand me over ###TRANSFER###", "hand me over", StopReason.USER_TRANSFER),
        ("###STOP###", None, StopReason.USER_STOP),
    ],
)
def test_an_end_marker_becomes_a_field(
    tmp_path: Path, last: str, text: str | None, reason: StopReason
) -> None:
    rows = {"messages": [*CHAT, {"role": "user", "content": last}]}
    (episode,) = take(put(tmp_path, rows))
    assert (episode.stop.reason, episode.stop.by) == (reason, Party.USER)
    heard = [words for side, words in said(episode) if side == "user"]
    assert heard == (["hi", text] if text else ["hi"])


def test_a_marker_of_anybody_else_ends_nothing(tmp_path: Path) -> None:
    told = {"role": "assistant", "content": "All sorted! ###STOP###"}
    early = {"role": "user", "content": "What is ###STOP### for?"}
    rows = {"messages": [early, told, {"role": "user", "content": "it is not"}]}
    (episode,) = take(put(tmp_path, rows))
    assert episode.stop.by is Party.RUNNER
    assert [words for _, words in said(episode)] == [
        "What is ###STOP### for?",
        "All sorted! ###STOP###",
        "it is not",
    ]


@pytest.mark.parametrize(
    ("reason", "status", "reward"),
    [
        ("user_stop", Status.COMPLETED, 1.0),
        ("max_steps", Status.TRUNCATED, 1.0),
        ("agent_error", Status.AGENT_FAILURE, 1.0),
        ("user_error", Status.USER_FAILURE, None),
        ("infrastructure_error", Status.INFRA_FAILURE, None),
    ],
)
def test_ends_of_tau2(tmp_path: Path, reason: str, status: Status, reward: float | None) -> None:
    simulation = {
        "id": "s1",
        "task_id": "7",
        "trial": 2,
        "termination_reason": reason,
        "reward_info": {"reward": 1.0},
        "messages": [*CHAT, {"role": "user", "content": "works###STOP###"}],
    }
    task = {"id": "7", "user_scenario": {"instructions": "ask"}}
    surroundings = {"environment_info": {"domain_name": "telecom"}}
    file = put(
        tmp_path,
        {"info": surroundings, "tasks": [task], "simulations": [simulation]},
        name="r.json",
    )
    (episode,) = take(file)
    assert (episode.outcome.status, episode.outcome.reward) == (status, reward)
    assert (episode.task.id, episode.trial) == ("telecom_7", 2)
    assert said(episode)[-1] == ("user", "works")


def test_tau_bench_needs_its_domain(tmp_path: Path) -> None:
    row = {"task_id": 3, "reward": 0.0, "traj": CHAT, "info": {"task": {"instruction": "You ask."}}}
    source = put(tmp_path, row)
    with pytest.raises(ConfigError, match="the option domain"):
        take(source)
    (episode,) = take(source, options={"domain": "retail"})
    assert (episode.outcome.success, (episode.private or {})["goal"]) == (False, "You ask.")


def test_what_gives_no_episode_is_counted(tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    put(
        tmp_path,
        {"messages": CHAT},
        {"messages": CHAT[1:]},
        {"messages": [{"role": "bot"}]},
        {"x": 1},
    )
    with source.open("a", encoding="utf-8") as stream:
        stream.write("{torn\n")
    found: Imported = import_episodes(str(source), tmp_path / "imported")
    assert len(found.episodes) == 1
    assert dict(found.rejects) == {
        "no_user_turn": 1,
        "unknown_role": 1,
        "no_conversation": 1,
        "bad_json": 1,
    }


def test_own_logs_are_recognized(tmp_path: Path) -> None:
    turns = [{"role": "user", "text": "hi"}, {"role": "agent", "text": "Hello."}]
    call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
    rows = [
        {"id": "a1", "turns": turns, "outcome": {"task": "t1", "success": True}},
        {"messages": [CHAT[0], {"role": "assistant", "tool_calls": [call]}, CHAT[1]]},
    ]
    told, mixed = take(put(tmp_path, *rows))
    assert said(told) == [("user", "hi"), ("agent", "Hello.")]
    assert (told.task.id, told.outcome.success) == ("t1", True)
    assert [c.name for turn in mixed.turns for c in turn.tool_calls] == ["look"]


def test_separators_and_surrogates_survive(tmp_path: Path) -> None:
    """C-FILE-01 and C-FILE-02, on the way in."""
    odd = "one\u2028two\u2029three\u0085four"
    rows = {
        "messages": [
            {"role": "user", "content": odd},
            {"role": "assistant", "content": "\ud83d ok\0"},
        ]
    }
    take(put(tmp_path, rows))
    (episode,) = read_episodes(tmp_path / "imported")
    assert said(episode) == [("user", odd), ("agent", "\ufffd ok\ufffd")]
    assert (tmp_path / "imported" / "episodes.jsonl").read_bytes().count(b"\n") == 1


@pytest.mark.parametrize(
    ("rows", "form", "words"),
    [
        ([{"x": 1}], None, "no known format"),
        ([{"messages": CHAT}], "opnai-messages", "did you mean 'openai-messages'"),
        ([{"messages": CHAT[1:]}], None, "no conversation in it; the first record"),
        ([{"schema": "mimesim.episode/1"}], None, "episodes already"),
    ],
)
def test_wrong_use_is_told(tmp_path: Path, rows: list[Any], form: str | None, words: str) -> None:
    with pytest.raises((DataError, UsageError), match=words):
        take(put(tmp_path, *rows), form=form)


def test_a_run_that_is_there_is_not_mixed_with_an_import(run: Path, tmp_path: Path) -> None:  # noqa: F811
    before = (run / "episodes.jsonl").read_bytes()
    with pytest.raises(UsageError, match="another configuration"):
        import_episodes(str(put(tmp_path, {"messages": CHAT})), run)
    assert (run / "episodes.jsonl").read_bytes() == before
