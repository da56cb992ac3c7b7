"""`mimesim data from-logs`, and its file played by `mimesim run`."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from mimesim import jsonio
from mimesim.cli.main import invoke
from tests.support.speaker import save_speaker

CHATS = [
    {
        "messages": [
            {"role": "user", "content": "Hi, I want to change my order, I am at w.kade@post.example.org"},
            {"role": "assistant", "content": "Gladly. What is your order number?"},
            {"role": "user", "content": f"5512{number}"},
            {"role": "assistant", "content": "Changed."},
            {"role": "user", "content": "thank you"},
        ]
    }
    for number in range(3)
]  # fmt: skip


def greet(message: str) -> str:
    return "Hello! What is your order number?"


def call(*arguments: str | Path) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = invoke([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    path = tmp_path / "logs.jsonl"
    path.write_text("".join(jsonio.dumps(chat) + "\n" for chat in CHATS), "utf-8")
    return path


def test_from_logs_to_validate_run_and_review(logs: Path) -> None:
    file, run = logs.with_name("s.jsonl"), logs.with_name("run")
    code, out, _ = call("data", "from-logs", logs, "--out", file, "--json")
    assert code == 0
    found = jsonio.loads(out.splitlines()[-1])
    assert (found["scenarios"], found["withheld"], found["contacts_replaced"]) == (
        3,
        3,
        {"email": 3},
    )
    assert found["rejects"] is None
    code, out, _ = call("data", "from-logs", logs, "--out", file)
    assert "nothing new" in out
    assert "facts" not in out
    assert call("validate", file)[0] == 0
    played = (
        "run", "--scenarios", file, "--agent", f"python:{__name__}:greet", "--out", run,
        "--episodes", "3", "--quiet",
    )  # fmt: skip
    assert call(*played, "--user", "scripted:neutral")[0] == 0
    assert call("validate", run)[0] == 0
    assert call("review", run)[0] == 0
    assert "post.example.org" not in (run / "episodes.jsonl").read_text("utf-8")


def test_a_trained_user_plays_what_was_distilled(logs: Path) -> None:
    file, run = logs.with_name("s.jsonl"), logs.with_name("run")
    folder = save_speaker(
        logs.with_name("user"), "ok bye<|endconversation|>", special=("<|endconversation|>",)
    )
    assert call("data", "from-logs", logs, "--out", file, "--quiet")[0] == 0
    code, _, err = call(
        "run", "--scenarios", file, "--agent", f"python:{__name__}:greet", "--out", run, "--quiet",
        "--episodes", "1", "--user", f"trained:{folder}",
    )  # fmt: skip
    assert code == 0, err
    (line,) = jsonio.read_jsonl(run / "episodes.jsonl")
    assert [turn["content"] for turn in line.value["turns"]] == [
        "ok bye",
        "Hello! What is your order number?",
    ]
    assert line.value["stop"]["reason"] == "user_stop"


def test_a_look_before_anything_is_written(logs: Path) -> None:
    code, out, _ = call("data", "from-logs", logs, "--dry-run")
    assert code == 0
    assert "goal: change your order" in out
    assert "order_id: 55120 (turn 2, told when asked): 55120" in out
    assert "w.kade" not in out
    assert list(logs.parent.iterdir()) == [logs]


def test_the_same_command_again_continues(logs: Path) -> None:
    file = logs.with_name("s.jsonl")
    call("data", "from-logs", logs, "--out", file, "--limit", "1")
    code, out, _ = call("data", "from-logs", logs, "--out", file)
    assert code == 0
    assert "2 scenarios of 3 conversations (1 were there)" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl"),
        (["sstar:x"], "did you mean 'star'"),
        (["LOGS", "--out", "x.csv"], "JSON Lines"),
        (["LOGS", "--judge", "modle:x"], "did you mean 'model'"),
    ],
)
def test_wrong_use_is_one_line(logs: Path, arguments: list[str], words: str) -> None:
    given = [str(logs) if argument == "LOGS" else argument for argument in arguments]
    if "--out" not in given:
        given += ["--out", str(logs.with_name("s.jsonl"))]
    code, _, err = call("data", "from-logs", *given)
    assert code == 2
    assert words in err
    assert len(err.strip().splitlines()) == 1
