"""Exports of whole runs: the shapes that others read, public unless asked, the same bytes again."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import mimesim
from mimesim import jsonio
from mimesim.dialogue.foreign_ends import INSPECT_LIMITS, TAU2, VERIFIERS_CUTS, end_of
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import Reply, Thought
from mimesim.errors import DataError, UnknownNameError, UsageError
from mimesim.rollout.exporting import SHAPES, export

CALL = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"id": "7"}'}}
THINKERS = ("openai-user", "tau2", "verifiers", "inspect")
"""Targets that hold the user's thoughts when the private side is asked for."""


def agent(message: str) -> Any:
    """Answer one conversation in plain text and the other with tools and parts (C-FILE-03)."""
    if "plain" in message:
        return "Hello."
    found = {"role": "tool", "tool_call_id": "c1", "content": '{"eta":"Mon"}'}
    parts = [{"type": "text", "text": "It comes"}, {"type": "text", "text": "on Monday."}]
    return [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        found,
        {"role": "assistant", "content": parts},
    ]


def customer(messages: list[Any], scenario: dict[str, Any]) -> Reply | None:
    if messages:
        return None
    return Reply(Thought("ZQX they must not know"), f"hi, {scenario['id']} it is")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    people = [{"id": name, "goal": f"ZQX goal of {name}"} for name in ("plain", "tools")]
    mimesim.simulate(
        agent,
        people,
        user=customer,
        success=lambda episode: episode.task.id == "plain" or None,
        out=folder / "run",
    )
    return folder / "run"


def write(run: Path, folder: Path, target: str, **options: Any) -> Path:
    return export(run, folder / f"x{SHAPES[target].ending}", target=target, **options).out


@pytest.mark.parametrize("target", SHAPES)
def test_public_unless_asked_and_the_same_again(run: Path, tmp_path: Path, target: str) -> None:
    first = write(run, tmp_path, target).read_bytes()
    assert b"ZQX" not in first
    assert b"hi, tools it is" in first
    assert write(run, tmp_path, target).read_bytes() == first


@pytest.mark.parametrize("target", SHAPES)
def test_thoughts_go_out_when_asked_and_only_where_they_belong(
    run: Path, tmp_path: Path, target: str
) -> None:
    text = write(run, tmp_path, target, with_private=True).read_bytes()
    assert (b"ZQX they must not know" in text) is (target in THINKERS)


@pytest.mark.parametrize("target", ["openai", "sharegpt", "verifiers", "parquet"])
def test_loaders_of_tables_take_every_file(run: Path, tmp_path: Path, target: str) -> None:
    """C-FILE-03."""
    reader = pytest.importorskip("pyarrow.json", reason="pyarrow comes with the extra train")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow comes with the extra train")
    path = write(run, tmp_path, target)
    table = parquet.read_table(path) if target == "parquet" else reader.read_json(path)
    assert table.num_rows == 2
    if target == "openai":
        for row in table.to_pylist():
            assert all(isinstance(message["content"], str) for message in row["messages"])
            for message in row["messages"]:
                for call in message.get("tool_calls") or ():
                    assert isinstance(call["function"]["arguments"], str)


def test_a_table_has_empty_cells_for_what_is_not_known(run: Path, tmp_path: Path) -> None:
    with write(run, tmp_path, "csv").open(encoding="utf-8", newline="") as stream:
        plain, tools = csv.DictReader(stream)
    assert (plain["success"], tools["success"]) == ("1.0", "")
    assert json.loads(tools["messages"])[-1]["content"] == "It comes\non Monday."


def test_a_cell_is_no_formula(tmp_path: Path) -> None:
    person = {"id": "=1+1", "goal": "x y"}
    mimesim.simulate(lambda message: "Hello.", [person], user=["hi"], out=tmp_path / "run")
    assert "'=1+1" in write(tmp_path / "run", tmp_path, "csv").read_text("utf-8")


def test_results_of_tau2(run: Path, tmp_path: Path) -> None:
    found = jsonio.read_json(write(run, tmp_path, "tau2"))
    plain, tools = found["simulations"]
    assert plain["termination_reason"] == "user_stop"
    assert plain["info"]["mimesim"]["stop"]["reason"] == "user_stop"
    assert (plain["reward_info"], tools["reward_info"]) == ({"reward": 1.0}, None)
    call = tools["messages"][1]["tool_calls"][0]
    assert call == {
        "id": "c1",
        "name": "lookup",
        "arguments": {"id": "7"},
        "requestor": "assistant",
    }
    assert {task["id"] for task in found["tasks"]} == {"plain", "tools"}


def test_every_stop_has_a_word_in_tau2_and_back() -> None:
    assert set(TAU2) == set(StopReason)
    words = {*TAU2.values(), *INSPECT_LIMITS.values(), *VERIFIERS_CUTS.values()} - {"custom"}
    assert [word for word in words if end_of(word) is None] == []


def test_traces_of_verifiers(run: Path, tmp_path: Path) -> None:
    lines = write(run, tmp_path, "verifiers", with_private=True).read_text("utf-8").split("\n")
    plain, tools = (json.loads(line) for line in lines[:2])
    own, user = plain["traces"]
    assert [node["parent"] for node in own["nodes"]] == [None, 0]
    assert (own["rewards"]["reward"]["score"], tools["traces"][0]["rewards"]) == (1.0, {})
    spoken = [node["message"] for node in user["nodes"] if node["sampled"]]
    assert spoken[0]["reasoning_content"] == "ZQX they must not know"
    assert user["agent"]["trainable"] is False


def test_a_log_of_inspect_leaves_out_what_has_no_value(run: Path, tmp_path: Path) -> None:
    log = jsonio.read_json(export(run, tmp_path / "logs", target="inspect").out)
    plain, tools = log["samples"]
    assert plain["scores"]["reward"] == {"value": 1.0}
    assert tools["metadata"]["unscored"] == ["success", "reward"]
    assert tools["messages"][2] == {
        "role": "tool",
        "content": '{"eta":"Mon"}',
        "tool_call_id": "c1",
        "function": "lookup",
    }


def test_the_readers_of_the_others_read_it(run: Path, tmp_path: Path) -> None:
    """Against the installed packages; each is skipped where it is not there."""
    checked = 0
    vf = _package("verifiers.v1")
    if vf is not None:
        for line in (
            write(run, tmp_path, "verifiers", with_private=True).read_text("utf-8").splitlines()
        ):
            assert len(vf.WireEpisode.model_validate_json(line).traces) == 2
        checked += 1
    logs = _package("inspect_ai.log")
    if logs is not None:
        log = logs.read_eval_log(str(write(run, tmp_path, "inspect", with_private=True)))
        assert len(log.samples) == 2
        checked += 1
    if not checked:
        pytest.skip("neither verifiers nor inspect_ai is installed")


def _package(name: str) -> Any:
    try:
        return pytest.importorskip(name, reason="not installed")
    except pytest.skip.Exception:
        return None


def test_wrong_use_is_told(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'tau2'"):
        export(run, tmp_path / "x.json", target="tau3")
    with pytest.raises(UsageError, match="replace what it is made from"):
        export(run, run / "episodes.jsonl", target="openai")
    public = tmp_path / "public.jsonl"
    rows = [json.loads(line) for line in (run / "episodes.jsonl").read_text("utf-8").splitlines()]
    public.write_text("".join(json.dumps({**r, "private": None}) + "\n" for r in rows), "utf-8")
    with pytest.raises(DataError, match="public copy"):
        export(public, tmp_path / "x.json", target="tau2", with_private=True)
