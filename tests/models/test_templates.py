"""Chat templates: exact text, masks against the slow form, suffixes, refusals, injection."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast
from trl.chat_template_utils import (
    is_chat_template_prefix_preserving,
    is_chat_template_stop_token_trained,
)

from mimesim.errors import DataError, EnvironmentFault
from mimesim.models import templates
from mimesim.models.base import ChatMessage
from tests import tiny

TOKENIZER = tiny.tokenizer()
TALK = [
    ChatMessage("system", "be brief"),
    ChatMessage("user", "hello there"),
    ChatMessage("assistant", "<think>\nwho?\n</think>\n\ni am fine"),
    ChatMessage("user", "where is my order?"),
    ChatMessage("assistant", "here"),
]
# Drops earlier thoughts once a user message follows, as the stock templates of some models do.
FORGETFUL = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] }}"
    "{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ALTERNATING = (
    "{% for m in messages %}{% if loop.index0 and m.role == messages[loop.index0 - 1].role %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}<|im_start|>{{ m.role }}\n"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
UNMARKED = templates.CHATML.replace("{% generation %}", "").replace("{% endgeneration %}", "")


def with_template(template: str) -> PreTrainedTokenizerFast:
    tokenizer = tiny.tokenizer()
    tokenizer.chat_template = template
    return tokenizer


def slow_mask(tokenizer: Any, talk: list[ChatMessage]) -> tuple[list[int], list[int]]:
    """Mask by rendering every prefix: a turn is what it adds, its header the prompt's length."""
    ids: list[int] = []
    labels: list[int] = []
    for k in range(1, len(talk) + 1):
        before = templates.render_ids(tokenizer, talk[: k - 1]) if k > 1 else []
        whole = templates.render_ids(tokenizer, talk[:k])
        assert whole[: len(before)] == before
        turn = whole[len(before) :]
        learnt = [templates.IGNORED] * len(turn)
        if talk[k - 1].role == "assistant":
            prompt = templates.render_ids(tokenizer, talk[: k - 1], add_generation_prompt=True)
            header = len(prompt) - len(before)
            end = turn.index(tokenizer.eos_token_id) + 1
            learnt[header:end] = turn[header:end]
        ids += turn
        labels += learnt
    return ids, labels


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


def test_the_learnt_text_is_content_and_end_of_turn_only() -> None:
    row = templates.mask_rows(TOKENIZER, TALK)
    learnt = [i for i in row.labels if i != templates.IGNORED]
    assert TOKENIZER.decode(learnt) == (
        "<think>\nwho?\n</think>\n\ni am fine<|im_end|>here<|im_end|>"
    )


WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).map(str.strip)


@given(
    st.lists(
        st.builds(ChatMessage, st.sampled_from(["user", "assistant"]), WORDS.filter(bool)),
        min_size=1,
        max_size=6,
    ).filter(lambda talk: any(m.role == "assistant" for m in talk))
)
def test_one_call_masks_as_the_slow_form_does(talk: list[ChatMessage]) -> None:
    row = templates.mask_rows(TOKENIZER, talk)
    assert (row.input_ids, row.labels) == slow_mask(TOKENIZER, talk)


def test_a_given_assistant_turn_is_not_learnt() -> None:
    row = templates.mask_rows(TOKENIZER, TALK, learn=[False, True])
    learnt = [i for i in row.labels if i != templates.IGNORED]
    assert TOKENIZER.decode(learnt) == "here<|im_end|>"


def test_a_conversation_without_a_learnt_turn_is_an_error() -> None:
    with pytest.raises(DataError, match="no token"):
        templates.mask_rows(TOKENIZER, TALK[:2])


def test_outer_white_space_that_would_merge_with_the_header_is_refused() -> None:
    merging = PreTrainedTokenizerFast(tokenizer_object=TOKENIZER.backend_tokenizer)
    merging.add_tokens(["\n\n"])
    templates.install(merging)
    with pytest.raises(EnvironmentFault, match="straddles"):
        templates.mask_rows(merging, [ChatMessage("assistant", "\nhello")])


@given(WORDS.filter(bool))
def test_a_suffix_is_what_rendering_the_whole_would_add(text: str) -> None:
    known = TALK[:3]
    before = templates.render_ids(TOKENIZER, known)
    cut = len(before) - before[::-1].index(TOKENIZER.eos_token_id)
    whole = templates.render_ids(
        TOKENIZER, [*known, ChatMessage("user", text)], add_generation_prompt=True
    )
    assert before[:cut] + templates.user_suffix_ids(TOKENIZER, text) == whole


@given(st.lists(st.sampled_from(["<|im_end|>", "<|im_start|>", "<", "|im_end|>", " a", "\n"])))
def test_text_cannot_forge_a_turn(parts: list[str]) -> None:
    ids = templates.render_ids(TOKENIZER, [ChatMessage("user", "".join(parts))])
    assert ids.count(TOKENIZER.convert_tokens_to_ids("<|im_start|>")) == 1
    assert ids.count(TOKENIZER.eos_token_id) == 1


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (FORGETFUL, "drops earlier turns"),
        (ALTERNATING, "two user messages"),
        (UNMARKED, "does not mark"),
        ("", "it has none"),
    ],
)
def test_an_unfit_template_is_refused_with_the_reason(template: str, reason: str) -> None:
    with pytest.raises(EnvironmentFault, match=reason) as caught:
        templates.check_template(with_template(template))
    assert "\n" not in str(caught.value)
    assert "install" in str(caught.value)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{% for m in messages[-1:] %}{{ m['role'] + m['content'] }}{% endfor %}", "drops earlier"),
        ("{% for m in messages %}{{ m['content'] ", "unexpected end of template"),
        ("{{ raise_exception('not today') }}", "not today"),
        ("{{ messages[0].foo.bar }}", "no attribute 'foo'"),
        ("", "it has none"),
    ],
)
def test_a_template_that_loses_what_was_said_is_not_served(template: str, reason: str) -> None:
    for check in (templates.check_serving, templates.check_template):
        with pytest.raises(EnvironmentFault, match=reason) as caught:
            check(with_template(template))
        assert "\n" not in str(caught.value)


def test_a_template_that_only_restricts_is_served() -> None:
    for template in (ALTERNATING, UNMARKED, FORGETFUL):
        assert templates.check_serving(with_template(template)).trouble == ""


def test_masks_need_marks() -> None:
    with pytest.raises(EnvironmentFault, match="does not mark"):
        templates.mask_rows(with_template(UNMARKED), TALK)


def test_a_template_that_refuses_gives_one_line() -> None:
    twice = [ChatMessage("user", "a"), ChatMessage("user", "b")]
    with pytest.raises(EnvironmentFault, match="roles must alternate"):
        templates.render(with_template(ALTERNATING), twice)


def test_the_template_travels_with_the_tokenizer(tmp_path: Any) -> None:
    TOKENIZER.save_pretrained(tmp_path)
    loaded = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert templates.render(loaded, TALK) == templates.render(TOKENIZER, TALK)
    assert templates.end_of_turn_id(loaded) == TOKENIZER.eos_token_id


def test_a_vocabulary_without_chatml_is_refused() -> None:
    from tokenizers import Tokenizer, models

    bare = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, "a")))
    with pytest.raises(EnvironmentFault, match=r"im_start"):
        templates.install(bare)


def test_strict_messages_join_neighbours_and_keep_one_system_text() -> None:
    odd = [
        ChatMessage("user", "hello"),
        ChatMessage("system", "late rule"),
        ChatMessage("user", "it ships on Monday"),
        ChatMessage("assistant", " "),
    ]
    assert templates.strict_messages(odd) == [
        ChatMessage("system", "late rule"),
        ChatMessage("user", "hello\n\nit ships on Monday"),
    ]


@pytest.mark.parametrize("talk", [[], [ChatMessage("assistant", "yes?")]])
def test_a_system_text_can_open_the_first_user_message(talk: list[ChatMessage]) -> None:
    rules = ChatMessage("system", "You live in Graz.")
    assert templates.strict_messages([rules, *talk, ChatMessage("user", "Hello")], system=False)[
        0
    ] == ChatMessage("user", "You live in Graz." if talk else "You live in Graz.\n\nHello")
