"""Verdicts on disk: they resume, they belong to a text and a judge, and failures are asked again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from mimesim import jsonio
from mimesim.dialogue.types import Identity
from mimesim.errors import ContextExceeded, DataError, EnvironmentFault, InfraError
from mimesim.judges.base import Failed, JudgeResult, Skipped, Verdict
from mimesim.judges.stored import MOST_UNREACHABLE, JudgeGoneError, Stored, Verdicts, Work, read

RULE = Identity("rule", "rule")


class Value(BaseModel):
    """A verdict."""

    score: float


class Asked:
    """Gives results in order and counts."""

    def __init__(self, *results: JudgeResult[Any] | Exception) -> None:
        self.results = list(results)
        self.calls = 0

    async def __call__(self) -> JudgeResult[Any]:
        """Give the next one."""
        self.calls += 1
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


def judge(path: Path, *works: Work, who: Identity = RULE) -> tuple[list[Stored], int]:
    with Verdicts(path) as file:
        found = asyncio.run(file.all(works, who))
        return found, file.resumed


def test_what_is_known_is_not_asked_again(tmp_path: Path) -> None:
    path, ask = tmp_path / "v.jsonl", Asked(Verdict(Value(score=0.5), raw="text of the judge"))
    (first,), resumed = judge(path, Work("e1", "k", "t", ask))
    assert (first.state, first.value, resumed) == ("scored", {"score": 0.5}, 0)
    (again,), resumed = judge(path, Work("e1", "k", "t", ask))
    assert (again.value, resumed, ask.calls) == ({"score": 0.5}, 1, 1)
    (line,) = jsonio.read_jsonl(path)
    assert line.value["private"] == {"judge": "text of the judge"}
    assert "raw" not in line.value


def test_another_text_and_another_setting_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    ask = Asked(*(Verdict(Value(score=s)) for s in (0.1, 0.2, 0.3)))
    judge(path, Work("e1", "k", "t", ask))
    (other_text,), _ = judge(path, Work("e1", "k", "t2", ask))
    warm = Identity("rule", "rule", sampling={"temperature": 1.0})
    (other_judge,), _ = judge(path, Work("e1", "k", "t", ask), who=warm)
    assert (other_text.value, other_judge.value) == ({"score": 0.2}, {"score": 0.3})
    assert len(read(path)) == 3


@pytest.mark.parametrize(
    ("result", "state", "reason", "final"),
    [
        (Failed("prose"), "failed", "prose", False),
        (Skipped("refused"), "refused", "refused", True),
        (Skipped("no_generated_turn"), "skipped", "no_generated_turn", True),
        (InfraError("down"), "failed", "unreachable", False),
        (ContextExceeded("long", party="judge"), "failed", "context_exceeded", False),
    ],
)
def test_no_verdict_is_no_number_and_a_failure_is_asked_again(
    tmp_path: Path, result: JudgeResult[Value] | Exception, state: str, reason: str, *, final: bool
) -> None:
    path, ask = tmp_path / "v.jsonl", Asked(result, Verdict(Value(score=1)))
    (first,), _ = judge(path, Work("e1", "k", "t", ask))
    assert (first.state, first.reason, first.value) == (state, reason, None)
    (second,), _ = judge(path, Work("e1", "k", "t", ask))
    assert second.state == (state if final else "scored")


def test_a_wrong_key_ends_the_run_with_its_one_line(tmp_path: Path) -> None:
    ask = Asked(EnvironmentFault("the key is wrong"))
    with pytest.raises(EnvironmentFault, match="the key is wrong"):
        judge(tmp_path / "v.jsonl", Work("e", "k", "t", ask))


def test_a_torn_tail_is_cut_and_a_damaged_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    judge(path, Work("e1", "k", "t", Asked(Verdict(Value(score=1)))))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    _, resumed = judge(path, Work("e1", "k", "t", Asked()))
    assert resumed == 1
    assert path.read_bytes() == whole
    path.write_bytes(whole + b'{"schema": "mimesim.verdict/1", "item": "e2"}\n')
    with pytest.raises(DataError, match=r"v\.jsonl:2"):
        judge(path)


def test_order_and_sample_tell_verdicts_apart_and_old_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    ask = Asked(*(Verdict(Value(score=s)) for s in (0.1, 0.2, 0.3)))
    judge(path, Work("e1", "k", "t", ask))
    works = (Work("e1", "k", "t", ask, order="AB"), Work("e1", "k", "t", ask, order="AB", sample=1))
    found, _ = judge(path, *works)
    assert [(one.order, one.sample) for one in found] == [("AB", 0), ("AB", 1)]
    assert [(one.order, one.sample) for one in read(path)] == [("", 0), ("AB", 0), ("AB", 1)]
    first = next(iter(jsonio.read_jsonl(path))).value
    assert not {"order", "sample"} & first.keys(), "lines of plain questions stay as they were"
    with pytest.raises(DataError, match="sample"):
        Stored.from_json(first | {"sample": -1}, "here")


class Share(BaseModel):
    """A verdict with a range."""

    score: float = Field(ge=0, le=1)


def test_a_stored_value_outside_the_schema_is_no_verdict_and_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    ask = Asked(Verdict(Value(score=1e308)), Verdict(Share(score=0.5)))
    work = Work("e1", "k", "t", ask, schema=Share)
    (first,), _ = judge(path, work)
    assert (work.checked(first).state, work.checked(first).value) == ("failed", None)
    (second,), resumed = judge(path, work)
    assert (second.value, resumed) == ({"score": 0.5}, 0)
    assert judge(path, work)[1] == 1


def test_one_process_at_a_time_asks_for_a_file(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    with Verdicts(path), pytest.raises(EnvironmentFault, match="another process"):
        Verdicts(path)
    Verdicts(path).close()
    assert [file.name for file in tmp_path.iterdir()] == ["v.jsonl"]


def test_a_judge_that_is_gone_ends_the_judging_and_keeps_what_it_said(tmp_path: Path) -> None:
    path, many = tmp_path / "v.jsonl", MOST_UNREACHABLE
    results = [InfraError("down")] * (many - 1) + [Verdict(Value(score=1))]
    ask = Asked(*results, *[InfraError("500: boom")] * 2 * many)
    works = [Work(f"e{i}", "k", "t", ask) for i in range(3 * many)]
    with Verdicts(path) as file, pytest.raises(JudgeGoneError, match="500: boom") as gone:
        asyncio.run(file.all(works, RULE, concurrency=1))
    assert gone.value.exit_code == 1
    assert [one.state for one in read(path)].count("scored") == 1
    assert ask.calls == 2 * many, "nobody is asked any more"
