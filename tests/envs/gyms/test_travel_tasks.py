"""Own tasks of the gym `travel`: records, splits, solvability, what is read and refused, agents."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from statistics import mean
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.envs.base import AgentAction, Choice, Task
from mimesim.envs.gyms.travel import GYM, cues, pool, tasks
from mimesim.envs.gyms.travel.agents import Chooser, request_for
from mimesim.envs.gyms.travel.score import travel_score
from mimesim.envs.gyms.travel.tasks import common_split, make_tasks, oracle_trace
from mimesim.envs.gyms.travel.trip import LETTERS, read_trip
from mimesim.envs.load import check_tasks, load_tasks
from mimesim.envs.packs import SPLITS, fold, read_tasks, write_tasks
from mimesim.envs.turns.agents import trace_of
from mimesim.envs.turns.splits import split_of
from mimesim.errors import DataError, UsageError
from mimesim.scenarios.types import Scenario
from tests.support.gyms import Played, play, table

PACK = {split: make_tasks(split, 7, 60) for split in SPLITS}
ALL = [task for part in PACK.values() for task in part]


def whole(task: Task, agent: str, *, kind: str = "neutral") -> Played:
    """Play a whole episode."""
    return asyncio.run(play(table(task, kind=f"scripted:{kind}"), agent, seed=5))


def score(task: Task, played: Played) -> float:
    """Return the score of an episode."""
    turns = [
        (action.choice, action.content, result.reward)
        for action, result in zip(played.actions, played.results, strict=True)
    ]
    return travel_score(turns, len(task.hidden["dimensions"]))


# ---------------------------------------------------------------------------------- records


def test_there_are_enough_records() -> None:
    counts = Counter(record.aspect for record in pool.records())
    assert set(counts) == set(LETTERS)
    assert min(counts.values()) >= 12
    assert {len(record.wishes) for record in pool.records()} == {2, 3, 4}
    assert len({record.key for record in pool.records()}) == len(pool.records())
    assert all(len({w.topic for w in r.wishes}) == len(r.wishes) for r in pool.records())


@pytest.mark.parametrize("aspect", LETTERS)
def test_the_price_decides_among_what_fits(aspect: str) -> None:
    for record in [one for one in pool.records() if one.aspect == aspect]:
        offers = pool.offers(record)
        options = offers["options"]
        assert 8 <= len(options) <= 15
        fitting = [
            option
            for option in options
            if all(option[wish.topic] == wish.value for wish in record.wishes)
        ]
        assert sorted(option["id"] for option in fitting) == offers["correct_ids"]
        assert 2 <= len(fitting) <= 4
        assert min(fitting, key=lambda option: option["price"])["id"] == offers["best_id"]
        prices = [option["price"] for option in options]
        assert len(set(prices)) == len(prices)
        assert min(prices) < min(option["price"] for option in fitting)


def test_the_number_of_an_option_tells_nothing() -> None:
    best = Counter(int(pool.offers(record)["best_id"][1:]) for record in pool.records())
    assert len(best) >= 10
    assert max(best.values()) < len(pool.records()) / 5


def test_no_cue_belongs_to_two_topics() -> None:
    found = Counter(
        fold(cue)
        for name in LETTERS
        for topic in pool.bank()[name]["topics"]
        for cue in topic["cues"]
    )
    assert [cue for cue, count in found.items() if count > 1] == []
    for name in LETTERS:
        for topic in pool.bank()[name]["topics"]:
            wished = {wish["value"] for wish in topic["wishes"]}
            assert wished <= set(topic["values"])
            assert len(wished) == len(topic["wishes"]) >= 2


def test_each_question_asks_for_its_own_topic_only() -> None:
    topics = {
        f"{name}.{topic['key']}": (topic["ask"], tuple((cue,) for cue in topic["cues"]))
        for name in LETTERS
        for topic in pool.bank()[name]["topics"]
    }
    words = {key: entry[1] for key, entry in topics.items()}
    for key, (question, _) in topics.items():
        assert cues.classify(question, words, list(words)) == (cues.HELD, key)


# ---------------------------------------------------------------------------------- the pack


def test_equal_arguments_give_equal_tasks() -> None:
    pool.records.cache_clear()
    tasks._of_split.cache_clear()
    assert make_tasks("train", 7, 60) == PACK["train"]
    assert make_tasks("train", 7, 10) == PACK["train"][:10]
    assert make_tasks("train", 8, 10) != PACK["train"][:10]


def test_a_pack_is_sound() -> None:
    assert check_tasks(ALL) == []
    assert len({jsonio.canonical(task.hidden["aspects"]) for task in ALL}) == len(ALL)


def test_the_key_of_a_record_decides_the_split() -> None:
    for split, part in PACK.items():
        assert {common_split(task.groups) for task in part} == {split}
    keys = {name: next(t.groups[0] for t in PACK[name]) for name in ("train", "test")}
    assert {split_of("travel", key) for key in keys.values()} == {"train", "test"}
    assert common_split(list(keys.values())) is None


def test_no_test_task_reads_like_a_task_for_training() -> None:
    def words(task: Task) -> set[str]:
        return set(re.findall(r"\w+", task.public["initial"].casefold()))

    trained = [words(task) for task in PACK["train"]]
    for task in PACK["test"]:
        own = words(task)
        assert max(len(own & other) / len(own | other) for other in trained) <= 0.8, task.id


def test_every_variant_occurs_and_others_can_be_asked_for() -> None:
    assert {task.meta["variant"] for task in PACK["train"]} == set(tasks.VARIANTS)
    for task in [*ALL, *make_tasks("train", 1, 3, variants=("44", "2222", "234"))]:
        sizes = [len(task.hidden["aspects"][n]["preferences"]) for n in task.hidden["dimensions"]]
        assert "".join(map(str, sizes)) == task.meta["variant"]


@pytest.mark.parametrize("variant", ["", "2", "35", "1x", "222222", "٣٣"])
def test_an_unknown_variant(variant: str) -> None:
    with pytest.raises(UsageError, match="no variant"):
        make_tasks("train", 0, 1, variants=(variant,))


def test_a_split_that_is_too_small_is_told() -> None:
    with pytest.raises(DataError, match="only 0 different tasks of 3"):
        make_tasks("no-such-split", 0, 3)


def test_a_file_of_tasks_is_read_back(tmp_path: Any) -> None:
    path = tmp_path / "travel.jsonl"
    write_tasks(path, PACK["test"])
    assert read_tasks(path) == PACK["test"]
    assert load_tasks("travel", split="test", path=path, count=5) == PACK["test"][:5]


def test_scenarios_can_be_read() -> None:
    for task in ALL:
        scenario = Scenario.from_json(task.scenario, task.id)
        assert scenario.meta["profile"] == "asked"
        wishes = read_trip(task).preferences
        assert not any(wish.text in scenario.goal for wish in wishes)


def test_the_first_request_holds_what_a_search_needs() -> None:
    for task in ALL:
        trip = read_trip(task)
        arguments = {name: aspect.arguments for name, aspect in trip.aspects.items()}
        for name in trip.aspects:
            asked = request_for(name, task.public["initial"])
            assert cues.find_aspect(asked, arguments) == name


# ---------------------------------------------------------------------------------- what is read


def damaged(change: Any) -> Task:
    """Return a task after `change` was made to its hidden side."""
    task = PACK["train"][0]
    hidden = jsonio.loads(jsonio.dumps(dict(task.hidden)))
    change(hidden, hidden["aspects"][hidden["dimensions"][0]])
    return replace(task, hidden=hidden)


DAMAGE: Mapping[str, tuple[Any, str]] = {
    "no dimensions": (lambda h, a: h.pop("dimensions"), "hidden.dimensions"),
    "an unknown dimension": (lambda h, a: h["dimensions"].append("ferry"), "hidden.dimensions"),
    "a dimension twice": (
        lambda h, a: h["dimensions"].append(h["dimensions"][0]),
        "hidden.dimensions",
    ),
    "a dimension that is a number": (lambda h, a: h["dimensions"].append(3), "hidden.dimensions"),
    "no aspects": (lambda h, a: h.pop("aspects"), "aspects"),
    "a missing aspect": (lambda h, a: h["aspects"].popitem(), "is None"),
    "no preferences": (lambda h, a: a.pop("preferences"), "preferences"),
    "a preference without words": (lambda h, a: a["preferences"][0].pop("text"), "lacks text"),
    "an empty hint": (lambda h, a: a["preferences"][0].update(implicit=" "), "lacks implicit"),
    "an id twice": (lambda h, a: a["preferences"][1].update(id="P1"), "occurs twice"),
    "no options": (lambda h, a: a.pop("options"), "options"),
    "a foreign option": (lambda h, a: a["options"][0].update(id="Z1"), "'Z1'"),
    "an option twice": (lambda h, a: a["options"].append(a["options"][0]), "cannot be used"),
    "a best one that is none": (lambda h, a: a.update(best_id="X1"), "best_id"),
    "correct ids that are none": (lambda h, a: a["correct_ids"].append("X1"), "correct_ids"),
    "no arguments": (lambda h, a: a.pop("arguments"), "arguments"),
    "cues of a wrong form": (lambda h, a: h["cues"].update(P1=[3]), "cues hold"),
    "no cue at all": (lambda h, a: h["cues"].update(P1=[]), "cues are"),
    "cues that are no object": (lambda h, a: h.update(cues=[]), "cues"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_task_is_told(name: str) -> None:
    change, told = DAMAGE[name]
    task = damaged(change)
    with pytest.raises(DataError) as caught:
        GYM.attainable(task)
    assert told in str(caught.value)
    assert f"task {task.id!r}" in str(caught.value)
    assert caught.value.expected


def test_a_task_without_a_request_is_told() -> None:
    with pytest.raises(DataError, match=r"public\.initial"):
        GYM.secrets(replace(PACK["train"][0], public={}))


def test_cues_can_be_derived() -> None:
    derived = cues.derived_cues(["I want a window seat", "I would want a quiet window table"])
    assert derived == [(("seat",),), (("quiet",), ("table",))]
    task = damaged(lambda h, a: h.pop("cues"))
    wish = read_trip(task).preferences[0]
    words = [word for (word,) in wish.cues]
    assert words
    assert all(word in fold(wish.text) for word in words)


def test_cue_groups_need_all_their_words() -> None:
    wishes = {"P1": cues.read_cues([["hotel", "parking"]], "here"), "P2": (("parking",),)}
    ids = list(wishes)
    assert cues.classify("Hotel parking?", wishes, ids) == (cues.HELD, "P1")
    assert cues.classify("Any parking?", wishes, ids) == (cues.HELD, "P2")
    assert cues.classify("Sparking?", wishes, ids) == (cues.NOT_HELD, None)
    assert cues.classify("Any parking?", wishes, ["P1"]) == (cues.NOT_HELD, None)


def test_the_oracle_leaves_out_searches_first() -> None:
    names = list(LETTERS)[:4]
    hidden = {
        "dimensions": names,
        "aspects": {name: {"arguments": {"a": 1}, "best_id": "X"} for name in names},
    }
    for wishes, searches in ((6, 4), (10, 2), (12, 0), (20, 0)):
        trace = oracle_trace(hidden, {f"P{n}": f"Question {n}?" for n in range(wishes)})
        counts = Counter(choice for choice, _ in trace)
        assert len(trace) <= 16
        assert (counts["answer"], counts["search"]) == (4, searches)
        assert counts["action"] == min(wishes, 12)


# ---------------------------------------------------------------------------------- agents


@pytest.mark.parametrize("kind", ["neutral", "cooperative", "hostile", "heldout-5"])
def test_the_oracle_gets_all_there_is(kind: str) -> None:
    for task in PACK["test"][:8]:
        played = whole(task, "oracle", kind=kind)
        assert played.total == pytest.approx(GYM.attainable(task))
        assert played.results[-1].success
        assert score(task, played) == 1.0
        assert len(played.actions) == len(trace_of(task))


def test_strategies_are_told_apart() -> None:
    part = PACK["test"][:24]
    total = {
        agent: mean(score(task, whole(task, agent)) for task in part)
        for agent in ("null", "eager", "random", "patient")
    }
    assert total["null"] == 0.0
    assert total["eager"] < 0.05
    assert total["random"] < 0.4
    assert 0.6 < total["patient"] < 0.95


def test_patience_solves_what_fits_into_the_turns() -> None:
    for task in make_tasks("test", 3, 6, variants=("22", "33")):
        assert score(task, whole(task, "patient")) == 1.0


def test_asking_for_everything_at_once_gains_nothing() -> None:
    everything = "Tell me about seats, layovers, meals, beds, a pool, breakfast, fuel, diet, music."
    for task in make_tasks("test", 3, 6, variants=("333",)):
        at = table(task)

        async def run(at: Any = at, task: Task = task) -> list[float]:
            await at.env.reset(task, seed=1)
            words = " ".join(cue for w in read_trip(task).preferences for (cue,) in w.cues)
            return [
                (await at.env.step(AgentAction(Choice.ACTION, text))).reward
                for text in [everything + words] * 6
            ]

        assert asyncio.run(run()) == [0.0] * 6


def test_agents_read_the_public_side_only() -> None:
    task = PACK["test"][0]
    Chooser(replace(task, hidden={}), asks=True)
    assert GYM.agent("random", replace(task, hidden={}), 1) is not None
    played = whole(task, "patient")
    assert [len(a.content) > 0 for a in played.actions] == [True] * len(played.actions)
    assert not any(one.content == other.content for one, other in pairwise(played.actions))
