"""`mimesim gyms`."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from mimesim.cli.gyms import app
from mimesim.envs.load import REGISTRY, check_tasks
from mimesim.envs.packs import read_tasks


def last_line(*arguments: str) -> object:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


def test_list_names_every_gym_with_the_facts_of_its_spec() -> None:
    gyms = last_line("list", "--json")
    assert isinstance(gyms, list)
    assert [gym["name"] for gym in gyms] == REGISTRY.names()
    for gym in gyms:
        assert {"choices", "max_steps", "return_bound", "profiles", "needs_judge"} <= set(gym)
    shown = CliRunner().invoke(app, ["list"], env={"COLUMNS": "200"}).output
    (turtle,) = [line for line in shown.splitlines() if line.startswith("turtle")]
    assert "user, judge" in turtle
    assert all(gym["name"] in shown for gym in gyms)


def test_show_gives_a_task_and_nothing_hidden() -> None:
    shown = last_line("show", "support-desk", "--profile", "full", "--seed", "3", "--json")
    assert isinstance(shown, dict)
    assert shown["task"]["public"]["profile"] == "full"
    assert "hidden" not in json.dumps(shown)
    assert "close_case" in CliRunner().invoke(app, ["show", "support-desk"]).output


def test_show_can_measure_the_ends_of_the_scale() -> None:
    shown = last_line("show", "support-desk", "--profile", "compact", "--floors", "5", "--json")
    assert isinstance(shown, dict)
    assert shown["floors"]["null"] <= 0.02 < shown["floors"]["oracle"]
    assert shown["floors"]["random"] < shown["floors"]["oracle"]


def test_show_has_a_rule_judge_measure_where_one_is_needed() -> None:
    shown = last_line("show", "persuade", "--floors", "2", "--json")
    assert isinstance(shown, dict)
    assert shown["floors"]["oracle"] >= 0.95 * shown["floors"]["attainable"] > 0


def test_show_tells_the_options_and_what_the_originals_do_otherwise() -> None:
    shown = last_line("show", "function", "--json")
    assert isinstance(shown, dict)
    assert shown["options"] == {"expose_finish": False}
    assert shown["flags"]["function_probe"] == {
        "repaired": "ints",
        "userrl": "floats",
        "mimesis": "floats",
    }
    assert not [flag for flag in shown["flags"] if flag.startswith("travel")]
    text = CliRunner().invoke(app, ["show", "function"]).output
    assert "expose_finish=false" in text
    assert "function_probe" in text
    desk = last_line("show", "support-desk", "--json")
    assert isinstance(desk, dict)
    assert "flags" not in desk


def test_generated_tasks_are_equal_to_the_byte_and_sound(tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        wrote = last_line(
            "generate", "support-desk", "--n", "6", "--seed", "7", "--out", str(file), "--json"
        )
        assert wrote == {"tasks": 6, "out": str(file)}
    assert files[0].read_bytes() == files[1].read_bytes()
    assert check_tasks(read_tasks(files[0])) == []


def test_an_unknown_gym_is_one_line_and_exit_code_2() -> None:
    result = CliRunner().invoke(app, ["show", "suport-desk"])
    assert result.exit_code == 2
    assert "did you mean 'support-desk'" in result.output


def test_show_names_the_agents_of_the_gym_as_run_takes_them() -> None:
    shown = last_line("show", "turtle", "--json")
    assert isinstance(shown, dict)
    assert shown["agents"] == ["oracle", "null", "scripted:random"]


def test_a_split_that_there_is_not_is_one_line_and_exit_code_2() -> None:
    result = CliRunner().invoke(app, ["show", "turtle", "--split", "foo"])
    assert result.exit_code == 2
    assert "unknown split 'foo'" in result.output
