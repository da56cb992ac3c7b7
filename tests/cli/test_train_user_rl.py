"""`mimesim train user`: the recipe decides which training it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from mimesim import config as configs
from mimesim import jsonio
from mimesim.cli import train
from mimesim.cli.main import invoke
from mimesim.train.rl import BatchLog


def dry(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert invoke(["train", "user", *arguments, "--dry-run", "--json"]) == 0
    found: dict[str, object] = jsonio.loads(capsys.readouterr().out.strip().split("\n")[-1])
    return found


def test_the_recipe_decides_which_training_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    rl = dry(capsys, "--recipe", "rl", "--seed", "4")
    assert (rl["group"], rl["seed"], rl["lora_rank"]) == (8, 4, 16)
    assert "speech" in dry(capsys, "--recipe", "speaker")
    assert dry(capsys, "--recipe", "midtrain")["stage"] == "midtrain"
    small = dry(capsys, "--recipe", "rl", "--quick")
    assert (small["batches"], small["group"]) == (1, 2)


def test_the_published_mixture_has_24_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    paper = dry(capsys, "--recipe", "rl-9b")
    tasks = paper["tasks"]
    assert isinstance(tasks, list)
    assert len(tasks) == 24
    assert paper["prompts"] == 64


def test_tasks_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    typed = 'tasks=[{name="fantom", weight=2.0}, {name="hitom"}]'
    tasks = dry(capsys, "--recipe", "rl", "--set", typed)["tasks"]
    assert isinstance(tasks, list)
    assert [task["name"] for task in tasks] == ["fantom", "hitom"]


def test_inspect_is_for_supervised_training(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["train", "user", "--recipe", "rl", "--inspect"]) == 2
    assert "supervised" in capsys.readouterr().err


def test_what_a_file_is_for(tmp_path: Path) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text('x-config = "a.b:C"\n', "utf-8")
    two.write_text("lr = 1\n", "utf-8")
    assert configs.meant_for([one, two]) == "a.b:C"
    assert configs.meant_for([two]) is None
    assert configs.meant_for([tmp_path / "absent.toml"]) is None


def test_dry_run_finds_what_could_only_fail(capsys: pytest.CaptureFixture[str]) -> None:
    for typed, told in (
        ('tasks=[{name="behavior", judge="rulle"}]', "unknown judge 'rulle'"),
        ('scenes.behaviors="tests.support.dawdler:B91"', "no rules for behavior 'B91'"),
    ):
        assert invoke(["train", "user", "--recipe", "rl", "--set", typed, "--dry-run"]) == 2
        assert told in capsys.readouterr().err


@pytest.mark.parametrize(("silent", "code"), [([], 0), (["behavior"], 1)])
def test_a_task_whose_every_rollout_failed_is_exit_code_1(
    silent: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    result = {"checkpoint": "out/policy", "without_score": silent}
    verb = train._Verb("user", "", "user", lambda config, bar: ("done", result))
    try:
        verb.train(None, quiet=True, json=False)
        left = 0
    except typer.Exit as leaving:
        left = leaving.exit_code
    assert left == code
    assert ("every rollout failed of: behavior" in capsys.readouterr().err) is bool(silent)


def test_a_batch_without_any_reward_shows_none(capsys: pytest.CaptureFixture[str]) -> None:
    bar = train._Bar("user", quiet=False)
    bar.batches(2)(BatchLog(1, {"episode/gated": 0.5}))
    assert "batch 1/2, no reward, 50% malformed" in capsys.readouterr().err
