"""Task files: strict reading, stable writing, checks of a pack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.envs.load import check_tasks, load_tasks
from mimesim.envs.packs import (
    fold,
    holds_string,
    problems,
    read_tasks,
    task_to_json,
    write_tasks,
)
from mimesim.errors import DataError
from tests.support.desk import desk_task


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_tasks_survive_a_round_trip(tmp_path: Path) -> None:
    tasks = [replace(desk_task(), id=f"t\u2028{n}", hidden={"n": n}) for n in range(3)]
    assert write_tasks(tmp_path / "pack.jsonl", tasks) == 3
    assert read_tasks(tmp_path / "pack.jsonl") == tasks


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "unknown key 'extra'"),
        ({"goups": []}, "did you mean 'groups'"),
        ({"groups": []}, "groups"),
        ({"groups": [3]}, "groups"),
        ({"split": "dev"}, "split is 'dev'"),
        ({"id": ""}, "empty"),
        ({"id": 4}, "id is 4"),
        ({"public": []}, "public"),
        ({"hidden": None}, "hidden"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, change: dict[str, object], message: str) -> None:
    good = task_to_json(desk_task())
    path = tmp_path / "pack.jsonl"
    path.write_text(jsonio.dumps(good) + "\n" + jsonio.dumps({**good, **change}) + "\n", "utf-8")
    with pytest.raises(DataError) as error:
        read_tasks(path)
    assert message in str(error.value)
    assert f"{path}:2" in str(error.value)


def test_missing_keys_repeated_ids_and_non_objects_are_named(tmp_path: Path) -> None:
    good = task_to_json(desk_task())
    path = tmp_path / "pack.jsonl"
    for line in ({k: v for k, v in good.items() if k != "hidden"}, [1], good):
        path.write_text(jsonio.dumps(good) + "\n" + jsonio.dumps(line) + "\n", "utf-8")
        with pytest.raises(DataError, match=":2"):
            read_tasks(path)


def test_meta_may_be_left_out(tmp_path: Path) -> None:
    bare = {k: v for k, v in task_to_json(desk_task()).items() if k != "meta"}
    (tmp_path / "pack.jsonl").write_text(jsonio.dumps(bare), "utf-8")
    assert read_tasks(tmp_path / "pack.jsonl")[0].meta == {}


def test_a_pack_with_shared_groups_or_twins_is_unsound() -> None:
    task = desk_task()
    other = replace(task, id="other", split="train", hidden={"x": 1})
    twin = replace(task, id="twin")
    found = "\n".join(problems([task, other, twin, task]))
    assert "occurs in test and in train" in found
    assert "same hidden side" in found
    assert "occurs twice" in found
    assert problems([task]) == []


def test_a_secret_in_public_is_found() -> None:
    task = desk_task()
    assert check_tasks([task]) == []
    told = {**task.public, "policy": "call IDA  Bram about 5512093381"}
    found = check_tasks([replace(task, public=told)])
    assert len(found) == 2
    assert "5512093381" in found[0]


@pytest.mark.parametrize("profile", ["full", "compact"])
def test_our_packs_are_sound_and_stable(profile: str) -> None:
    packs = [
        load_tasks("support-desk", profile=profile, split=split, seed=4, count=40)
        for split in ("train", "validation", "test")
    ]
    assert [len(pack) for pack in packs] == [40, 40, 40]
    assert check_tasks([task for pack in packs for task in pack]) == []
    again = load_tasks("support-desk", profile=profile, split="train", seed=4, count=25)
    assert again == packs[0][:25]
    other = load_tasks("support-desk", profile=profile, split="train", seed=5, count=25)
    assert {t.id for t in other}.isdisjoint({t.id for t in again})


def test_held_out_request_types_occur_in_test_only() -> None:
    def subflows(split: str) -> set[str]:
        tasks = load_tasks("support-desk", split=split, seed=1, count=120)
        return {task.hidden["row"]["subflow"] for task in tasks}

    assert len(subflows("test") - subflows("train")) >= 3
    assert len(subflows("train") | subflows("test")) >= 12


def test_tasks_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pack.jsonl"
    tasks = load_tasks("support-desk", split="train", seed=2, count=5)
    write_tasks(path, tasks)
    assert load_tasks("support-desk", split="train", path=path) == tasks
    assert load_tasks("support-desk", split="train", path=path, count=2) == tasks[:2]
    with pytest.raises(DataError, match="support-desk/full/train"):
        load_tasks("support-desk", split="test", path=path)


def test_strings_are_compared_folded_and_short_ones_on_word_borders() -> None:
    assert holds_string("Ｉｄａ   BRAM here", "ida bram")
    assert holds_string("in OR", "or")
    assert not holds_string("for ever", "or")
    assert not holds_string("anything", "")
    assert fold(" A\u00a0 B ") == "a b"


def damaged(profile: str, path: tuple[Any, ...], junk: Any, file: Path) -> Path:
    """Write one good task with the value at `path` replaced."""
    (task,) = load_tasks("support-desk", profile=profile, count=1)
    value = jsonio.loads(jsonio.dumps(task_to_json(task)))
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = junk
    file.write_text(jsonio.dumps(value) + "\n", "utf-8")
    return file


@pytest.mark.parametrize("junk", [5, "x", None, [5], {"a": 5}], ids=str)
@pytest.mark.parametrize(
    ("profile", "path"),
    [
        ("full", ("hidden", "scenario")),
        ("full", ("hidden", "scenario", "meta")),
        ("full", ("hidden", "scenario", "meta", "row", "record")),
        ("full", ("hidden", "scenario", "success", "gold", 0, "slots")),
        ("full", ("hidden", "scenario", "success", "required", 0)),
        ("full", ("public", "flow")),
        ("full", ("public", "tools")),
        ("compact", ("hidden", "scenario")),
        ("compact", ("hidden", "scenario", "meta", "intent")),
        ("compact", ("hidden", "scenario", "meta", "item")),
        ("compact", ("hidden", "scenario", "facts")),
        ("compact", ("public", "policy")),
    ],
)
def test_a_damaged_task_is_refused_before_anything_is_scored(
    tmp_path: Path, profile: str, path: tuple[Any, ...], junk: Any
) -> None:
    if (path[-1], type(junk)) in (("item", str), ("slots", dict)):
        pytest.skip("that is no damage")
    file = damaged(profile, path, junk, tmp_path / "t.jsonl")
    with pytest.raises(DataError) as caught:
        load_tasks("support-desk", profile=profile, path=file)
    assert "\n" not in str(caught.value)
    if path == ("hidden", "scenario") and not isinstance(junk, dict):
        return  # no task at all
    assert check_tasks(read_tasks(file)) != []


def test_undamaged_tasks_are_read(tmp_path: Path) -> None:
    for profile in ("full", "compact"):
        tasks = load_tasks("support-desk", profile=profile, count=40)
        write_tasks(tmp_path / "t.jsonl", tasks)
        assert load_tasks("support-desk", profile=profile, path=tmp_path / "t.jsonl") == tasks
