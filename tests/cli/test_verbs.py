"""`view`, `review`, `validate`, `export`, `doctor` on a stored run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.cli.main import invoke
from tests.cli.test_run import TOYS, run


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of 10 episodes, one of them not counted."""
    out = tmp_path_factory.mktemp("run") / "r"
    failing = [TOYS[0], "--agent=tests.rollout.toy:make_failing", *TOYS[2:], "--episodes=10"]
    run(*failing, f"--out={out}", code=1)
    return out


def last(capsys: pytest.CaptureFixture[str]) -> Any:
    return jsonio.loads(capsys.readouterr().out.strip().split("\n")[-1])


def test_view_shows_the_private_side_only_when_asked(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["view", str(stored), "--limit", "1"]) == 0
    public = capsys.readouterr().out
    assert "user: I say" in public
    assert "PRIVATE-THOUGHT" not in public
    assert "secret goal" not in public
    assert invoke(["view", str(stored), "--limit", "1", "--private"]) == 0
    private = capsys.readouterr().out
    assert "user thinks: PRIVATE-THOUGHT" in private
    assert "secret goal" in private


@pytest.mark.parametrize(
    ("filters", "matching"),
    [
        (["--failed"], 1),
        (["--status", "infra_failure"], 1),
        (["--stop", "user_stop"], 9),
        (["--guard", "repeat"], 0),
        (["--id", "no-such-id"], 0),
        ([], 10),
    ],
)
def test_view_filters(
    stored: Path, filters: list[str], matching: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["view", str(stored), "--json", *filters]) == 0
    shown = last(capsys)
    assert shown["matching"] == matching
    assert all("private" not in episode for episode in shown["episodes"])


def test_view_of_text_that_looks_like_markup(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = next(jsonio.read_jsonl(stored / "episodes.jsonl")).value
    value["turns"][0]["content"] = "[bold red]not markup[/] [/nope]"
    file = tmp_path / "a.jsonl"
    file.write_text(jsonio.dumps(value) + "\n", "utf-8")
    assert invoke(["view", str(file)]) == 0
    assert "[bold red]not markup[/] [/nope]" in capsys.readouterr().out


def test_a_filter_that_can_match_nothing_is_refused(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["view", str(stored), "--status", "infra"]) == 2
    assert "infra_failure" in capsys.readouterr().err


def test_review_counts_and_has_a_threshold(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["review", str(stored), "--json", "--max-rate", "0"]) == 0
    assert last(capsys)["episodes"] == 10


def test_validate_is_exit_code_2_when_something_is_wrong(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["validate", str(stored), "--json"]) == 0
    assert last(capsys)["ok"] is True
    bad = tmp_path / "c.toml"
    bad.write_text("episodez = 3\nseed = 'x'\n")
    assert invoke(["validate", str(bad)]) == 2
    err = capsys.readouterr().err
    assert f"{bad}:1: unknown key 'episodez' (did you mean 'episodes'?)" in err
    assert f"{bad}:2: " in err


def test_export_is_public_unless_asked(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for target in ("openai", "openai-user", "sharegpt"):
        out = tmp_path / f"{target}.jsonl"
        assert invoke(["export", str(stored), "--to", target, "--out", str(out), "--json"]) == 0
        assert last(capsys)["rows"] == 10
        first = out.read_bytes()
        assert b"PRIVATE-THOUGHT" not in first
        assert b"secret goal" not in first
        assert invoke(["export", str(stored), "--to", target, "--out", str(out)]) == 0
        assert out.read_bytes() == first
    private = tmp_path / "p.jsonl"
    arguments = ["export", str(stored), "--to", "openai-user", "--out", str(private)]
    assert invoke([*arguments, "--with-private"]) == 0
    assert "warning" in capsys.readouterr().err
    assert b"PRIVATE-THOUGHT" in private.read_bytes()
    assert b"secret goal" in private.read_bytes()
    assert invoke(["export", str(stored), "--to", "openia", "--out", str(private)]) == 2
    assert "did you mean 'openai'" in capsys.readouterr().err


def test_doctor_says_that_the_core_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["doctor", "--json"]) == 0
    checks = {check["name"]: check for check in last(capsys)["checks"]}
    assert checks["python"]["state"] == checks["typer"]["state"] == "ok"


def test_doctor_reaches_for_endpoints(capsys: pytest.CaptureFixture[str]) -> None:
    endpoint = "openai:m@http://127.0.0.1:9/v1"  # the discard port: nobody listens
    assert invoke(["doctor", "--endpoint", endpoint]) == 2
    assert "something needed is missing" in capsys.readouterr().out


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("view", "review"):
        assert invoke([verb, str(tmp_path / "absent.jsonl")]) == 2
        err = capsys.readouterr().err
        assert "file not found" in err
        assert err.count("\n") == 1


def test_validate_checks_a_recipe_against_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "mix.toml"
    recipe.write_text('out = "x"\n[[source]]\ncorpus = "own"\nplace = "a.jsonl"\n', "utf-8")
    assert invoke(["validate", str(recipe)]) == 0
    assert "config of `mimesim data build`, 1 read, sound" in capsys.readouterr().out
    recipe.write_text('outt = "x"\n[[source]]\ncorpus = "own"\n', "utf-8")
    assert invoke(["validate", str(recipe)]) == 2
    assert "unknown key 'outt'" in capsys.readouterr().err
    recipe.write_text('x-config = "mimesim.train.midtrain:UserConfig"\nsteps = -1\n', "utf-8")
    assert invoke(["validate", str(recipe)]) == 2
    assert "`mimesim train user`" in capsys.readouterr().out
