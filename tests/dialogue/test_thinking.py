"""Think-splitting: every shape, and the law that a marked thought never reaches the public text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.dialogue.thinking import has_tag, has_trace, is_blank, join, split, split_agent
from mimesim.dialogue.types import Thought

SHAPES = [
    ("<think>r</think>a", "r", "a", True),
    ("r</think>a", "r", "a", True),
    ("a<think>r", "r", "a", False),
    ("<think>r", "r", "", False),
    ("<think>r</think>", "r", "", False),
    # C-LEAK-04
    ("<think>a<think>b</think>c</think>Fine, book it.", "a\n\nb\n\nc", "Fine, book it.", True),
    ("a<think>b</think>c</think>d", "a\n\nb\n\nc", "d", True),
    ("x<think>a</think>b</think>c", "x\n\na\n\nb", "c", True),
    ("<think>one</think>hello <think>two</think>there", "one\n\ntwo", "hello there", True),
    ("<seed:think>r</seed:think>a", "r", "a", True),
    ("< THINK >r</ Think >a", "r", "a", True),
    ("<thinking>r</thinking>a", "r", "a", True),
    ("\u25c1think\u25b7r\u25c1/think\u25b7a", "r", "a", True),
    ("a\u25c1think\u25b7r", "r", "a", False),
    ("<longcat_think>r</longcat_think>a", "r", "a", True),
    ("<mm:think>r</mm:think>a", "r", "a", True),
    ("<think_fast>r</think_fast>a", "r", "a", True),
    ("analysisWe saw r.assistantfinala", "We saw r.", "a", True),
    ("analysisWe saw r.", "We saw r.", "", False),
    ("<|channel|>analysis<|message|>r<|channel|>analysis<|message|>s<|channel|>final<|message|>a",
     "r\n\ns", "a", True),
    ("<think>\n\n</think>\n\nhi", "", "hi", True),
    ("<think/>hi", "", "hi", True),
    ("<think>a <think> b</think> still thinking", "a\n\nb\n\nstill thinking", "", False),
    ("<think>r</think>\u200b \u3164", "r", "\u200b \u3164", False),
    ("stay vague about the date</think>Is there a cheaper one?",
     "stay vague about the date", "Is there a cheaper one?", True),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "thought", "text", "complete"), SHAPES)
def test_shapes(raw: str, thought: str, text: str, complete: bool) -> None:
    parts = split(raw)
    assert parts.thought is not None
    assert (parts.thought.reveal(), parts.text, parts.complete) == (thought, text, complete)


@pytest.mark.parametrize(
    "text",
    [
        "How much is the blue one?",
        "is 3 < 5 and 7 > 2, right?",
        "  two  \n",
        "<b>x</b>",
        "analysis of the bill, please",
        "analysis_2.pdf is what you sent",
        "I think <this> is it",
        "",
    ],
)
def test_text_without_tags_is_unchanged(text: str) -> None:
    assert split(text).text == text
    assert split(text).thought is None
    assert split(text, thinking=False).complete


def test_cut_thought_without_any_tag_is_never_spoken() -> None:
    raw = "The customer wants a cheaper plan so the next thing"
    parts = split(raw, thinking=True, finish_reason="length")
    assert (parts.text, parts.complete) == ("", False)
    assert split(raw, thinking=True).text == raw
    assert split(raw, thinking=False, finish_reason="length").complete


def test_prefilled_opener() -> None:
    assert split("only thought, stopped", prefilled=True).complete is False
    assert split("only thought, stopped", prefilled=True).text == ""
    for raw in ("r</think>a", "<think>r</think>a"):
        parts = split(raw, prefilled=True)
        assert parts.thought is not None
        assert (parts.thought.reveal(), parts.text, parts.complete) == ("r", "a", True)


def test_reasoning_in_a_field_of_its_own_goes_first() -> None:
    parts = split("<think>b</think>hi", thinking=True, reasoning=Thought("a"))
    assert parts.thought is not None
    assert parts.thought.reveal() == "a\n\nb"
    assert split("", reasoning=Thought("a")).complete is False
    assert split("hi", thinking=True, finish_reason="length", reasoning=Thought("a")).complete


def test_agents_pass_the_same_splitter() -> None:
    assert split_agent("<think>plan</think>ask order number") == ("ask order number", "plan", True)
    assert split_agent("ask <think>plan").complete is False


@pytest.mark.parametrize("run", ["<", " ", "< ", "think", "<think", "\u25c1", "assistantfina", "/"])
def test_long_runs_take_no_time(run: str) -> None:
    started = time.perf_counter()
    assert not has_trace("x" + run * 20_000) or "<think" in run
    assert time.perf_counter() - started < 3


def test_blank_is_unicode_aware() -> None:
    assert is_blank(" \n\u200b\u00ad\ufeff\u2800\u3164")
    assert not is_blank(".")


plain = st.text(st.characters(exclude_characters="<>", exclude_categories=["Cs"]), max_size=30)
thoughts = plain.map(lambda s: f"ZQX{s}ZQX")
openers = st.sampled_from(
    ["<think>", "<think>\n", "< Think >", "<seed:think>", "<THINKING>", "\u25c1think\u25b7",
     "<longcat_think>", "<mm:think>", "<think_fast>"]
)  # fmt: skip
closers = st.sampled_from(
    ["</think>", "\n</think>\n\n", "</ think >", "</seed:think>", "\u25c1/think\u25b7",
     "</longcat_think>", "</mm:think>"]
)  # fmt: skip


@given(plain, plain)
def test_join_and_split_are_inverse(thought: str, utterance: str) -> None:
    if is_blank(utterance):
        return
    parts = split(join(Thought(thought), utterance), thinking=True)
    assert parts.complete
    assert parts.thought is not None
    assert (parts.thought.reveal(), parts.text) == (thought.strip(), utterance.strip())


@given(st.lists(st.tuples(plain, openers, thoughts, closers), min_size=1, max_size=4), plain)
def test_whole_blocks_leave_only_what_stands_outside(
    blocks: list[tuple[str, str, str, str]], tail: str
) -> None:
    raw = "".join("".join(block) for block in blocks) + tail
    parts = split(raw)
    outside = "".join(block[0] for block in blocks) + tail
    assert "".join(parts.text.split()) == "".join(outside.split())
    assert parts.thought is not None
    assert parts.thought.reveal().count("ZQX") == 2 * len(blocks)


def nested(depth: int) -> st.SearchStrategy[str]:
    """Return a closed block with blocks inside, all words marked."""
    if depth == 0:
        return thoughts
    inner = nested(depth - 1)
    return st.builds(
        lambda a, o, b, c, d: f"{a}{o}{b}{c}{d}", thoughts, openers, inner, closers, thoughts
    )


@given(openers, nested(3), closers, plain)
def test_nested_blocks_never_leak(opener: str, inner: str, closer: str, tail: str) -> None:
    parts = split(f"{opener}{inner}{closer}{tail}")
    assert parts.text == tail.strip()
    assert not has_tag(parts.text)


@given(nested(2), closers, plain, st.booleans())
def test_missing_opener_hides_all_that_came_before(
    before: str, closer: str, tail: str, prefilled: bool
) -> None:
    parts = split(f"{before}{closer}{tail}", prefilled=prefilled)
    assert "ZQX" not in parts.text


@given(plain, openers, nested(2))
def test_missing_closer_hides_all_that_comes_after(head: str, opener: str, inner: str) -> None:
    parts = split(f"{head}{opener}{inner}")
    assert "ZQX" not in parts.text
    assert not parts.complete


def test_halves_of_a_tag_do_not_meet() -> None:
    assert split("<thi<think>x</think>nk>ZQX").text == ""
    assert not split("<thi<think>x</think>nk>ZQX").complete


pieces = st.one_of(plain, openers, closers, st.sampled_from(["<", ">", "<th", "ink>", "/"]))


@given(st.lists(pieces, max_size=8).map("".join))
def test_no_tag_is_ever_left(raw: str) -> None:
    assert not has_tag(split(raw).text)
