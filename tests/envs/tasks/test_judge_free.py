"""The eleven judge-free tasks: worked examples of their rules."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.corpora.base import Unfit
from mimesim.envs.tasks import alignx, hitom, humanllm, lifechoices, socsci210
from mimesim.envs.tasks.load import load_task
from tests.envs.tasks.asking import play, reward, task_from

FANTOM = {"context": "Ann: hi", "set_id": "1", "complete_question": "Who knows it?"}
BELIEF = {**FANTOM, "question_type": "tom:belief:inaccessible:multiple-choice", "correct_answer": 1}
LISTED = {
    **FANTOM, "question_type": "tom:answerability:list",
    "correct_answer": ["Al", "Bea"], "wrong_answer": ["Cy"],
}  # fmt: skip
BINARY = {**FANTOM, "question_type": "tom:info_accessibility:binary", "correct_answer": "no:long"}


@pytest.mark.parametrize(
    ("inside", "worth"),
    [
        ("b", 1),
        ("B", 1),
        ("(b)", 1),
        ("b.", 1),
        ("(b).", 1),
        ("a", 0),
        ("b or c", 0),
        ("b) yes", 0),
    ],
)
def test_fantom_choice(inside: str, worth: float) -> None:
    assert reward("fantom", BELIEF, f"<answer>{inside}</answer>") == worth
    assert (
        reward("fantom", {**BELIEF, "correct_answer": "1"}, f"<answer>{inside}</answer>") == worth
    )


@pytest.mark.parametrize(
    ("inside", "worth"),
    [("Al, Bea", 1), ("bea and AL", 1), ("Al", 0), ("Al, Bea, Cy", 0), ("Alan, Bea", 0), ("", 0)],
)
def test_fantom_list(inside: str, worth: float) -> None:
    assert reward("fantom", LISTED, f"<answer>{inside}</answer>") == worth
    as_text = {**LISTED, "correct_answer": "['Al', 'Bea']", "wrong_answer": "['Cy']"}
    assert reward("fantom", as_text, f"<answer>{inside}</answer>") == worth


@pytest.mark.parametrize(
    ("inside", "polarity"),
    [
        ("Yes", True), ("true, he was", True), ("I say yes, she did", True), ("she knows it", True),
        ("No", False), ("false", False), ("she does not know it", False), ("well, no.", False),
        ("yes and no.", None), ("perhaps", None), ("she knows it, no.", None),
    ],
)  # fmt: skip
def test_fantom_binary(inside: str, polarity: bool | None) -> None:
    said = f"<answer>{inside}</answer>"
    assert reward("fantom", {**BINARY, "correct_answer": "yes"}, said) == (polarity is True)
    assert reward("fantom", BINARY, said) == (polarity is False)


def test_fantom_fact_is_token_f1() -> None:
    fact = {**FANTOM, "question_type": "fact", "correct_answer": "the old mill"}
    assert reward("fantom", fact, "<answer>an old house</answer>") == 0.5


def test_hitom_compares_texts_and_reads_options_with_commas() -> None:
    row = {
        "story": "s", "question": "q", "choices": "A. tall, thin vase, B. red bag, C. box, D. red bag",
        "correct_answer": "red bag",
    }  # fmt: skip
    assert hitom.parse_options(row["choices"]) == {
        "A": "tall, thin vase", "B": "red bag", "C": "box", "D": "red bag",
    }  # fmt: skip
    assert [reward("hitom", row, f"<answer>{x}</answer>") for x in "ABCDE"] == [0, 1, 0, 1, 0]
    assert reward("hitom", row, "<answer>red bag</answer>") == 0


@pytest.mark.parametrize("choices", ["A. x, C. y", "x, y", "B. x", ""])
def test_hitom_refuses_damaged_options(choices: str) -> None:
    with pytest.raises(Unfit):
        hitom.parse_options(choices)


@pytest.mark.parametrize(
    "cands", ["['basket', 'drawer']", '["basket", "drawer"]', ["basket", "drawer"]]
)
def test_paratomi_wants_the_gold_word_alone(cands: Any) -> None:
    row = {"story": "['a.', 'b.']", "question": "q", "cands": cands, "correct_answer": "basket"}
    task = task_from("paratomi", row)
    assert task.public["story"] == "a. b."
    worth = {"basket": 1, "in the Basket.": 1, "basket or drawer": 0, "baskets": 0, "drawer": 0}
    for inside, expected in worth.items():
        assert play(task, f"<answer>{inside}</answer>").reward == expected


def test_social_r1_reads_the_gold_letter_in_both_places() -> None:
    for gold in ({"answer_letter": "c"}, {"answer_text": "C. because"}, {"answer_text": "(C) so"}):
        assert reward("social_r1", {"prompt_text": "p", **gold}, "<answer>c</answer>") == 1
    with pytest.raises(Unfit):
        load_task("social_r1").read({"prompt_text": "p", "answer_text": "Because"})


MISTAKES = {
    "QuestionText": "1/2 + 1/3?", "AnswerAText": "5/6", "AnswerBText": "2/5", "AnswerCText": "1/6",
    "AnswerDText": "1", "MisconceptionName": "adds the tops and the bottoms", "TargetOption": "B",
}  # fmt: skip


def test_mistakes_pays_the_mistake_and_not_the_solution() -> None:
    assert reward("mistakes", MISTAKES, "<answer>b</answer>") == 1
    assert reward("mistakes", MISTAKES, "<answer>A</answer>") == 0
    assert reward("mistakes", MISTAKES, "<answer>E</answer>") == 0


LIFE = {
    "character_name": "Zofia", "input_text": "before",
    "Multiple Choice Question": {
        "Scenario": "s", "Question": "q", "Options": ["1", "2", "3", "4"], "Correct Answer": "C",
    },
}  # fmt: skip


def test_lifechoices_takes_the_tag_only_unless_compat() -> None:
    assert reward("lifechoices", LIFE, "<answer>C</answer>") == 1
    assert reward("lifechoices", LIFE, "The answer is C") == 0
    assert reward("lifechoices", LIFE, "The answer is C", mode="compat") == 1
    assert reward("lifechoices", LIFE, "hmm", mode="compat") == 0
    assert lifechoices.loose_letter("xyz but well") == "B"  # the flaw: any letter at all


def test_twinvoice_counts_choices_from_nought() -> None:
    row = {
        "conversation_history": '["p", "q"]', "anchor_post": "x",
        "answer_choices": '["1", "2", "3", "4"]', "answer_idx": 3,
    }  # fmt: skip
    assert reward("twinvoice", row, "<answer>d</answer>") == 1
    with pytest.raises(Unfit):
        load_task("twinvoice").read({**row, "answer_idx": 4})


def test_behaviorchain_strips_reasoning_first() -> None:
    row = {
        "profile_text": "p", "current_context": "c", "right_option_letter": "b",
        "options_dict": {"A": "1", "B": "2", "C": "3", "D": "4"},
    }  # fmt: skip
    assert reward("behaviorchain", row, "<think><answer>A</answer></think><answer>B</answer>") == 1


def test_alignx_slots_are_the_published_ones() -> None:
    slots = [alignx.slot(index) for index in range(20)]
    assert slots == list("ABABBAABBBABBBBABABA")


def test_alignx_is_upper_case_only_and_shows_two_examples() -> None:
    row = {
        "raw_prompt": "p", "chosen": "good", "rejected": "bad", "index": 1, "profile": "quiet",
        "icl_pairs": [{"prompt": str(n), "chosen": "c", "rejected": "r"} for n in range(4)],
        "ugc": [{"prompt": "p", "comment": str(n)} for n in range(3)],
    }  # fmt: skip
    public = task_from("alignx", row).public
    assert (public["options"], public["persona"]) == (["bad", "good"], "quiet")
    assert (len(public["pairs"]), len(public["comments"])) == (2, 2)
    assert reward("alignx", row, "<answer>B</answer>") == 1
    assert reward("alignx", row, "<answer>b</answer>") == 0


@pytest.mark.parametrize(
    ("inside", "worth"), [("2", 0.5), ("5", 1.0), ("9", 2 / 3), ("2.0", 0.0), ("two", 0.0), ("", 0)]
)
def test_socsci_ordinal(inside: str, worth: float) -> None:
    row = {"prompt_text": "p", "response": 5, "r_min": 1, "r_max": 7, "response_type": "ordinal"}
    assert reward("socsci210", row, f"<answer>{inside}</answer>") == pytest.approx(worth)


def test_socsci_without_order_or_span_is_exact() -> None:
    binary = {"prompt_text": "p", "response": 1.0, "response_type": "Binary"}
    said = {"yes": 1, "YES": 1, "1": 1, "no": 0, "0": 0, "maybe": 0}
    for inside, worth in said.items():
        assert reward("socsci210", binary, f"<answer>{inside}</answer>") == worth
    kinds = {"prompt_text": "p", "response": 3, "r_max": 4, "response_type": "categorical"}
    assert reward("socsci210", kinds, "<answer>2</answer>") == 0
    assert socsci210.closeness(3, 3, (3, 3), "ordinal") == 1.0
    assert socsci210.closeness(4, 3, (3, 3), "ordinal") == 0.0


@pytest.mark.parametrize("bad", [{"response": float("nan")}, {"r_min": 8}, {"response_type": "x"}])
def test_socsci_refuses_numbers_that_are_none(bad: dict[str, Any]) -> None:
    row = {"prompt_text": "p", "response": 5, "r_min": 1, "r_max": 7}
    with pytest.raises(Unfit):
        load_task("socsci210").read({**row, **bad})


@pytest.mark.parametrize(
    ("inside", "worth"),
    [
        ("A,B,C,D,E", 1 / 3), ("C,A,B,D,E", 1.0), ("A,B,D,E,F", 0.0), ("A,B,C,D", 0.0),
        ("A, B, C, D, E", 0.0), ("a,b,c,d,e", 0.0), ("A,B,C,C,E", 0.0), ("A,B,C,D,E,F", 0.0),
        ("A,B,C,D,T", 0.0),
    ],
)  # fmt: skip
def test_humanllm_is_the_reciprocal_rank(inside: str, worth: float) -> None:
    row = {"prompt_text": "p", "candidates": list("pqrstuv"), "answer_index": 2}
    assert reward("humanllm", row, f"<answer>{inside}</answer>") == pytest.approx(worth)


def test_humanllm_puts_letters_in_the_place_of_numbers() -> None:
    row = {
        "prompt_text": "bought a lamp\n\nCandidate 1: p\nCandidate 2: q",
        "candidates": list("pqrst"), "answer_index": 0,
    }  # fmt: skip
    assert task_from("humanllm", row).public["prompt"] == "bought a lamp"
    assert humanllm.read_ranking("A,B,C,D,E", 4) == []
