"""The folder of a training: one training, one process, whole checkpoints, full disks."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from mimesim import jsonio
from mimesim.errors import DataError, EnvironmentFault, UsageError
from mimesim.train.folder import newest_checkpoint, training_folder

SETTINGS = {"kind": "user", "lr": 1e-3, "nested": {"a": [1, 2]}}


def hold(out: Path, **changed: object) -> None:
    with training_folder(out, {**SETTINGS, **changed}):
        pass


def checkpoint(trainer: Path, step: int, mark: str = "mimesim.json") -> Path:
    folder = trainer / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    save_file({"w": torch.ones(64)}, folder / "model.safetensors")
    torch.save({"step": step}, folder / "optimizer.pt")
    jsonio.write_json(folder / mark, {"step": step})
    return folder


def test_a_folder_belongs_to_its_settings(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "run"
    hold(out)
    hold(out)
    with pytest.raises(
        UsageError, match=r"other settings: lr was 0\.001, is 0\.01.*choose another"
    ):
        hold(out, lr=1e-2)
    with pytest.raises(UsageError, match=r"kind was 'user', is 'agent' .and 1 more."):
        hold(out, kind="agent", more=1)
    with pytest.raises(UsageError, match=r"nested\.a was \[1, 2\], is \[3\];"):
        hold(out, nested={"a": [3]})
    with training_folder(out, {**SETTINGS, "lr": 1e-2}, fresh=True):
        pass
    with pytest.raises(UsageError, match="other settings"):
        hold(out)


def test_a_training_that_came_to_nothing_does_not_keep_the_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError), training_folder(tmp_path, SETTINGS):
        raise DataError("a mistyped name")
    other = {**SETTINGS, "lr": 1e-2}
    with pytest.raises(DataError), training_folder(tmp_path, other):  # noqa: PT012 - the order is it
        jsonio.write_json(tmp_path / "before.json", {})
        raise DataError("after the first hour")
    with pytest.raises(UsageError, match="other settings"):
        hold(tmp_path)


def test_what_a_start_made_goes_with_it_unless_something_was_learnt(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("stays")
    other = {**SETTINGS, "lr": 1e-2}

    def fail(settings: dict[str, object]) -> None:
        for name in ("tracking", "trainer"):
            (tmp_path / name).mkdir(exist_ok=True)
        jsonio.write_json(tmp_path / "frozen.json", {})
        raise EnvironmentFault("the judge is down")

    with pytest.raises(EnvironmentFault), training_folder(tmp_path, SETTINGS):
        fail(SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(EnvironmentFault), training_folder(tmp_path, other):  # noqa: PT012 - as above
        checkpoint(tmp_path / "trainer", 1)
        fail(other)
    assert (tmp_path / "tracking").is_dir()
    with pytest.raises(UsageError, match="other settings"):
        hold(tmp_path)
    taken = tmp_path / "mine.txt"
    with pytest.raises(EnvironmentFault, match="a file stands where a folder should be"):
        hold(taken)
    assert taken.read_text() == "stays"


def test_two_processes_cannot_train_in_one_folder(tmp_path: Path) -> None:
    with training_folder(tmp_path, SETTINGS), pytest.raises(EnvironmentFault, match="another proc"):
        hold(tmp_path)
    hold(tmp_path)


def test_the_newest_whole_checkpoint_is_taken(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path, "mimesim.json") is None
    checkpoint(tmp_path, 9)
    best = checkpoint(tmp_path, 10)
    assert newest_checkpoint(tmp_path, "mimesim.json") == best
    (checkpoint(tmp_path, 11) / "mimesim.json").unlink()
    (checkpoint(tmp_path, 12) / "mimesim.json").write_text('{"step": ')
    assert newest_checkpoint(tmp_path, "mimesim.json") == best


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt"])
@pytest.mark.parametrize("keep", [0, 40, -10])
def test_a_damaged_checkpoint_is_named_with_the_mend(tmp_path: Path, name: str, keep: int) -> None:
    checkpoint(tmp_path, 9)
    damaged = checkpoint(tmp_path, 10) / name
    damaged.write_bytes(damaged.read_bytes()[:keep])
    with pytest.raises(EnvironmentFault) as caught:
        newest_checkpoint(tmp_path, "mimesim.json")
    told = str(caught.value)
    assert str(damaged) in told
    assert f"remove {damaged.parent}" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    "trouble",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "model.safetensors"),
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 845 vs 843"),
        RuntimeError("PytorchStreamWriter failed writing file data/3: file write failed"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_every_library_tells_a_full_disk_in_one_line(tmp_path: Path, trouble: Exception) -> None:
    told = pytest.raises(EnvironmentFault, match=r"cannot write: .*free space")
    with told, training_folder(tmp_path, SETTINGS):
        raise trouble


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    for error in (RuntimeError("shapes differ"), FileNotFoundError(2, "x"), DataError("odd")):
        with pytest.raises(type(error)) as caught, training_folder(tmp_path, SETTINGS):
            raise error
        assert caught.value is error


@pytest.mark.parametrize("name", ["README.md", "config.json", "model.safetensors", "mimesim.json"])
@pytest.mark.parametrize("fresh", [False, True])
def test_what_no_training_has_written_is_not_overwritten(
    tmp_path: Path, name: str, fresh: bool
) -> None:
    (tmp_path / name).write_text("somebody's", "utf-8")
    with (
        pytest.raises(UsageError, match="no training has written it"),
        training_folder(tmp_path, SETTINGS, fresh=fresh),
    ):
        pass
    assert not (tmp_path / "training.json").exists()
    (tmp_path / name).unlink()
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    hold(tmp_path)
