"""What is learnt and what is held out: by split, by group, by corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.train.material import Material, Wanted, gather, read_corpus
from tests import tiny

TOKENIZER = tiny.tokenizer()


def wanted(corpus: Path, **changes: Any) -> Wanted:
    base: dict[str, Any] = {
        "corpus": str(corpus),
        "stage": "midtrain",
        "reactions": False,
        "limit": 0,
        "token_budget": 0,
        "held_out_share": 0.5,
        "eval_conversations": 100,
        "validation_conversations": 0,
        "max_length": 500,
        "seed": 0,
    }
    return Wanted(**{**base, **changes})


def made(given: Wanted) -> Material:
    return gather(TOKENIZER, given, read_corpus(given))


def logs(path: Path, people: int, each: int) -> Path:
    with jsonio.Appender(path) as out:
        for person in range(people):
            for talk in range(each):
                turns = [
                    {"role": "user", "text": f"hello {person} {talk}"},
                    {"role": "agent", "text": "yes"},
                ]
                out.append({"id": f"c{person}.{talk}", "user_key": f"p{person}", "turns": turns})
    return path


def test_conversations_of_one_person_never_part(tmp_path: Path) -> None:
    found = made(wanted(logs(tmp_path / "logs.jsonl", people=12, each=5)))
    held = {dialogue.id for dialogue in found.held_dialogues}
    learnt = {row.id for row in found.train.rows}
    assert len(held) + len(learnt) == 60
    people = [{name.partition(".")[0] for name in part} for part in (held, learnt)]
    assert all(people)
    assert not people[0] & people[1]
    assert held.isdisjoint(learnt)


def test_a_budget_takes_rows_until_it_is_reached(tmp_path: Path) -> None:
    place = logs(tmp_path / "logs.jsonl", people=12, each=5)
    whole = made(wanted(place)).train
    few = made(wanted(place, token_budget=150)).train
    sizes = [len(row.input_ids) for row in few.rows]
    assert sum(sizes) >= 150 > sum(sizes[:-1])
    assert [row.id for row in few.rows] == [row.id for row in whole.rows][: len(few.rows)]
