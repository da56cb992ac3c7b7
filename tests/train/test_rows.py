"""Human dialogues to rows: roles, masks, cutting, and refusal of masks that are all zero."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mimesim.corpora.base import HumanDialogue, HumanTurn, Side
from mimesim.errors import DataError, EnvironmentFault
from mimesim.models import templates
from mimesim.train import rows
from tests import tiny

TOKENIZER = tiny.tokenizer()
OTHER: dict[Side, Side] = {"user": "agent", "agent": "user"}


def dialogue(count: int, opener: Side = "user", name: str = "d") -> HumanDialogue:
    sides: list[Side] = [opener, OTHER[opener]]
    turns = tuple(HumanTurn(sides[i % 2], f"turn {i}") for i in range(count))
    return HumanDialogue(name, turns, topic="rivers")


def test_the_human_becomes_the_assistant_and_opens() -> None:
    talk = rows.reverse(dialogue(4))
    assert [m.role for m in talk] == ["system", "assistant", "user", "assistant"]
    assert [m.content for m in talk[1:]] == ["turn 0", "turn 1", "turn 2"]
    assert "rivers" in talk[0].content


def test_only_human_turns_are_learnt() -> None:
    (row,) = rows.midtrain_rows(TOKENIZER, [dialogue(5, "agent")], 2000).rows
    assert rows.trained_text(TOKENIZER, row) == ["turn 1<|im_end|>", "turn 3<|im_end|>"]
    learnt = len(TOKENIZER("turn 1<|im_end|>turn 3<|im_end|>")["input_ids"])
    assert row.learnt == learnt
    assert row.turn_lengths == [learnt // 2, learnt // 2]
    whole = TOKENIZER.decode(row.input_ids)
    assert whole == templates.render(TOKENIZER, rows.reverse(dialogue(5, "agent")))


def test_the_oldest_turns_go_first_and_the_system_text_stays() -> None:
    full = rows.midtrain_rows(TOKENIZER, [dialogue(9)], 2000).rows[0]
    for cap in range(len(full.input_ids) - 60, len(full.input_ids)):
        made = rows.midtrain_rows(TOKENIZER, [dialogue(9)], cap)
        (row,) = made.rows
        text = TOKENIZER.decode(row.input_ids)
        dropped = made.counts["turns_dropped"]
        assert len(row.input_ids) <= cap
        assert text.startswith(f"<|im_start|>system\n{rows.reverse(dialogue(9))[0].content}<|im_")
        assert f"turn {dropped - 1}<" not in text
        assert f"turn {dropped}<" in text
        # One turn more would not have fitted.
        longer = [rows.reverse(dialogue(9))[0], *rows.reverse(dialogue(9))[dropped:]]
        assert len(templates.render_ids(TOKENIZER, longer)) > cap


def test_a_goal_is_told_to_the_learnt_side_only_in_the_system_text() -> None:
    talk = rows.reverse(replace(dialogue(3), goal="find a hotel", context="shy", earlier="hello"))
    assert [m.role for m in talk] == ["system", "user", "assistant", "user", "assistant"]
    assert "find a hotel" in talk[0].content
    assert "shy" in talk[0].content
    assert "hello" in talk[1].content, "the folded part is a message of its own"
    assert "find a hotel" not in "".join(m.content for m in talk[1:])


def test_ends_are_told_from_content() -> None:
    (row,) = rows.midtrain_rows(TOKENIZER, [dialogue(5, "agent")], 2000).rows
    learnt = [label for label in row.labels if label != templates.IGNORED]
    ends = [label for label, is_end in zip(learnt, row.ends, strict=True) if is_end]
    assert ends == [TOKENIZER.convert_tokens_to_ids("<|im_end|>")] * 2


def test_rows_without_a_learnt_token_are_counted() -> None:
    silent = HumanDialogue("s", (HumanTurn("agent", "hello"),))
    made = rows.midtrain_rows(TOKENIZER, [silent, dialogue(2)], 2000)
    assert made.counts["fully_masked"] == 1
    assert [row.id for row in made.rows] == ["d"]


def test_masks_that_are_all_zero_stop_before_training() -> None:
    """C-RL-05: nothing to learn is an error and not a loss of 0."""
    with pytest.raises(DataError, match="no token is learnt in any of 1"):
        rows.midtrain_rows(TOKENIZER, [dialogue(4)], 20)


def test_an_unfit_template_stops_before_training() -> None:
    cutting = tiny.tokenizer()
    cutting.chat_template = templates.CHATML.replace(
        "message['content'] + '<|im_end|>'", "message['content'][:9] + '<|im_end|>'"
    )
    with pytest.raises(EnvironmentFault, match="fit for training"):
        rows.midtrain_rows(cutting, [dialogue(4)], 2000)
