"""`mimesim bench` from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mimesim import jsonio
from mimesim.bench.suites.goldens import lexical as goldens
from mimesim.bench.suites.goldens.base import Check, Outcome
from mimesim.bench.suites.usi.importer import CONSTANTS
from mimesim.cli import bench
from mimesim.errors import DataError, UsageError
from mimesim.judges.stored import JudgeGoneError
from mimesim.results.suite import SuiteScore
from tests.judges.test_agree import HURRY, PLAIN
from tests.support.sessions import chats
from tests.support.stub_server import Fault, StubServer, hang, rate_limited

COLUMNS = {"COLUMNS": "200"}
DATA = os.environ.get("MIMESIM_TEST_DATA")


def run(*words: str | Path, code: int = 0) -> Any:
    result = CliRunner().invoke(bench.app, list(map(str, words)), env=COLUMNS)
    if isinstance(result.exception, UsageError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def last(result: Any) -> Any:
    return json.loads(result.stdout.strip().splitlines()[-1])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_list_names_what_a_suite_needs() -> None:
    found = {one["name"]: one for one in last(run("list", "--json"))}
    assert (found["lexical"]["needs"], found["lexical"]["adds"]) == ([], ["people"])
    assert found["behavior"]["judge"] == "rule"
    assert "z-scores" in run("list").output
    assert "lexical" in run("--help").output


def test_a_dry_run_counts_questions_and_asks_nobody(here: Path) -> None:
    logs = chats(here / "logs.jsonl", PLAIN, HURRY)
    people = chats(here / "people.jsonl", HURRY, PLAIN)
    words = ["turing", "--episodes", logs, "--human", people, "--out", "t", "--json"]
    endpoint = "model:openai:m@http://127.0.0.1:9/v1"  # nobody listens there
    told = last(run(*words, "--judge", endpoint, "--dry-run"))["dry_run"][f"turing, {endpoint}"]
    assert (told["questions"], told["answered already"], told["to ask"]) == (2, 0, 2)
    assert told["input tokens, about"] > 100
    assert not (here / "t").exists()
    run(*words, "--judge", "rule", "--boot", 50)
    told = last(run("judge", "t", "--judge", "rule", "--dry-run", "--json"))["dry_run"]
    assert told["turing, rule"]["answered already"] == 2
    with pytest.raises(UsageError, match=r"no conversations are stored.*bench simulate turing"):
        run("turing", "--judge", "rule", "--dry-run")


def test_a_script_does_not_write_in_the_talks_of_people(here: Path) -> None:
    logs = chats(here / "logs.jsonl", PLAIN, HURRY)
    for words in (["discriminator"], ["turing-rl", "--judge", "rule"]):
        with pytest.raises(UsageError, match="does not read what was said"):
            run(*words, "--user", "scripted:realistic", "--human", logs)


def test_the_shorthand_scores_what_is_stored(here: Path) -> None:
    logs = chats(here / "logs.jsonl", PLAIN, HURRY, ("", "Anybody?"))
    words = ("lexical", "--episodes", logs, "--human", logs, "--boot", 50, "--json")
    told = last(run(*map(str, words)))
    assert told["suite"] == "lexical"
    assert told["metrics"]["z_mattr"]["value"] == pytest.approx(0)
    assert told["metrics"]["turns"]["n"] == 2
    assert told["excluded"] == {"no_user_turn": 1, "people: no_user_turn": 1}
    assert told["floors"]
    folder = Path(told["out"])
    assert folder == Path("out/bench/lexical-logs")
    first = (folder / "scores" / "lexical.json").read_bytes()
    run("score", folder, "--boot", 50)
    assert (folder / "scores" / "lexical.json").read_bytes() == first


def test_a_suite_plays_its_own_small_set(here: Path) -> None:
    told = last(run("self-check", "--boot", 50, "--json"))
    assert told["metrics"]["faults"]["n"] > 24
    assert told["roles"] == {"user": "scripted:realistic", "agent": "scripted:eager"}
    assert told["seeds"] == [0]


def test_simulate_judge_score_compare_report(here: Path) -> None:
    for name, user in (("a", "scripted:realistic"), ("b", "scripted:neutral")):
        run("simulate", "behavior", "--out", name, "--simulator", user, "-n", 6, "--quiet")
        run("judge", name, "--judge", "rule")
        files = [here / name / file for file in ("episodes.jsonl", "verdicts.jsonl")]
        before = [file.read_bytes() for file in files]
        told = last(run("score", name, "--boot", 50, "--json"))
        assert told["scores"][0]["suite"] == "behavior"
        assert [file.read_bytes() for file in files] == before
    (found,) = last(run("compare", "a", "b", "--boot", 50, "--json"))["comparisons"]
    rows = {row["metric"]: row for row in found["rows"]}
    assert rows["naturalness"]["pairs"] > 0
    assert "minus scripted:neutral" in run("compare", "a", "b", "--boot", 50).output
    run("report", "a", "b", "--format", "json", "--out", "board.json")
    assert "## behavior" in run("report", "board.json").output
    run("report", "board.json", "--format", "html", "--out", "board.html")
    assert (here / "board.html").read_text().startswith("<!doctype html>")
    assert run("report", "a", "--format", "csv").stdout.startswith("suite,row,user,mode")


def test_two_judges_at_once_are_compared_and_the_first_scores(here: Path) -> None:
    run("simulate", "behavior", "--out", "a", "-n", 4, "--quiet")
    words = ("behavior", "--episodes", "a", "--judge", "rule", "--judge", "rule-heldout")
    assert "agreement rule x rule-heldout" in run(*words, "--boot", 50).output
    assert SuiteScore.read(here / "a/scores/behavior.json").roles["judge"] == "rule"
    with pytest.raises(UsageError, match="several judges"):
        run("score", "a")
    run("score", "a", "--judge", "rule-heldout", "--boot", 50)


def test_too_many_lost_verdicts_are_exit_code_1(here: Path) -> None:
    run("simulate", "behavior", "--out", "a", "-n", 4, "--quiet")
    with StubServer(["prose"]) as server:
        judge = f"model:openai:stub@{server.url}"
        result = run("behavior", "--episodes", "a", "--judge", judge, "--json", code=1)
    assert "4 of 4 verdicts are lost (failed 4)" in result.stderr
    assert "4: the answer holds no complete JSON object" in result.stderr
    told = last(result)
    assert told["verdicts"][judge]["failed"] == 4
    assert not (here / "a/scores/behavior.json").exists(), "nothing was scored, so nothing is kept"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("lexicl",), "did you mean 'lexical'"),
        (("lexical", "--episodes", "nowhere/logs.jsonl"), "nowhere"),
        (("self-check", "--mode", "compta"), "did you mean 'compat'"),
        (("self-check", "--set", "x=1"), "unknown option 'x'"),
        (("self-check", "--judge", "rule"), "asks no judge"),
        (("score", "."), "no benchmark was made here"),
        (("report", "."), "no score here"),
        (("selftest", "--only", "lexcal"), "did you mean 'lexical'"),
        (("selftest", "--data", "nowhere"), "no such folder"),
    ],
)
def test_wrong_use_is_one_line(here: Path, words: tuple[str, ...], told: str) -> None:
    with pytest.raises(UsageError) as error:
        run(*words)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_check_data_tells_counts_and_terms(here: Path) -> None:
    logs = chats(here / "logs.jsonl", PLAIN, ("", "Anybody?"))
    told = last(run("check-data", "lexical", "--data", logs, "--json"))
    assert told["found"]["conversations"] == "1"
    assert told["found"]["training allowed"] == "unknown"
    assert told["license"]


def test_selftest_is_1_where_a_number_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    small = last(run("selftest", "--only", "lexical", "--json"))
    assert (small["failed"], small["passed"], small["skipped"]) == (0, 1, 2)
    wrong = Check("lexical/wrong", "1", lambda data: Outcome("failed", "2", "1", "it differs"))
    monkeypatch.setattr(goldens, "CHECKS", [wrong])
    result = run("selftest", "--only", "lexical", code=1)
    assert "FAILED   lexical/wrong: it differs; found 2, expected 1" in result.output


def test_a_lexicon_is_imported_unread_and_verified(here: Path) -> None:
    source = here / "lists.py"
    lines = [f're.compile(r"\\b(?:{name.lower()}|please)\\b", re.IGNORECASE)' for name in CONSTANTS]
    body = "".join(f"{name} = {line}\n" for name, line in zip(CONSTANTS, lines, strict=True))
    source.write_text(f'raise SystemExit("ran")\nimport re\n{body}', "utf-8")
    told = last(run("import-lexicon", source, "--out", "lex.json", "--license", "own", "--json"))
    assert len(told["detectors"]) == len(CONSTANTS)
    assert run("import-lexicon", source, "-o", "again.json").output.count(told["fingerprint"]) == 1
    if DATA is None:
        pytest.skip("MIMESIM_TEST_DATA is not set: nothing to verify on")
    runs = f"tau-bench:{DATA}/tau_bench/gpt4o_airline_trajectories.jsonl"
    found = run("verify-lexicon", "lex.json", "--runs", runs, "--json", code=1)
    assert last(found)["verified"] is False
    assert "official" in last(found)["differences"][0]


def test_an_endpoint_that_dies_ends_the_judging_soon(here: Path) -> None:
    run("simulate", "behavior", "--out", "a", "-n", 6, "--quiet")
    for replies in ([Fault(500)], [hang(30)], [rate_limited(0.2)]):
        with StubServer(replies) as server:
            judge = f"model:openai:stub@{server.url}"
            with pytest.raises(JudgeGoneError) as gone:
                run("behavior", "--episodes", "a", "--judge", judge, "--judge-budget", 1)
        assert "verdicts.jsonl" in str(gone.value)
        assert "\n" not in str(gone.value)


@pytest.mark.parametrize("name", ["simarena", "turing-rl", "mirrorbench"])
def test_check_data_takes_no_other_data(here: Path, name: str) -> None:
    logs = chats(here / "logs.jsonl", PLAIN)
    with pytest.raises(DataError, match="not the data of"):
        run("check-data", name, "--data", logs)


@pytest.mark.parametrize("limit", ["x", -1, 1.5])
def test_a_damaged_note_of_a_benchmark_is_one_line(here: Path, limit: Any) -> None:
    chats(here / "logs.jsonl", PLAIN)
    run("lexical", "--episodes", "logs.jsonl", "--out", "b", "--boot", 50)
    note = jsonio.read_json(here / "b/bench.json")
    note["suites"]["lexical"]["limit"] = limit
    jsonio.write_json(here / "b/bench.json", note)
    with pytest.raises(DataError, match="limit"):
        run("score", "b")


@pytest.mark.parametrize("outcome", ['{"trial": "x"}', '{"trial": 1e999}', '{"reward": 1e999}'])
def test_an_outcome_that_is_no_number_is_one_line(here: Path, outcome: str) -> None:
    turns = '[{"role": "user", "text": "Hello?"}]'
    (here / "logs.jsonl").write_text(f'{{"id": "a", "turns": {turns}, "outcome": {outcome}}}\n')
    with pytest.raises(DataError, match="outcome"):
        run("lexical", "--episodes", "logs.jsonl")


def test_a_torn_last_line_of_a_log_is_called_so(here: Path) -> None:
    logs = chats(here / "logs.jsonl", PLAIN, HURRY)
    logs.write_bytes(logs.read_bytes() + b'{"id": "torn", "tur')
    told = last(run("lexical", "--episodes", logs, "--boot", 50, "--json"))
    assert told["excluded"] == {"truncated": 1}


def test_a_number_in_quotes_is_no_score(here: Path) -> None:
    chats(here / "logs.jsonl", PLAIN)
    run("lexical", "--episodes", "logs.jsonl", "--out", "b", "--boot", 50)
    score = jsonio.read_json(here / "b/scores/lexical.json")
    score["metrics"][0]["value"]["value"] = "12"
    jsonio.write_json(here / "b/scores/lexical.json", score)
    with pytest.raises(DataError, match=r"metrics\.0"):
        run("report", "b")
