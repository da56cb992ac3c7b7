"""The folder of a benchmark, and conversations as suites read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim.bench.suites import folder as folders
from mimesim.bench.suites import layers
from mimesim.bench.suites.lexical import SUITE as LEXICAL
from mimesim.bench.suites.load import suites
from mimesim.bench.suites.self_check import SUITE
from mimesim.bench.suites.sessions import read_sessions
from mimesim.errors import ConfigError, DataError, UnknownNameError, UsageError
from mimesim.jsonio import Appender, write_json
from tests.judges.test_agree import PLAIN, episode
from tests.support.sessions import chats

HOW = layers.How(draws=50)


def test_sessions_without_user_turns_are_counted_not_scored(tmp_path: Path) -> None:
    file = chats(tmp_path / "logs.jsonl", PLAIN, ("", "Anybody there?"))
    inputs = layers.inputs_of(SUITE, folders.Asked(str(file)), HOW)
    found = layers.scored(SUITE, inputs)
    assert found.excluded == {"no_user_turn": 1}
    assert list(found.by_key["faults"].values) == ["d0"]


def test_what_was_lost_of_the_people_is_counted_beside_it(tmp_path: Path) -> None:
    ours = chats(tmp_path / "logs.jsonl", PLAIN)
    people = chats(tmp_path / "people.jsonl", PLAIN, PLAIN, ("", "Anybody there?"))
    with people.open("a") as file:
        file.write("{broken\n")
    for suite in (SUITE, LEXICAL):
        inputs = layers.inputs_of(suite, folders.Asked(str(ours), str(people)), HOW)
        found = layers.scored(suite, inputs).excluded
        assert found == {"people: no_user_turn": 1, "people: bad_json": 1}


def test_a_score_that_is_replaced_by_an_unlike_one_is_told(tmp_path: Path) -> None:
    ours, people = (chats(tmp_path / f"{name}.jsonl", PLAIN, PLAIN) for name in ("a", "b"))
    alone, beside = (
        layers.scored(LEXICAL, layers.inputs_of(LEXICAL, folders.Asked(str(ours), side), HOW))
        for side in ("", str(people))
    )
    assert folders.replaced(alone, tmp_path, "lexical") == ""
    folders.keep(beside, tmp_path, "lexical")
    assert folders.replaced(beside, tmp_path, "lexical") == ""
    assert "people b.jsonl" in folders.replaced(alone, tmp_path, "lexical")


def test_nothing_but_such_sessions_is_one_line(tmp_path: Path) -> None:
    file = chats(tmp_path / "logs.jsonl", ("", "Anybody there?"))
    with pytest.raises(DataError, match="no conversation to score: 1 no_user_turn"):
        layers.inputs_of(SUITE, folders.Asked(str(file)), HOW)


def test_an_id_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="more than once"):
        read_sessions(str(chats(tmp_path / "logs.jsonl", PLAIN, PLAIN, ids=["x", "x"])))
    with Appender(tmp_path / "episodes.jsonl") as file:
        file.append(episode("a", PLAIN).to_json())
        file.append(episode("a", PLAIN).to_json())
    with pytest.raises(UsageError, match="stands in line 1 already"):
        read_sessions(str(tmp_path))


def test_a_normalized_record_names_its_corpus(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    with Appender(file) as lines:
        turns = [{"role": "user", "text": "hi"}, {"role": "agent", "text": "hello"}]
        row = {"task_id": 3, "trial": 1, "reward": 1.0, "turns": turns}
        lines.append({"id": "tau_bench/airline/3/1", **row})
    (one,) = read_sessions(str(file)).sessions
    assert (one.task, one.trial, one.success, one.key) == ("airline_3", 1, True, "airline_3#1")


def test_another_record_is_known_by_its_keys(tmp_path: Path) -> None:
    row = {"user_queries": ["write a letter"], "ai_responses": ["Dear all"], "model": "m"}
    told = {"document_type": "letter", "workerId": "w", "overall_interaction_rating": 7}
    write_json(tmp_path / "work.json", [row | told])
    (one,) = read_sessions(str(tmp_path / "work.json")).sessions
    assert one.said == ("write a letter",)
    assert (one.person, one.outcome["interaction_rating"]) == ("w", 7)


def test_the_folder_remembers_what_it_scored(tmp_path: Path) -> None:
    file = chats(tmp_path / "logs.jsonl", PLAIN, PLAIN)
    asked = folders.Asked(str(file), limit=1, seed=7)
    folders.remember(tmp_path / "run", "self-check", asked)
    folders.remember(tmp_path / "run", "lexical", asked)
    found = folders.asked_suites(tmp_path / "run", [])
    assert list(found) == ["self-check", "lexical"]
    assert found["lexical"][1] == asked
    with pytest.raises(UsageError, match="'behavior' was not made here"):
        folders.asked_suites(tmp_path / "run", ["behavior"])
    with pytest.raises(DataError, match="no benchmark was made here"):
        folders.asked_suites(tmp_path, [])
    write_json(tmp_path / "bench.json", {"suites": {"lexical": {"x": 1}}})
    with pytest.raises(DataError, match="not what a benchmark notes"):
        folders.remembered(tmp_path)


def test_folders_lie_beside_a_run_and_else_under_out(tmp_path: Path) -> None:
    with Appender(tmp_path / "episodes.jsonl") as file:
        file.append(episode("a", PLAIN).to_json())
    assert folders.folder_of(str(tmp_path), "lexical") == tmp_path
    assert folders.folder_of("star:data/star", "lexical") == Path("out/bench/lexical-star")
    assert folders.folder_of("chitchat", "lexical") == Path("out/bench/lexical-chitchat")


def test_wrong_options_modes_and_judges_are_one_line(tmp_path: Path) -> None:
    file = str(chats(tmp_path / "logs.jsonl", PLAIN))
    with pytest.raises(ConfigError, match="unknown option 'x'"):
        layers.inputs_of(SUITE, folders.Asked(file, options={"x": 1}), HOW)
    with pytest.raises(UnknownNameError, match="did you mean 'compat'"):
        layers.How.of("compatt", 10)
    with pytest.raises(UsageError, match="asks no judge"):
        layers.judge_names(LEXICAL, ["rule"], stored=False)


def test_every_suite_says_what_it_is() -> None:
    found = suites()
    assert {"lexical", "self-check", "behavior"} <= {one.facts.name for one in found}
    for one in found:
        assert one.facts.title
        assert not one.facts.judge or one.facts.asks_judge
