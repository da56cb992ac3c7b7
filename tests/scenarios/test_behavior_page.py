"""The page of the docs is what the registry says now."""

from __future__ import annotations

from pathlib import Path

from mimesim.scenarios import behaviors
from mimesim.scenarios.behavior_page import page


def test_the_committed_page_is_current(repository: Path) -> None:
    committed = (repository / "docs" / "behaviors.md").read_text("utf-8")
    assert committed == page(), "run `mimesim behaviors docs`"


def test_everything_that_belongs_to_a_behavior_is_on_it() -> None:
    text = page()
    for behavior in behaviors.everything():
        section = text.partition(f"## {behavior.id} ")[2].partition("\n## ")[0]
        told = behavior.described
        assert behavior.definition in section
        assert told.applies in section
        assert f"**Turns needed:** {behavior.min_turns}." in section
        assert (told.check or "none.") in section
        for words in (*told.params, *told.examples, *told.contrasts.values()):
            assert words in section
