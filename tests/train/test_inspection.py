"""A look at training rows: what is marked as learnt, lengths, counts, and the refusals."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.cli.main import invoke
from mimesim.errors import DataError, EnvironmentFault, UsageError
from mimesim.train.inspection import inspect_user, percentiles
from mimesim.train.midtrain import UserConfig
from tests import tiny


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a tokenizer and no model: none is needed to look at rows."""
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny.tokenizer().save_pretrained(folder)
    return folder


def thought(base: Path, **changes: object) -> UserConfig:
    settings = {
        "model": str(base),
        "corpus": "thoughts-pack",
        "stage": "thought",
        "corpus_limit": 0,
        "token_budget": 0,
        "held_out_share": 0.2,
        "max_length": 4000,
    }
    return UserConfig(**{**settings, **changes})  # type: ignore[arg-type]


def test_what_is_learnt_is_marked_in_the_text(base: Path) -> None:
    """C-RL-05, the look before training: `mimesim train user --inspect` prints it."""
    found = inspect_user(thought(base), 3)
    assert found["n_rows"] == found["counts"]["train"]["rows_trained"] > len(found["rows"]) == 3
    for row in found["rows"]:
        learnt = [part["text"] for part in row["parts"] if part["learnt"]]
        given = [part["text"] for part in row["parts"] if not part["learnt"]]
        assert all(text.startswith("<think>\n") for text in learnt)
        assert all(text.endswith("<|im_end|>") for text in learnt)
        assert given[0].startswith("<|im_start|>system\n")
        assert given[0].endswith("<|im_start|>assistant\n")
        assert "Hi! How can I help you today?" in given[0]
        assert row["learnt"] < row["tokens"]
    lengths = found["lengths"]
    assert lengths["p50"] <= lengths["p90"] <= lengths["p99"] <= lengths["max"]
    assert lengths["max"] <= found["max_length"]
    assert found["learnt_tokens"] < found["tokens"]
    assert not (base / "config.json").exists()


def test_what_is_cut_off_is_counted(base: Path) -> None:
    longest = inspect_user(thought(base), 0)["lengths"]["max"]
    found = inspect_user(thought(base, max_length=longest - 400), 0)
    assert found["counts"]["train"]["rows_cut"] >= 1
    assert found["counts"]["train"]["turns_dropped"] >= 2
    assert found["rows"] == []


def test_midtraining_rows_are_shown_too(base: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs.jsonl"
    with jsonio.Appender(logs) as out:
        for i in range(40):
            turns = [{"role": "user", "text": "where is it?"}, {"role": "agent", "text": "here"}]
            out.append({"id": f"c{i}", "turns": turns})
    found = inspect_user(thought(base, corpus=str(logs), stage="midtrain"), 1)
    (row,) = found["rows"]
    assert [p["text"] for p in row["parts"] if p["learnt"]] == ["where is it?<|im_end|>"]


def test_nothing_to_learn_is_refused_in_one_line(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DataError, match="no token is learnt"):
        inspect_user(thought(base, max_length=40))
    settings = [f"--set=model={base}", "--set=max_length=40"]
    assert invoke(["train", "user", "--recipe", "thought", "--inspect", *settings]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.strip().splitlines()) == 1
    assert "no token is learnt" in told.err


def test_a_model_that_is_not_there(base: Path) -> None:
    with pytest.raises(EnvironmentFault, match="tokenizer cannot be loaded"):
        inspect_user(thought(base, model=str(base / "nowhere")))


def test_the_command_prints_rows_for_people_and_for_programs(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verb = ["train", "user", "--recipe", "thought", "--inspect", f"--set=model={base}"]
    assert invoke([*verb, "--rows", "1", "--set", "max_length=4000"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("⟦<think>\n") == shown.count("<|im_end|>⟧") >= 2
    for words in ("12 rows of the stage 'thought'", "p50", "p99", "held_out: dialogues 2"):
        assert words in shown
    assert invoke([*verb, "--rows", "2", "--json", "--set", "max_length=4000"]) == 0
    found = jsonio.loads(capsys.readouterr().out.strip().split("\n")[-1])
    assert len(found["rows"]) == 2
    assert found["stage"] == "thought"


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60))
def test_percentiles_are_members_with_enough_below_them(values: Sequence[int]) -> None:
    found = percentiles(values)
    for name, share in (("p50", 50), ("p90", 90), ("p99", 99)):
        assert found[name] in values
        assert 100 * sum(value <= found[name] for value in values) >= share * len(values)
        assert 100 * sum(value < found[name] for value in values) < share * len(values)
    assert found["max"] == max(values)


def test_damaged_tokenizer_files_are_told_in_one_line(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path / "damaged")
    (tmp_path / "damaged" / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(EnvironmentFault, match="the tokenizer cannot be loaded"):
        inspect_user(thought(tmp_path / "damaged"))


def test_a_corpus_for_evaluation_only_is_refused(base: Path, tmp_path: Path) -> None:
    place = tmp_path / "chats.jsonl"
    place.write_text('{"turns": []}\n', "utf-8")
    with pytest.raises(UsageError, match="serves evaluation only"):
        inspect_user(thought(base, corpus=f"mirrorbench:{place}"))
