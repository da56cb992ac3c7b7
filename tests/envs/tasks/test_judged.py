"""The judged tasks: worked examples, judges of every kind, and what is missing data."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mimesim.dialogue.stop import USERLM_MARKER, Status
from mimesim.envs.tasks import arena, coser, humanual, sotopia, turing, userllm
from mimesim.envs.tasks.load import REGISTRY, load_rows, load_task
from mimesim.envs.tasks.partner import ModelPartner, PartnerRequest
from mimesim.envs.tasks.players import Ends
from mimesim.errors import EnvError, JudgeError
from mimesim.judges.rubric import RubricJudge
from mimesim.models.scripted import Scripted
from tests.envs.tasks.asking import episodes, extreme_judge, play, reward, task_from

JUDGED = [name for name in REGISTRY.builtin if not load_task(name).info.judge_free]


@pytest.mark.parametrize("name", JUDGED)
def test_top_marks_of_a_judge_model_are_the_best_reward(name: str) -> None:
    """Renders every judge template and reads its schema back."""
    tasks = load_rows(name).tasks[:4]
    best = {"turing": 0.9 * 3 / 6 + turing.FORM_BONUS}.get(name, 1.0)
    for episode in episodes(tasks, Ends("oracle"), judge=extreme_judge(best=True)):
        assert episode.outcome.status is Status.COMPLETED, episode.errors
        assert episode.outcome.reward == pytest.approx(best)


@pytest.mark.parametrize("name", JUDGED)
def test_a_judge_that_writes_prose_is_missing_data(name: str) -> None:
    prose = RubricJudge(Scripted(lambda messages, sampling: "I would say it was fine."))
    tasks = [t for t in load_rows(name).tasks if t.hidden.get("kind") not in ("choices", "prism")]
    (episode,) = episodes(tasks[:1], Ends("oracle"), judge=prose)
    assert episode.outcome.status is Status.JUDGE_FAILURE
    assert (episode.outcome.reward, episode.outcome.success) == (None, None)


@pytest.mark.parametrize(
    "answer", ['{"score": 1.2}', '{"score": NaN}', '{"score": "high"}', "{}", ""]
)
def test_numbers_out_of_range_nan_or_nothing_are_missing_data(answer: str) -> None:
    judge = RubricJudge(Scripted(lambda messages, sampling: answer))
    (episode,) = episodes(load_rows("mirrorbench").tasks[:1], Ends("oracle"), judge=judge)
    assert episode.outcome.status is Status.JUDGE_FAILURE


@pytest.mark.parametrize(
    ("grades", "weighted", "raw"),
    [
        ((0, 0, 0, 0, 0, 0, 0), 0.291667, 0.0),
        ((9, 2, 3, 0, 0, 1, 7), 0.691667, 0.314286),
        ((10, 5, 10, 0, 0, 5, 10), 1.0, 0.571429),
        ((0, -5, 0, -10, -10, -5, 0), 0.0, -0.428571),
    ],
)
def test_sotopia_scales(grades: tuple[int, ...], weighted: float, raw: float) -> None:
    named = dict(zip(sotopia.SCALES, grades, strict=True))
    assert sotopia.weighted(named) == pytest.approx(weighted, abs=1e-6)
    assert sotopia.raw_mean(named) == pytest.approx(raw, abs=1e-6)


SCENE = {
    "agent1_name": "Ada", "agent2_name": "Bo", "agent1_goal": "sell the piano",
    "agent2_goal": "pay little", "scenario": "Agent1 shows agent2 a piano", "relationship": "strangers",
}  # fmt: skip


def act(kind: str, argument: str = "") -> str:
    return json.dumps({"action_type": kind, "argument": argument})


def test_sotopia_an_actor_who_does_nothing_gets_the_floor() -> None:
    result = play(task_from("sotopia", SCENE), *[act("none")] * 8)
    assert result.done
    assert result.reward == pytest.approx(0.2917, abs=1e-4)
    assert "Ada shows Bo a piano" in task_from("sotopia", SCENE).public["scenario"]


def test_sotopia_leaving_counts_from_the_sixth_turn_on() -> None:
    task = task_from("sotopia", SCENE)
    assert not play(task, act("leave")).done
    assert not play(task, act("speak", "hi"), act("speak", "x"), act("leave")).done
    last = play(task, *[act("speak", "hi")] * 3, act("leave"))  # turn index 6
    assert last.done
    assert str(last.by) == "agent"
    second = task_from("sotopia", {**SCENE, "eval_position": "agent2"})
    assert play(second, act("speak", "hi"), act("speak", "x"), act("leave")).done  # turn index 5


def test_sotopia_what_is_no_action_does_nothing() -> None:
    task = task_from("sotopia", SCENE)
    result = play(task, *["I sell the piano"] * 8)
    assert result.reward == pytest.approx(0.2917, abs=1e-4)
    assert result.private.grading["unreadable"] == 8
    assert result.private.grading["raw"] == 0


def test_sotopia_three_idle_turns_in_a_row_end_it() -> None:
    idle = ModelPartner(Scripted(lambda messages, sampling: act("none")))
    (episode,) = episodes([task_from("sotopia", SCENE)], Ends("null"), partner=idle)
    assert len(episode.steps) == 2
    assert episode.outcome.reward == pytest.approx(0.2917, abs=1e-4)


def test_sotopia_gaming_costs_in_its_mode_only() -> None:
    def verdict(level: str) -> RubricJudge:
        def reply(messages: Any, sampling: Any) -> str:
            if "level" in messages[0].content:
                return json.dumps({"level": level})
            return json.dumps(dict(zip(sotopia.SCALES, (10, 5, 10, 0, 0, 5, 10), strict=True)))

        return RubricJudge(Scripted(reply))

    said = [act("speak", "hello")] * 8
    task = task_from("sotopia", SCENE)
    for level, worth in {"none": 1.0, "low": 1.0, "medium": 0.5, "high": 0.25}.items():
        assert play(task, *said, judge=verdict(level), mode="hack-judge").reward == worth
        assert play(task, *said, judge=verdict(level)).reward == 1.0


def test_coser_grades() -> None:
    assert [coser.percent(s) for s in (1, 4, 7, 10)] == [0.0, 33.3, 66.7, 100.0]
    assert coser.public_part("[hm] Yes. (nods) [no]") == "Yes. (nods)"


def test_coser_the_scene_ends_by_the_partner_or_after_ten_rounds() -> None:
    task = load_rows("coser").tasks[0]
    endless = ModelPartner(Scripted(lambda messages, sampling: task.public["cast"][0]["name"]))
    (episode,) = episodes([task], Ends("null"), partner=endless)
    assert len(episode.steps) == coser.ROUNDS
    ends = ModelPartner(Scripted(lambda messages, sampling: "<END CHAT>"))
    (episode,) = episodes([task], Ends("null"), partner=ends)
    assert len(episode.steps) == coser.END_FROM + 1  # not before: the next one in turn speaks


def test_coser_reads_rows_with_and_without_a_circumstance() -> None:
    scene = {
        "book": "B", "plot": {"summary": "p"}, "scenario": "s", "major_characters": ["X"],
        "dialogues": [{"character": "X", "message": "[hm] hello"}], "profiles": {"X": "old"},
    }  # fmt: skip
    read = load_task("coser").read
    assert read(scene) == read({"circumstance": scene}) == read({"circumstance": json.dumps(scene)})
    assert read(scene).hidden["reference"] == [{"role": "X", "text": "hello"}]


@pytest.mark.parametrize(
    ("generated", "reference", "factor"), [(6, 40, 0.5), (6, 19, 1.0), (12, 40, 1.0), (0, 20, 0.0)]
)
def test_humanual_length_factor(generated: int, reference: int, factor: float) -> None:
    assert humanual.length_factor(generated, reference) == factor


def test_humanual_is_the_mean_of_six_times_the_length_factor() -> None:
    half = RubricJudge(Scripted(lambda *_: json.dumps(dict.fromkeys(humanual.SIDES, 0.5))))
    row = {"prompt": '[{"role": "user", "content": "What now?"}]', "completion": "word " * 40}
    assert reward("humanual_email", row, "one two three four five six", judge=half) == 0.25
    assert task_from("humanual_email", row).public["prompt"] == "What now?"
    short = {"prompt": "p", "completion": "word " * 19}
    assert reward("humanual_email", short, "six", judge=half) == 0.5


def test_mirrorbench_mirrors_ten_messages_and_no_last_reply() -> None:
    turns = [{"role": "user" if n % 2 == 0 else "assistant", "content": str(n)} for n in range(14)]
    task = task_from("mirrorbench", {"task_description": "d", "turns": turns})
    assert [turn["text"] for turn in task.hidden["turns"]] == [str(n) for n in range(9)]
    begun = task_from("mirrorbench", {"task_description": "d", "turns": turns[1:]})
    (episode,) = episodes([begun], Ends("oracle"))
    assert episode.turns[0].content == "1"  # the assistant that spoke first is repeated
    assert episode.outcome.reward == 1.0


PRISM = {"source": "PRISM", "intent": "Plan trip Japan spring", "is_last_turn": False}
HUMAN = RubricJudge(Scripted(lambda *_: '{"verdict": "human"}'))


def test_userllm_overlap_is_added_or_turned_round() -> None:
    said = "wanna plan japan trip"
    assert userllm.intent_overlap("Plan, trip: Japan (spring)", said) == 0.75
    assert reward("userllm", PRISM, said, judge=HUMAN) == pytest.approx((0.25 + 1 + 1) / 3)
    faithful = reward("userllm", PRISM, said, judge=HUMAN, mode="faithful")
    assert faithful == pytest.approx((0.75 + 1 + 1) / 3)


def test_userllm_end_marker() -> None:
    last = {**PRISM, "is_last_turn": "true"}
    assert reward("userllm", last, USERLM_MARKER) == 1.0
    assert reward("userllm", PRISM, USERLM_MARKER) == 0.0
    said = f"thanks bye {USERLM_MARKER} and more of this"
    assert reward("userllm", last, said, judge=HUMAN) == 1.0
    # faithful: the marker is one more word of the turn, so 1 of 2 words is shared, not 1 of 1
    assert userllm.intent_overlap("japan", f"japan {USERLM_MARKER}") == 0.5


def test_userllm_cuts_the_stock_prefix() -> None:
    stock = "You are a user chatting with an assistant language model. Buy a bike."
    assert task_from("userllm", {**PRISM, "intent": stock}).public["intent"] == "Buy a bike."


def test_userllm_role_adherence() -> None:
    assert [userllm.role_adherence(n, 5) for n in range(6)] == [1, 0, 0, 1, 1, None]
    options = ["a pen", "a saddle", "bread", "salt", "milk"]
    row = {
        "source": "commonsense_qa",
        "intent": "i",
        "choices": {"text": options, "label": list("ABCDE")},
    }
    assert reward("userllm", row, "hard to say") == 1
    assert reward("userllm", row, "A Pen!") == 0
    assert reward("userllm", row, "is it a pencil?") == 1
    with pytest.raises(EnvError):
        reward("userllm", row, ", ".join(options))
    assert reward("userllm", row, ", ".join(options), mode="faithful") == 0


def test_userllm_keeping_the_own_question() -> None:
    row = {
        "source": "natural_questions", "question": "How tall is the dune?",
        "assistant_suggestion_turn": "Shall we talk of camels?",
    }  # fmt: skip
    assert reward("userllm", row, "no, how tall is the dune?") == 1
    assert reward("userllm", row, "ok let us talk of camels") == 0


MATH = {
    "problem": "1 + 1", "human_user_queries": ["help me", ["photo.png"], "so two?"],
    "human_public_conversation": [{"role": "user", "content": "help me"}],
    "target_interaction_style_features": [
        {"Feature Name": "Length", "Feature Question Answer": "short"}, {"Feature Name": "empty"},
        {"Feature Name": "Doubt", "Feature Question": "does it doubt?"},
    ],
}  # fmt: skip


def test_arena_matches_features_by_name_and_leaves_out_what_has_no_verdict() -> None:
    told = arena.Features.model_validate(
        {"results": [
            {"name": "doubt ", "classification": "Match"}, {"name": "x", "classification": "No Match"},
        ]}
    )  # fmt: skip
    assert arena.match_share(told, ["Length", "Doubt"]) == 1.0
    assert arena.match_share(told, ["Length"]) is None
    assert arena.match_share(None, ["Length"]) is None


def test_arena_skips_queries_that_are_no_text_and_features_without_words() -> None:
    hidden = task_from("sim_math", MATH).hidden
    assert hidden["queries"] == ["help me", "so two?"]
    assert [one["name"] for one in hidden[arena.INTERACTION]] == ["Length", "Doubt"]


def test_arena_an_absent_part_is_left_out_of_the_mean() -> None:
    def reply(messages: Any, sampling: Any) -> str:
        return '{"similarity_score": 3}' if "similarity_score" in messages[1].content else "prose"

    judge = RubricJudge(Scripted(reply))
    result = play(task_from("sim_math", MATH), "help me", "###STOP###", judge=judge)
    assert result.reward == pytest.approx(0.6)
    assert result.private.grading["features"] is None
    none = RubricJudge(Scripted(lambda *_: "prose"))
    with pytest.raises(JudgeError):
        play(task_from("sim_math", MATH), "help me", "###STOP###", judge=none)


def test_arena_ending_without_a_word_is_the_simulators_failure() -> None:
    result = play(task_from("sim_math", MATH), "###STOP###")
    assert (result.done, result.reward) == (True, 0.0)


def test_arena_ends_after_eight_turns() -> None:
    assert not play(task_from("sim_math", MATH), *["hm"] * 7).done
    assert play(task_from("sim_math", MATH), *["hm"] * 8).done


def seven(criteria: tuple[float, ...], penalties: tuple[float, ...]) -> turing.Seven:
    named = dict(zip(turing.CRITERIA, criteria, strict=True))
    return turing.Seven(**named, **dict(zip(turing.PENALTIES, penalties, strict=True)))


def test_turing_worked_example() -> None:
    a = seven((0.9, 0.8, 0.7), (0, 0, 0, 0.4)).total()
    b = seven((0.5, 0.6, 0.4), (0.8, 0, 0, 0.2)).total()
    assert (a, b) == (pytest.approx(2.1), pytest.approx(0.75))
    assert turing.rate(a, b, generated_is_b=True) == (2, 2, pytest.approx(1 / 6))
    assert turing.rate(a, b, generated_is_b=False) == (2, 6, pytest.approx(2 / 3))


def test_turing_raw_ratings() -> None:
    assert turing.rate(0, 1.0, generated_is_b=False).s == 2  # raw 6 at A
    assert turing.rate(2.0, 0, generated_is_b=False)[1:] == (7, pytest.approx(2 / 3))
    assert turing.rate(0, 0, generated_is_b=True).reward == 0.5
    bounds = {-2.0: 1, -1.0: 2, -0.25: 3, 0.0: 4, 0.25: 5, 1.0: 6, 2.0: 7, -2.1: 1, -0.24: 4}
    for gap, rating in bounds.items():
        first, second = (0.0, gap) if gap >= 0 else (-gap, 0.0)
        assert turing.rate(first, second, generated_is_b=True).rating == rating


@pytest.mark.parametrize(
    ("generated", "cost"), [(10, 0.13125), (33, 0.075), (0, 0.25), (16, 0.0), (22, 0.0)]
)
def test_turing_length_penalty(generated: int, cost: float) -> None:
    assert turing.length_penalty(generated, 20) == pytest.approx(cost)


def test_turing_total_and_missing_numbers() -> None:
    row = {"history": ["hm"], "context": "c", "response": "yes I think so too", "user_id": "u"}
    tie = 0.9 * 0.5 + 0.1
    assert reward("turing", row, "yes I think so too") == pytest.approx(tie)
    assert reward("turing", row, "User: yes I think so") < tie - 0.1
    assert reward("turing", row, "...") == 0.0  # floor, though the length costs more than it gets
    thirteen = seven((1, 1, 1), (0, 0, 0, 0)).model_dump()
    broken = {"a": thirteen, "b": {k: v for k, v in thirteen.items() if k != "source_copy_penalty"}}
    judge = RubricJudge(Scripted(lambda *_: json.dumps(broken)))
    with pytest.raises(JudgeError):
        reward("turing", row, "yes", judge=judge)


def test_turing_copies() -> None:
    source = "one two three four five six seven, eight nine ten"
    assert turing.copies("so one two three four five six maybe", [source]) == [
        "one two three four five six"
    ]
    assert turing.copies("one two three four", [source]) == []
    assert len(turing.copies(" x ".join(["one two three four five"] * 5), [source])) == 3


def test_a_silent_partner_is_trouble_of_the_infrastructure() -> None:
    silent = ModelPartner(Scripted(lambda messages, sampling: "  "))
    (episode,) = episodes(load_rows("sim_math").tasks[:1], Ends("oracle"), partner=silent)
    assert episode.outcome.status is Status.INFRA_FAILURE
    assert episode.outcome.reward is None


def test_a_partner_that_speaks_on_the_second_try_is_heard() -> None:
    asked: list[int] = []

    def reply(messages: Any, sampling: Any) -> str:
        asked.append(sampling.max_tokens)
        return "" if len(asked) == 1 else "<think>hm</think>Go on."

    partner = ModelPartner(Scripted(reply))
    request = PartnerRequest("you are a tutor", [], 1, lambda: "rule")
    assert asyncio.run(partner.reply(request)).text == "Go on."
    assert asked == [1024, 2048]
