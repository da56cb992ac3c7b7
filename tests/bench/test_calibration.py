"""Calibration: gaps by difficulty, behaviors that go with them, and the fitted mixture."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.bench.calibration.causes import Labeled, causes
from mimesim.bench.calibration.fitting import Kind, as_users, fit
from mimesim.bench.calibration.gaps import gaps
from mimesim.bench.calibration.run import SUITE, Asked, calibrate
from mimesim.bench.calibration.sides import Side, own_difficulty, side_of
from mimesim.bench.suites.base import Inputs
from mimesim.bench.suites.difficulty import read_difficulty
from mimesim.bench.suites.sessions import Session, SessionSet
from mimesim.cli.main import invoke
from mimesim.dialogue.types import Role
from mimesim.errors import DataError, UsageError


def _side(name: str, *runs: dict[str, float]) -> Side:
    return Side(name, runs, {})


def _sessions(name: str, outcomes: dict[str, Any], trial: int = 0) -> SessionSet:
    turns = ((Role.USER, "hello"), (Role.AGENT, "yes?"))
    made = tuple(
        Session(f"{name}-{task}-{trial}", turns, task=task, trial=trial, success=value, user=name)
        for task, value in outcomes.items()
    )
    return SessionSet(name, made)


def test_equal_rates_in_opposite_bins_are_not_calibrated() -> None:
    # benchmarks.md 18.5: both rates are .75, the error is .5
    sim = _side("sim", {"a": 1, "b": 1, "c": 0, "e": 1})
    human = _side("human", {"a": 0, "b": 1, "c": 1, "e": 1})
    found = gaps(sim, human, {"a": 0.1, "b": 0.5, "c": 0.5, "e": 0.95}, draws=200)
    assert found.ece == pytest.approx(0.5)
    assert found.overall.value == 0
    assert [(b.low, b.tasks, b.gap.value) for b in found.bins] == [
        (0, 1, 1),
        (0.4, 2, -0.5),
        (0.8, 1, 0),
    ]


def test_what_one_side_lacks_is_counted() -> None:
    sim = _side("sim", {"a": 1, "b": 1, "only": 0})
    human = _side("human", {"a": 0, "b": 1, "other": 1, "odd": 1})
    found = gaps(sim, human, {"a": 0.5}, draws=50)
    assert (found.common, found.only_simulated, found.only_human, found.unknown) == (1, 1, 2, 1)
    with pytest.raises(UsageError, match="no task is common"):
        gaps(sim, _side("human", {"z": 1}), {"z": 0.5})


def test_outcomes_that_are_unknown_or_doubled() -> None:
    side = side_of(_sessions("s", {"a": True, "b": None, "": True}))
    assert side.runs == ({"a": 1.0},)
    assert side.left_out == {"no_outcome": 1, "no_task": 1}
    twice = _sessions("s", {"a": True}).sessions * 2
    with pytest.raises(DataError, match="trial 0 of task 'a' occurs twice"):
        side_of(SessionSet("s", twice))
    with pytest.raises(UsageError, match="no conversation with a task"):
        side_of(_sessions("s", {"a": None}))
    with pytest.raises(UsageError, match=r'2 no_outcome.*"outcome": {"task"'):
        side_of(_sessions("s", {"a": None, "b": None}))


def test_own_bins_come_with_a_warning() -> None:
    rates, warning = own_difficulty(_side("s", {"a": 1}, {"a": 0}), _side("h", {"a": 0, "b": 1}))
    assert rates == {"a": pytest.approx(1 / 3), "b": 1}
    assert "as few as 1 of a task" in warning


@pytest.mark.parametrize("value", [{}, {"a": 2}, {"difficulty": {"a": "x"}}, {"a": True}])
def test_a_bad_difficulty_file_is_named(tmp_path: Path, value: Any) -> None:
    file = tmp_path / "d.json"
    jsonio.write_json(file, value)
    with pytest.raises(DataError, match="difficult"):
        read_difficulty(file)


def test_a_behavior_that_people_show_and_the_simulator_does_not_explains_the_gap() -> None:
    rng = random.Random(0)
    human, simulated = [], []
    for task in range(400):
        shows = rng.random() < 0.5
        human.append(
            Labeled(
                str(task),
                rng.random() < (0.3 if shows else 0.9),
                frozenset(["B4"] if shows else []),
            )
        )
        simulated.append(
            Labeled(str(task), rng.random() < 0.9, frozenset(["B9"] if rng.random() < 0.3 else []))
        )
    found = {one.behavior: one for one in causes(simulated, human, ["B4", "B9", "B1"], draws=300)}
    assert set(found) == {"B4", "B9"}
    mix = found["B4"].mix
    assert mix.value == pytest.approx(0.3, abs=0.06)
    assert mix.low is not None
    assert mix.low > 0.2
    assert (
        found["B9"].mix.value is None
    )  # nobody among the people shows it, so its effect is unknown


def test_the_mixture_of_the_people_is_found_and_checked_on_other_tasks() -> None:
    rng = random.Random(1)
    easy, hard = 0.9, 0.2
    tasks = [f"t{i}" for i in range(600)]
    human = {task: float(rng.random() < 0.3 * easy + 0.7 * hard) for task in tasks}
    rows = [
        Kind(task, kind, rng.random() < (easy if kind == "neutral" else hard))
        for task in tasks
        for kind in ("neutral", "neutral", "B4")
    ]
    found = fit(rows, human, dict.fromkeys(tasks, 0.5), seed=3)
    assert found.helps
    assert found.in_reach
    assert found.weights["B4"] == pytest.approx(0.7, abs=0.07)
    assert found.fitted == pytest.approx(found.human, abs=0.03)
    assert 'name = "scripted:B4"\nweight = 0.7' in as_users(found)


def test_a_rate_that_no_mixture_reaches_is_told() -> None:
    rows = [Kind(f"t{i}", kind, True) for i in range(20) for kind in ("neutral", "B1")]
    found = fit(rows, {f"t{i}": 0.0 for i in range(20)}, {f"t{i}": 0.5 for i in range(20)})
    assert not found.in_reach
    assert found.error_after == 1
    with pytest.raises(UsageError, match="only 1 kinds"):
        fit(rows[::2], {f"t{i}": 0.0 for i in range(20)}, {f"t{i}": 0.5 for i in range(20)})


def test_the_suite_names_both_sides_and_the_floor() -> None:
    sim = _sessions("sim", {f"t{i}": i % 2 == 0 for i in range(30)})
    human = _sessions("human", {f"t{i}": i % 3 == 0 for i in range(30)})
    score = SUITE.score(Inputs(sim, human, draws=100))
    assert score.roles["user"] == "sim"
    assert score.roles["people"] == "human"
    assert score.floors[0].value.value is not None
    assert score.to_json() == SUITE.score(Inputs(sim, human, draws=100)).to_json()
    with pytest.raises(UsageError, match="compares with people"):
        SUITE.score(Inputs(sim))


def test_the_verb_writes_record_and_plot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for user, seed in (("realistic", 1), ("hostile", 1)):
        run = "run --gym support-desk --agent scripted:patient --episodes 40 --quiet"
        assert (
            invoke(
                [
                    *run.split(),
                    "--user",
                    f"scripted:{user}",
                    "--seed",
                    str(seed),
                    "--out",
                    str(tmp_path / user),
                ]
            )
            == 0
        )
    out = tmp_path / "cal"
    told = ["calibrate", "--sim", str(tmp_path / "realistic"), "--human", str(tmp_path / "hostile")]
    assert invoke([*told, "--out", str(out), "--boot", "100", "--json"]) == 0
    found = jsonio.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["gaps"]["common"] == 40
    assert found["behaviors"]
    whole = jsonio.read_json(out / "calibration.json")
    assert whole["gaps"] == found["gaps"]
    assert "by_key" in whole["score"]
    assert "by_key" not in found["score"]  # every task's name: thousands of lines on a terminal
    ET.parse(out / "reliability.svg")  # a drawing that browsers can read
    assert (out / "labels.jsonl").read_text().count("\n") == 80


def test_trials_of_one_file_are_two_sides(tmp_path: Path, test_data: Path) -> None:
    # benchmarks.md 18.4: the error of trials 0 and 2 of the airline runs is .10
    folder = test_data / "tau_bench"
    runs = str(folder / "gpt4o_airline_trajectories.jsonl")
    asked = Asked(runs, runs, 2, 0, folder / "tau_usi_difficulty.json", labeler="", draws=100)
    found = calibrate(asked, tmp_path)
    assert found.gaps.ece == pytest.approx(0.10)
    assert found.gaps.common == 50
    assert "only 0 kinds" in found.no_fit
    with pytest.raises(UsageError, match="no conversation of trial 9"):
        calibrate(Asked(runs, runs, 9, 0, labeler=""), tmp_path)


def _log(path: Path, said: str, outcomes: list[bool]) -> str:
    """Write own logs that count their conversations from 0, as logs of two sources may."""
    rows = [
        {
            "id": f"c{i}",
            "turns": [{"role": "user", "text": said}, {"role": "agent", "text": "Let me look."}],
            "outcome": {"task": f"t{i}", "success": won},
        }
        for i, won in enumerate(outcomes)
    ]
    path.write_text("".join(jsonio.dumps(row) + "\n" for row in rows))
    return str(path)


def test_labels_of_files_that_use_the_same_ids_stay_apart(tmp_path: Path) -> None:
    rude = "This is ridiculous, you are useless. I am furious! I want your manager NOW!"
    human = _log(tmp_path / "people.jsonl", rude, [i % 2 == 0 for i in range(20)])
    sim = _log(tmp_path / "sim.jsonl", "hello, where is my order?", [True] * 20)
    found = calibrate(Asked(sim, human, draws=50), tmp_path / "out")
    shares = {one.behavior: (one.simulated.value, one.human.value) for one in found.causes}
    assert shares
    assert all(share == (0, 1) for share in shares.values())
    assert not any("both sides" in told for told in found.score.warnings)
    same = calibrate(Asked(human, human, labeler="", draws=50), tmp_path / "same")
    assert any("20 conversations stand on both sides" in told for told in same.score.warnings)


def test_a_map_far_from_both_sides_is_told_and_swapped_outcomes_need_none(tmp_path: Path) -> None:
    rng = random.Random(2)
    sim, human = (
        _sessions(name, {f"t{i}": rng.random() < 0.5 for i in range(60)}) for name in ("s", "h")
    )
    jsonio.write_json(tmp_path / "lie.json", {f"t{i}": 0.99 * (i % 2) for i in range(60)})
    lie = {"difficulty": str(tmp_path / "lie.json")}
    told = SUITE.score(Inputs(sim, human, draws=50, options=lie))
    assert any("points or more from the success of both sides" in one for one in told.warnings)
    honest = SUITE.score(Inputs(sim, human, draws=50, options={**lie, "null": "swapped"}))
    assert not any("points or more" in one for one in honest.warnings)
    assert (honest.floors[0].value.value or 0) > 3 * (told.floors[0].value.value or 0)
    with pytest.raises(UsageError, match="needs frozen ones"):
        SUITE.score(Inputs(sim, human, options={"null": "difficulty"}))
    with pytest.raises(UsageError, match="null is 'x'"):
        SUITE.score(Inputs(sim, human, options={"null": "x"}))


def test_uneven_trials_weigh_by_their_tasks() -> None:
    sim = _side("sim", {f"t{i}": 1.0 for i in range(8)}, {"t0": 0.0, "t1": 0.0})
    human = _side("human", {f"t{i}": 1.0 for i in range(8)})
    found = gaps(sim, human, {f"t{i}": 0.9 for i in range(8)}, draws=10)
    assert found.ece == pytest.approx(0.2)


def test_kinds_that_met_other_tasks_are_compared_inside_bins() -> None:
    """A kind that only met hard tasks looks hard, and is not."""
    tasks = [f"t{i}" for i in range(200)]
    difficulty = {task: 0.1 if i % 2 else 0.9 for i, task in enumerate(tasks)}
    ends = {
        task: float(i % 20 == 1 or (i % 2 == 0 and i % 20 != 0)) for i, task in enumerate(tasks)
    }
    rows = [
        Kind(task, "neutral" if i % 2 else "B4", ends[task] == 1) for i, task in enumerate(tasks)
    ]
    found = fit(rows, ends, difficulty, draws=100)
    assert found.reach == pytest.approx((0.5, 0.5))
    assert found.miss == pytest.approx(0)
    assert not found.helps


def test_a_mixture_is_said_to_help_only_beyond_chance() -> None:
    """Where simulated people are as people are, nothing is left to gain."""
    helped = 0
    for seed in range(12):
        rng = random.Random(seed)
        tasks = [f"t{i}" for i in range(120)]
        rows = [Kind(task, rng.choice(("neutral", "B4")), rng.random() < 0.5) for task in tasks]
        human = {task: float(rng.random() < 0.5) for task in tasks}
        helped += fit(rows, human, dict.fromkeys(tasks, 0.5), seed=seed, draws=200).helps
    assert helped <= 1
