"""`mimesim gyms`."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from mimesim.cli.gyms import app
from mimesim.envs.load import check_tasks
from mimesim.envs.packs import read_tasks


def last_line(*arguments: str) -> object:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


def test_list_names_every_gym_with_the_facts_of_its_spec() -> None:
    (desk,) = last_line("list", "--json")  # type: ignore[misc]
    assert desk["name"] == "support-desk"
    assert {"choices", "max_steps", "return_bound", "profiles"} <= set(desk)
    assert "support-desk" in CliRunner().invoke(app, ["list"]).output


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
