"""Suites with judges: order, what a failed judge does, one number per verdict, own small sets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.bench.suites import mirrorbench, turing, turing_rl, userlm
from mimesim.bench.suites.base import Inputs, Simulation, Suite
from mimesim.bench.suites.questions import Pair, own_people, pair_up, shown
from mimesim.bench.suites.realusersim import asking, cases
from mimesim.bench.suites.realusersim import suite as pt3
from mimesim.bench.suites.sessions import SessionSet, read_sessions
from mimesim.bench.suites.simarena import asking as arena
from mimesim.bench.suites.simarena import suite as simarena
from mimesim.errors import ConfigError, DataError, UsageError
from mimesim.judges.base import Failed, Judge
from mimesim.judges.pairwise import Order
from mimesim.judges.rubric import JudgeSettings, RubricJudge
from mimesim.judges.rule import RuleJudge
from mimesim.judges.stored import Stored, Verdicts
from mimesim.models.scripted import Scripted
from mimesim.results.suite import SuiteScore
from tests.support.sessions import session, set_of

DRAWS = 200
COMPARED = (
    "1. temper: alike. 2. writing: alike. 3. knowledge: alike. 4. exchange: alike. 5. course: no."
)


def ask(suite: Suite, inputs: Inputs, judge: Judge, place: Path) -> list[Stored]:
    with Verdicts(place / "verdicts.jsonl") as file:
        return asyncio.run(file.all(suite.works(inputs, judge), judge.identity, concurrency=1))


def score(suite: Suite, inputs: Inputs, judge: Judge, place: Path) -> SuiteScore:
    verdicts = ask(suite, inputs, judge, place)
    found = suite.score(replace(inputs, verdicts=verdicts))
    again = suite.score(replace(inputs, verdicts=verdicts))
    assert jsonio.canonical(found.to_json()) == jsonio.canonical(again.to_json())
    return found


def says(reply: Callable[[str], str]) -> Judge:
    """Return a model judge that answers by the question's text."""
    model = Scripted(lambda messages, sampling: reply(messages[-1].content))
    return RubricJudge(model, name="model:scripted", settings=JudgeSettings(reasks=0))


def value(found: SuiteScore, name: str) -> Any:
    return found.metric(name).value.value


def talks(count: int, said: str = "ok where is it") -> SessionSet:
    return set_of(*(session(f"s{i}", f"{said} {i}", "here", task=f"t{i}") for i in range(count)))


def people(count: int) -> SessionSet:
    return set_of(
        *(session(f"p{i}", f"Please, item {i}?", "here", task=f"t{i}") for i in range(count)),
        name="people",
    )


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(0, 5))
def test_the_user_stands_first_in_exactly_every_second_pair(count: int, seed: int) -> None:
    pairs = pair_up(Inputs(talks(count), people(count))).pairs
    found = turing.questions_of(pairs, seed, turing.Options(samples=3))
    for sample in range(3):
        orders = [q.order for q in found if q.sample == sample]
        first = sum(order == Order.SUBJECT_FIRST for order in orders)
        assert first - (count - first) in (0, 1)
        theirs = [q.inputs["first"][0]["text"] for q in found if q.sample == sample]
        assert [text.startswith("ok") for text in theirs] == [o == "AB" for o in orders]


def test_a_judge_that_only_likes_the_first_side_is_at_chance(tmp_path: Path) -> None:
    judge = says(lambda _: '{"conversation_with_human_user": "1", "confidence_rating": 80}')
    found = score(turing.SUITE, Inputs(talks(10), people(10), draws=DRAWS), judge, tmp_path)
    assert (value(found, "accuracy"), value(found, "distance")) == (50, 0)
    assert value(found, "accuracy, person at 1") == 100
    assert value(found, "accuracy, person at 2") == 0
    both = Inputs(talks(10), people(10), draws=DRAWS, options={"both_orders": True})
    assert value(score(turing.SUITE, both, judge, tmp_path), "order-dependent") == 100


def test_what_a_judge_could_not_say_is_counted_and_never_scored(tmp_path: Path) -> None:
    def reply(text: str) -> str:
        if "item 0?" in text:
            return "The second one, I think."
        if "item 1?" in text:
            return '{"conversation_with_human_user": "2", "confidence_rating": 120}'
        if "item 2?" in text:
            return '{"conversation_with_human_user": "both", "confidence_rating": 5}'
        if "item 3?" in text:
            return "I'm sorry, I cannot help with that."
        person = "1" if text.index("Please") < text.index("ok where") else "2"
        return f'{{"conversation_with_human_user": "{person}", "confidence_rating": 90}}'

    inputs = Inputs(talks(12), people(12), draws=DRAWS)
    found = score(turing.SUITE, inputs, says(reply), tmp_path)
    assert found.excluded == {"judge failed": 3, "judge refused": 1}
    assert (value(found, "accuracy"), found.metric("accuracy").value.n) == (100, 8)
    assert found.by_key["caught"].values == {f"t{i}#0": 1.0 for i in range(4, 12)}
    with pytest.raises(DataError, match="none of 12 questions"):
        score(turing.SUITE, inputs, says(lambda _: "no idea"), tmp_path / "silent")


def test_verdicts_on_another_text_belong_to_no_question(tmp_path: Path) -> None:
    inputs = Inputs(talks(4), people(4), draws=DRAWS)
    old = ask(turing.SUITE, inputs, RuleJudge(), tmp_path)
    other = replace(inputs, sessions=talks(4, "hm"), verdicts=old)
    with pytest.raises(DataError, match="not judged: 4"):
        turing.SUITE.score(other)


def test_people_are_drawn_by_lot_where_no_task_is_common(tmp_path: Path) -> None:
    strangers = set_of(*(session(f"x{i}", f"Please, {i}?", "no") for i in range(3)), name="people")
    found = score(turing.SUITE, Inputs(talks(7), strangers, draws=DRAWS), RuleJudge(), tmp_path)
    assert any("by lot" in text for text in found.warnings)
    assert found.metric("accuracy").value.n == 7
    with pytest.raises(DataError, match="in common"):
        pair_up(Inputs(talks(7), strangers), by_lot=False)


def test_next_messages_are_rated_where_the_person_wrote_theirs(tmp_path: Path) -> None:
    real = session("p", "Hi, a kettle?", "Which?", "the red one", "Fine.", "thanks", task="t")
    own = session("s", "Kettle", "Which?", "I would like red", "Fine.", "thanks", task="t")
    inputs = Inputs(set_of(own), set_of(real, name="people"), draws=DRAWS)
    found = score(turing_rl.SUITE, inputs, RuleJudge(), tmp_path)
    assert found.by_key["s"].values.keys() == {"t#0@1", "t#0@2"}
    assert found.by_key["s"].values["t#0@2"] == 4, "the same words are a tie"
    assert value(found, "ties") == 50
    assert found.provenance["histogram"]["4"] == 1
    short = set_of(session("s", "Kettle", "Which?", "red", task="t"))
    with pytest.raises(DataError, match="no message to compare"):
        turing_rl.SUITE.score(replace(inputs, sessions=short))


def test_ratings_follow_people_and_parts_can_be_left_out(tmp_path: Path) -> None:
    made = [
        session(
            f"p{i}",
            f"wish {i}",
            "done",
            task=f"t{i}",
            person=f"w{i // 4}",
            about={"task": "math", "assistant_model": f"m{i % 3}", "level": "L"},
            outcome={"interaction_rating": i % 7 + 1, "problem_1_correctness": "correct"},
        )
        for i in range(12)
    ]
    own = set_of(*(replace(one, success=i < 6) for i, one in enumerate(made)))
    inputs = Inputs(own, set_of(*made, name="people"), draws=DRAWS, options={"parts": "rating"})

    def reply(text: str) -> str:
        return f'{{"rating": {int(text.split("wish ")[1].split()[0]) % 7 + 1}}}'

    found = score(simarena.SUITE, inputs, says(reply), tmp_path)
    assert value(found, "math interaction rho, system") == pytest.approx(1)
    assert value(found, "math macro-F1") == pytest.approx(1 / 3)
    assert "writing" not in found.by_key
    with pytest.raises(ConfigError, match="unknown part"):
        simarena.SUITE.score(replace(inputs, options={"parts": "ratings"}))


def test_our_own_sets_need_nothing_else(tmp_path: Path) -> None:
    own = own_people("sim_doc", "sim_math")
    found = score(simarena.SUITE, Inputs(own, draws=DRAWS), RuleJudge(), tmp_path)
    assert (value(found, "writing"), value(found, "traits shown")) == (5, 100)
    assert any("judge rule" in text for text in found.warnings)
    mirrored = own_people("mirrorbench")
    found = score(mirrorbench.SUITE, Inputs(mirrored, draws=DRAWS), RuleJudge(), tmp_path)
    assert value(found, "gteval") == 1
    assert value(found, "parity gap") == 0
    assert value(found, "gteval calibrated") is None, "the anchors of a perfect copy lie together"
    found = score(userlm.SUITE, Inputs(mirrored, draws=DRAWS), RuleJudge(), tmp_path)
    assert 0 < value(found, "first-turn diversity") < 1
    assert 0 < value(found, "intent overlap") < 1


def played(place: Path, **options: Any) -> SessionSet:
    asked = Simulation("scripted:realistic", place, options=options)
    assert pt3.SUITE.simulate(asked).episodes
    return read_sessions(str(place))


def test_the_paired_test_from_cases_to_an_index(tmp_path: Path) -> None:
    sessions = played(tmp_path / "run", condition="shuffled_profile")
    assert len(sessions.sessions) == len(cases.load_cases())
    assert all(len(one.said) <= 5 for one in sessions.sessions)
    five = {name: {"is_matched": name != asking.SIDES[4]} for name in asking.SIDES}

    def reply(text: str) -> str:
        if "Somebody compared" not in text:
            return COMPARED
        return jsonio.dumps(five)

    failed = replace(sessions, left_out={"user_failure": 2, "infra_failure": 3})
    inputs = Inputs(failed, draws=DRAWS, options={"order_check": True})
    found = score(pt3.SUITE, inputs, says(reply), tmp_path)
    assert (found.suite, found.provenance["condition"]) == ("pt3-own", "shuffled_profile")
    assert (value(found, "FI"), value(found, "D5")) == (80, 0)
    assert value(found, "FI_strict") == pytest.approx(80 * 8 / 10)
    strict = found.metric("FI_strict").value
    assert strict.low is not None
    assert strict.high is not None
    assert strict.low < 64 < strict.high
    assert value(found, "order-dependent") == 0


def test_a_side_without_an_answer_is_no_answer(tmp_path: Path) -> None:
    sessions = played(tmp_path / "run")
    four = {name: {"is_matched": True} for name in asking.SIDES[:4]}

    def reply(text: str) -> str:
        return jsonio.dumps(four) if "Somebody compared" in text else COMPARED

    with pytest.raises(DataError, match="judge failed: 8"):
        score(pt3.SUITE, Inputs(sessions, draws=DRAWS), says(reply), tmp_path)


def test_the_name_of_the_index_needs_the_prompts_of_the_data(tmp_path: Path) -> None:
    file = tmp_path / "judge_prompt.txt"
    file.write_text(
        "SYSTEM PROMPT\n=====\nCompare.\n\nFORMATTING PROMPT (applied)\n=====\nFill in.\n", "utf-8"
    )
    assert asking.read_prompts(str(file)) == asking.Prompts("Compare.", "Fill in.")
    assert pt3.Options(judge_prompt=str(file)).name == "pt3-own"
    assert pt3.Options(judge_prompt=str(file), sim_template=str(file)).name == "pt3"
    question = asking.question("c", ["hi"], ["ho"], asking.Prompts("Compare.", "Fill in."))
    asked = Scripted(lambda messages, sampling: COMPARED)
    with Verdicts(tmp_path / "v.jsonl") as verdicts:
        judge = RubricJudge(asked, settings=JudgeSettings(reasks=0))
        asyncio.run(verdicts.all([question.work(judge, 0)], judge.identity))
    assert [m[-1].content.split("\n")[0] for m, _ in asked.requests] == ["Compare.", "Fill in."]
    file.write_text("SYSTEM PROMPT\n=====\nCompare.\n", "utf-8")
    with pytest.raises(DataError, match="FORMATTING PROMPT"):
        asking.read_prompts(str(file))


def test_damaged_cases_are_refused(tmp_path: Path) -> None:
    (row,) = [line.value for line in jsonio.read_jsonl(cases.OWN)][:1]
    place = tmp_path / "evaluation" / "test_sets"
    place.mkdir(parents=True)
    for name in ("mixed_domain", "ecommerce"):
        (place / f"{name}.jsonl").write_text(jsonio.dumps(row) + "\n", "utf-8")
    assert [one.id for one in cases.load_cases(str(tmp_path))] == ["ecommerce-1", "mixed_domain-1"]
    assert [one.id for one in cases.load_cases(str(tmp_path), dedup=True)] == ["ecommerce-1"]
    (place / "ecommerce.jsonl").write_text(
        jsonio.dumps(row | {"problem_desc": " "}) + "\n", "utf-8"
    )
    with pytest.raises(DataError, match="problem_desc is empty"):
        cases.load_cases(str(tmp_path))
    for wrong in ({"id": "a", "turns": [{"role": "user", "text": "hi"}]}, ["row"], {}):
        (place / "ecommerce.jsonl").write_text(jsonio.dumps(wrong) + "\n", "utf-8")
        with pytest.raises(DataError, match=r"ecommerce\.jsonl:1"):
            cases.load_cases(str(tmp_path))
    with pytest.raises(DataError, match="no test set"):
        cases.load_cases(str(tmp_path / "evaluation" / "nowhere"))
    with pytest.raises(UsageError, match="condition"):
        cases.under(cases.load_cases(), "profile", 0)


@settings(max_examples=25)
@given(st.integers(2, 60), st.integers(0, 1000))
def test_donors_form_one_cycle(n: int, seed: int) -> None:
    order, place, seen = cases.sattolo(n, seed), 0, set()
    while place not in seen:
        seen.add(place)
        place = order[place]
    assert len(seen) == n


def test_six_metrics_from_items_with_outputs(tmp_path: Path) -> None:
    end = "<|endconversation|>"
    items: list[dict[str, Any]] = [
        {"source": "prism", "intent": "plan a trip", "is_last_turn": False, "output": "hi there"},
        {"source": "prism", "intent": "plan a trip", "is_last_turn": True, "output": end},
        {"source": "prism", "intent": "plan a trip", "is_last_turn": True, "output": "a trip"},
        {"source": "commonsense_qa", "choices": ["sea", "sky"], "output": "the sea or the sky?"},
        {"source": "commonsense_qa", "choices": ["sea", "sky", "sun"], "output": "the sea"},
        {"source": "commonsense_qa", "choices": ["sea", "sky", "sun"], "output": "hm"},
        {
            "source": "natural_questions",
            "question": "who built it",
            "assistant_suggestion_turn": "Ask when it fell.",
            "output": "no, who built it",
        },
    ]
    file = tmp_path / "items.jsonl"
    file.write_text(
        "".join(jsonio.dumps({"id": i, **one}) + "\n" for i, one in enumerate(items)), "utf-8"
    )
    inputs = Inputs(talks(1), draws=DRAWS, options={"items": str(file)})
    found = score(userlm.SUITE, inputs, RuleJudge(), tmp_path)
    assert value(found, "first-turn diversity") == 1
    assert value(found, "intent overlap") == 0.5
    assert value(found, "termination F1") == pytest.approx(2 / 3)
    assert (value(found, "role adherence"), found.metric("role adherence").value.n) == (50, 2)
    assert found.metric("role adherence").note.startswith("1 ignored")
    assert value(found, "intent adherence") == 100
    file.write_text('{"id": 1, "source": "prism"}\n', "utf-8")
    with pytest.raises(DataError, match="no item"):
        userlm.SUITE.score(inputs)


def test_suites_play_our_own_sets_and_score_what_they_played(tmp_path: Path) -> None:
    suites: tuple[Any, ...] = (simarena.SUITE, mirrorbench.SUITE, turing_rl.SUITE)
    names = ("writing", "gteval", "s")
    for suite, name in zip(suites, names, strict=True):
        out = tmp_path / suite.facts.name
        suite.simulate(Simulation("scripted:realistic", out, quick=True))
        found = score(suite, Inputs(read_sessions(str(out)), draws=DRAWS), RuleJudge(), out)
        assert found.metric(name).value.n >= 4
    asked = Simulation("scripted:realistic", tmp_path / "pt3", data=str(cases.OWN))
    with pytest.raises(UsageError, match="nobody answers"):
        pt3.SUITE.simulate(asked)


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("Unfortunately, I cannot assist with comparing these users.", "judge refused: 8"),
        ("As an AI model, I must decline this.", "judge refused: 8"),
        ("asdf", "judge failed: 8"),
        ("1. temper: alike. 2. writing: alike.", "judge failed: 8"),
    ],
)
def test_a_first_step_that_compares_nothing_is_no_verdict(
    told: str, state: str, tmp_path: Path
) -> None:
    none = jsonio.dumps({name: {"is_matched": False} for name in asking.SIDES})
    judge = says(lambda text: none if "Somebody compared" in text else told)
    with pytest.raises(DataError, match=state):
        score(pt3.SUITE, Inputs(played(tmp_path / "run"), draws=DRAWS), judge, tmp_path)


def test_a_document_that_nobody_wrote_is_not_rated() -> None:
    told = session("s", "A letter to my landlord, please.", "Dear landlord, the roof leaks.")
    for text, rated in (
        ("Dear landlord, the roof leaks.", True),
        ("I am unable to take a document out of that.", False),
        ("", False),
    ):
        first = arena._document_question(Pair("s", told, told), shown(told))
        assert first.then is not None
        assert isinstance(first.then(arena.Document(document=text)), Failed) is not rated


def test_judges_of_suites_are_read_by_their_last_object(tmp_path: Path) -> None:
    form = '{"conversation_with_human_user": "%s", "confidence_rating": 80}'
    judge = says(lambda _: f"Such as {form % 1}, but in the end: {form % 2}")
    verdicts = ask(turing.SUITE, Inputs(talks(2), people(2)), judge, tmp_path)
    assert {one.value["conversation_with_human_user"] for one in verdicts if one.value} == {"2"}


def test_what_needs_no_judge_is_measured_where_all_verdicts_are_lost(tmp_path: Path) -> None:
    mirrored = Inputs(own_people("mirrorbench"), draws=DRAWS)
    found = score(userlm.SUITE, mirrored, says(lambda _: "no idea"), tmp_path)
    assert 0 < value(found, "first-turn diversity") < 1
    assert found.excluded["judge failed"] > 0
