"""The one ending rule: every known marker, at the very end, in exact spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.dialogue.stop import (
    MARKERS,
    UserAction,
    mentions_marker,
    read_marker,
    usable_marker,
)

ENDS = [marker for marker, action in MARKERS.items() if action is UserAction.END]


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize(("before", "text"), [("", ""), ("ok, bye ", "ok, bye"), ("a\n\n", "a")])
def test_every_known_marker_ends(marker: str, before: str, text: str) -> None:
    read = read_marker(f"{before}{marker}  \n")
    assert (read.text, read.action, read.fault) == (text, MARKERS[marker], False)


def test_the_spellings_of_three_fields_mean_one_thing() -> None:
    """What tau-bench, RealUserSim and UserLM write is one flag."""
    for marker in (ENDS[0], "/close", "<|endconversation|>"):
        assert read_marker(f"thanks {marker}").action is UserAction.END


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize(
    "shape",
    [
        "type {} in box 4?",
        "bye{}",
        "`{}`",
        "ok '{}'",
        "{} thanks",
        "```\n{}\n```",
        "{} {}",
    ],
)
def test_a_marker_anywhere_else_is_a_fault(marker: str, shape: str) -> None:
    assert read_marker(shape.replace("{}", marker)).fault


@pytest.mark.parametrize("marker", MARKERS)
def test_a_near_spelling_is_a_fault_and_no_end(marker: str) -> None:
    other_case = marker.lower() if marker != marker.lower() else marker.upper()
    for near in (other_case, f"bye {other_case}", " ".join(marker)):
        read = read_marker(near)
        assert (read.action, read.fault) == (UserAction.SAY, True)


@pytest.mark.parametrize(
    "text",
    [
        "should the valve be open/close at night",
        "see example.com/close for hours",
        "it says /closed on the door",
        "the path is /close/by",
        "open / close, which one",
        "the /closet is full",
        "we are close to done",
    ],
)
def test_words_of_people_are_no_marker(text: str) -> None:
    read = read_marker(text)
    assert (read.text, read.action, read.fault) == (text, UserAction.SAY, False)
    assert not mentions_marker(text)


def test_only_the_markers_that_hold_are_read() -> None:
    own = {"[[over]]": UserAction.END}
    assert read_marker("bye [[over]]", own).action is UserAction.END
    assert read_marker("bye /close", own).text == "bye /close"


@pytest.mark.parametrize("marker", MARKERS)
def test_known_markers_keep_their_own_rule(marker: str) -> None:
    assert usable_marker(marker)


def test_plain_words_make_no_marker() -> None:
    assert not any(usable_marker(marker) for marker in ("STOP", "#!", "a b c", "", "over and out"))


@given(st.text(), st.sampled_from(sorted(MARKERS)))
def test_what_is_delivered_holds_no_marker_or_is_a_fault(text: str, marker: str) -> None:
    for whole in (text, f"{text} {marker}", f"{marker}{text}"):
        read = read_marker(whole)
        assert read.fault or not mentions_marker(read.text)
        assert read.text in whole
