"""Reading answers: tags, letters, whole words, lists kept as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.envs.tasks import answers


@pytest.mark.parametrize(
    ("said", "inside"),
    [
        ("<answer> B </answer>", "B"),
        ("first <answer>A</answer> then <answer>B</answer>", "A"),
        ("<ANSWER>c</ANSWER>", "c"),
        ("<think><answer>A</answer> or so</think><answer>B</answer>", "B"),
        ("<answer>two\nlines</answer>", "two\nlines"),
        ("B", None),
        ("<answer>B", None),
        ("<think>never closed <answer>A</answer>", None),
    ],
)
def test_the_first_tag_outside_the_reasoning_counts(said: str, inside: str | None) -> None:
    assert answers.tagged(said) == inside


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ("<answer>b</answer>", "B"),
        ("<answer>B.</answer>", None),
        ("<answer>A or B</answer>", None),
        ("<answer>E</answer>", None),
        ("<answer></answer>", None),
        ("the answer is B", None),
    ],
)
def test_a_letter_is_the_whole_answer(said: str, chosen: str | None) -> None:
    assert answers.letter(said, "ABCD") == chosen


def test_where_case_matters_a_small_letter_is_none() -> None:
    assert answers.letter("<answer>a</answer>", "AB", either_case=False) is None


@pytest.mark.parametrize(
    ("needle", "text", "found"),
    [
        ("Al", "al and Bo", True),
        ("Al", "Alice", False),
        ("tin bucket", "in the Tin Bucket.", True),
        ("", "anything", False),
        ("Ä", "ä!", True),
    ],
)
def test_names_stand_as_whole_words(needle: str, text: str, found: bool) -> None:
    assert answers.names(needle, text) is found


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"])), max_size=4))
def test_a_python_list_kept_as_text_is_read_back(items: list[str]) -> None:
    assert answers.as_list(str(items)) == items


@pytest.mark.parametrize(
    "text", ["__import__('os')", "['a', x]", "['a' 'b'", "just words", "[1 2]"]
)
def test_what_is_no_list_stays_as_it_is_and_nothing_is_run(text: str) -> None:
    assert answers.as_list(text) == text


def test_json_lists_are_read() -> None:
    assert answers.as_list('["a", "b"]') == ["a", "b"]


def test_token_f1_drops_articles_and_punctuation() -> None:
    assert answers.token_f1("The old mill", "an old, mill!") == 1.0
    assert answers.token_f1("old mill", "new mill") == 0.5
    assert answers.token_f1("mill", "") == 0.0


def test_raw_fields_drops_empty_cells_at_any_depth_and_unfolds_raw() -> None:
    extra = {"a": None, "raw": '{"b": {"c": null, "d": [{"e": null, "f": 1}]}}', "g": 0}
    assert answers.raw_fields(extra) == {"g": 0, "b": {"d": [{"f": 1}]}}
