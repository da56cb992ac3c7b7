"""The run folder: resume, torn and damaged lines, other configurations, full disks."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.types import Role
from mimesim.envs.base import AgentMove
from mimesim.errors import DataError, EnvironmentFault, InfraError, UsageError
from mimesim.rollout.engine import EngineConfig, Job, RunSummary, run
from mimesim.rollout.record import task_ref
from mimesim.rollout.store import Paths, Plan, Store, episode_id, read_episodes, run_id
from tests.rollout.toy import ToyAgents, cast, make_task

JOBS = tuple(Job(make_task(number)) for number in range(10))


def plan(jobs: tuple[Job, ...] = JOBS, **identity: Any) -> Plan:
    hashes = {job.task.id: task_ref(job.task).hash for job in jobs}
    pairs = tuple((job.task.id, job.trial) for job in jobs)
    return Plan({"agent": "toy", "seed": 7, **identity}, {"seed": 7}, hashes, pairs)


def go(
    out: Path, jobs: tuple[Job, ...] = JOBS, agents: ToyAgents | None = None, **more: Any
) -> RunSummary:
    store = Store.open(out, plan(jobs, **more.pop("identity", {})), **more)
    try:
        return run(jobs, cast(agents), EngineConfig(seed=7, concurrency=3), store=store)
    finally:
        store.close()


def test_a_folder_and_a_file_name_their_places(tmp_path: Path) -> None:
    folder, file = Paths.of(tmp_path / "a"), Paths.of(tmp_path / "b.jsonl")
    assert folder.episodes == tmp_path / "a" / "episodes.jsonl"
    assert folder.manifest == tmp_path / "a" / "run.json"
    assert file.episodes == tmp_path / "b.jsonl"
    assert file.manifest == tmp_path / "b.run" / "run.json"
    with pytest.raises(UsageError, match="compressed"):
        Paths.of("x.jsonl.gz")


def test_a_second_run_resumes_and_does_nothing(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "er" / "x.jsonl"
    first = go(out)
    before = out.read_bytes()
    second = go(out)
    assert (first.resumed, second.resumed) == (0, 10)
    assert out.read_bytes() == before
    manifest = jsonio.read_json(out.with_suffix(".run") / "run.json")
    assert manifest["counts"]["episodes"] == 10
    assert manifest["finished_at"]
    assert manifest["identity"]["agent"] == "toy"
    assert sorted(p.name for p in out.with_suffix(".run").iterdir()) == [
        "failures.jsonl",
        "log.txt",
        "run.json",
    ]


def test_more_episodes_go_on_from_fewer(tmp_path: Path) -> None:
    go(tmp_path / "r", JOBS[:4])
    more = go(tmp_path / "r")
    whole = go(tmp_path / "s")
    assert more.resumed == 4
    assert [e.seed for e in more.episodes] == [e.seed for e in whole.episodes]
    assert [e.turns[1].content for e in more.episodes] == [
        e.turns[1].content for e in whole.episodes
    ]


def test_a_torn_last_line_is_cut_and_done_again(tmp_path: Path) -> None:
    """C-FILE-06."""
    out = tmp_path / "r"
    whole = {e.id: e.turns for e in go(out).episodes}
    file = out / "episodes.jsonl"
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join(lines[:6]) + b"\n" + lines[6][: len(lines[6]) // 2])
    again = go(out)
    assert again.resumed == 6
    assert any("unfinished last line" in text for text in again.warnings)
    assert file.read_bytes().split(b"\n")[:6] == lines[:6]
    assert {e.id: [t.content for t in e.turns] for e in again.episodes} == {
        key: [t.content for t in turns] for key, turns in whole.items()
    }


def test_a_damaged_complete_line_is_an_error_with_its_number(tmp_path: Path) -> None:
    out = tmp_path / "r"
    go(out)
    file = out / "episodes.jsonl"
    lines = file.read_bytes().split(b"\n")
    lines[2] = lines[2][:40]
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(DataError, match=r"episodes\.jsonl:3"):
        go(out)
    assert file.read_bytes().split(b"\n")[3:] == lines[3:]
    lines[2] = b'{"schema": "mimesim.episode/2", "id": "x"}'
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(DataError, match="newer"):
        go(out)


def test_another_configuration_is_refused_with_the_difference(tmp_path: Path) -> None:
    go(tmp_path / "r")
    with pytest.raises(UsageError, match="agent was 'toy', is 'other'"):
        go(tmp_path / "r", identity={"agent": "other"})
    changed = (Job(make_task(0, talk=5)), *JOBS[1:])
    with pytest.raises(UsageError, match="task 'toy-000' has changed"):
        go(tmp_path / "r", changed)
    forced = go(tmp_path / "r", identity={"agent": "other"}, force=True)
    assert forced.resumed == 10
    manifest = jsonio.read_json(tmp_path / "r" / "run.json")
    assert "agent was 'toy'" in manifest["forced"][0]["difference"]
    fresh = go(tmp_path / "r", identity={"agent": "other"}, overwrite=True)
    assert fresh.resumed == 0


def test_a_strangers_file_is_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "mine.jsonl"
    out.write_text('{"a": 1}\n')
    with pytest.raises(UsageError, match="no manifest"):
        go(out)
    assert out.read_text() == '{"a": 1}\n'


def test_not_counted_episodes_are_done_again(tmp_path: Path) -> None:
    broken = ToyAgents(by_task={"toy-003": (InfraError("lost"),)})
    first = go(tmp_path / "r", agents=broken)
    assert first.counts.by_status == {"completed": 9, "infra_failure": 1}
    assert len(list(jsonio.read_jsonl(tmp_path / "r" / "failures.jsonl"))) == 2
    kept = [line.value["id"] for line in jsonio.read_jsonl(tmp_path / "r" / "episodes.jsonl")]
    second = go(tmp_path / "r")
    assert second.resumed == 9
    assert second.counts.by_status == {"completed": 10}
    after = [line.value["id"] for line in jsonio.read_jsonl(tmp_path / "r" / "episodes.jsonl")]
    assert sorted(after) == sorted(kept)
    assert len(set(after)) == 10
    assert len(list(jsonio.read_jsonl(tmp_path / "r" / "failures.jsonl"))) == 3


def test_costs_of_replaced_attempts_are_not_forgotten(tmp_path: Path) -> None:
    broken = ToyAgents(by_task={"toy-003": (InfraError("lost"),)})
    first = go(tmp_path / "r", agents=broken)
    failures = tmp_path / "r" / "failures.jsonl"
    failures.write_bytes(failures.read_bytes() + b'{"torn')
    second = go(tmp_path / "r")
    # 9 talks of 4 calls and 3 lost attempts of 1; then the tenth talk.
    assert first.usage["user"].cost == 0.5 * (9 * 4 + 3)
    assert second.usage["user"].cost == 0.5 * (10 * 4 + 3)
    assert len(second.failures) == 3


def test_any_text_survives_writing_and_resuming(tmp_path: Path) -> None:
    """C-FILE-01 and C-FILE-02."""
    odd = "line one\nwith \u2028 and \u2029 and \u0085 \U0001f642"
    agents = ToyAgents(by_task={"toy-001": (odd,), "toy-002": ("ok \ud83d done",)})
    go(tmp_path / "r", agents=agents)
    file = tmp_path / "r" / "episodes.jsonl"
    assert file.read_bytes().count(b"\n") == 10
    assert go(tmp_path / "r").resumed == 10
    texts = {e.task.id: e.turns[1].content for e in read_episodes(tmp_path / "r")}
    assert texts["toy-001"] == odd
    assert texts["toy-002"] == "ok \ufffd done"


def test_opaque_tool_text_keeps_a_lone_surrogate(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with jsonio.Appender(path) as out:
        out.append({"tool": "x \ud83d"})
    assert [line.value for line in jsonio.read_jsonl(path)] == [{"tool": "x \ud83d"}]


def test_two_writers_do_not_share_a_folder(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "r", plan())
    try:
        with pytest.raises(EnvironmentFault, match="another process"):
            Store.open(tmp_path / "r", plan())
    finally:
        store.close()
    Store.open(tmp_path / "r", plan()).close()


def test_an_unwritable_place_is_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="cannot write"):
        Store.open(tmp_path / "file" / "r", plan())


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": "mimesim.run/1"}', '{"schema": 3}'])
def test_a_damaged_manifest_says_how_to_go_on(tmp_path: Path, text: str) -> None:
    go(tmp_path / "r")
    (tmp_path / "r" / "run.json").write_text(text)
    with pytest.raises(DataError, match=r"run\.json.*--overwrite"):
        go(tmp_path / "r")
    assert len(read_episodes(tmp_path / "r")) == 10
    assert go(tmp_path / "r", overwrite=True).resumed == 0


def test_places_that_are_folders_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl" / "inside").mkdir(parents=True)
    for more in ({}, {"overwrite": True}):
        with pytest.raises(UsageError, match=r"x\.jsonl"):
            go(tmp_path / "x.jsonl", **more)
    assert (tmp_path / "x.jsonl" / "inside").is_dir()


def test_a_resumption_killed_while_setting_failures_aside_counts_them_once(tmp_path: Path) -> None:
    failing = ToyAgents((InfraError("gone"),) * 9)
    go(tmp_path / "r", JOBS[:2], failing)
    stored = (tmp_path / "r" / "episodes.jsonl").read_bytes()
    go(tmp_path / "r", JOBS[:2], failing)
    told = len((tmp_path / "r" / "failures.jsonl").read_bytes().split(b"\n"))
    (tmp_path / "r" / "episodes.jsonl").write_bytes(stored)  # as if killed before the rewriting
    store = Store.open(tmp_path / "r", plan(JOBS[:2]))
    store.close()
    assert len((tmp_path / "r" / "failures.jsonl").read_bytes().split(b"\n")) == told


FULL = """
import resource, sys
from pathlib import Path
from mimesim.errors import EnvironmentFault
from tests.rollout import test_store as t
resource.setrlimit(resource.RLIMIT_FSIZE, (16000, 16000))
try:
    t.go(Path(sys.argv[1]))
except EnvironmentFault as error:
    sys.exit(f"one line: {error}")
"""


def test_a_full_disk_keeps_what_was_written(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "r")],
        cwd=root,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{root}/src:{root}", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("one line: ")
    assert done.stderr.count("\n") == 1
    assert "cannot write" in done.stderr
    kept = read_episodes(tmp_path / "r")
    assert 0 < len(kept) < 10
    assert (tmp_path / "r" / "episodes.jsonl").read_bytes().endswith(b"\n")
    assert go(tmp_path / "r").resumed == len(kept)


def test_ids_are_known_before_the_run(tmp_path: Path) -> None:
    """A change here breaks resumption of every stored run."""
    assert run_id({"agent": "toy"}) == "7bacfaec49b29061"
    assert episode_id("r", "toy-001", 0) != episode_id("r", "toy-001", 1)
    summary = go(tmp_path / "r")
    expected = [episode_id(run_id(plan().identity), f"toy-{n:03}", 0) for n in range(10)]
    assert [e.id for e in summary.episodes] == expected


def test_the_private_side_is_under_one_key(tmp_path: Path) -> None:
    go(tmp_path / "r", agents=ToyAgents((AgentMove("a", reasoning="my own thought"),)))
    for line in jsonio.read_jsonl(tmp_path / "r" / "episodes.jsonl"):
        public = jsonio.dumps({k: v for k, v in line.value.items() if k != "private"})
        assert "PRIVATE-THOUGHT" not in public
        assert "my own thought" not in public
        assert "secret goal" not in public
        assert "PRIVATE-THOUGHT" in jsonio.dumps(line.value["private"])


def test_resumed_episodes_are_equal_values(tmp_path: Path) -> None:
    first, second = go(tmp_path / "r"), go(tmp_path / "r")
    assert first.episodes == second.episodes
    assert first.episodes[0].turns[0].role is Role.USER
    assert replace(first.episodes[0], private=None) != first.episodes[0]
