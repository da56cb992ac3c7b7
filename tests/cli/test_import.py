"""`mimesim import`, the shapes of `mimesim export`, and checks of scenario files, as typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mimesim
from mimesim.cli.main import invoke

CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]


def last(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def agent(message: str) -> str:
    return f"{message}? All set."


def test_import_and_what_follows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "chats.jsonl", tmp_path / "run"
    source.write_text(json.dumps({"messages": CHAT}) + "\n{torn\n", "utf-8")
    assert invoke(["import", str(source), "--out", str(out), "--json"]) == 0
    told = last(capsys)
    assert (told["format"], told["episodes"], told["rejects"]) == (
        "openai-messages",
        1,
        {"bad_json": 1},
    )
    assert invoke(["import", str(source), "--out", str(out)]) == 0
    assert "1 of them were there" in capsys.readouterr().out
    for verb in (["view", str(out)], ["review", str(out)], ["report", str(out), "--md"]):
        assert invoke(verb) == 0
    assert invoke(["import", str(source), "--from", "tau3", "--out", str(out)]) == 2
    assert "did you mean 'tau2'" in capsys.readouterr().err
    assert invoke(["import", str(tmp_path / "nothing.jsonl"), "--out", str(out)]) == 2


def test_shapes_of_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mimesim.simulate(agent, ["a b"], user=["hi"], out=tmp_path / "run")
    for target in ("tau2", "verifiers", "inspect", "csv"):
        out = tmp_path / target
        arguments = ["export", str(tmp_path / "run"), "--to", target, "--out", str(out), "--json"]
        assert invoke(arguments) == 0
        assert last(capsys)["rows"] == 1
    assert last_file(tmp_path / "inspect").suffix == ".json", "a folder gets a log of its own name"
    thoughts = ["export", str(tmp_path / "run"), "--to", "tau2", "--private"]
    assert invoke([*thoughts, "--out", str(tmp_path / "p.json")]) == 0
    assert "warning" in capsys.readouterr().err


def last_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_checks_of_a_scenario_file_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "people.jsonl"

    def put(**success: Any) -> None:
        file.write_text(json.dumps({"id": "s1", "goal": "a b", "success": success}) + "\n", "utf-8")

    def run() -> int:
        arguments = ["run", "--scenarios", str(file), "--agent", f"python:{__name__}:agent"]
        place = ["--out", str(tmp_path / "run"), "--overwrite", "-n", "1", "--json"]
        return invoke([*arguments, *place, "--fail-under", "success=1"])

    put(checks=[{"agent_says": "all set"}])
    assert run() == 0
    assert last(capsys)["success"]["mean"] == 1
    put(checks=[{"agent_says": "refund"}])
    assert run() == 1
    put(checks=[{"agent_say": "refund"}])
    assert run() == 2
    assert invoke(["validate", str(file)]) == 2
    assert "did you mean 'agent_says'" in capsys.readouterr().err
