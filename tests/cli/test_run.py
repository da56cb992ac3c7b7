"""`mimesim run` as people start it: resumption after a kill, interruption, exit codes, messages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.cli.main import invoke
from mimesim.dialogue.episode import without_times
from tests.support.stub_server import StubServer, context_full, error

ROOT = Path(__file__).resolve().parents[2]
TOYS = (
    "--gym=tests.rollout.toy:GYM",
    "--agent=tests.rollout.toy:make_agent",
    "--user=tests.rollout.toy:make_user",
    "--set=action_format=line",
    "--seed=7",
)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}", "NO_COLOR": "1"}


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mimesim", "run", *arguments]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(*arguments: str, code: int = 0) -> tuple[str, str]:
    """Run in this process and return stdout and stderr."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        found = invoke(["run", *arguments])
    assert found == code, err.getvalue()
    return out.getvalue(), err.getvalue()


def result(out: str) -> dict[str, Any]:
    """Return the JSON object of the last line of stdout."""
    return jsonio.loads(out.strip().split("\n")[-1])  # type: ignore[no-any-return]


def comparable(path: Path) -> list[str]:
    values = [without_times(line.value) for line in jsonio.read_jsonl(path)]
    return sorted(jsonio.dumps(value, sort_keys=True) for value in values)


def wait_for_lines(path: Path, number: int) -> None:
    limit = time.monotonic() + 30
    while not path.exists() or path.read_bytes().count(b"\n") < number:
        assert time.monotonic() < limit, "the run did not get on"
        time.sleep(0.02)


def test_a_run_and_the_same_again(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "x.jsonl"
    first = result(run(*TOYS, "--episodes=12", f"--out={out}", "--json")[0])
    assert first["out"] == str(out)
    assert (first["episodes"], first["completed"], first["resumed"]) == (12, 12, 0)
    assert first["success"]["n"] == first["reward"]["n"] == 12
    assert first["reward"]["mean"] == 0.75
    assert set(first) >= {"failures", "tokens", "cost_usd", "wall_s"}
    before = out.read_bytes()
    text, err = run(*TOYS, "--episodes=12", f"--out={out}", "--json")
    assert result(text)["resumed"] == 12
    assert text.count("\n") == 1  # stdout belongs to the object
    assert "12/12 counted, 12/12 all" in err
    assert "95 % CI" in err
    assert out.read_bytes() == before


@pytest.mark.parametrize("concurrency", [2, 6])
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, concurrency: int) -> None:
    out = tmp_path / "x.jsonl"
    slow = ("--set=gym_options.delay=0.04", f"--concurrency={concurrency}", "--episodes=16")
    process = start(*TOYS, *slow, f"--out={out}")
    wait_for_lines(out, 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = out.read_bytes()
    done = kept.count(b"\n")
    assert 3 <= done < 16
    again = result(run(*TOYS, *slow, f"--out={out}", "--json")[0])
    assert again["resumed"] == done
    assert out.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    whole = tmp_path / "whole.jsonl"
    run(*TOYS, *slow, "--concurrency=16", f"--out={whole}")
    assert comparable(out) == comparable(whole)


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    out = tmp_path / "x.jsonl"
    slow = ("--set=gym_options.delay=0.05", "--concurrency=2", "--episodes=200")
    process = start(*TOYS, *slow, f"--out={out}")
    wait_for_lines(out, 3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "goes on where it was" in err
    assert "Traceback" not in err
    assert out.read_bytes().endswith(b"\n")
    manifest = jsonio.read_json(tmp_path / "x.run" / "run.json")
    assert manifest["finished_at"] is None
    assert manifest["counts"]["episodes"] == out.read_bytes().count(b"\n") >= 3


def test_not_counted_episodes_decide_the_exit_code(tmp_path: Path) -> None:
    failing = [*TOYS[:1], "--agent=tests.rollout.toy:make_failing", *TOYS[2:], "--episodes=10"]
    out, err = run(*failing, f"--out={tmp_path / 'a'}", "--json", code=1)
    assert result(out)["failures"]["infra_failure"] == 1
    assert (result(out)["success_counted"], result(out)["success_all"]) == ("9/9", "9/10")
    assert "1 of 10 episodes are not counted" in err
    run(*failing, f"--out={tmp_path / 'b'}", "--max-invalid=0.2")


def test_a_missed_threshold_is_exit_code_1(tmp_path: Path) -> None:
    _, err = run(
        *TOYS, "--episodes=4", f"--out={tmp_path / 'a'}", "--fail-under=reward=0.9", code=1
    )
    assert "reward is 0.7500, below 0.9" in err
    run(*TOYS, "--episodes=4", f"--out={tmp_path / 'a'}", "--fail-under=reward=0.7")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--gym=suport-desk",), "did you mean 'support-desk'"),
        (("--set=limits.max_turn=3",), "unknown key 'limits.max_turn' (did you mean 'max_turns'?)"),
        (("--max-turns=0",), "--max-turns: 'max_turns' cannot be 0"),
        (("--episods=3",), "--episodes"),
        (("--fail-under=succes=1",), "knows no metric 'succes'"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    out, err = run(*arguments, f"--out={tmp_path / 'a'}", code=2)
    assert out == ""
    assert err.count("\n") == 1
    assert told in err
    assert not (tmp_path / "a").exists()


def test_a_misspelt_field_of_a_person_is_told_with_its_place(tmp_path: Path) -> None:
    """C-FID-02."""
    file, good = tmp_path / "people.jsonl", {"id": "a", "goal": "send a teapot back"}
    rows = (good, {**good, "id": "b", "persnoa": "impatient"})
    file.write_text("".join(jsonio.dumps(row) + "\n" for row in rows), "utf-8")
    agent = "--agent=http:http://127.0.0.1:9/reply"
    _, err = run(f"--scenarios={file}", agent, f"--out={tmp_path / 'a'}", code=2)
    assert err.count("\n") == 1
    for told in (f"{file}:2", "'persnoa'", "did you mean 'persona'?"):
        assert told in err


def test_a_full_disk_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        "from mimesim.cli.main import invoke; sys.exit(invoke(sys.argv[1:]))"
    )
    arguments = [*TOYS, "--episodes=30", "--quiet", f"--out={tmp_path / 'x.jsonl'}"]
    done = subprocess.run(
        [sys.executable, "-c", script, "run", *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "cannot write" in done.stderr
    assert (tmp_path / "x.jsonl").read_bytes().endswith(b"\n")


def test_a_dry_run_touches_nothing(tmp_path: Path) -> None:
    out, _ = run(*TOYS, "--dry-run", f"--out={tmp_path / 'a'}", "--episodes=3")
    assert "episodes: 3" in out
    assert "You talk about topic 0." in out
    assert not (tmp_path / "a").exists()


def test_the_manifest_is_a_config_again(tmp_path: Path) -> None:
    run(*TOYS, "--episodes=4", f"--out={tmp_path / 'a'}")
    again = run(f"--config={tmp_path / 'a' / 'run.json'}", f"--out={tmp_path / 'b'}")
    assert again
    assert comparable(tmp_path / "a" / "episodes.jsonl") == comparable(
        tmp_path / "b" / "episodes.jsonl"
    )


def desk(url: str) -> tuple[str, ...]:
    return (
        "--profile=compact",
        f"--agent=model:openai:stub@{url}",
        "--set=agent_options.tools=text",
        "--episodes=2",
        "--concurrency=1",
    )


def test_a_model_plays_the_desk_over_http(tmp_path: Path) -> None:
    with StubServer(lambda request: "<think>hm</think>what is your order ?") as server:
        out, _ = run(*desk(server.url), f"--out={tmp_path / 'a'}", "--json", "--max-turns=2")
    found = result(out)
    assert found["completed"] == 2
    assert found["tokens"]["agent"] > 0
    for line in jsonio.read_jsonl(tmp_path / "a" / "episodes.jsonl"):
        assert line.value["stop"]["reason"] == "max_turns"
        assert all(turn["content"] != "hm" for turn in line.value["turns"])
        assert line.value["private"]["agent_reasoning"][0]["text"] == "hm"
        assert line.value["agent"]["endpoint_host"].startswith("127.0.0.1")


def test_a_full_context_is_one_call_and_counted(tmp_path: Path) -> None:
    """C-RUN-01, at the second move."""
    with StubServer(["what is your order ?", context_full()]) as server:
        out, _ = run(*desk(server.url), "--episodes=1", f"--out={tmp_path / 'a'}", "--json")
        assert len(server.generations) == 2
    assert result(out)["truncated"] == result(out)["completed"] == 1
    (line,) = jsonio.read_jsonl(tmp_path / "a" / "episodes.jsonl")
    assert line.value["stop"]["reason"] == "context_exceeded"
    assert line.value["stop"]["by"] == "agent"
    assert len(line.value["turns"]) == 3


def test_what_a_failed_user_spent_and_said_is_in_the_record(tmp_path: Path) -> None:
    """C-LEAK-03 and C-RUN-05: nothing delivered, not counted, every attempt in usage and record."""
    with StubServer(lambda request: "Hello, how can I help you today?") as server:
        user = f"--user=roleplay:openai:stub@{server.url}"
        out, _ = run(
            user, "--episodes=1", f"--out={tmp_path / 'a'}", "--max-retries=0", "--json", code=1
        )
        asked = len(server.generations)
    assert asked == 4
    assert result(out)["failures"]["user_failure"] == 1
    (line,) = jsonio.read_jsonl(tmp_path / "a" / "episodes.jsonl")
    assert line.value["turns"] == []
    assert line.value["outcome"] == {
        "status": "user_failure", "success": None, "reward": None, "scores": {}
    }  # fmt: skip
    assert line.value["usage"]["user"]["calls"] == asked
    assert line.value["usage"]["user"]["completion_tokens"] == 7 * asked
    guards = [(event["guard"], event["action"]) for event in line.value["guards"]]
    assert guards == [("role_flip", "redraw")] * 3 + [("role_flip", "fail")]
    drafts = line.value["private"]["drafts"]
    assert [draft["attempt"] for draft in drafts] == [0, 1, 2, 3]
    assert drafts[0]["text"] == "Hello, how can I help you today?"
    public = {key: value for key, value in line.value.items() if key != "private"}
    assert "how can I help" not in jsonio.dumps(public)


def test_calls_before_a_lost_connection_are_in_usage(tmp_path: Path) -> None:
    with StubServer(["Hello, how can I help you today?", error(400, "odd")]) as server:
        user = f"--user=roleplay:openai:stub@{server.url}"
        run(user, "--episodes=1", f"--out={tmp_path / 'a'}", "--max-retries=0", code=1)
    (line,) = jsonio.read_jsonl(tmp_path / "a" / "episodes.jsonl")
    assert line.value["outcome"]["status"] == "infra_failure"
    assert line.value["usage"]["user"]["calls"] == 1
    assert [event["guard"] for event in line.value["guards"]] == ["role_flip"]


def test_an_unreachable_endpoint_is_told_before_the_run(tmp_path: Path) -> None:
    out, err = run(*desk("http://127.0.0.1:9/v1"), f"--out={tmp_path / 'a'}", code=2)
    assert (out, err.count("\n")) == ("", 1)
    assert "127.0.0.1:9" in err


def test_a_wrong_key_is_told_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-SECRET123")
    with StubServer(api_key="sk-right") as server:
        out, err = run(*desk(server.url), f"--out={tmp_path / 'a'}", code=2)
        assert server.generations == []
    assert (out, err.count("\n")) == ("", 1)
    assert "key" in err
    written = "".join(path.read_text() for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert "SECRET123" not in err + written


def test_an_agent_that_cannot_be_read_is_told_with_the_way_to_look(tmp_path: Path) -> None:
    with StubServer(["act as you like"]) as server:
        out, _ = run(*desk(server.url), f"--out={tmp_path / 'a'}")
    assert f"mimesim view {tmp_path / 'a'} --failed" in out
    out, _ = run(*TOYS, "--episodes=2", f"--out={tmp_path / 'b'}")
    assert "--failed" not in out
