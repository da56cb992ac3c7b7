"""`mimesim serve`: starts, tells where, refuses what is unsafe, and ends in good order."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from mimesim.cli.main import invoke


def test_it_serves_until_it_is_asked_to_stop(tmp_path: Path) -> None:
    people = tmp_path / "people.jsonl"
    people.write_text('{"id": "pot", "goal": "a pot", "opening": "hi, a pot please"}\n', "utf-8")
    token = tmp_path / "token"
    token.write_text("t0ken\n", "utf-8")
    command = [
        *(sys.executable, "-m", "mimesim", "serve", "--user", "me=scripted:neutral", "--port", "0"),
        *("--scenarios", str(people), "--token-file", str(token), "--dialect", "tau2"),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            found = re.search(r"http://\S+/v1", running.stderr.readline())
            assert found is not None
            ask = {"model": "me", "messages": [{"role": "user", "content": "hello there"}]}
            told = {"authorization": "Bearer t0ken"}
            with httpx.Client(verify=False, headers=told) as client:
                answer = client.post(f"{found[0]}/chat/completions", json=ask)
            assert answer.json()["choices"][0]["message"]["content"] == "hi, a pot please"
            running.send_signal(signal.SIGTERM)
            logged = running.stderr.read()
            assert running.wait(20) == 0
        finally:
            running.kill()
    line, last = logged.splitlines()
    assert json.loads(line)["model"] == "me"
    assert last == "stopped"
    assert "t0ken" not in logged
    assert "hello" not in logged
    assert "Traceback" not in logged


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--host", "0.0.0.0"], "MIMESIM_API_KEY"),
        (["--user", "scripted:realistc"], "realistic"),
        (["--dialect", "tau3"], "tau"),
        (["--set", "max_actve=3"], "max_active"),
        (["--set", "timeout_s=0"], "timeout_s"),
        (["--roles", "sideways"], "flipped"),
        (["--scenarios", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--token-file", "nowhere"], "nowhere"),
        (["--host", "192.0.2.7", "--insecure"], "192.0.2.7"),
    ],
)
def test_wrong_use_is_told_in_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["serve", "--port", "0", *arguments]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert told in line


def test_a_missing_extra_is_told_with_its_install_line() -> None:
    block = (
        "import sys; sys.modules['uvicorn'] = None; sys.modules['starlette'] = None\n"
        "from mimesim.cli.main import invoke\n"
        "sys.exit(invoke(['serve', '--port', '0']))"
    )
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True)
    assert done.returncode == 2
    assert 'pip install "mimesim[serve]"' in done.stderr
    assert "Traceback" not in done.stderr
