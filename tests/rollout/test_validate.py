"""Checking files before anything is run with them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from mimesim.rollout.validate import validate


def test_a_manual_is_checked_as_one(tmp_path: Path) -> None:
    whole = (files("mimesim.scenarios.packs.company") / "manual.toml").read_text("utf-8")
    sound, broken = tmp_path / "sound.toml", tmp_path / "broken.toml"
    sound.write_text(whole, "utf-8")
    broken.write_text(whole.replace("[[requests]]", "[[request]]"), "utf-8")
    (good,), (bad,) = validate(sound), validate(broken, "manual")
    assert (good.kind, good.problems) == ("manual", ())
    assert good.count > 10
    assert "broken.toml" in bad.problems[0]
