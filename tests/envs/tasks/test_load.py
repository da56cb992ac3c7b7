"""Names, rows from the user's own files, what is left out and counted."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mimesim.envs.base import Task
from mimesim.envs.tasks.env import TaskOptions
from mimesim.envs.tasks.load import (
    REGISTRY,
    describe_tasks,
    load_rows,
    load_task,
    make_env,
    make_task,
    task_of,
)
from mimesim.envs.tasks.partner import RulePartner, make_partner
from mimesim.errors import ConfigError, DataError, UnknownNameError, UsageError
from mimesim.judges.rule import RuleJudge
from tests.envs.tasks.asking import play

GOOD = {
    "data_source": "mistakes", "prompt": None,
    "extra_info": {
        "QuestionText": "2 squared?", "AnswerAText": "4", "AnswerBText": "22", "AnswerCText": "2",
        "AnswerDText": "0", "MisconceptionName": "puts the power behind", "TargetOption": "B",
        "story": None,
    },
}  # fmt: skip


def write(path: Path, *rows: Any) -> str:
    path.write_text(
        "".join(f"{r if isinstance(r, str) else json.dumps(r)}\n" for r in rows), "utf-8"
    )
    return str(path)


def changed(**fields: Any) -> dict[str, Any]:
    return {**GOOD, "extra_info": {**GOOD["extra_info"], **fields}}


def test_one_bad_row_is_left_out_with_file_and_line_and_counted(tmp_path: Path) -> None:
    bad = changed(TargetOption="Z")
    other = {"data_source": "usersim_behavior", "extra_info": {"anything": 1}}
    place = write(
        tmp_path / "rows.jsonl", GOOD, bad, "{not json", [1], other, GOOD, changed(AnswerCText="3")
    )
    loaded = load_rows("mistakes", place=place)
    assert len(loaded.tasks) == 2
    told = {reject.where: (reject.reason, reject.detail) for reject in loaded.rejects}
    assert told[f"{place}:2"][0] == "bad_row"
    assert "TargetOption" in told[f"{place}:2"][1]
    assert "2 squared" not in told[f"{place}:2"][1]
    assert told[f"{place}:3"][0] == "bad_json"
    assert told[f"{place}:4"][0] == "no_object"
    assert told[f"{place}:6"] == ("duplicate", f"the same row as {place}:1")
    assert loaded.counts == {
        "rows": 6, "tasks": 2, "other_task": 1, "bad_row": 1, "bad_json": 1, "no_object": 1,
        "duplicate": 1,
    }  # fmt: skip


def test_rows_of_all_shapes_that_files_have(tmp_path: Path) -> None:
    flat = {k: v for k, v in GOOD["extra_info"].items() if v is not None}
    as_text = {"data_source": "Mistakes", "extra_info": json.dumps(GOOD["extra_info"])}
    for number, row in enumerate((flat, as_text, {"extra_info": {"raw": json.dumps(flat)}})):
        place = write(tmp_path / f"{number}.jsonl", row)
        (task,) = load_rows("mistakes", place=place, split="test").tasks
        assert (task.hidden["gold"], task.split) == ("B", "test")
    with (tmp_path / "rows.csv").open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, list(flat))
        table.writeheader()
        table.writerow(flat)
    assert len(load_rows("mistakes", place=str(tmp_path / "rows.csv")).tasks) == 1


def test_parquet_rows_with_the_fields_of_many_tasks(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra data")
    import pyarrow.parquet as parquet

    place = tmp_path / "mistakes_val.parquet"
    alignx = {
        "data_source": "alignx_demo",
        "extra_info": {
            "raw_prompt": "p", "chosen": "c", "rejected": "r", "index": 0,
            "icl_pairs": [{"prompt": None, "chosen": "a", "rejected": "b"}],
        },
    }  # fmt: skip
    parquet.write_table(pyarrow.Table.from_pylist([GOOD, alignx]), place)
    assert load_rows("mistakes", place=str(place)).counts["other_task"] == 1
    (task,) = load_rows("alignx", place=str(tmp_path)).tasks
    assert play(task, "<answer>A</answer>").reward == 1.0


def test_names_of_sources_are_folded() -> None:
    assert load_task("humanual_book").info.owns("humanual-book")
    assert load_task("behaviorchain").info.owns("behavior_chain")
    assert load_task("sim_doc").info.owns("sim_arena_doc")
    assert not load_task("humanual_book").info.owns("humanual-email")
    owners = {s: n for n in REGISTRY.builtin for s in (n, *load_task(n).info.sources)}
    assert all(load_task(n).info.owns(s) for s, n in owners.items())


def test_a_place_without_a_usable_row_is_an_error_that_names_the_first(tmp_path: Path) -> None:
    place = write(tmp_path / "rows.jsonl", changed(TargetOption=None))
    with pytest.raises(DataError, match=r"rows.jsonl:1.*TargetOption"):
        load_rows("mistakes", place=place)
    with pytest.raises(DataError):
        load_rows("mistakes", place=str(tmp_path / "nowhere.jsonl"))


def test_limit_and_splits() -> None:
    assert len(load_rows("fantom", limit=3).tasks) == 3
    with pytest.raises(UsageError, match="no split"):
        load_rows("fantom", split="dev")
    first = [task.id for task in load_rows("hitom", split="test").tasks]
    assert first == [task.id for task in load_rows("hitom", split="test").tasks]
    groups = [
        {group for task in load_rows("hitom", split=split).tasks for group in task.groups}
        for split in ("train", "test")
    ]
    assert not groups[0] & groups[1]


def test_what_is_missing_is_told_before_anything_runs() -> None:
    (task,) = load_rows("sotopia", limit=1).tasks
    with pytest.raises(UsageError, match="needs a judge"):
        make_env(task, partner=RulePartner())
    with pytest.raises(UsageError, match="needs a partner"):
        make_env(task, judge=RuleJudge())
    with pytest.raises(ConfigError, match="did you mean 'hack-judge'"):
        make_env(task, judge=RuleJudge(), partner=RulePartner(), options=TaskOptions("hackjudge"))
    with pytest.raises(ConfigError, match="no hack check 'copy'"):
        TaskOptions(hack_weights={"copy": 1.0})
    with pytest.raises(ConfigError):
        TaskOptions(hack_weights={"copying": float("nan")})


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'fantom'"):
        load_task("fantum")
    with pytest.raises(UnknownNameError):
        make_partner("oracle")
    with pytest.raises(UsageError, match="incomplete"):
        make_partner("model:")
    with pytest.raises(UsageError):
        task_of(Task("support-desk", "x", "test", ("g",), {}, {}))


def test_every_task_describes_itself() -> None:
    facts = describe_tasks()
    assert [entry["name"] for entry in facts] == list(REGISTRY.builtin)
    assert all(entry["rows"] >= 20 and entry["summary"] for entry in facts)


def test_a_task_of_somebody_else_is_found_by_its_path() -> None:
    kind = load_task("tests.envs.tasks.parrot:TASK")
    task = Task("task:tests.envs.tasks.parrot:TASK", "1", "test", ("g",), {"word": "hello"}, {})
    assert kind.info.name == "parrot"
    assert play(task, "hello").reward == 1.0
    assert play(task, "bye").reward == 0.0


def test_rows_of_a_task_by_path_lead_back_to_it(tmp_path: Path) -> None:
    path = "tests.envs.tasks.parrot:TASK"
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"word": "hello"}\n', encoding="utf-8")
    for task in (load_rows(path, place=str(rows)).tasks[0], make_task(path, {"word": "x"}, "test")):
        assert task_of(task) is load_task(path)
        assert task.id.startswith("parrot-")
        assert play(task, str(task.public["word"])).reward == 1.0


def test_a_split_without_own_rows_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = load_task("mistakes")
    few = replace(kind.info, rows=Path(write(tmp_path / "few.jsonl", GOOD)))
    monkeypatch.setattr(type(kind), "info", few)
    assert len(load_rows("mistakes", split="train").tasks) == 1
    with pytest.raises(DataError, match="none of the task's own rows falls into 'test'"):
        load_rows("mistakes", split="test")
