"""SOUL: playing its items and putting them together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.bench.suites import layers
from mimesim.bench.suites.base import Inputs, Simulation
from mimesim.bench.suites.goldens.soul import CHECKS
from mimesim.bench.suites.sessions import SessionSet, read_sessions
from mimesim.bench.suites.soul import SUITE
from mimesim.bench.suites.soul_files import FILES
from mimesim.bench.suites.soul_play import items
from mimesim.cli.main import invoke
from mimesim.errors import UsageError
from mimesim.rollout.store import read_episodes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("soul")
    SUITE.simulate(Simulation("scripted:realistic", out, quick=True, seeds=(0, 1)))
    return out


def _score(sessions: SessionSet, **how: Any) -> Any:
    return SUITE.score(Inputs(sessions, draws=100, **how))


def _value(score: Any, name: str) -> float:
    return float(score.metric(name).value.value) / 100


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_printed_tables_come_out_of_their_parts(check) -> None:  # type: ignore[no-untyped-def]
    outcome = check.outcome(None)
    assert outcome.verdict == "passed", outcome.reason


def test_silence_earns_the_floor_and_says_so(run: Path) -> None:
    score = _score(read_sessions(str(run)))
    assert score.roles == {"user": "scripted:realistic", "judge": "rule"}
    assert _value(score, "Sotopia-Hard") == pytest.approx(0.2917, abs=1e-4)
    assert _value(score, "Fantom") == 0
    told = " ".join(score.warnings)
    assert "scores of silence" in told
    assert "AlignX-Hist16" in told
    assert score.metric("micro").per_seed == pytest.approx([100 * _value(score, "micro")] * 2)
    assert score.to_json() == _score(read_sessions(str(run))).to_json()


def test_playing_again_plays_nothing_again(run: Path) -> None:
    before = (run / "episodes.jsonl").read_bytes()
    summary = SUITE.simulate(Simulation("scripted:realistic", run, quick=True, seeds=(0, 1)))
    assert summary.resumed == len(summary.episodes)
    assert (run / "episodes.jsonl").read_bytes() == before
    with pytest.raises(UsageError):
        SUITE.simulate(Simulation("scripted:hostile", run, quick=True, seeds=(0, 1)))


def test_means_weigh_items_files_tasks_and_axes(run: Path) -> None:
    sessions = read_sessions(str(run))
    right = {"fantom", "alignx_demo", "alignx_pair"}
    known = [
        s for s in sessions.sessions if s.task.split("/")[0] in {*right, "alignx_ugc", "socsci210"}
    ]
    made = tuple(replace(s, reward=float(s.task.split("/")[0] in right)) for s in known)
    score = _score(replace(sessions, sessions=made))
    items_of = {
        f: len({s.task for s in made if s.task.startswith(f)})
        for f in ("fantom", "alignx", "socsci210")
    }
    assert items_of == {"fantom": 2, "alignx": 3, "socsci210": 2}
    assert _value(score, "EVAL") == pytest.approx(2 / 4)
    assert _value(score, "micro") == pytest.approx((2 + 2) / 7)
    assert _value(score, "macro27") == pytest.approx(3 / 5)
    assert _value(score, "macro23") == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert _value(score, "macro5") == pytest.approx((1 + 0.5) / 2)
    odyssim = _score(replace(sessions, sessions=made), options={"axis_map": "odyssim"})
    assert _value(odyssim, "EVAL") == pytest.approx((2 / 3 + 0) / 2)


def test_the_sign_of_the_overlap_and_the_raw_scale_come_from_stored_parts(run: Path) -> None:
    sessions = read_sessions(str(run))

    def graded(stem: str, **parts: float) -> SessionSet:
        made = []
        for session in sessions.sessions:
            if session.task.startswith(stem):
                private = {"grading": [{"step": 0, **parts}]}
                made.append(
                    replace(session, reward=0.7, episode=replace(session.episode, private=private))
                )
        return replace(sessions, sessions=tuple(made))

    prism = graded("userllm", overlap=0.2, intent=0.8, end=1.0, human=0.3)
    assert _value(_score(prism), "UserLLM") == pytest.approx(0.7)
    faithful = _score(prism, options={"sign": "faithful"})
    assert _value(faithful, "UserLLM") == pytest.approx((0.2 + 1.0 + 0.3) / 3)
    sotopia = graded("sotopia_hard", raw=-0.3)
    assert _value(_score(sotopia, mode="compat"), "Sotopia-Hard") == pytest.approx(-0.3)
    assert _value(_score(sotopia), "Sotopia-Hard") == pytest.approx(0.7)


def test_a_user_model_without_an_answer_has_zero_and_a_lost_judge_is_no_zero(
    run: Path, tmp_path: Path
) -> None:
    """The user model's failure is a result; a judge's is not (benchmarks.md 1)."""
    lines = []
    for episode in read_episodes(run)[:6]:
        value = episode.to_json()
        value["outcome"] |= (
            {"status": "judge_failure", "reward": None, "success": None}
            if len(lines) % 2
            else {"status": "agent_failure", "reward": 0.0, "success": False}
        )
        value["stop"] |= {
            "reason": "judge_error" if len(lines) % 2 else "agent_error",
            "by": "judge" if len(lines) % 2 else "agent",
        }
        value["turns"] = value["turns"][:1]
        lines.append(jsonio.dumps(value))
    (tmp_path / "e.jsonl").write_text("\n".join(lines) + "\n")
    sessions = read_sessions(str(tmp_path / "e.jsonl"))
    assert len(sessions.sessions) == 3
    assert sessions.left_out == {"judge_failure": 3}
    assert _value(_score(sessions), "micro") == 0
    told = layers.scored(SUITE, Inputs(sessions, draws=100))
    assert any("judge_errors: 3 of 6" in one for one in told.warnings)
    bench = ["bench", "soul", "--episodes", str(tmp_path / "e.jsonl"), "--out", str(tmp_path / "o")]
    assert invoke([*bench, "--boot", "50"]) == 1
    assert invoke([*bench, "--boot", "50", "--max-judge-errors", "0.5"]) == 0


def test_official_files_are_read_by_their_stems(tmp_path: Path) -> None:
    own = Path(__file__).parents[2] / "src/mimesim/envs/tasks/packs/hitom.jsonl"
    (tmp_path / "hitom_val.jsonl").write_bytes(own.read_bytes())
    tasks = items(FILES, str(tmp_path), 3)
    assert [task.id.split("/")[0] for task in tasks] == ["hitom"] * 3
    with pytest.raises(UsageError, match="none of the evaluation files"):
        items(FILES, str(tmp_path / "nothing"), 3)


def test_what_cannot_be_scored_is_told(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no item of SOUL"):
        SUITE.score(Inputs(SessionSet("x", ())))
    with pytest.raises(UsageError, match="axis_map 'mine'"):
        _score(read_sessions(str(run)), options={"axis_map": "mine"})
    for nobody in ("nobody:x", "scripted:realistc"):
        with pytest.raises(UsageError, match="unknown"):
            SUITE.simulate(Simulation(nobody, tmp_path / "n"))
