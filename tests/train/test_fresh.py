"""What both warm starts share: which numbers make no run, and whose a folder is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mimesim.errors import ConfigError, UsageError
from mimesim.train.fresh import FreshConfig, folder_for
from mimesim.train.user_warmstart import SpeakerConfig
from mimesim.train.warmstart import WarmConfig


@pytest.mark.parametrize("kind", [WarmConfig, SpeakerConfig])
@pytest.mark.parametrize(
    "changed", [{"steps": 0}, {"batch": 0}, {"threads": 0}, {"lr": 0.0}, {"muon_lr": -1e-3}]
)
def test_numbers_that_make_no_run(kind: type[FreshConfig], changed: dict[str, Any]) -> None:
    (name,) = changed
    with pytest.raises(ConfigError, match=f"'{name}' cannot be"):
        kind(**changed)


def test_a_speaker_has_a_check_of_its_own() -> None:
    with pytest.raises(ConfigError, match="'max_tokens' cannot be 0"):
        SpeakerConfig(max_tokens=0)


def test_a_folder_is_known_by_what_decides_the_result(tmp_path: Path) -> None:
    mine = WarmConfig(out=tmp_path)
    with folder_for("warm start", mine):
        (tmp_path / "unfinished").mkdir()
    with folder_for("warm start", replace(mine, threads=2, save_every=7)):
        pass
    for kind, other in (("warm start", replace(mine, lr=1e-2)), ("user warm start", mine)):
        with pytest.raises(UsageError, match="other settings"), folder_for(kind, other):
            pass
