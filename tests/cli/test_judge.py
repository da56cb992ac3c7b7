"""`mimesim judge agree` and `mimesim annotate` from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from mimesim.cli import annotate, judge
from mimesim.errors import UsageError
from mimesim.jsonio import Appender
from tests.judges.test_agree import HURRY, PLAIN, episode
from tests.support.stub_server import StubServer

run = CliRunner().invoke
LABEL = typer.Typer()
LABEL.command()(annotate.command)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Return an episode file of three conversations."""
    path = tmp_path / "episodes.jsonl"
    with Appender(path) as file:
        for one in (episode("a", HURRY), episode("b", PLAIN), episode("c", PLAIN, None)):
            file.append(one.to_json())
    return path


def last(result: Any) -> dict[str, Any]:
    assert result.exit_code in (0, 1), result.output
    found: dict[str, Any] = json.loads(result.stdout.strip().splitlines()[-1])
    return found


def test_two_rule_judges(stored: Path) -> None:
    found = last(run(judge.app, ["agree", str(stored), "--judges", "rule,rule-heldout", "--json"]))
    rows = {(row["behavior"], row["measure"]): row for row in found["rows"]}
    assert rows["B9", "exhibit"]["n"] == 2
    assert rows["neutral", "cooperative"]["asked"] == 1
    assert found["verdicts"]["rule"]["scored"] == 3
    kept = Path(found["out"])
    assert kept == stored.with_suffix(".run") / "verdicts.jsonl"
    size = kept.stat().st_size
    run(judge.app, ["agree", str(stored), "--judges", "rule,rule-heldout"])
    assert kept.stat().st_size == size, "resumed, nothing is asked twice"


def test_the_table_for_people_names_both_denominators(stored: Path, tmp_path: Path) -> None:
    people = tmp_path / "people.jsonl"
    people.write_text('{"episode": "a", "exhibit": 1}\n{"episode": "b", "exhibit": 0}\n', "utf-8")
    result = run(judge.app, ["agree", str(stored), "--judges", f"rule,human:{people}"])
    assert result.exit_code == 0, result.output
    for text in ("of all", "kappa", "ranks", "2/2", "known to one of the two only"):
        assert text in result.output


def test_a_judge_that_fails_too_often_is_exit_code_1(stored: Path) -> None:
    with StubServer(["prose"]) as server:
        name = f"rule,model:openai:stub@{server.url}"
        result = run(judge.app, ["agree", str(stored), "--judges", name, "--json"])
    assert result.exit_code == 1
    assert last(result)["verdicts"][name.partition(",")[2]]["failed"] == 3


@pytest.mark.parametrize("judges", ["rule", "rule,rule", "", "rule,rul"])
def test_wrong_judges_are_one_line(stored: Path, judges: str) -> None:
    result = run(judge.app, ["agree", str(stored), "--judges", judges])
    assert isinstance(result.exception, UsageError)


def test_rated_pairs_need_no_judge(tmp_path: Path) -> None:
    path = tmp_path / "rated.jsonl"
    lines = [{"metric": "m", "human_label": n / 4, "judge_score": n / 5} for n in range(5)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (row,) = last(run(judge.app, ["agree", str(path), "--json"]))["rows"]
    assert (row["measure"], row["n"]) == ("m", 5)
    assert row["spearman"]["value"] == pytest.approx(1)


def test_annotating_episodes_counts_resumes_and_compares(stored: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels.jsonl"
    given = [str(stored), "--judge", "rule", "--judge", "rule-heldout", "--out", str(out), "--json"]
    found = last(run(LABEL, given))
    shown = {c["behavior"]: c for c in found["counts"]["rule"] if c["dialogues"]}
    assert shown.keys() == {"B9"}
    assert shown["B9"]["n"] == 3
    assert shown["B9"]["ci95"][0] < shown["B9"]["share"] < shown["B9"]["ci95"][1]
    assert found["agreement"]["B9"]["n"] == 3
    size = out.stat().st_size
    assert last(run(LABEL, given))["counts"] == found["counts"]
    assert out.stat().st_size == size


def test_annotating_a_corpus(tmp_path: Path) -> None:
    path = tmp_path / "logs.jsonl"
    turns = [
        {"role": "user", "text": "boots back"},
        {"role": "agent", "text": "What is your order number?"},
        {"role": "user", "text": "can you read, idiot"},
    ]
    path.write_text(json.dumps({"id": "one", "turns": turns}) + "\n", "utf-8")
    result = run(LABEL, [str(path), "--out", str(tmp_path / "l.jsonl")])
    assert result.exit_code == 0, result.output
    assert "B13" in result.output


def test_a_missing_source_and_a_doubled_annotator_are_one_line(tmp_path: Path) -> None:
    out = str(tmp_path / "l.jsonl")
    gone = run(LABEL, [str(tmp_path / "gone.jsonl"), "--out", out])
    assert isinstance(gone.exception, UsageError)
    twice = run(LABEL, [str(tmp_path), "--judge", "rule", "--judge", "rule", "--out", out])
    assert isinstance(twice.exception, UsageError)


def test_the_table_for_people_shows_what_was_played(stored: Path) -> None:
    text = run(judge.app, ["agree", str(stored)]).output
    lines = [line.split()[:2] for line in text.splitlines()]
    assert ["all", "naturalness"] in lines
    assert ["B9", "exhibit"] in lines
    assert ["neutral", "cooperative"] in lines
    assert ["B9", "naturalness"] not in lines
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines() if "->" not in line)


def test_nothing_to_compare_is_exit_code_1(tmp_path: Path) -> None:
    path = tmp_path / "silent.jsonl"
    with Appender(path) as file:
        file.append(episode("a", ()).to_json())
    result = run(judge.app, ["agree", str(path)])
    assert result.exit_code == 1, result.output
    assert "nothing to compare" in result.output


@pytest.mark.parametrize("name", ["human", "human:", "human:nothing.jsonl"])
def test_people_without_verdicts_are_one_line(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing.jsonl").touch()
    result = run(judge.app, ["agree", str(stored), "--judges", f"rule,{name}"])
    assert isinstance(result.exception, UsageError)
    assert "expected" in str(result.exception)
