"""Trackers of a run: TensorBoard's files, services by their functions, and what is not installed."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mimesim.errors import EnvironmentFault, MissingExtraError, UnknownNameError
from mimesim.models.tiny import TinyConfig, build_tokenizer
from mimesim.train import trackers
from mimesim.train.agent import train_agent
from mimesim.train.trackers import check_trackers, note, open_trackers
from mimesim.train.warmstart import vocabulary
from tests.support.agent_runs import config
from tests.support.rl_runs import save_start

pytestmark = pytest.mark.filterwarnings("ignore")


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """Read TensorBoard's files back."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return {
        tag: {event.step: event.value for event in events.Scalars(tag)}
        for tag in events.Tags()["scalars"]
    }


def test_tensorboard_takes_every_batch_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    (first,) = open_trackers(("auto", "tensorboard"), tmp_path, {"lr": 0.1}, first=1)
    for batch in (1, 2, 3):
        first.log(batch, {"reward": batch / 10})
    first.close()
    (second,) = open_trackers(("tensorboard",), tmp_path, {}, first=3)  # killed after batch 3
    second.log(3, {"reward": 0.9})
    second.close()
    found = scalars(tmp_path / "tracking")["reward"]
    assert found == {1: pytest.approx(0.1), 2: pytest.approx(0.2), 3: pytest.approx(0.9)}


def test_a_run_is_tracked_where_tensorboard_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    small = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=512)
    save_start(tmp_path / "start", build_tokenizer(vocabulary()), small)
    run = config(tmp_path / "start", tmp_path / "out", batches=2, trackers=("auto",))
    result = train_agent(run)
    found = scalars(tmp_path / "out" / "tracking")
    for row in result["curve"]:
        assert found["reward"][int(row["batch"])] == pytest.approx(row["reward"], abs=1e-6)
        assert found["csd/gate_mean"][int(row["batch"])] == pytest.approx(row["csd/gate_mean"])


def test_what_is_not_there_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="tracker 'tensorbord'"):
        check_trackers(("tensorbord",))
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    packages = {"wandb": "wandb", "trackio": "trackio", "tensorboard": '"mimesim[trackers]"'}
    for name, package in packages.items():
        with pytest.raises(MissingExtraError, match=re.escape(f"pip install {package}")) as caught:
            check_trackers((name,))
        assert "\n" not in str(caught.value)
    check_trackers(("auto",))
    assert "tensorboard is not installed" in note(("auto",))
    assert note(()) == ""


def test_auto_without_tensorboard_tracks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    assert open_trackers(("auto",), tmp_path, {}, first=1) == []


class _Recorder(ModuleType):
    """A package with the functions that wandb and trackio share, as their documents have them."""

    def __init__(self, name: str, *, fails: str = "") -> None:
        super().__init__(name)
        self.calls: list[tuple[str, Any]] = []
        self._fails = fails

    def init(
        self, project: str, name: str, config: Mapping[str, Any], resume: Any = None, **more: Any
    ) -> None:
        if self._fails:
            raise RuntimeError(self._fails)
        self.calls.append(("init", (project, name, dict(config), resume, more)))

    def log(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        self.calls.append(("log", (dict(metrics), step)))

    def finish(self) -> None:
        self.calls.append(("finish", None))


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_services_hear_of_every_batch(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = _Recorder(name)
    monkeypatch.setitem(sys.modules, name, service)
    (tracker,) = open_trackers((name,), tmp_path / "run-7", {"lr": 0.1}, first=4)
    tracker.log(4, {"reward": 0.5})
    tracker.close()
    (_, opened), *rest = service.calls
    assert opened[:4] == ("mimesim", "run-7", {"lr": 0.1}, "allow")
    assert rest == [("log", ({"reward": 0.5}, 4)), ("finish", None)]


def test_a_service_that_cannot_start_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", _Recorder("wandb", fails="no key\nsee the web page"))
    with pytest.raises(EnvironmentFault, match="wandb cannot start: no key") as caught:
        open_trackers(("wandb",), tmp_path, {}, first=1)
    assert "\n" not in str(caught.value)
