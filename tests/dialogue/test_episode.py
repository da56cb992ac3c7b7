"""The episode record: JSON and back, what is public, what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.dialogue.episode import (
    SCHEMA,
    Episode,
    Outcome,
    Step,
    TaskRef,
    Turn,
    public_copy,
    read_file,
    without_times,
)
from mimesim.dialogue.stop import Party, Status, Stop, StopReason
from mimesim.dialogue.types import Identity, Role, ToolCall, Usage
from mimesim.errors import DataError

BASE = Episode(
    id="e1",
    run_id="r1",
    trial=2,
    seed=2**62,
    task=TaskRef("desk", "t1", "full", "test", ("g:1", "g:2"), "abc", {"policy": "p"}),
    agent=Identity("llm", "model:m", model="m", sampling={"temperature": 0.0}),
    user=Identity("scripted", "scripted:neutral"),
    turns=(
        Turn(0, Role.USER, "hello", action="say", usage=Usage(1, 2, calls=1, cost=0.1), at=0.1),
        Turn(
            1,
            Role.AGENT,
            "",
            tool_calls=(ToolCall("c1", "look", '{"a": 1}', Role.AGENT),),
            latency_s=0.5,
        ),
        Turn(2, Role.TOOL, "found", tool_call_id="c1", owner=Role.AGENT),
        Turn(3, Role.USER, "never heard", delivered=False),
    ),
    steps=(Step(0, 1, "answer", "look", "look", valid=True, reward=0.5),),
    stop=Stop(StopReason.MAX_TURNS, Party.RUNNER, 0, 1.0),
    outcome=Outcome(Status.TRUNCATED, False, 0.5, {"s": {"value": 1.0, "state": "ok"}}),
    usage={"agent": Usage(10, 5, calls=2, cost=None, unknown_cost_calls=2)},
    guards=({"guard": "repeat", "turn": 0},),
    errors=({"where": "agent", "message": "x", "at": 0.3},),
    created_at="2026-11-29T10:00:00.000+00:00",
    finished_at="2026-11-29T10:00:01.000+00:00",
    duration_s=1.0,
    private={"goal": "the secret goal", "thoughts": [{"turn": 0, "text": "hm"}]},
)


def through_json(episode: Episode) -> Episode:
    return Episode.from_json(jsonio.loads(jsonio.dumps(episode.to_json())))


def test_an_episode_survives_json() -> None:
    assert through_json(BASE) == BASE
    assert BASE.turns_used == 1
    assert BASE.rewards == (0.5,)
    assert BASE.counted


def test_the_file_has_the_keys_of_the_format() -> None:
    body = BASE.to_json()
    assert body["schema"] == SCHEMA
    assert body["stop"] == {
        "reason": "max_turns",
        "by": "runner",
        "turn": 0,
        "turns_used": 1,
        "limit": 1.0,
        "detail": "",
    }
    assert body["cost"]["agent"] == {"value": None, "unknown_calls": 2, "currency": "USD"}
    assert body["usage"]["agent"]["prompt_tokens"] == 10
    assert body["nonfinite"] == []
    assert all(isinstance(turn["content"], str) for turn in body["turns"])
    assert all(isinstance(turn["tool_calls"], list) for turn in body["turns"])
    assert all(isinstance(c["arguments"], str) for t in body["turns"] for c in t["tool_calls"])


def test_the_public_copy_has_nothing_private() -> None:
    public = public_copy(BASE.to_json())
    assert "private" not in public
    assert "secret goal" not in jsonio.dumps(public)
    assert Episode.from_json(public) == replace(BASE, private=None)
    assert "secret goal" not in repr(BASE)


def test_clock_readings_can_be_left_out() -> None:
    later = replace(BASE, created_at="x", duration_s=9.0, turns=(replace(BASE.turns[0], at=9.9),))
    same = replace(BASE, turns=BASE.turns[:1])
    assert without_times(later.to_json()) == without_times(same.to_json())
    assert later.to_json() != same.to_json()


def test_numbers_that_are_none_become_null_and_are_listed() -> None:
    odd = replace(BASE, outcome=replace(BASE.outcome, reward=float("nan")))
    body = odd.to_json()
    assert body["outcome"]["reward"] is None
    assert body["nonfinite"] == ["outcome.reward"]


def test_unknown_keys_are_ignored() -> None:
    body = BASE.to_json()
    body["later"] = 1
    body["turns"][0]["later"] = 2
    body["stop"]["later"] = 3
    assert Episode.from_json(body) == BASE


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"schema": "mimesim.episode/2"}, "newer than this version"),
        ({"schema": "other/1"}, "unknown schema 'other/1'"),
        ({"schema": None}, "unknown schema None"),
        ({"turns": [{"i": 0, "role": "user", "content": None}]}, "content is not a string"),
        ({"turns": [{"i": 0, "role": "wizard", "content": ""}]}, "wizard"),
        ({"outcome": {"status": "fine", "success": None, "reward": None}}, "fine"),
        ({"stop": {"reason": "tired", "by": "user"}}, "tired"),
        ({"stop": 3}, "not a valid episode"),
        (
            {"outcome": {"status": "completed", "success": "true", "reward": 0.5}},
            "outcome.success has a value of a wrong kind; expected true or false",
        ),
        (
            {"outcome": {"status": "completed", "success": True, "reward": "1"}},
            "outcome.reward has a value of a wrong kind; expected a number",
        ),
        ({"outcome": {"status": "completed", "success": 1, "reward": True}}, "outcome.success"),
        ({"turns": [{"i": "0", "role": "user", "content": ""}]}, "turns[0].i"),
        ({"turns": [{"i": 0, "role": "user", "content": "", "usage": {"calls": "x"}}]}, "usage"),
        ({"guards": [5]}, "guards[0] has a value of a wrong kind; expected an object"),
        ({"scenario": 5}, "scenario has a value of a wrong kind"),
        ({"id": 7}, "id has a value of a wrong kind; expected a text"),
        ({"private": []}, "private has a value of a wrong kind"),
        ({"private": {"thoughts": {"a": 1}}}, "private.thoughts has a value of a wrong kind"),
        ({"private": {"wishes": [5]}}, "private.wishes[0]"),
        ({"private": {"thoughts": [{"turn": None, "text": "x"}]}}, "private.thoughts[0]"),
    ],
)
def test_what_is_no_episode_is_refused_with_its_place(change: Mapping[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=r"a\.jsonl:7") as caught:
        Episode.from_json({**BASE.to_json(), **change}, where="a.jsonl:7")
    assert told in str(caught.value)


@pytest.mark.parametrize("key", ["id", "task", "turns", "stop", "outcome"])
def test_a_missing_key_is_named(key: str) -> None:
    body = {name: value for name, value in BASE.to_json().items() if name != key}
    with pytest.raises(DataError, match=f"missing key '{key}'"):
        Episode.from_json(body)
    with pytest.raises(DataError, match="not a JSON object"):
        Episode.from_json([])


@given(
    st.lists(st.text(alphabet=st.characters(codec=None), max_size=12), min_size=1, max_size=5),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_text_survives(texts: list[str], reward: float) -> None:
    whole = [t.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for t in texts]
    turns = tuple(Turn(i, Role.USER, text) for i, text in enumerate(whole))
    episode = replace(BASE, turns=turns, outcome=replace(BASE.outcome, reward=reward))
    assert through_json(episode) == episode


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines), encoding="utf-8")
    return path


def line(episode: Episode) -> str:
    return jsonio.dumps(episode.to_json()) + "\n"


def test_a_file_is_read_up_to_the_line_that_is_still_being_written(tmp_path: Path) -> None:
    other = replace(BASE, id="e2")
    for torn in (line(other)[:-40], '{"sch'):
        assert list(read_file(write(tmp_path / "a.jsonl", line(BASE), torn))) == [BASE]
    whole = write(tmp_path / "a.jsonl", line(BASE), line(other)[:-1])
    assert list(read_file(whole)) == [BASE, other]
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        list(read_file(write(tmp_path / "a.jsonl", '{"sch\n', line(BASE))))


def test_an_episode_that_stands_twice_is_not_counted_twice(tmp_path: Path) -> None:
    doubled = write(tmp_path / "a.jsonl", line(BASE), line(replace(BASE, id="e2")), line(BASE))
    with pytest.raises(DataError, match=r"a\.jsonl:3: .*'e1' stands in line 1 already"):
        list(read_file(doubled))
