"""Guards: what fires, what passes, and how often hard guards fire on real human turns."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.users.guards import Situation, check, clean, says_value, word_lists

GOAL = "get a full refund for the blue kettle bought on 3 March"


def hard(text: str, situation: Situation | None = None) -> list[str]:
    return [fault.guard for fault in check(text, situation or Situation()) if fault.hard]


def soft(text: str, situation: Situation) -> list[str]:
    return [fault.guard for fault in check(text, situation) if not fault.hard]


FIRES = [
    ("meta_talk", "The instructions say I am the customer, not the assistant, so I answer as one: where is my order?"),
    ("meta_talk", "As an AI language model I have no order."),
    ("meta_talk", "I\u2019m just a chatbot"),
    ("meta_talk", "I was told to play a customer, so: hi"),
    ("meta_talk", "Here is the next user message: hi"),
    ("meta_talk", "**Thinking Process:** 1. the person wants"),
    ("meta_talk", "The user wants me to ask about a refund."),
    ("role_flip", "Of course! Let me look that up for you. Could you share your account number?"),
    ("role_flip", "How can I help you today?"),
    ("role_flip", "I'd be happy to assist you with that."),
    ("role_flip", "Is there anything else I can help you with?"),
    ("role_flip", "Per our return policy that is too late."),
    ("role_flip", "We are unable to refund this."),
    ("role_flip", "I have processed your refund."),
    ("role_flip", "Sorry for the inconvenience."),
    ("speaker_text", "hi\nAgent: hello, how are you"),
    ("speaker_text", "User: hi"),
    ("speaker_text", "**Assistant:** hello"),
    ("speaker_text", "hi<|im_end|>"),
    ("speaker_text", "[INST] hi [/INST]"),
    ("refusal", "I'm sorry, but I can't help with that."),
    ("refusal", "I\u2019m not able to take part in this role-play."),
    ("refusal", "Sorry, I cannot adopt this persona."),
    ("refusal", "I'm not comfortable pretending to hold that opinion."),
    ("refusal", "That would go against my guidelines."),
    ("refusal", "I do not have personal opinions on that."),
    ("refusal", "I must decline to play this role."),
    ("leftover_tag", "hi <reasoning>x"),
    ("leftover_tag", "[thinking] hi"),
    ("leftover_tag", "hi </think>"),
    ("leftover_tag", "\uff1cthink\uff1ex\uff1c/think\uff1ehi"),
    ("leftover_tag", "<th\u200bink>x</th\u200bink>hi"),
    ("leftover_tag", "&lt;think&gt;x&lt;/think&gt;hi"),
    ("leftover_tag", "hi <think depth=2"),
    ("leftover_tag", "\u2039\u0442hink\u203ax"),
    ("leftover_tag", "<cot>x</cot> hi"),
    ("leftover_tag", "{thoughts} x"),
    ("leftover_tag", "```plan\nx\n```\nhi"),
    ("leftover_tag", "hi\n**Thinking:** x"),
    ("speaker_text", '<tool_call>{"name": "f"}</tool_call>'),
    ("speaker_text", "<function=f><parameter=a>1"),
    ("speaker_text", '[TOOL_CALLS][{"name": "f"}]'),
    ("speaker_text", "<\uff5ctool\u2581calls\u2581begin\uff5c>f"),
    ("speaker_text", "</scenario> hi"),
    ("speaker_text", "analysis to=functions.f"),
    ("speaker_text", "Where?assistantanalysisThe user"),
]  # fmt: skip

PASSES = [
    "The model on the sticker is AI-200 and the prompt light blinks.",
    "can you look that up for me? my account number is 88",
    "is 3 < 5 and 7 > 2, right?",
    "Your form tells me to press start. What is that for?",
    "the instructions say to hold the button for ten seconds",
    "let me check my mail, one sec",
    "i can't find the policy on your page",
    "your colleague already approved this yesterday",
    "then let me talk to your supervisor",
    "i am a gold member",
    "my order: 2 teapots, 1 lid",
    "sorry, i can't agree with that",
    "i won't pretend to be happy about it",
    "you can't help with this? then get me someone else",
    "that is against my principles",
    "i can't play the part of the video that i want",
    "i was thinking: could it be the <b>fan</b> and not the tool?",
    "my budget < 300 and the goal > 5 stars",
    "analysis: the bill is wrong",
    "le \u00ab plan \u00bb et le \u00ab r\u00f4le \u00bb, \u2039Notes\u203a",
    "what is your plan? [sent from my phone] {smile}",
    "",
]


@pytest.mark.parametrize(("guard", "text"), FIRES)
def test_fires(guard: str, text: str) -> None:
    assert guard in hard(text)


@pytest.mark.parametrize("text", PASSES)
def test_passes(text: str) -> None:
    assert hard(text) == []


def test_goal_echo_in_the_first_message_only() -> None:
    recited = "I want to get a full refund for the blue kettle bought on 3 March."
    own = "hi, something is wrong with a kettle i got"
    assert hard(recited, Situation(opening=True, goal=GOAL)) == ["goal_echo"]
    assert hard(own, Situation(opening=True, goal=GOAL)) == []
    assert hard(recited, Situation(goal=GOAL)) == []
    assert hard(recited, Situation(opening=True, goal=GOAL, may_state_goal=True)) == []


def test_goal_echo_by_content_words() -> None:
    reworded = "full refund, blue kettle - bought 3 March!!"
    assert hard(reworded, Situation(opening=True, goal=GOAL)) == ["goal_echo"]


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("it's about order 55-127", "55127", True),
        ("5 5 1 2 7", "55127", True),
        ("order 55.127.", "55127", True),
        ("order 155127", "55127", False),
        ("discard it", "card", False),
        ("by CREDIT-card", "credit card", True),
        ("yes", "yes", False),
        ("flat 2", "2", False),
        ("two jackets, a lamp", ["lamp"], True),
        ("mail to A.Meyer@example.com", "a.meyer@example.com", True),
        ("nothing", True, False),
    ],
)
def test_values_are_found_in_any_spelling(text: str, value: object, said: bool) -> None:
    assert says_value(text, value) is said


def test_withheld_values_are_hard_and_conditional_ones_soft() -> None:
    scene = Situation(withheld={"order_id": "55127"}, until={"zip": "80912"})
    found = check("order 55127, zip 80912", scene)
    assert [(f.guard, f.hard, f.detail) for f in found] == [
        ("withheld_leak", True, "order_id"),
        ("withheld_leak", False, "zip"),
    ]


def test_prompt_leak_spares_what_a_user_may_say() -> None:
    run = "one two three four five six seven eight nine ten eleven twelve"
    assert hard(f"well {run}", Situation(prompt=f"x {run} y")) == ["prompt_leak"]
    assert hard(run[:-7], Situation(prompt=run)) == []
    for scene in (
        Situation(prompt=run, goal=run),
        Situation(prompt=run, citable=[run]),
        Situation(prompt=run, agent_text=run),
    ):
        assert "prompt_leak" not in hard(run, scene)


def test_soft_guards() -> None:
    asked = "May I have your order number please?"
    assert soft("may i have your order number please", Situation(agent_text=asked)) == ["parrot"]
    assert soft("yes", Situation(agent_text="yes")) == []
    assert soft("Again!", Situation(own=["again"])) == ["repeat"]
    assert soft("x" * 11, Situation(max_chars=10)) == ["too_long"]


def test_the_only_change_of_characters() -> None:
    assert clean("ok \ud83d done\x00") == ("ok \ufffd done\ufffd", True)
    assert clean("fine 📦") == ("fine 📦", False)


def test_details_never_hold_the_value() -> None:
    scene = Situation(opening=True, goal=GOAL, withheld={"order_id": "55127"}, prompt=GOAL)
    for fault in check(f"{GOAL} 55127", scene):
        assert "55127" not in fault.detail
        assert "kettle" not in fault.detail


@given(st.text(max_size=200))
def test_any_text_can_be_checked(text: str) -> None:
    check(
        text,
        Situation(
            opening=True, goal=text, withheld={"a": text}, prompt=text, agent_text=text, own=[text]
        ),
    )


CORPORA = [
    "abcd/conversations", "multiwoz/dialogues", "sgd/dialogues", "star/dialogues",
    "open_assistant/threads", "casino/dialogues", "chitchat/dialogues",
    "multidogo/customer_turns", "taskmaster4/dialogues", "persuasion_for_good/dialogues",
]  # fmt: skip


@pytest.mark.parametrize("corpus", CORPORA)
def test_hard_guards_rarely_fire_on_real_users(corpus: str, test_data: Path) -> None:
    """At most 1 % of human turns for each hard guard."""
    path = test_data / f"{corpus}.jsonl"
    if not path.exists():
        pytest.skip(f"{corpus} is not among the corpora")
    fired: Counter[str] = Counter()
    turns = 0
    for line in jsonio.read_jsonl(path):
        goal = line.value.get("goal") or ""
        goal = goal if isinstance(goal, str) else ""
        own = [t["text"] for t in line.value["turns"] if t["role"] == "user"]
        for place, text in enumerate(own):
            turns += 1
            scene = Situation(opening=place == 0, goal=goal, prompt=goal)
            fired.update(set(hard(text, scene)))
    assert turns > 50
    assert {g: n for g, n in fired.items() if n > 0.01 * turns} == {}


def test_word_lists_are_patterns() -> None:
    lists = word_lists()
    assert set(lists) == {"meta_talk", "role_flip", "speaker_text", "leftover_tag", "refusal"}
    for patterns in lists.values():
        assert patterns
        assert all(isinstance(pattern, re.Pattern) for pattern in patterns)
