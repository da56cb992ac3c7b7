"""From a conversation to a scenario: evidence for everything, and a file that loads."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.corpora.base import CorpusInfo, HumanDialogue, HumanTurn, tidy
from mimesim.dialogue.stop import mentions_marker
from mimesim.scenarios.fields import says
from mimesim.scenarios.types import Scenario
from mimesim.users import guards
from mimesim.users.briefing import asked_for
from mimesim.users.distill.contacts import pseudonymized
from mimesim.users.distill.goals import quotes
from mimesim.users.distill.scenario import distill, fit_scenario

INFO = CorpusInfo("own", "own data", "no", "unknown", "own logs", moderated=False)
SPOKEN = (
    "hi I need want a refund for order 55127 please my name is Mira Olten what day would you like"
    " Friday at 14:30 how many people 4 nights from Oak Hill to Fen End yes no thanks . ? ! mail"
    " mira@post.example.org do you have a receipt where are departing cheap north don't know"
)
WORDS = st.sampled_from(SPOKEN.split())
TEXTS = st.one_of(st.lists(WORDS, min_size=1, max_size=25).map(" ".join), st.text(max_size=80))
TALKS = st.lists(st.tuples(st.sampled_from(["user", "agent"]), TEXTS), min_size=1, max_size=9)


def made(*talk: tuple[str, str]) -> tuple[HumanDialogue, Scenario | None]:
    turns = tidy([HumanTurn(role, text) for role, text in talk], Counter())  # type: ignore[arg-type]
    dialogue = HumanDialogue("d", turns)
    found = distill(dialogue) if any(turn.role == "user" for turn in turns) else None
    if found is None:
        return dialogue, None
    return dialogue, fit_scenario(dialogue, found, INFO, {"by": "rules"}, Counter())


@given(TALKS)
def test_no_fact_without_evidence_and_every_quote_stands_in_its_turn(
    talk: list[tuple[str, str]],
) -> None:
    dialogue, scenario = made(*talk)
    if scenario is None:
        return
    evidence = scenario.meta.get("evidence", {})
    assert set(evidence) == set(scenario.facts)
    for place in evidence.values():
        turn = dialogue.turns[place["turn"]]
        assert turn.role == "user"
        assert place["quote"] in turn.text
        if "asked" in place:
            question = dialogue.turns[place["asked"]["turn"]]
            assert question.role == "agent"
            assert place["asked"]["quote"] in question.text
            assert place["asked"]["turn"] == place["turn"] - 1
    for place in (
        *scenario.meta["goal_evidence"],
        *scenario.meta.get("unknown_evidence", {}).values(),
    ):
        assert place["quote"] in dialogue.turns[place["turn"]].text


@given(TALKS)
def test_what_is_withheld_can_be_asked_for_and_is_told_nowhere_else(
    talk: list[tuple[str, str]],
) -> None:
    dialogue, scenario = made(*talk)
    if scenario is None:
        return
    opening = next(turn.text for turn in dialogue.turns if turn.role == "user")
    for entry in scenario.withhold:
        value = scenario.facts[entry.fact]
        question = scenario.meta["evidence"][entry.fact]["asked"]["quote"]
        assert entry.fact in asked_for(question, [entry.fact])
        assert not says(scenario.goal, value)
        assert not says(opening, value)


@given(TALKS)
def test_a_scenario_loads_and_states_its_goal_only_where_it_may(
    talk: list[tuple[str, str]],
) -> None:
    dialogue, scenario = made(*talk)
    if scenario is None:
        return
    again = Scenario.from_json(jsonio.loads(jsonio.dumps(scenario.to_json())), "x")
    assert again == scenario
    opening = next(turn.text for turn in dialogue.turns if turn.role == "user")
    if not scenario.may_state_goal:
        assert not quotes(opening, scenario.goal)
        assert not guards.echoes(guards.words(opening), guards.words(scenario.goal))


@given(TALKS)
def test_no_mail_of_a_customer_reaches_a_scenario(talk: list[tuple[str, str]]) -> None:
    turns = tidy([HumanTurn(role, text) for role, text in talk], Counter())  # type: ignore[arg-type]
    dialogue, _ = pseudonymized(HumanDialogue("d", turns), seed=0)
    found = distill(dialogue) if any(turn.role == "user" for turn in turns) else None
    scenario = found and fit_scenario(dialogue, found, INFO, {}, Counter())
    if scenario:
        assert "mira@post" not in jsonio.dumps(scenario.to_json())


def test_a_whole_conversation() -> None:
    _, scenario = made(
        ("user", "Hi, I want to change the delivery of my order"),
        ("agent", "Gladly. What is your order number?"),
        ("user", "55127"),
        ("agent", "And on what day should it come?"),
        ("user", "Friday would be great"),
        ("agent", "Done!"),
        ("user", "perfect, thanks"),
    )
    assert scenario is not None
    assert scenario.goal == "change the delivery of your order"
    assert scenario.facts == {"order_id": "55127", "day": "Friday"}
    assert [entry.fact for entry in scenario.withhold] == ["order_id", "day"]
    assert scenario.meta["outcome"] == {"ending": "thanked", "turn": 6, "quote": "perfect, thanks"}
    assert scenario.meta["evidence"]["day"] == {
        "turn": 4,
        "quote": "Friday would be great",
        "by": "rule",
        "asked": {"turn": 3, "quote": "And on what day should it come?"},
    }
    assert scenario.max_turns == 8


def test_a_conversation_with_an_end_marker_gives_none() -> None:
    skipped: Counter[str] = Counter()
    dialogue = HumanDialogue("d", (HumanTurn("user", "I want to know what /close does"),))
    found = distill(dialogue)
    assert found is not None
    assert mentions_marker(found.goal)
    assert fit_scenario(dialogue, found, INFO, {}, skipped) is None
    assert skipped == {"end_marker": 1}


def test_a_huge_message_is_read_at_its_beginning() -> None:
    text = "I want to cancel order 55127. " + "blah from here to there 12:30 " * 40_000
    _, scenario = made(("user", text))
    assert scenario is not None
    assert scenario.facts["order_id"] == "55127"
    assert len(jsonio.dumps(scenario.to_json())) < 20_000
