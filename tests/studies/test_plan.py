"""The plan of the embedded study: who needs whom, which seeds, which sizes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from mimesim.studies.plan import ARMS, CEILING, HELD_OUT, SIZES, StudyConfig, plan_stages, settings
from mimesim.studies.stages import STAGES

OUT = Path("out")


@pytest.mark.parametrize("size", SIZES)
def test_every_stage_is_known_and_needs_earlier_ones(size: str) -> None:
    seen: set[str] = set()
    for stage in plan_stages(SIZES[size], OUT):
        assert stage.kind in STAGES
        assert set(stage.needs) <= seen, stage.name
        assert stage.name not in seen
        seen.add(stage.name)
    folders = [stage.folder for stage in plan_stages(SIZES[size], OUT)]
    assert len(folders) == len(set(folders))


def test_the_study_crosses_warm_starts_seeds_and_arms() -> None:
    stages = plan_stages(SIZES["study"], OUT)
    config = SIZES["study"]
    assert len(config.sft_seeds) >= 2
    assert len(config.rl_seeds) >= 3
    runs = [s for s in stages if s.kind == "rl"]
    assert len(runs) == len(config.sft_seeds) * len(config.rl_seeds) * len(config.arms)
    assert Counter(s.settings["arm"] for s in runs).keys() == set(ARMS)
    scored = [s for s in stages if s.kind == "evaluate"]
    assert len(scored) == len(runs) + len(config.sft_seeds) + 1
    assert [s.settings["arm"] for s in scored if not s.needs] == [CEILING]
    for stage in scored:
        assert set(HELD_OUT) <= set(stage.settings["users"])
        assert stage.settings["seed"] == config.seed


def test_arms_of_a_seed_pair_share_tasks_and_start() -> None:
    runs = [s for s in plan_stages(SIZES["study"], OUT) if s.kind == "rl"]
    shared: dict[tuple[int, int], set[tuple[int, str]]] = {}
    for run in runs:
        pair = (run.settings["sft"], run.settings["rl"])
        shared.setdefault(pair, set()).add((run.settings["seed"], run.settings["init"]))
    assert all(len(found) == 1 for found in shared.values())
    assert len({seed for found in shared.values() for seed, _ in found}) == len(shared)


def test_the_run_seed_moves_every_training() -> None:
    def seeds(seed: int) -> dict[str, int]:
        stages = plan_stages(replace(SIZES["study"], seed=seed), OUT)
        return {s.name: s.settings["seed"] for s in stages if s.kind != "evaluate"}

    first, second = seeds(0), seeds(1)
    assert first.keys() == second.keys()
    assert all(first[name] != second[name] for name in first)


def test_only_the_csd_arm_has_a_weight() -> None:
    assert [name for name, arm in ARMS.items() if arm.alpha > 0] == ["realistic user + CSD"]
    assert ARMS["realistic user + CSD"].user == ARMS["realistic user"].user


def test_the_quick_size_has_no_gate_and_the_others_do() -> None:
    assert SIZES["quick"].gate == 0.0
    assert SIZES["demo"].gate >= 0.95
    assert SIZES["study"].gate == SIZES["demo"].gate


def test_settings_are_plain_values() -> None:
    config = replace(StudyConfig(), seed=4)
    assert settings(config)["seed"] == 4
    assert settings(config)["name"] == "demo"
