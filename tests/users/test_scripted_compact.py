"""The scripted customer of the compact desk: every kind does what it says, truthfully and alike.

A claim about a behavior is checked over many scenarios with a patient questioner, who asks for
whatever the customer's private state says is missing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.stop import UserAction
from mimesim.dialogue.types import PublicMessage, Reply, Role
from mimesim.envs.base import AgentView, Observation
from mimesim.envs.gyms.support_desk.compact_agents import Reading
from mimesim.errors import UnknownNameError
from mimesim.scenarios import compact
from mimesim.scenarios.compact import FIELD_NAMES, REQUIRED, SLOT, VALUES, compose_scenario
from mimesim.seeds import generator
from mimesim.train.coach import NOTE_WORDS
from mimesim.train.warmstart import vocabulary
from mimesim.users.base import UserRequest
from mimesim.users.scripted.compact import CompactUser, phrase_bank
from mimesim.users.scripted.kinds import BEHAVIORS, KINDS, Authored, character

TURNS = 8
PUBLIC = Observation(
    system="policy refund 30 gold 60 exchange 15 missing 60 cancel not shipped", first_user=""
)


@dataclass(frozen=True)
class Talk:
    """A conversation: replies[0] is the opening, asked[n] was asked before replies[n + 1]."""

    scenario: dict[str, Any]
    replies: list[Reply]
    asked: list[tuple[str, ...]]

    @property
    def opening(self) -> Reply:
        return self.replies[0]

    def answers(self) -> list[tuple[tuple[str, ...], Reply]]:
        return list(zip(self.asked, self.replies[1:], strict=True))


Questioner = Callable[[Reply], tuple[str, ...]]


def ask_missing(reply: Reply) -> tuple[str, ...]:
    return tuple(reply.wish["missing"])


def ask_everything(reply: Reply) -> tuple[str, ...]:
    return REQUIRED[reply.wish["intent"]]


def ask_the_request(reply: Reply) -> tuple[str, ...]:
    return ("intent",)


async def answer(user: CompactUser, asked: Sequence[str], heard: Sequence[Reply]) -> Reply:
    history = tuple(PublicMessage(Role.USER, r.utterance) for r in heard)
    text = "may i have it ?" if heard else ""
    request = UserRequest("desk.customer", history, text, 0, asked_fields=tuple(asked))
    return await user.respond(request)


async def converse(
    user: CompactUser, scenario: dict[str, Any], turns: int, questions: Questioner
) -> Talk:
    replies, asked = [await answer(user, (), ())], []
    while len(asked) < turns and replies[-1].action is UserAction.SAY:
        asked.append(questions(replies[-1]))
        replies.append(await answer(user, asked[-1], replies))
    return Talk(scenario, replies, asked)


def talk(
    kind: str, index: int, seed: int = 0, *, turns: int = TURNS, questions: Questioner = ask_missing
) -> Talk:
    scenario = compose_scenario(11, "test", index)
    user = CompactUser(scenario, kind=kind, seed=seed)
    return asyncio.run(converse(user, scenario, turns, questions))


def talks(kind: str, count: int = 120, **how: Any) -> list[Talk]:
    return [talk(kind, index, seed=index, **how) for index in range(count)]


def bank_of(kind: str) -> str:
    return "heldout" if kind.startswith("heldout") else "main"


def says(text: str, key: str, bank: str = "main") -> list[re.Match[str]]:
    """Find the phrases of `key` that stand as clauses of their own in `text`."""
    found = []
    for phrase in phrase_bank(bank)[key]:
        if not phrase:
            continue
        clause = re.escape(phrase.removesuffix(" . {r}"))
        clause = re.sub(r"\\\{(\w)\\\}", r"(?P<\1>[^.]+?)", clause)
        match = re.search(rf"(?:^| \. ){clause}(?= \. |$)", text)
        if match:
            found.append(match)
    return found


def exact(reply: Reply) -> dict[str, Any]:
    thought = reply.thought.reveal() if reply.thought else None
    return {
        "thought": thought,
        "utterance": reply.utterance,
        "action": reply.action.value,
        "wish": dict(reply.wish),
    }


# -- what holds for every kind -------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_equal_seeds_give_equal_bytes(kind: str) -> None:
    for index in range(6):
        one, two = ([exact(r) for r in talk(kind, index, 3).replies] for _ in range(2))
        assert jsonio.dumps(one) == jsonio.dumps(two)


@pytest.mark.parametrize("kind", KINDS)
def test_members_of_a_group_start_alike_and_then_differ(kind: str) -> None:
    later = set()
    for index in range(12):
        group = [talk(kind, index, seed, questions=ask_everything) for seed in range(6)]
        assert len({jsonio.dumps(exact(t.opening)) for t in group}) == 1
        later.add(len({jsonio.dumps([exact(r) for r in t.replies[1:]]) for t in group}))
    assert max(later) >= 4, "later turns hardly depend on the seed"


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_customer_goes_on_as_if_nothing_had_happened(kind: str) -> None:
    async def play(scenario: dict[str, Any], cut: int) -> tuple[list[str], list[str]]:
        user = CompactUser(scenario, kind=kind, seed=5)
        talk_so_far = await converse(user, scenario, cut, ask_missing)
        state = jsonio.loads(jsonio.dumps(user.snapshot()))
        twin = CompactUser(scenario, kind=kind, seed=77)  # another seed: the state must win
        twin.restore(state)
        lines: tuple[list[str], list[str]] = ([], [])
        for person, said in zip((user, twin), lines, strict=True):
            last = talk_so_far.replies[-1]
            for _ in range(3):
                last = await answer(person, ask_everything(last), talk_so_far.replies)
                said.append(jsonio.dumps(exact(last)))
        return lines

    for index in range(6):
        for cut in (0, 1, 3):
            original, restored = asyncio.run(play(compose_scenario(11, "test", index), cut))
            assert original == restored


@pytest.mark.parametrize("kind", KINDS)
def test_a_snapshot_is_not_changed_by_what_follows(kind: str) -> None:
    async def play() -> tuple[str, str]:
        scenario = compose_scenario(11, "test", 4)
        user = CompactUser(scenario, kind=kind, seed=5)
        await converse(user, scenario, 1, ask_missing)
        state = user.snapshot()
        before = jsonio.dumps(state)
        await converse(user, scenario, 2, ask_everything)
        return before, jsonio.dumps(state)

    before, after = asyncio.run(play())
    assert before == after


@pytest.mark.parametrize("kind", KINDS)
def test_missing_is_exactly_what_a_careful_listener_does_not_know(kind: str) -> None:
    """A field is missing until the last value stated of it is the one that is wanted now."""
    for index in range(30):
        played = talk(kind, index, seed=index)
        heard: list[PublicMessage] = []
        for reply in played.replies:
            heard.append(PublicMessage(Role.USER, reply.utterance))
            reading = Reading(AgentView(PUBLIC, tuple(heard), 0, 8))
            wish = reply.wish
            wrong = [
                f for f in REQUIRED[wish["intent"]] if reading.latest.get(f) != wish["values"][f]
            ]
            expected = wrong if reading.intent == wish["intent"] else ["intent", *wrong]
            assert wish["missing"] == expected, f"scenario {index}: {reply.utterance!r}"
            assert (wish["said_intent"] == wish["intent"]) is (reading.intent == wish["intent"])


@pytest.mark.parametrize("kind", KINDS)
def test_values_stay_those_of_the_record_but_for_a_changed_slot(kind: str) -> None:
    for index in range(40):
        played = talk(kind, index, seed=index)
        facts = played.scenario["facts"]
        for reply in played.replies:
            values = reply.wish["values"]
            changed = {f for f in VALUES if values[f] != facts[f]}
            assert changed <= set(SLOT.values())
            assert all(values[f] in VALUES[f] for f in VALUES)
            assert reply.wish["intent"] in REQUIRED


@pytest.mark.parametrize("kind", KINDS)
def test_no_word_is_unknown_to_the_policy(kind: str) -> None:
    known = set(vocabulary())
    for index in range(25):
        for questions in (ask_missing, ask_everything):
            for reply in talk(kind, index, seed=index, questions=questions).replies:
                unknown = [w for w in reply.utterance.split() if w not in known]
                assert unknown == [], reply.utterance


def test_the_agents_and_the_coachs_words_are_known_too() -> None:
    known = set(vocabulary())
    lines = [
        NOTE_WORDS,
        *FIELD_NAMES.values(),
        "not an action . ask for a thing , or act on the order",
    ]
    for index in range(40):
        scenario = compose_scenario(11, "test", index)
        policy, values = scenario["meta"]["policy"], scenario["facts"]
        lines.append(compact.policy_line(policy))
        lines += [compact.right_action(policy, intent, values).line() for intent in REQUIRED]
        lines.append(compact.ask_line(list(FIELD_NAMES), generator(index, "ask")))
    assert [w for line in lines for w in line.split() if w not in known] == []


@pytest.mark.parametrize("bank", ["main", "heldout"])
def test_banks_hold_every_phrase_and_share_none(bank: str) -> None:
    ours, other = phrase_bank(bank), phrase_bank("main" if bank == "heldout" else "heldout")
    assert set(ours) == set(other)
    for key, lines in ours.items():
        assert len(lines) == len(set(lines)) >= 2, key
        assert not (set(lines) & set(other[key])) - {""}, key


def test_kinds_use_the_bank_they_were_given() -> None:
    for kind in KINDS:
        wanted = bank_of(kind)
        other = "main" if wanted == "heldout" else "heldout"
        found = {"main": 0, "heldout": 0}
        for played in talks(kind, 30):
            for reply in played.replies:
                for intent in REQUIRED:
                    for bank in found:
                        found[bank] += len(says(reply.utterance, intent, bank))
        assert found[wanted] >= 20, kind
        assert found[other] == 0, kind


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(UnknownNameError, match="realistc"):
        CompactUser(compose_scenario(11, "test", 0), kind="realistc", seed=0)


def test_realistic_is_one_third_neutral_and_else_any_of_the_thirteen() -> None:
    rng = generator(0, "realistic")
    drawn = [character("realistic", Authored(False, ()), rng).behaviors for _ in range(3000)]
    neutral = sum(not b for b in drawn) / len(drawn)
    assert neutral == pytest.approx(1 / 3, abs=0.03)
    for behavior in BEHAVIORS:
        assert drawn.count((behavior,)) / len(drawn) == pytest.approx(2 / 39, abs=0.02)


# -- how much they volunteer ----------------------------------------------------------------


def volunteered(kind: str, count: int = 200) -> float:
    shares = []
    for played in talks(kind, count, turns=0):
        wish = played.opening.wish
        fields = REQUIRED[wish["intent"]]
        shares.append(sum(f not in wish["missing"] for f in fields) / len(fields))
    return sum(shares) / len(shares)


@pytest.mark.parametrize(
    ("kind", "share"),
    [
        ("cooperative", 1.0),
        ("easy", 0.8),
        ("neutral", 0.35),
        ("heldout-1", 1.0),
        ("heldout-2", 0.15),
    ],
)
def test_the_share_of_fields_volunteered(kind: str, share: float) -> None:
    assert volunteered(kind) == pytest.approx(share, abs=0.0 if share == 1 else 0.06)


@pytest.mark.parametrize("kind", ["cooperative", "easy", "neutral", "heldout-2"])
def test_plain_customers_answer_whatever_is_asked(kind: str) -> None:
    for played in talks(kind, turns=1):
        assert played.replies[-1].wish["missing"] == []
        assert played.replies[-1].action is UserAction.SAY
        for key in ("dodge", "switch", "change", "blame", "terse", "insult", "persist", "claim"):
            for reply in played.replies:
                assert not says(reply.utterance, key, bank_of(kind)), reply.utterance


# -- the thirteen behaviors -----------------------------------------------------------------


def test_b1_names_a_decoy_and_wants_another_method() -> None:
    shown = 0
    for played in talks("B1"):
        wish = played.opening.wish
        if wish["intent"] != "refund":
            continue
        shown += 1
        decoys = says(played.opening.utterance, "criterion")
        assert decoys[0]["a"] in VALUES["method"]
        assert decoys[0]["a"] != wish["values"]["method"]
        assert "method" in wish["missing"]
        assert played.replies[-1].wish["missing"] == []
        assert played.replies[-1].wish["values"] == wish["values"]
    assert shown > 60


def test_b2_changes_the_slot_after_it_was_told() -> None:
    for played in talks("B2", questions=ask_everything):
        slot = SLOT[played.opening.wish["intent"]]
        values = [r.wish["values"][slot] for r in played.replies]
        changes = [n for n in range(1, len(values)) if values[n] != values[n - 1]]
        assert len(changes) == 1, "the goal moves once"
        turn = changes[0]
        assert says(played.replies[turn].utterance, "change")
        assert values[turn] in played.replies[turn].utterance.split()
        earlier = " ".join(r.utterance for r in played.replies[: turn + 1]).split()
        assert values[0] in earlier, "the first goal had been stated"
        assert slot not in played.replies[turn].wish["missing"]


def test_b3_dodges_a_field_once_or_twice_then_gives_it() -> None:
    for played in talks("B3"):
        dodged = [n for n, r in enumerate(played.replies) if says(r.utterance, "dodge")]
        assert 1 <= len(dodged) <= 4, "somebody who withholds dodges when asked"
        for turn in dodged:
            asked = [f for f in played.asked[turn - 1] if f != "intent"]
            assert set(asked) & set(played.replies[turn].wish["missing"])
        assert played.replies[-1].wish["missing"] == []


@pytest.mark.parametrize(("kind", "key"), [("B4", "persist"), ("B8", "claim")])
def test_b4_insists_and_b8_claims_another_rule(kind: str, key: str) -> None:
    pressed = 0
    for played in talks(kind, turns=4, questions=ask_everything):
        assert played.opening.wish["intent"] in ("refund", "exchange", "missing")
        spoken = [bool(says(r.utterance, key)) for r in played.replies]
        claims = [r.wish["false_claim"] for r in played.replies]
        assert claims == [any(spoken[: n + 1]) for n in range(len(spoken))]
        pressed += any(spoken)
    assert pressed / 120 > 0.8


def test_b5_is_vague_first_and_then_blames() -> None:
    for played in talks("B5"):
        intent = played.opening.wish["intent"]
        assert says(played.opening.utterance, "vague")
        assert not any(says(played.opening.utterance, key) for key in REQUIRED)
        assert played.opening.wish["said_intent"] is None
        first = played.replies[1]
        assert says(first.utterance, "blame")
        assert says(first.utterance, intent)
        assert first.wish["said_intent"] == intent
        assert not any(says(r.utterance, "blame") for r in played.replies[2:])


def test_b6_switches_the_request_after_the_first_reply() -> None:
    for played in talks("B6"):
        intents = [r.wish["intent"] for r in played.replies]
        assert intents[1] != intents[0]
        assert set(intents[1:]) == {intents[1]}
        assert says(played.replies[1].utterance, "switch")
        assert says(played.replies[1].utterance, intents[1])
        assert played.replies[1].wish["said_intent"] == intents[1]


def test_b7_excludes_two_methods_before_it_names_one() -> None:
    shown = 0
    for played in talks("B7"):
        wish = played.opening.wish
        if wish["intent"] != "refund":
            continue
        shown += 1
        assert "method" in wish["missing"]
        told = says(played.replies[1].utterance, "exclude")
        assert told, "the first answer about the method only excludes"
        excluded = {told[0]["a"], told[0]["b"]}
        assert len(excluded) == 2
        assert wish["values"]["method"] not in excluded
        assert "method" in played.replies[1].wish["missing"]
        assert "method" not in played.replies[2].wish["missing"]
    assert shown > 60


def test_b9_gives_one_field_a_turn_and_is_often_terse() -> None:
    terse = turns = 0
    for played in talks("B9"):
        for before, after in zip(played.replies, played.replies[1:], strict=False):
            given = len(before.wish["missing"]) - len(after.wish["missing"])
            assert given <= 1
            if before.wish["missing"]:
                turns += 1
                terse += given == 0 and bool(says(after.utterance, "terse"))
    assert terse / turns == pytest.approx(0.35, abs=0.06)


def test_b10_leaves_at_the_second_or_third_question_while_something_is_missing() -> None:
    left_at = []
    for played in talks("B10", questions=ask_the_request):
        assert played.opening.wish["missing"], "there is something left to leave for"
        last = played.replies[-1]
        assert last.action is UserAction.END
        assert says(last.utterance, "leave")
        left_at.append(len(played.asked))
        assert all(r.action is UserAction.SAY for r in played.replies[:-1])
    assert set(left_at) == {2, 3, 4}
    early = sum(n <= 3 for n in left_at) / len(left_at)
    assert early > 0.6
    satisfied = talks("B10", questions=ask_missing)
    assert all(t.replies[-1].action is UserAction.SAY for t in satisfied), "who has all stays"


def test_b11_states_a_false_value_and_later_the_true_one_in_passing() -> None:
    corrected = 0
    for played in talks("B11"):
        values = played.opening.wish["values"]
        required = REQUIRED[played.opening.wish["intent"]]
        heard = Reading(
            AgentView(PUBLIC, (PublicMessage(Role.USER, played.opening.utterance),), 0, 8)
        ).latest
        lies = [f for f in required if f in heard and heard[f] != values[f]]
        assert len(lies) == 1, played.opening.utterance
        assert lies[0] in played.opening.wish["missing"]
        assert all(r.wish["values"] == values for r in played.replies)
        assert not any(says(r.utterance, "change") for r in played.replies)
        assert played.replies[-1].wish["missing"] == []
        corrected += any(
            lies[0] in before.wish["missing"] and lies[0] not in after.wish["missing"]
            for before, after in zip(played.replies, played.replies[1:], strict=False)
        )
    assert corrected == 120


def test_b11_corrects_itself_even_when_asked_for_something_else() -> None:
    unasked = 0
    for index in range(120):
        scenario = compose_scenario(11, "test", index)
        opening = talk("B11", index, turns=0).opening
        others = opening.wish["missing"]
        reading = Reading(AgentView(PUBLIC, (PublicMessage(Role.USER, opening.utterance),), 0, 8))
        lie = next(f for f in others if f in reading.latest)
        asked = tuple(f for f in others if f != lie)
        user = CompactUser(scenario, kind="B11", seed=index)
        played = asyncio.run(converse(user, scenario, 1, lambda _, asked=asked: asked))
        unasked += bool(asked) and lie not in played.replies[-1].wish["missing"]
    assert unasked / 120 == pytest.approx(0.7, abs=0.12)


def test_b12_buries_the_request_under_other_things() -> None:
    for played in talks("B12", turns=0):
        strange = [c for c in played.opening.utterance.split(" . ") if says(c, "distract")]
        assert 2 <= len(strange) <= 3, played.opening.utterance
        assert says(played.opening.utterance, played.opening.wish["intent"])


def test_b13_insults_and_sometimes_does_nothing_else() -> None:
    insulted = pure = turns = 0
    for played in talks("B13", turns=4, questions=ask_everything):
        insulted += any(says(r.utterance, "insult") for r in played.replies)
        for reply in played.replies[1:]:
            given = any(says(reply.utterance, f) for f in VALUES)
            turns += 1
            pure += bool(says(reply.utterance, "insult")) and not given
    assert insulted / 120 > 0.85
    assert pure / turns == pytest.approx(0.25, abs=0.06)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("heldout-3", ("dodge", "terse")),
        ("heldout-4", ("switch", "change")),
        ("heldout-5", ("claim", "persist", "insult")),
        ("heldout-6", ("vague", "blame", "leave")),
        ("heldout-7", ("distract", "exclude", "criterion")),
    ],
)
def test_held_out_customers_combine_behaviors(kind: str, keys: tuple[str, ...]) -> None:
    played = talks(kind, 80, questions=ask_everything)
    if "leave" in keys:
        played += talks(kind, 80, questions=ask_the_request)
    for key in keys:
        count = sum(any(says(r.utterance, key, "heldout") for r in t.replies) for t in played)
        assert count > 8, f"{kind} hardly ever says {key!r}"


def test_hostile_customers_push_and_guard() -> None:
    played = talks("hostile", 80, questions=ask_everything)
    for key in ("dodge", "terse", "claim", "persist", "insult"):
        assert sum(any(says(r.utterance, key) for r in t.replies) for t in played) > 20, key
    assert volunteered("hostile", 100) < 0.2


def test_thoughts_speak_of_what_is_wanted_and_withheld() -> None:
    for kind in ("neutral", "B3", "B8"):
        for played in talks(kind, 20):
            for reply in played.replies:
                assert reply.thought is not None
                words = reply.thought.reveal()
                assert words.startswith(f"i want {reply.wish['intent']}")
                for field in FIELD_NAMES:
                    assert (FIELD_NAMES[field] in words) is (field in reply.wish["missing"])
                assert words not in reply.utterance
