"""Loss masks: against the slow form and against exact text, for each family; refusals; cost."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from mimesim.errors import DataError, EnvironmentFault
from mimesim.models import templates
from mimesim.models.base import ChatMessage
from mimesim.models.templates import rendering
from tests import tiny
from tests.support import families
from tests.support.families import Family

TOKENIZER = tiny.tokenizer()
TALK = [
    ChatMessage("system", "be brief"),
    ChatMessage("user", "hello there"),
    ChatMessage("assistant", "<think>\nwho?\n</think>\n\ni am fine"),
    ChatMessage("user", "where is my order?"),
    ChatMessage("assistant", "here"),
]
APPENDING = [f for f in families.ALL if f.name not in ("qwen3-like", "qwen3")]
KEPT = {family.name: families.in_memory(family) for family in families.ALL}
FACTS = {name: templates.inspect_template(tokenizer) for name, tokenizer in KEPT.items()}

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).map(str.strip)
TALKS = st.lists(
    st.builds(ChatMessage, st.sampled_from(["user", "assistant"]), WORDS.filter(bool)),
    min_size=1,
    max_size=6,
).filter(lambda talk: any(m.role == "assistant" for m in talk))


def slow_mask(tokenizer: Any, talk: list[ChatMessage], end: str) -> tuple[list[int], list[int]]:
    """Mask by rendering every prefix: a turn is what it adds, its header the prompt's length."""
    ids: list[int] = []
    labels: list[int] = []
    first = 2 if talk[0].role == "system" else 1
    for k in range(first, len(talk) + 1):
        known = talk[: k - 1] if k > 1 and talk[k - 2].role != "system" else []
        before = templates.render_ids(tokenizer, known) if known else []
        whole = templates.render_ids(tokenizer, talk[:k])
        assert whole[: len(before)] == before
        turn = whole[len(before) :]
        learnt = [templates.IGNORED] * len(turn)
        if talk[k - 1].role == "assistant":
            prompt = templates.render_ids(tokenizer, talk[: k - 1], add_generation_prompt=True)
            header = len(prompt) - len(before)
            closed = turn.index(tokenizer.convert_tokens_to_ids(end), header) + 1
            learnt[header:closed] = turn[header:closed]
        ids += turn
        labels += learnt
    return ids, labels


def learnt(tokenizer: Any, row: templates.MaskedRow) -> str:
    """Return the text that carries loss."""
    return str(tokenizer.decode([i for i in row.labels if i != templates.IGNORED]))


def test_the_learnt_text_is_content_and_end_of_turn_only() -> None:
    row = templates.mask_rows(TOKENIZER, TALK)
    assert learnt(TOKENIZER, row) == "<think>\nwho?\n</think>\n\ni am fine<|im_end|>here<|im_end|>"
    assert TOKENIZER.decode(row.input_ids) == templates.render(TOKENIZER, TALK)


def test_ends_of_turns_are_told_from_content() -> None:
    row = templates.mask_rows(TOKENIZER, TALK)
    assert [row.labels[k] for k in row.ends] == [TOKENIZER.eos_token_id] * 2
    assert TOKENIZER.eos_token_id not in [
        label for k, label in enumerate(row.labels) if k not in row.ends
    ]


@given(TALKS)
def test_one_pass_masks_as_the_slow_form_does(talk: list[ChatMessage]) -> None:
    row = templates.mask_rows(TOKENIZER, talk)
    assert (row.input_ids, row.labels) == slow_mask(TOKENIZER, talk, "<|im_end|>")


@pytest.mark.parametrize("family", APPENDING, ids=lambda f: f.name)
@settings(max_examples=40)
@given(talk=TALKS, system=st.booleans())
def test_families_are_masked_as_by_the_slow_form(
    family: Family, talk: list[ChatMessage], system: bool
) -> None:
    opened = [ChatMessage("system", "be brief")] if system else [ChatMessage("user", "yes?")]
    shaped = FACTS[family.name].shape([*opened, *talk])
    row = templates.mask_rows(KEPT[family.name], shaped)
    assert (row.input_ids, row.labels) == slow_mask(KEPT[family.name], shaped, family.end)


@pytest.mark.parametrize("family", families.ALL, ids=lambda f: f.name)
def test_a_supplied_empty_thought_carries_no_loss(family: Family) -> None:
    talk = [ChatMessage("user", "hello"), ChatMessage("assistant", "i am fine")]
    row = templates.mask_rows(KEPT[family.name], talk)
    assert learnt(KEPT[family.name], row) == f"i am fine{family.end}"
    supplied = "<think>" in KEPT[family.name].decode(row.input_ids)
    assert supplied == ("qwen3" in family.name)


OSS = Family(
    "oss", "", ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>"), "<|end|>"
)
STOCK = [
    families.original(families.QWEN3, "qwen3"),
    families.original(families.LLAMA3, "llama3_1"),
    families.original(families.GEMMA, "gemma3"),
    families.original(OSS, "gptoss"),
]


@pytest.mark.parametrize("family", STOCK, ids=lambda f: f.name)
def test_a_template_without_generation_marks_gets_an_exact_mask_or_is_refused(
    family: Family,
) -> None:
    """C-RL-05: never all of a row, never nothing; what does not fit is refused by name."""
    assert "{% generation" not in family.template.replace("{%-", "{%")
    talk = [ChatMessage("user", "hello"), ChatMessage("assistant", "i am fine")]
    replaced = families.in_memory(family)  # knows the tokens of our template, which is put in
    templates.prepare(replaced)
    assert learnt(replaced, templates.mask_rows(replaced, talk)) == "i am fine<|im_end|>"
    if family.name == "gptoss":
        with pytest.raises(EnvironmentFault, match=r"not fit for training.*rewrites") as caught:
            templates.prepare(families.without_chatml(family))
        assert "\n" not in str(caught.value)
    elif family.name != "qwen3":  # whose own tokens are those of our template
        kept = families.without_chatml(family)
        templates.prepare(kept)
        assert learnt(kept, templates.mask_rows(kept, talk)) == f"i am fine{family.end}"


def test_a_given_assistant_turn_is_not_learnt() -> None:
    row = templates.mask_rows(TOKENIZER, TALK, learn=[False, True])
    assert learnt(TOKENIZER, row) == "here<|im_end|>"
    assert len(row.ends) == 1


@pytest.mark.parametrize(("talk", "learn"), [(TALK[:2], None), (TALK, [False, False])])
def test_a_conversation_without_a_learnt_turn_is_an_error(
    talk: list[ChatMessage], learn: list[bool] | None
) -> None:
    with pytest.raises(DataError, match="no token"):
        templates.mask_rows(TOKENIZER, talk, learn)


def test_a_trimming_template_is_masked_as_it_renders() -> None:
    padded = [ChatMessage("user", " hello\n"), ChatMessage("assistant", "\n i am fine ")]
    row = templates.mask_rows(KEPT["llama3-like"], padded)
    assert learnt(KEPT["llama3-like"], row) == "i am fine<|eot_id|>"
    row = templates.mask_rows(TOKENIZER, padded)
    assert learnt(TOKENIZER, row) == "\n i am fine <|im_end|>"


def test_outer_white_space_that_would_merge_with_the_header_is_refused() -> None:
    merging = PreTrainedTokenizerFast(tokenizer_object=TOKENIZER.backend_tokenizer)
    merging.add_tokens(["\n\n"])
    templates.install(merging)
    with pytest.raises(DataError, match="straddles"):
        templates.mask_rows(merging, [ChatMessage("assistant", "\nhello")])


@pytest.mark.parametrize(
    ("template", "error", "words"),
    [
        ("{% for m in messages[1:] %}{{ m.content }}<|im_end|>{% endfor %}", EnvironmentFault, "drops message 1 "),
        ("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}", EnvironmentFault, "repeats"),
        ("{% for m in messages[::-1] %}{{ m.content }}<|im_end|>{% endfor %}", EnvironmentFault, "moves"),
        ("{% for m in messages %}{{ m.content }}\n{% endfor %}", EnvironmentFault, "no special token"),
        (
            "{% for m in messages %}{{ m.content | replace('fine', 'well') }}<|im_end|>{% endfor %}",
            DataError,
            r"rewrites the content of message 3 \(assistant\)",
        ),
        (
            "{% for m in messages %}{% if 'order' in m.content %}{{ raise_exception('no orders') }}"
            "{% endif %}{{ m.content }}<|im_end|>{% endfor %}",
            DataError,
            "no orders",
        ),
        (
            "{{ messages[3].content[:1] }}{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}",
            DataError,
            "rewrites",
        ),
    ],
)  # fmt: skip
def test_a_template_that_alters_what_is_said_is_found_out(
    template: str, error: type[Exception], words: str
) -> None:
    tokenizer = tiny.tokenizer()
    tokenizer.chat_template = template
    with pytest.raises(error, match=words) as caught:
        templates.mask_rows(tokenizer, TALK)
    assert "\n" not in str(caught.value)


def test_thoughts_that_a_template_drops_are_found_out() -> None:
    for family in (families.QWEN3, families.original(families.QWEN3, "qwen3")):
        with pytest.raises(DataError, match=r"rewrites the content of message 3"):
            templates.mask_rows(families.in_memory(family), TALK)


class Counted:
    """A tokenizer that counts its calls."""

    def __init__(self, tokenizer: Any) -> None:
        self.inner = tokenizer
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __call__(self, *given: Any, **options: Any) -> Any:
        self.calls += 1
        return self.inner(*given, **options)


def test_the_cost_is_two_template_calls_and_one_tokenization(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = rendering.render_jinja_template
    written: list[int] = []

    def counted(*given: Any, **options: Any) -> Any:
        texts, spans = original(*given, **options)
        written.append(len(texts[0]))
        return texts, spans

    monkeypatch.setattr(rendering, "render_jinja_template", counted)
    per_turn = []
    for turns in (10, 40, 160):
        tokenizer = Counted(TOKENIZER)
        talk = [
            ChatMessage(("user", "assistant")[k % 2], "where is my order?") for k in range(turns)
        ]
        written.clear()
        templates.mask_rows(tokenizer, talk)
        assert (len(written), tokenizer.calls) == (2, 1)
        per_turn.append(sum(written) / turns)
    assert all(later <= 1.01 * earlier for earlier, later in pairwise(per_turn))


def lacking(*signs: str) -> Any:
    """Return the small tokenizer without tokens for some control characters."""
    spelled = json.loads(TOKENIZER.backend_tokenizer.to_str())
    spelling = bytes_to_unicode()
    shown = {spelling[ord(sign)] for sign in signs}
    words = [word for word in spelled["model"]["vocab"] if word not in shown]
    assert len(words) == len(spelled["model"]["vocab"]) - len(signs)
    spelled["model"]["unk_token"] = "<|pad|>"
    ids = {word: n for n, word in enumerate(sorted(words, key=spelled["model"]["vocab"].get))}
    spelled["model"]["vocab"] = ids
    for token in spelled["added_tokens"]:
        token["id"] = ids[token["content"]]
    made = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(spelled)),
        unk_token="<|pad|>",
        pad_token="<|pad|>",
        additional_special_tokens=["<|im_start|>", "<|im_end|>"],
        clean_up_tokenization_spaces=False,
    )
    templates.install(made)
    return made


def test_a_character_without_a_token_forges_no_special_one() -> None:
    tokenizer = lacking("\x16", "\x04")
    assert tokenizer("a\x16", add_special_tokens=False)["input_ids"][-1] == tokenizer.pad_token_id
    talk = [ChatMessage("user", "a\x16\x1bb"), ChatMessage("assistant", "c\x04d\te")]
    row = templates.mask_rows(tokenizer, talk)
    assert tokenizer.pad_token_id not in row.input_ids
    assert learnt(tokenizer, row) == "c\ufffdd\te<|im_end|>"
    assert "a\ufffd\x1bb" in tokenizer.decode(row.input_ids)
    assert templates.neutralize(tokenizer, "x\x16y\x1b") == "x\ufffdy\x1b"


def test_a_learnt_text_without_tokens_is_told() -> None:
    tokenizer = lacking("\xa9")  # second byte of an e with an accent
    for text, untold in (("100 \xe9", True), ("100 e", False)):
        row = templates.mask_rows(tokenizer, [ChatMessage("assistant", text)])
        assert templates.untold(tokenizer, row) is untold
    unlearnt = [ChatMessage("user", "\xe9"), ChatMessage("assistant", "e")]
    assert not templates.untold(tokenizer, templates.mask_rows(tokenizer, unlearnt))
