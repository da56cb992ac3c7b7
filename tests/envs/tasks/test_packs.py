"""The own rows: enough of them, right answers, the ends of the scale, nothing given away."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from mimesim.envs.base import Task
from mimesim.envs.packs import holds_string, problems, public_text
from mimesim.envs.tasks.load import REGISTRY, load_rows, load_task
from mimesim.envs.tasks.players import Ends
from tests.envs.tasks.asking import episodes

NAMES = list(REGISTRY.builtin)


def everything(name: str) -> list[Task]:
    return [
        t for split in ("train", "validation", "test") for t in load_rows(name, split=split).tasks
    ]


def test_there_are_the_23_of_soul_turing_and_behavior() -> None:
    assert len(NAMES) == 25
    free = {name for name in NAMES if load_task(name).info.judge_free}
    assert free == {
        "fantom", "hitom", "paratomi", "social_r1", "lifechoices", "twinvoice", "behaviorchain",
        "mistakes", "alignx", "socsci210", "humanllm",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_task_has_twenty_good_rows_and_every_split(name: str) -> None:
    parts = [load_rows(name, split=split) for split in ("train", "validation", "test")]
    tasks = [task for part in parts for task in part.tasks]
    assert len(tasks) >= 20
    assert all(part.tasks and not part.rejects for part in parts)
    # many rows share their hidden side: it is one letter
    assert [text for text in problems(tasks) if "same hidden side" not in text] == []
    assert len({public_text(task) for task in tasks}) == len(tasks)
    assert len({task.id for task in tasks}) == len(tasks)


@pytest.mark.parametrize("name", NAMES)
def test_the_ends_of_the_scale_are_the_documented_ones(name: str) -> None:
    info, tasks = load_task(name).info, everything(name)
    for players, end in ((Ends("oracle"), info.ceiling), (Ends("null"), info.floor)):
        played = episodes(tasks, players)
        assert all(episode.counted for episode in played)
        rewards = [episode.outcome.reward or 0.0 for episode in played]
        assert all(0 <= reward <= 1 for reward in rewards)
        assert sum(rewards) / len(rewards) == pytest.approx(end, abs=1e-4)
        if players.identity.name == "oracle":
            assert min(rewards) == pytest.approx(end, abs=1e-4)


@pytest.mark.parametrize("name", ["turing", *(n for n in NAMES if n.startswith("humanual"))])
def test_no_prompt_holds_the_true_text(name: str) -> None:
    for task in everything(name):
        if len(task.hidden["reference"]) > 12:
            assert not holds_string(public_text(task), task.hidden["reference"])


@pytest.mark.parametrize(
    "name", ["lifechoices", "twinvoice", "behaviorchain", "alignx", "mistakes"]
)
def test_right_letters_are_spread(name: str) -> None:
    golds = [task.hidden["gold"] for task in everything(name)]
    assert max(map(golds.count, set(golds))) <= 0.65 * len(golds)


# Theory of mind: an independent reading of each story must come to the same answer.


def witnessed(story: str) -> list[tuple[frozenset[str], str]]:
    """Return who saw the thing at which place, in order."""
    here: frozenset[str] = frozenset()
    log: list[tuple[frozenset[str], str]] = []
    for sentence in re.findall(r"[^.]+\.", story):
        told = sentence.strip().rstrip(".")
        if entered := re.fullmatch(r"(.+) entered the .+", told):
            here = frozenset(re.split(r", | and ", entered[1]))
        elif found := re.fullmatch(r"The .+ is in the (.+)", told):
            log.append((here, found[1]))
        elif moved := re.fullmatch(r"\w+ moved the .+? to the (.+)", told):
            log.append((here, moved[1]))
        elif left := re.fullmatch(r"(\w+) left the .+", told):
            here -= {left[1]}
    return log


def test_hitom_answers_follow_from_the_stories() -> None:
    depths = set()
    for task in everything("hitom"):
        chain = re.findall(r"(\w+) think", task.public["question"])
        seen = [place for who, place in witnessed(task.public["story"]) if who >= set(chain)]
        assert seen[-1] == task.hidden["gold"], task.public
        depths.add(len(chain))
    assert depths == {0, 1, 2, 3}


def test_paratomi_answers_follow_from_the_stories() -> None:
    for task in everything("paratomi"):
        story = task.public["story"]
        placed = re.search(r"(\w+) placed the (.+?) in the (\w+)\.", story)
        moved = re.search(
            r"(\w+) took the .+? (?:in|into) the (\w+)( while \w+ looked on)?\.", story
        )
        assert placed is not None
        assert moved is not None
        secret = "through the window" in story
        seen = moved[3] is not None or secret
        question = task.public["question"]
        if "now?" in question:
            answer = moved[2]
        elif "think that" in question:  # the mover knows of no witness through the window
            answer = moved[2] if moved[3] else placed[3]
        else:
            answer = moved[2] if seen else placed[3]
        assert answer == task.hidden["gold"], (story, question)


def test_fantom_answers_follow_from_the_conversations() -> None:
    kinds = set()
    for task in everything("fantom"):
        lines = [line.split(": ", 1) for line in task.public["context"].splitlines()]
        told = next(n for n, (_, text) in enumerate(lines) if text.startswith("By the way"))
        away = {who for n, (who, text) in enumerate(lines) if n < told and "I am off" in text}
        fact = re.search(r"it (?:is|will be) (.+)\.", lines[told][1])
        assert fact is not None
        question, kind, gold = task.public["question"], task.hidden["kind"], task.hidden["gold"]
        kinds.add(kind)
        everyone = {who for who, _ in lines}
        if kind == "list":
            assert (set(gold), set(task.hidden["wrong"])) == (everyone - away, away)
        elif kind == "binary":
            who = next(w for w in re.findall(r"(?:Does|Was) (\w+)", question))
            assert gold is (who not in away)
        else:
            option = question.splitlines()[1 + gold]
            who = question.split()[2]
            assert (f"believes it is {fact[1]}" in option) is (who not in away)
            assert ("does not know" in option) is (who in away)
    assert kinds == {"list", "binary", "choice"}


def test_mistakes_targets_are_what_the_misconception_gives() -> None:
    checked = 0
    for task in everything("mistakes"):
        numbers = [int(n) for n in re.findall(r"\d+", task.public["question"])]
        options = dict(zip("ABCD", task.public["options"], strict=True))
        target, rule = options[task.hidden["gold"]], task.public["misconception"]
        if "numerators" in rule:
            a, b, c, d = numbers
            right = Fraction(a, b) + Fraction(c, d)
            assert target == f"{a + c}/{b + d}"
            assert Fraction(target) != right
            assert right in [Fraction(text) for text in options.values()]
        elif "left to right" in rule:
            a, b, c = numbers
            assert target == str((a + b) * c)
            assert str(a + b * c) in options.values()
        elif "longer decimal" in rule:
            values = sorted(
                (text for text in options.values() if re.fullmatch(r"[\d.]+", text)), key=float
            )
            assert target == max(values, key=len) == values[0]
        elif "double" in rule:
            assert target == str(2 * numbers[0])
        elif "perimeter" in rule:
            assert target == f"{numbers[0] * numbers[1]} cm"
        elif "negative times" in rule:
            assert target == str(-numbers[0] * numbers[1])
        elif "percentage" in rule:
            assert target == f"{numbers[0] - numbers[1]} crowns"
        else:
            pairs = zip(*map(str, numbers), strict=True)
            assert int(target) == int("".join(str(abs(int(x) - int(y))) for x, y in pairs))
        checked += 1
    assert checked == 24
