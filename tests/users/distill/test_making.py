"""The scenario file: resumed, refused for another order, judged, counted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.errors import DataError, EnvironmentFault, UnknownNameError, UsageError
from mimesim.judges.load import make_judge
from mimesim.rollout.validate import validate
from mimesim.users.distill.making import Order, Report, make_scenarios, preview
from tests.support.stub_server import StubServer

CHATS: list[Any] = [
    {
        "id": f"c{number}",
        "turns": [
            {"role": "user", "text": f"Hi, I want to return my lamp, bought by m{number}@post.example.org"},
            {"role": "agent", "text": "Sure. What is your order number?"},
            {"role": "user", "text": f"5512{number}"},
        ],
    }
    for number in range(4)
]  # fmt: skip


def write(path: Path, chats: list[Any]) -> Path:
    path.write_text("".join(jsonio.dumps(chat) + "\n" for chat in chats), "utf-8")
    return path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write(tmp_path / "logs.jsonl", CHATS)


def make(logs: Path, judge: str = "", **order: Any) -> Report:
    out = order.pop("out", logs.with_name("scenarios.jsonl"))

    async def run() -> Report:
        made = make_judge(judge, options={"reasks": 0}) if judge else None
        try:
            return await make_scenarios(Order(str(logs), out, judge=judge, **order), made)
        finally:
            if made is not None:
                await made.aclose()

    return asyncio.run(run())


def rows(logs: Path) -> list[Any]:
    return [line.value for line in jsonio.read_jsonl(logs.with_name("scenarios.jsonl"))]


def test_one_scenario_per_conversation_and_the_file_is_sound(logs: Path) -> None:
    report = make(logs)
    assert (report.conversations, report.scenarios, report.withheld) == (4, 4, 4)
    (checked,) = validate(logs.with_name("scenarios.jsonl"))
    assert (checked.kind, checked.count, checked.problems) == ("scenarios", 4, ())
    assert rows(logs)[1]["facts"]["order_id"] == "55121"
    assert "post.example.org" not in logs.with_name("scenarios.jsonl").read_text("utf-8")
    assert report.contacts == {"email": 4}


def test_contacts_may_be_kept(logs: Path) -> None:
    make(logs, keep_contacts=True)
    assert "m1@post.example.org" in rows(logs)[1]["facts"].values()


def test_a_killed_run_is_continued_to_the_same_file(logs: Path) -> None:
    make(logs)
    path = logs.with_name("scenarios.jsonl")
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:50])
    report = make(logs)
    assert (report.resumed, report.scenarios) == (2, 2)
    assert path.read_bytes() == whole


def test_another_order_does_not_continue_a_file(logs: Path) -> None:
    make(logs)
    with pytest.raises(UsageError, match=r"another way.*--overwrite"):
        make(logs, seed=1)
    assert make(logs, seed=1, overwrite=True).scenarios == 4


def test_bad_records_are_counted_and_the_rest_is_made(tmp_path: Path) -> None:
    courtesy = {"id": "x", "turns": [{"role": "user", "text": "thanks, bye"}]}
    path = write(tmp_path / "logs.jsonl", [CHATS[0], CHATS[0], {"id": "y"}, courtesy, CHATS[1]])
    with path.open("ab") as stream:
        stream.write(b'{"id": "cut\n')
    other = {**CHATS[0], "turns": CHATS[1]["turns"]}
    with path.open("a", encoding="utf-8") as stream:
        stream.write(jsonio.dumps(other) + "\n")
    report = make(path)
    assert report.scenarios == 2
    assert report.skipped["no_goal"] == 1
    assert report.skipped["duplicate"] == 1, "the same words again"
    assert report.skipped["duplicate_id"] == 1, "other words"
    assert sum(report.skipped.values()) == 5
    told = [line.value for line in jsonio.read_jsonl(tmp_path / "scenarios.rejects.jsonl")]
    assert [(line["where"].rpartition(":")[2], line["kind"], line["reason"]) for line in told] == [
        ("2", "filtered", "duplicate"),
        ("3", "damaged", told[1]["reason"]),
        ("4", "filtered", "no_goal"),
        ("6", "damaged", "bad_json"),
        ("7", "damaged", "duplicate_id"),
    ]
    assert make(path).scenarios == 0
    again = [line.value for line in jsonio.read_jsonl(tmp_path / "scenarios.rejects.jsonl")]
    assert again == told


def test_where_nothing_is_left_out_there_is_no_file_of_it(logs: Path) -> None:
    stale = logs.with_name("scenarios.rejects.jsonl")
    stale.write_text("{}\n", "utf-8")
    make(logs)
    assert not stale.exists()


def test_the_columns_of_a_table_are_options(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("ticket,who,said\n1,customer,I want to swap a lamp\n1,desk,ok\n", "utf-8")
    columns = {"id": "ticket", "role": "who", "text": "said"}
    out = tmp_path / "s.jsonl"

    def order(options: dict[str, str]) -> Report:
        return asyncio.run(make_scenarios(Order(f"csv:{table}", out, options=options), None))

    assert order(columns).scenarios == 1
    with pytest.raises(DataError, match=r"columns are ticket, who, said"):
        asyncio.run(make_scenarios(Order(f"csv:{table}", tmp_path / "o.jsonl"), None))
    assert not (tmp_path / "o.jsonl").exists()
    assert (tmp_path / "o.rejects.jsonl").exists()


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        make(tmp_path / "missing.jsonl")
    with pytest.raises(UnknownNameError, match="star"):
        make(Path("sstar:x"), out=None)
    with pytest.raises(DataError, match="no conversation"):
        make(write(tmp_path / "empty.jsonl", []))


def test_a_judge_is_recorded_whatever_it_says(logs: Path) -> None:
    claim = {
        "goal": "You want your money back for a lamp.",
        "goal_turn": 0,
        "goal_quote": "return my lamp",
        "facts": [{"key": "made_up", "value": "7", "turn": 2, "quote": "seven"}],
        "outcome": "unclear",
    }
    with StubServer([jsonio.dumps(claim), "what?"]) as server:
        report = make(logs, f"model:openai:stub@{server.url}", limit=2, concurrency=1)
    assert (report.judged["verdict"], report.judged.total()) == (1, 2)
    assert +report.dropped == {"quote_not_in_turn": 1}
    first, second = rows(logs)
    assert first["goal"] == claim["goal"]
    assert first["meta"]["judge"]["dropped"] == {"quote_not_in_turn": 1}
    assert second["meta"]["judge"]["result"] not in ("", "verdict")
    assert second["facts"]["order_id"] == "55121"


def test_a_preview_writes_nothing(logs: Path) -> None:
    assert preview(Order(str(logs), None)).facts["order_id"] == "55120"
    assert list(logs.parent.iterdir()) == [logs]


def test_somebodys_conversations_are_never_overwritten(logs: Path) -> None:
    before = logs.read_bytes()
    with pytest.raises(UsageError, match="not overwritten"):
        make(logs, out=logs, overwrite=True)
    assert logs.read_bytes() == before
    with pytest.raises(UsageError, match="cannot write"):
        make(logs, out=logs.parent, overwrite=True)


def test_a_source_that_cannot_be_read_costs_no_earlier_file(logs: Path) -> None:
    make(logs)
    before = rows(logs)
    with pytest.raises(DataError, match="not found"):
        make(logs.with_name("gone.jsonl"), out=logs.with_name("scenarios.jsonl"), overwrite=True)
    assert rows(logs) == before
    make(logs, overwrite=True, seed=5)
    assert [row["meta"]["distilled"]["seed"] for row in rows(logs)] == [5] * 4


def test_two_processes_do_not_share_a_file(logs: Path) -> None:
    out = logs.with_name("scenarios.jsonl")
    with jsonio.open_locked(out), pytest.raises(EnvironmentFault, match="another process"):
        make(logs)
    assert make(logs).scenarios == 4
    assert make(logs).resumed == 4


def test_a_failure_leaves_no_empty_file(logs: Path) -> None:
    with pytest.raises(DataError):
        make(logs.with_name("gone.jsonl"))
    assert not logs.with_name("scenarios.jsonl").exists()
