"""On human dialogues, loss stands on what people said and on ends of turns, for every family.

1,000 real dialogues where the public corpora are at hand (100 of them for the original templates,
whose shapes ours have), invented ones always; over the tokenizer of the embedded model and over
the small one made in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimesim import jsonio, seeds
from mimesim.models import templates
from mimesim.models.base import ChatMessage
from tests.support import families
from tests.support.families import Family

MAKERS = (families.smollm2, families.in_memory)
SOURCES = (
    "star/dialogues.jsonl",
    "multiwoz/dialogues.jsonl",
    "casino/dialogues.jsonl",
    "persuasion_for_good/dialogues.jsonl",
    "open_assistant/threads.jsonl",
)
EACH = 200
SIDES = {"user": "assistant", "agent": "user"}


class Dressed(NamedTuple):
    tokenizer: Any
    facts: templates.TemplateFacts


@cache
def dressed(family: Family, make: Callable[[Family], Any]) -> Dressed:
    tokenizer = make(family)
    return Dressed(tokenizer, templates.inspect_template(tokenizer))


@cache
def real_talks(folder: Path) -> list[list[ChatMessage]]:
    """Return 200 dialogues of each source, roles reversed."""
    talks = []
    for source in SOURCES:
        with (folder / source).open("rb") as lines:
            found = [jsonio.loads(line) for line in lines if line.strip()]
        for chosen in seeds.generator(7, "property", source).sample(found, EACH):
            talks.append(
                [
                    ChatMessage(SIDES[turn["role"]], turn["text"])
                    for turn in chosen["turns"]
                    if turn["role"] in SIDES
                ]
            )
    return talks


def only_content_and_ends_are_learnt(family: Family, use: Dressed, talk: list[ChatMessage]) -> None:
    rules = ChatMessage("system", "You are a customer. Write your next message.")
    shaped = use.facts.shape([rules, *talk])
    row = templates.mask_rows(use.tokenizer, shaped)
    said = [templates.neutralize(use.tokenizer, m.content) for m in shaped if m.role == "assistant"]
    said = [text.strip() for text in said] if family.trims else said
    decode = use.tokenizer.decode
    learnt = [i for i in row.labels if i != templates.IGNORED]
    assert decode(learnt) == "".join(text + family.end for text in said)
    content = [i for k, i in enumerate(row.labels) if i != templates.IGNORED and k not in row.ends]
    assert decode(content) == "".join(said)
    assert decode([row.labels[k] for k in row.ends]) == family.end * len(said)
    assert decode(row.input_ids) == templates.render(use.tokenizer, shaped)
    assert all(
        label in (i, templates.IGNORED) for i, label in zip(row.input_ids, row.labels, strict=True)
    )


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("family", families.ALL, ids=lambda f: f.name)
def test_real_dialogues(family: Family, make: Callable[[Family], Any], test_data: Path) -> None:
    talks = real_talks(test_data)
    assert len(talks) == EACH * len(SOURCES)
    taken = talks if family in families.OWN else talks[::10]
    for talk in taken:
        only_content_and_ends_are_learnt(family, dressed(family, make), talk)


TEXT = st.text(
    st.one_of(  # the tokenizer of the embedded model lacks some control characters
        st.characters(exclude_categories=["Cs", "Cc"], max_codepoint=0x17F),
        st.sampled_from("äöß€漢字🙂👍🏽\n\t \u200d"),
    ),
    min_size=1,
    max_size=60,
)
TURN = (
    st.one_of(
        TEXT,
        st.lists(
            st.sampled_from(
                [
                    "hi",
                    " I'd like ",
                    "42.50",
                    "?!",
                    "\n",
                    "\n\n",
                    "<|im_end|>",
                    "<start_of_turn>",
                    "  ",
                ]
            ),
            min_size=1,
            max_size=8,
        ).map("".join),
    )
    .map(str.strip)
    .filter(bool)
)  # turns of people are stripped, see corpora.base


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("family", families.ALL, ids=lambda f: f.name)
@settings(max_examples=40)
@given(data=st.data())
def test_invented_dialogues(
    family: Family, make: Callable[[Family], Any], data: st.DataObject
) -> None:
    texts = data.draw(st.lists(TURN, min_size=1, max_size=8))
    first = data.draw(st.sampled_from([0, 1]) if len(texts) > 1 else st.just(0))
    talk = [
        ChatMessage(("assistant", "user")[(first + k) % 2], text) for k, text in enumerate(texts)
    ]
    only_content_and_ends_are_learnt(family, dressed(family, make), talk)
