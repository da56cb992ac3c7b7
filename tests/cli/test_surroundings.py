"""The command in odd surroundings: terminals, encodings, closed pipes, full devices, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.cli import output
from mimesim.cli.main import invoke
from mimesim.errors import UnknownNameError
from tests.cli.test_run import ROOT, TOYS, comparable, environment, run, start, wait_for_lines

HOSTILE = ":smile: [red]x[/red] \x1b[2J\x07 \u202egnp.exe\u202c \ud83d <b>é\u2028</b>"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stored run whose first message is hostile to terminals."""
    folder = tmp_path_factory.mktemp("hostile")
    run(*TOYS, "--episodes=1", "--quiet", f"--out={folder / 'r'}")
    value = next(jsonio.read_jsonl(folder / "r" / "episodes.jsonl")).value
    value["turns"][0]["content"] = HOSTILE
    file = folder / "a.jsonl"
    file.write_text(jsonio.dumps(value) + "\n", "utf-8")
    return file


def shell(*arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    env = {**environment(), **more.pop("env", {})}
    command = [sys.executable, "-m", "mimesim", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=env, timeout=60, **{"capture_output": True, **more}
    )


def test_nothing_in_a_text_takes_effect_in_the_terminal(
    hostile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["view", str(hostile)]) == 0
    shown = capsys.readouterr().out
    assert r":smile: [red]x[/red] \x1b[2J\x07 \u202egnp.exe\u202c \ud83d <b>é" in shown
    assert not set(shown) & set("\x1b\x07\u202e\ud83d")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_of_the_terminal_will_do(hostile: Path, encoding: str) -> None:
    env = {"PYTHONIOENCODING": encoding, "LANG": "C", "LC_ALL": "C", "COLUMNS": "40"}
    done = shell("view", str(hostile), env=env)
    assert done.returncode == 0, done.stderr
    assert ":smile:" in done.stdout.decode(encoding)
    done = shell("view", str(hostile), "--json", env=env)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.decode(encoding).strip().split("\n")
    assert jsonio.loads(line)["episodes"][0]["turns"][0]["content"] == HOSTILE


def test_a_closed_pipe_is_no_error(hostile: Path) -> None:
    script = f"{sys.executable} -m mimesim view {hostile} --json | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=environment(), capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_full_stdout_is_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("wb") as full:
        done = shell("users", "list", "--json", capture_output=False, stdout=full, stderr=-1)
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1
    assert b"No space left" in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_closed_streams_are_no_error(closed: str) -> None:
    script = f"{sys.executable} -m mimesim users list --json {closed}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_asked_to_end_keeps_the_state(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "x.jsonl"
    slow = ("--set=gym_options.delay=0.04", "--concurrency=2", "--episodes=12")
    process = start(*TOYS, *slow, f"--out={out}")
    wait_for_lines(out, 3)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "goes on where it was" in err
    assert jsonio.read_json(tmp_path / "x.run" / "run.json")["counts"]["episodes"] >= 3
    run(*TOYS, *slow, f"--out={out}")
    run(*TOYS, *slow, f"--out={tmp_path / 'whole.jsonl'}")
    assert comparable(out) == comparable(tmp_path / "whole.jsonl")


def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """`nohup mimesim run` goes on when the terminal closes."""
    out = tmp_path / "x.jsonl"
    slow = ("--set=gym_options.delay=0.03", "--concurrency=2", "--episodes=8")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = start(*TOYS, *slow, f"--out={out}")
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_for_lines(out, 2)
    os.kill(process.pid, signal.SIGHUP)
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert out.read_bytes().count(b"\n") == 8


def test_a_login_in_a_name_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "--agent=modl:openai:m@http://bob:hunter2/x@host/v1"]) == 2
    assert "hunter2" not in capsys.readouterr().err
    output.show_error(UnknownNameError("no 'http://bob:hunter2@host'"))
    assert capsys.readouterr().err == "error: no 'http://***@host'\n"


def test_a_run_that_came_to_nothing_does_not_keep_the_folder(tmp_path: Path) -> None:
    dead = "--agent=model:openai:m@http://127.0.0.1:9/v1"
    _, err = run(dead, "--episodes=1", f"--out={tmp_path / 'a'}", code=2)
    assert "does not serve" in err
    run(*TOYS, "--episodes=1", "--quiet", f"--out={tmp_path / 'a'}")
    _, err = run(*TOYS, "--episodes=1", "--seed=8", f"--out={tmp_path / 'a'}", code=2)
    assert "another configuration" in err


def test_an_export_never_replaces_the_run(tmp_path: Path) -> None:
    run(*TOYS, "--episodes=1", "--quiet", f"--out={tmp_path / 'r'}")
    file = tmp_path / "r" / "episodes.jsonl"
    before = file.read_bytes()
    for source in (tmp_path / "r", file):
        assert invoke(["export", str(source), "--to", "openai", "--out", str(file)]) == 2
    assert file.read_bytes() == before
