"""What templates are found to do, which of them is kept, refused or replaced, and shapes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from mimesim.errors import EnvironmentFault
from mimesim.models import templates
from mimesim.models.base import ChatMessage
from tests import tiny
from tests.support import families
from tests.support.families import Family

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
ENDLESS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
FAREWELL = UNMARKED + "{% if not add_generation_prompt %}bye{% endif %}"
PREFACED = UNMARKED.replace("{{ message['content'] + '<|im_end|>' }}{% else %}", "Well, {{ message['content'] + '<|im_end|>' }}{% else %}")  # fmt: skip


def with_template(template: str) -> PreTrainedTokenizerFast:
    tokenizer = tiny.tokenizer()
    tokenizer.chat_template = template
    return tokenizer


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (FORGETFUL, "drops earlier turns"),
        (FAREWELL, "rewrites the end"),
        (PREFACED, "what precedes a reply"),
        ("{{ 'x' if messages[-1].content == 'u3' }}" + ENDLESS, "rewrites the end"),
        (ENDLESS, "no special token"),
        ("", "it has none"),
    ],
)
def test_an_unfit_template_is_refused_with_the_reason(template: str, reason: str) -> None:
    with pytest.raises(EnvironmentFault, match=reason) as caught:
        templates.check_template(with_template(template))
    assert "\n" not in str(caught.value)
    assert "install" in str(caught.value)


@pytest.mark.parametrize("thoughts", [True, False])
def test_with_our_template_a_conversation_only_grows(thoughts: bool) -> None:
    """C-TPL-04: whatever ends on a complete turn begins the rest, in text and in tokens."""
    tokenizer = tiny.tokenizer()
    talk = [ChatMessage("system", "be brief")]
    for k in range(1, 4):
        thought = f"<think>\nt{k}\n</think>\n\n" if thoughts else ""
        talk += [ChatMessage("user", f"u{k}"), ChatMessage("assistant", f"{thought}a{k}")]
    whole, ids = templates.render(tokenizer, talk), templates.render_ids(tokenizer, talk)
    for k in range(1, len(talk)):
        assert whole.startswith(templates.render(tokenizer, talk[:k]))
        known = templates.render_ids(tokenizer, talk[:k])
        assert ids[: len(known)] == known
    assert all(message.content in whole for message in talk)


@pytest.mark.parametrize("name", ["qwen3", "qwen3_5_think", "qwen3_5_nothink"])
def test_a_stock_template_that_rewrites_thoughts_is_refused_for_training(name: str) -> None:
    """C-TPL-04, the refusal: one message more takes a thought away, and the reason says so."""
    family = families.QWEN3 if name == "qwen3" else families.QWEN35
    tokenizer = families.in_memory(families.original(family, name))
    talk = [
        ChatMessage("user", "u1"),
        ChatMessage("assistant", "<think>\nt1\n</think>\n\na1"),
        ChatMessage("user", "u2"),
    ]
    shorter, longer = (templates.render(tokenizer, talk[:k]) for k in (2, 3))
    assert not longer.startswith(shorter)
    with pytest.raises(EnvironmentFault, match="thoughts in them") as caught:
        templates.check_template(tokenizer)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("template", [ALTERNATING, UNMARKED])
def test_a_template_that_only_restricts_may_be_trained_with(template: str) -> None:
    assert templates.check_template(with_template(template)).end == "<|im_end|>"


def test_notes_need_two_user_messages_in_a_row() -> None:
    assert templates.check_rollouts(with_template(UNMARKED)).limits == ()
    with pytest.raises(EnvironmentFault, match="two user messages"):
        templates.check_rollouts(with_template(ALTERNATING))


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


def test_a_template_that_only_restricts_or_forgets_is_served() -> None:
    for template in (ALTERNATING, UNMARKED, FORGETFUL):
        assert templates.check_serving(with_template(template)).trouble == ""


@pytest.mark.parametrize(
    ("family", "limits", "reason"),
    [
        (families.CHATML, [], ""),
        (families.QWEN3, [], "drops earlier turns, or the thoughts"),
        (families.QWEN35, ["opening", "trims"], ""),
        (families.LLAMA3, ["trims"], ""),
        (families.GEMMA, ["system", "opening", "two user", "trims"], ""),
        (families.original(families.QWEN3, "qwen3"), [], "drops earlier turns, or the thoughts"),
        (families.original(families.QWEN3, "qwen3_training"), [], "what precedes a reply"),
        (families.original(families.QWEN35, "qwen3_5_think"), ["opening", "trims"], "drops"),
        (
            families.original(families.QWEN35, "qwen3_5_nothink_training"),
            ["opening", "trims"],
            "rewrites replies that hold thoughts",
        ),
        (families.original(families.LLAMA3, "llama3_1"), ["trims"], ""),
        (families.original(families.GEMMA, "gemma"), ["system", "opening", "two user", "trims"], ""),
        (families.original(families.GEMMA, "gemma3"), ["opening", "two user", "trims"], ""),
    ],
    ids=lambda value: value.name if isinstance(value, Family) else "",
)  # fmt: skip
def test_families_are_told_apart(family: Family, limits: list[str], reason: str) -> None:
    facts = templates.inspect_template(families.in_memory(family))
    assert len(facts.limits) == len(limits)
    assert all(word in text for word, text in zip(limits, facts.limits, strict=True))
    assert reason in facts.reason
    assert bool(facts.reason) == bool(reason)
    assert (facts.end, facts.trouble) == (family.end, "")


def test_a_header_that_melts_into_the_reply_is_unfit() -> None:
    tokenizer = tiny.tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}:{{ m.content }}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}"
    )
    assert templates.inspect_template(tokenizer).reason == ""
    tokenizer.add_tokens([":a"])
    assert "one token holds both" in templates.inspect_template(tokenizer).reason


def without_chatml(template: str) -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"?": 0, "</s>": 1, "user": 2, "assistant": 3}, "?"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token="</s>", chat_template=template)


def test_preparing_installs_the_projects_template_where_it_can() -> None:
    tokenizer = families.in_memory(families.QWEN3)
    facts = templates.prepare(tokenizer)
    assert tokenizer.chat_template == templates.CHATML
    assert (facts.reason, facts.limits) == ("", ())


def test_preparing_keeps_a_fit_template_where_it_must() -> None:
    own = "{% for m in messages %}{{ m.role }} {{ m.content }}</s>{% endfor %}"
    tokenizer = without_chatml(own + "{% if add_generation_prompt %}assistant {% endif %}")
    facts = templates.prepare(tokenizer)
    assert tokenizer.chat_template.startswith(own)
    assert (facts.end, facts.chatml, tokenizer.pad_token) == ("</s>", False, "</s>")


def test_preparing_refuses_the_rest_with_the_reason() -> None:
    with pytest.raises(EnvironmentFault, match=r"no special token.*ChatML tokens"):
        templates.prepare(without_chatml(ENDLESS))


def test_a_refused_system_text_opens_the_first_user_message() -> None:
    """C-TPL-03; that `doctor` tells of it is a test of its own findings."""
    tokenizer = families.in_memory(families.GEMMA)
    shaped = templates.inspect_template(tokenizer).shape(
        [ChatMessage("system", "You live in Graz."), ChatMessage("user", "Hello")]
    )
    assert shaped == [ChatMessage("user", "You live in Graz.\n\nHello")]
    assert "You live in Graz.\n\nHello" in templates.render(tokenizer, shaped)


@pytest.mark.parametrize("family", families.ALL, ids=lambda f: f.name)
@settings(max_examples=40)
@given(roles=st.lists(st.sampled_from(["user", "assistant"]), min_size=1, max_size=6))
def test_shaped_conversations_are_taken_and_grow_at_the_end(
    family: Family, roles: list[str]
) -> None:
    tokenizer = families.in_memory(family)
    facts = templates.inspect_template(tokenizer)
    talk = [ChatMessage(role, f"word {k}") for k, role in enumerate(roles)]
    whole = facts.shape([ChatMessage("system", "rules"), *talk])
    text = templates.render(tokenizer, whole)
    assert all(message.content in text for message in talk)
    if facts.append_only and roles[0] == "assistant":  # asked to open: the same beginning
        asked = templates.render(
            tokenizer, facts.shape([ChatMessage("system", "rules")]), add_generation_prompt=True
        )
        assert text.startswith(asked)


def test_strict_messages_join_neighbors_and_keep_one_system_text() -> None:
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


def test_a_system_text_stands_in_for_a_user_who_has_not_spoken() -> None:
    rules, reply = ChatMessage("system", "rules"), ChatMessage("assistant", "yes?")
    opened = [ChatMessage("user", "rules"), reply]
    assert templates.strict_messages([rules, reply], assistant_first=False) == opened
    assert templates.strict_messages([rules, reply]) == [rules, reply]
    asked = [rules, ChatMessage("user", "hello"), reply]
    assert templates.strict_messages(asked, assistant_first=False) == asked
