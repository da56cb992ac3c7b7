"""Rendering: exact text of the project's template, suffixes, injection, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast
from trl.chat_template_utils import (
    is_chat_template_prefix_preserving,
    is_chat_template_stop_token_trained,
)

from mimesim.errors import EnvironmentFault
from mimesim.models import templates
from mimesim.models.base import ChatMessage
from tests import tiny
from tests.support import families

TOKENIZER = tiny.tokenizer()
TALK = [
    ChatMessage("system", "be brief"),
    ChatMessage("user", "hello there"),
    ChatMessage("assistant", "<think>\nwho?\n</think>\n\ni am fine"),
    ChatMessage("user", "where is my order?"),
    ChatMessage("assistant", "here"),
]
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).map(str.strip)


def test_the_rendering_is_plain_chatml() -> None:
    assert templates.render(TOKENIZER, TALK[:3], add_generation_prompt=True) == (
        "<|im_start|>system\nbe brief<|im_end|>\n"
        "<|im_start|>user\nhello there<|im_end|>\n"
        "<|im_start|>assistant\n<think>\nwho?\n</think>\n\ni am fine<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_trl_agrees_that_the_template_is_fit() -> None:
    assert is_chat_template_prefix_preserving(TOKENIZER)
    assert is_chat_template_stop_token_trained(TOKENIZER)
    templates.check_template(TOKENIZER)


@given(WORDS.filter(bool))
def test_a_suffix_is_what_rendering_the_whole_would_add(text: str) -> None:
    known = TALK[:3]
    before = templates.render_ids(TOKENIZER, known)
    cut = len(before) - before[::-1].index(TOKENIZER.eos_token_id)
    whole = templates.render_ids(
        TOKENIZER, [*known, ChatMessage("user", text)], add_generation_prompt=True
    )
    assert before[:cut] + templates.user_suffix_ids(TOKENIZER, text) == whole


def test_there_is_no_suffix_where_earlier_turns_are_rewritten() -> None:
    with pytest.raises(EnvironmentFault, match="rewrites earlier turns"):
        templates.user_suffix_ids(families.in_memory(families.QWEN3), "and then?")


@given(st.lists(st.sampled_from(["<|im_end|>", "<|im_start|>", "<", "|im_end|>", " a", "\n"])))
def test_text_cannot_forge_a_turn(parts: list[str]) -> None:
    ids = templates.render_ids(TOKENIZER, [ChatMessage("user", "".join(parts))])
    assert ids.count(TOKENIZER.convert_tokens_to_ids("<|im_start|>")) == 1
    assert ids.count(TOKENIZER.eos_token_id) == 1


def test_a_template_that_refuses_gives_one_line() -> None:
    twice = [ChatMessage("user", "a"), ChatMessage("user", "b")]
    with pytest.raises(EnvironmentFault, match="take turns") as caught:
        templates.render(families.in_memory(families.GEMMA), twice)
    assert "\n" not in str(caught.value)


def test_the_template_travels_with_the_tokenizer(tmp_path: Path) -> None:
    TOKENIZER.save_pretrained(tmp_path)
    loaded = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert templates.render(loaded, TALK) == templates.render(TOKENIZER, TALK)
    assert templates.end_of_turn_id(loaded) == TOKENIZER.eos_token_id


def test_a_vocabulary_without_chatml_is_refused() -> None:
    from tokenizers import Tokenizer, models

    bare = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, "a")))
    assert not templates.speaks_chatml(bare)
    with pytest.raises(EnvironmentFault, match=r"im_start"):
        templates.install(bare)
