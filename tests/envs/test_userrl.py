"""Loading a user's copy of UserRL, on an invented one with the same schemas."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mimesim import jsonio
from mimesim.cli.gyms import app
from mimesim.envs.agents.floors import floors
from mimesim.envs.base import Task
from mimesim.envs.load import load_gym, load_tasks
from mimesim.envs.packs import holds_string, public_text, read_tasks
from mimesim.envs.turns.splits import split_of
from mimesim.envs.userrl import Loaded, load_userrl
from mimesim.errors import DataError, MissingExtraError, UnknownNameError, UsageError
from mimesim.users.load import make_user
from tests.support import userrl

pytest.importorskip("pyarrow")
FOLDERS = {
    "function": "function_multiturn",
    "turtle": "turtle_multiturn",
    "telepathy": "telepathy_multiturn",
    "persuade": "persuasion_multiturn",
    "intention": "intention_multiturn",
    "travel": "travel22_multiturn_onechoice",
    "tau": "tau_multiturn",
    "search": "bamboogle_multiturn",
}
PLAYABLE = [gym for gym in FOLDERS if gym != "tau"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for gym, folder in FOLDERS.items():
        userrl.write_files(tmp_path, gym)
        userrl.write_tables(tmp_path, folder)
    return tmp_path


def by_key(loaded: Loaded) -> dict[str, Task]:
    return {str(task.meta["key"]): task for task in loaded.tasks}


@pytest.mark.parametrize("gym", FOLDERS)
@pytest.mark.parametrize("source", ["groups", "userrl"])
def test_every_task_is_sound(copy: Path, gym: str, source: str) -> None:
    loaded = load_userrl(copy, gym, split_source=source)
    assert loaded.tasks
    for task in loaded.tasks:
        assert (task.gym, task.meta["source"], task.meta["schema"]) == (gym, "userrl", 1)
        assert task.groups
        assert task.hidden["scenario"]["meta"] == {"profile": "asked"}
        if gym != "tau":
            kind = load_gym(gym)
            assert kind.attainable(task) > 0
            shown = public_text(task)
            assert not [s for s in kind.secrets(task) if holds_string(shown, s)]


@pytest.mark.parametrize("gym", PLAYABLE)
def test_scripted_people_and_rule_judges_can_play_what_was_loaded(copy: Path, gym: str) -> None:
    found = asyncio.run(floors(load_userrl(copy, gym).tasks, make_user("scripted:neutral")))
    assert found.null == 0
    assert found.oracle >= 0.95 * found.attainable


@pytest.mark.parametrize("gym", FOLDERS)
def test_no_group_is_in_two_splits_by_default(copy: Path, gym: str) -> None:
    loaded = load_userrl(copy, gym)
    assert loaded.contamination is None
    for task in loaded.tasks:
        own = {split_of(gym, group) for group in task.groups}
        assert own == {task.split} or gym == "search"
    chosen = load_userrl(copy, gym, "test").tasks
    assert chosen == tuple(task for task in loaded.tasks if task.split == "test")


# ------------------------------------------------------------------------------------- one by one


def test_function_rules_that_mean_the_same_share_a_group(copy: Path) -> None:
    loaded = load_userrl(copy, "function", split_source="userrl")
    tasks = by_key(loaded)
    assert list(tasks) == ["func-1", "func-2", "func-3"]
    assert tasks["func-1"].groups == tasks["func-2"].groups != tasks["func-3"].groups
    assert tasks["func-1"].hidden["expected"] == 3
    assert tasks["func-3"].hidden["expected"] == 4.5
    assert tasks["func-2"].split == "test"
    assert loaded.left_out["published, but not in the task files"] == 1
    assert sum(n for reason, n in loaded.left_out.items() if "unusable" in reason) == 2
    found = loaded.contamination
    assert found is not None
    assert (found.train, found.test, found.shared, found.whole) == (1, 2, 1, 1)
    assert found.group == "a rule that means the same"


def test_rules_without_a_value_anywhere_do_not_count_as_one() -> None:
    from mimesim.envs.userrl.base import Record
    from mimesim.envs.userrl.function import task

    groups = [
        task(Record("f", rule, {"rule": rule, "expected_result": 1})).groups
        for rule in ("a ** b ** d ** c", "d ** b ** a ** c", "a + b", "b + a")
    ]
    assert groups[0] != groups[1]
    assert groups[2] == groups[3]


def test_turtle_keeps_fit_stories_and_finds_families(copy: Path) -> None:
    loaded = load_userrl(copy, "turtle", split_source="userrl")
    tasks = by_key(loaded)
    assert set(tasks) == {"1", "2", "3"}
    assert tasks["1"].groups == tasks["2"].groups != tasks["3"].groups
    assert tasks["1"].split == "train", "titles are compared without case"
    assert tasks["1"].public["title"] == "The Empty Plate"
    assert [c["weight"] for c in tasks["1"].hidden["criteria"]] == [0.7, 0.3]
    assert tasks["1"].hidden["cues"]["c1"] == [["sign"], ["postman"]]
    assert tasks["1"].meta["cues"] == "derived"
    assert loaded.contamination is not None
    assert (loaded.contamination.shared, loaded.contamination.test) == (1, 2)


def test_telepathy_attributes_are_words_of_the_description(copy: Path) -> None:
    ladle = by_key(load_userrl(copy, "telepathy"))["entity_0"]
    assert ladle.hidden["attributes"] == dict.fromkeys(
        ["deep", "spoon", "long", "handle", "soup"], True
    )
    assert ladle.groups == ("category:tool",)
    assert ladle.public == {"intro": "I am thinking of a kitchen tool.", "kind": "tool"}


@pytest.mark.parametrize("file", [True, False])
def test_persuade_is_read_from_its_file_or_its_tables(copy: Path, file: bool) -> None:
    if not file:
        (copy / "gyms/PersuadeGym/persuadegym/data/all_statements_refined.json").unlink()
    loaded = load_userrl(copy, "persuade", split_source="userrl")
    assert Counter(task.split for task in loaded.tasks) == {"train": 1, "test": 2}
    assert by_key(loaded)["s0"].public == {"claim": "Offices should forbid umbrellas."}
    assert len(by_key(loaded)["s0"].hidden["counterpoints"]) == 6
    found = loaded.contamination
    assert found is not None
    assert (found.train_groups, found.test_groups, found.shared) == (1, 2, 1)


def test_a_record_with_a_value_of_another_kind_is_left_out_and_counted(copy: Path) -> None:
    (file,) = copy.rglob("all_intentions_train.json")
    records = jsonio.loads(file.read_text("utf-8"))
    assert isinstance(records, list)
    whole = load_userrl(copy, "intention")
    records[0]["missing_details"][0]["options"] = 5
    jsonio.write_json(file, records)
    loaded = load_userrl(copy, "intention")
    assert len(loaded.tasks) == len(whole.tasks) - 1
    assert loaded.left_out["unusable: a value of another kind than expected (TypeError)"] == 1


def test_intention_details_get_numbers_and_what_is_missing(copy: Path) -> None:
    loaded = load_userrl(copy, "intention", split_source="userrl")
    supper = by_key(loaded)["i1"]
    guests, budget = supper.hidden["details"]
    assert (guests["importance"], guests["options"], "answer" in guests) == (
        3,
        ["four", "nine"],
        False,
    )
    assert (budget["inquiry"], budget["options"], budget["answer"]) == (
        "Budget",
        [],
        "no preference",
    )
    assert supper.hidden["cues"]["0"] == [["number"], ["guests"], ["many"], ["come"]] or (
        ["guests"] in supper.hidden["cues"]["0"]
    )
    assert by_key(loaded)["i3"].groups == supper.groups, "the same text in both splits"
    assert loaded.contamination is not None
    assert loaded.contamination.shared == 1


def test_travel_options_lose_nothing_and_show_nothing(copy: Path) -> None:
    loaded = load_userrl(copy, "travel", split_source="userrl")
    task = by_key(loaded)["hotel:2-1|rental_car:2-1"]
    assert task.groups == ("hotel:2-1", "rental_car:2-1")
    assert task.meta["variant"] == "22"
    hotel = task.hidden["aspects"]["hotel"]
    assert [(o["id"], o["type"]) for o in hotel["options"]] == [
        ("H1", "correct"),
        ("H2", "correct"),
        ("H3", "wrong"),
        ("H4", "noise"),
    ]
    assert [w["id"] for w in hotel["preferences"]] == ["P1"], "short lists are passed over"
    assert task.hidden["aspects"]["rental_car"]["preferences"][0]["id"] == "P2"
    assert "cheapest" in task.public["initial"]
    found = loaded.contamination
    assert found is not None
    assert (found.test, found.shared, found.whole) == (2, 1, 0)


def test_travel_tasks_whose_keys_are_in_several_splits_are_left_out(copy: Path) -> None:
    loaded = load_userrl(copy, "travel")
    mixed = [
        key
        for key in userrl.TRAVEL
        if len({split_of("travel", group) for group in key.split("|")}) > 1
    ]
    assert mixed
    assert loaded.left_out == {"groups of several splits": len(mixed)}
    assert len(loaded.tasks) == len(userrl.TRAVEL) - len(mixed)


def test_tau_tasks_have_the_ids_and_floors_of_tau_bench(copy: Path) -> None:
    tasks = {task.id: task for task in load_userrl(copy, "tau", split_source="userrl").tasks}
    assert {name: task.public["profile"] for name, task in tasks.items()} == {
        "retail-train-000": "retail",
        "retail-train-001": "retail",
        "airline-012": "airline",
        "retail-001": "retail",
    }
    assert tasks["airline-012"].meta["floor"] == 1
    assert tasks["retail-001"].meta["floor"] == 0
    assert tasks["retail-001"].public["first_message"] == "Hello, I need help."
    assert tasks["retail-001"].groups == tasks["retail-train-001"].groups
    trace = tasks["retail-001"].hidden["oracle_trace"]
    assert [choice for choice, _ in trace] == ["answer", "action"]
    assert "12.50" in trace[-1][1]


def test_search_is_for_evaluation_only(copy: Path) -> None:
    assert {task.split for task in load_userrl(copy, "search").tasks} == {"test"}
    assert load_userrl(copy, "search", "train").tasks == ()


# -------------------------------------------------------------------------------------- bad input


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no task file of gym 'turtle'.*all_stories_refined\.json"):
        load_userrl(tmp_path, "turtle")
    userrl.write_files(tmp_path, "turtle")
    assert load_userrl(tmp_path, "turtle").tasks, "tables are needed for the published split only"
    with pytest.raises(DataError, match=r"no published split.*turtle_multiturn/test\.parquet"):
        load_userrl(tmp_path, "turtle", split_source="userrl")
    with pytest.raises(UnknownNameError, match="did you mean 'turtle'"):
        load_userrl(tmp_path, "turtles")
    with pytest.raises(UsageError, match="no split source 'mine'"):
        load_userrl(tmp_path, "turtle", split_source="mine")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("{", "not a JSON document"),
        ("{}", "not a list of JSON objects"),
        ("[1]", "not a list of JSON objects"),
        ('[{"question": "q"}]', "id is None"),
        ('[{"id": "Q", "question": " ", "answer": "x"}]', "question is ' '"),
    ],
)
def test_damaged_files_are_told(tmp_path: Path, written: str, words: str) -> None:
    file = tmp_path / "gyms/SearchGym/searchgym/data/questions.json"
    file.parent.mkdir(parents=True)
    file.write_text(written)
    with pytest.raises(DataError, match=words):
        load_userrl(tmp_path, "search")


def test_ids_that_come_twice_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "gyms/SearchGym/searchgym/data/questions.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps([userrl.QUESTIONS[0], userrl.QUESTIONS[0]]))
    loaded = load_userrl(tmp_path, "search")
    assert (len(loaded.tasks), loaded.left_out) == (1, {"id seen before": 1})


def test_a_damaged_table_is_told(copy: Path) -> None:
    (copy / "data/turtle_multiturn/test.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="truncated"):
        load_userrl(copy, "turtle", split_source="userrl")


def test_without_pyarrow_only_tables_are_out_of_reach(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert load_userrl(copy, "turtle").tasks
    with pytest.raises(MissingExtraError, match="reading parquet"):
        load_userrl(copy, "turtle", split_source="userrl")


# ----------------------------------------------------------------------------------- command line


def test_the_command_writes_a_task_file_and_the_contamination(copy: Path, tmp_path: Path) -> None:
    out = tmp_path / "tasks.jsonl"
    arguments = ["import", "userrl", str(copy), "--gym", "persuade", "--out", str(out)]
    arguments += ["--split-source", "userrl"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "3 tasks written" in shown.output
    assert "share with train: the claim" in shown.output
    assert len(read_tasks(out)) == 3
    assert len(load_tasks("persuade", split="test", path=out)) == 2
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout.splitlines()[-1])
    assert found["splits"] == {"train": 1, "test": 2}
    assert found["contamination"]["shared"] == 1


def test_whose_tasks_is_asked_for(copy: Path, tmp_path: Path) -> None:
    out = tmp_path / "tasks.jsonl"
    arguments = ["import", "userl", str(copy), "--gym", "persuade", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, UnknownNameError)
    assert "did you mean 'userrl'" in str(result.exception)
    assert not out.exists()


# ------------------------------------------------------------------------------------- a real copy


PUBLISHED = {
    "turtle": (423, 48, 5),
    "telepathy": (360, 41, None),
    "persuade": (378, 42, 42),
    "intention": (380, 40, 3),
    "tau": (500, 165, None),
    "search": (0, 125, 0),
}
"""Gym -> train, test and how many of those share a group, where the specification counted it."""


@pytest.mark.parametrize("gym", PUBLISHED)
def test_a_real_copy_has_the_published_counts(test_data: Path, gym: str) -> None:
    if not (test_data / "userrl").is_dir():
        pytest.skip("MIMESIM_TEST_DATA holds no copy of UserRL in a folder userrl")
    found = load_userrl(test_data / "userrl", gym, split_source="userrl").contamination
    assert found is not None
    train, test, shared = PUBLISHED[gym]
    assert (found.train, found.test) == (train, test)
    assert shared in (None, found.shared)
