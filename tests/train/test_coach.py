"""The coach: what notes may say, what they may not, and what a model behind the coach is shown."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.types import CoachNote, PublicMessage, Reply, Role, Thought
from mimesim.envs.base import AgentView, Observation
from mimesim.envs.gyms.support_desk.compact_agents import Reading
from mimesim.errors import InfraError, UnknownNameError
from mimesim.models.load import make_chat_model
from mimesim.scenarios.compact import FIELD_NAMES, REQUIRED, VALUES, compose_scenario
from mimesim.train.coach import (
    MAX_CHARACTERS,
    CoachConfig,
    CoachTurn,
    ModelCoach,
    RuleCoach,
    rule_note,
)
from mimesim.train.notes import (
    NoteCounts,
    PlaceboRing,
    chosen_turns,
    coach_seed,
    leaks,
    write_note,
)
from mimesim.train.warmstart import vocabulary
from mimesim.users.base import UserRequest
from mimesim.users.scripted.compact import CompactUser
from mimesim.users.scripted.kinds import KINDS
from tests.support.stub_server import Fault, StubServer
from tests.support.stub_server import Reply as StubReply

QUICK = {"backoff_s": 0.01, "backoff_max_s": 0.02, "budget_s": 1.0}
POLICY = "policy refund 30 gold 60 exchange 15 missing 60 cancel not shipped"


def turn(**changed: Any) -> CoachTurn:
    given: dict[str, Any] = {
        "history": (
            PublicMessage(Role.USER, "Hello, I want a refund for the clock."),
            PublicMessage(Role.AGENT, "What is the order number?"),
            PublicMessage(Role.USER, "You have that already."),
        ),
        "reply": "Could you give me the number once more?",
        "thought_before": Thought("BEFORE-7 they should look up order 4172 from Selby"),
        "thought_after": Thought("AFTER-8 i will give in now and say it to Ida"),
        "next_utterance": "NEXT-9 fine, it is 4172.",
    }
    return CoachTurn(**{**given, **changed})


# -- the rule coach -------------------------------------------------------------------------


async def wishes(kind: str, index: int) -> list[tuple[Reply, list[str]]]:
    """Each reply of a customer who is asked for what is missing, with all that was said so far."""
    user = CompactUser(compose_scenario(21, "test", index), kind=kind, seed=index)
    said: list[str] = []
    found: list[tuple[Reply, list[str]]] = []
    asked: tuple[str, ...] = ()
    for _ in range(6):
        history = tuple(PublicMessage(Role.USER, text) for text in said)
        request = UserRequest("desk.customer", history, "?" * bool(said), 0, asked_fields=asked)
        reply = await user.respond(request)
        said.append(reply.utterance)
        found.append((reply, list(said)))
        asked = tuple(reply.wish["missing"][:2])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_rule_notes_name_fields_and_never_values(kind: str) -> None:
    known = set(vocabulary())
    for index in range(15):
        for reply, said in asyncio.run(wishes(kind, index)):
            note = rule_note(reply.wish)
            assert set(note.split()) <= known
            assert not [v for f in VALUES for v in VALUES[f] if f" {v} " in f" {note} "]
            assert not re.search(r"\d", note)
            view = AgentView(Observation(POLICY, said[0]), _heard(said[1:]), 0, 8)
            intent = Reading(view).intent
            if intent != reply.wish["intent"]:
                assert note == "note lacks the kind of help"
            else:
                assert note.startswith(f"note wants {intent} lacks ")


def _heard(lines: Sequence[str]) -> tuple[PublicMessage, ...]:
    return tuple(PublicMessage(Role.USER, line) for line in lines)


def wish(**changed: Any) -> dict[str, Any]:
    given = {"intent": "refund", "said_intent": "refund", "missing": [], "false_claim": False}
    return {**given, **changed}


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (wish(), "note wants refund lacks nothing"),
        (wish(missing=["order", "tier"]), "note wants refund lacks order number member level"),
        (wish(false_claim=True), "note wants refund lacks nothing claims not true"),
        (wish(said_intent=None, missing=["intent", "order"]), "note lacks the kind of help"),
        (wish(said_intent="cancel", false_claim=True), "note lacks the kind of help"),
    ],
)
def test_the_text_of_rule_notes(state: dict[str, Any], text: str) -> None:
    assert rule_note(state) == text


def test_the_rule_coach_has_nothing_to_say_without_a_structured_state() -> None:
    coach = RuleCoach()
    assert asyncio.run(coach.note(turn(), seed=1)) is None
    note = asyncio.run(coach.note(turn(wish_before=wish(missing=["order"])), seed=1))
    assert note == CoachNote("note wants refund lacks order number", "rule")


@pytest.mark.parametrize("kind", ["neutral", "realistic", "hostile"])
def test_rule_notes_pass_the_leak_check(kind: str) -> None:
    counts = NoteCounts()
    for index in range(20):
        steps = asyncio.run(wishes(kind, index))
        for (before, said), (after, _) in itertools.pairwise(steps):
            seen = CoachTurn(
                _heard(said), "?", before.thought, after.thought, after.utterance, before.wish
            )
            assert asyncio.run(write_note(RuleCoach(), seen, counts, seed=0)) is not None
    assert (counts.written, counts.leaked) == (100, 0)


# -- the leak check -------------------------------------------------------------------------

PUBLIC = "Hello, this is Tom. I bought 3 clocks on 2026-03-01."
SECRET = (
    "I am Ida from Selby, my order is 4172, I paid $85.50 on 2026-02-11, write to "
    "ida@brook.test, ticket ZX81Q. I only care about the green one with a bell. Tom must not know."
)


@pytest.mark.parametrize(
    ("note", "found"),
    [
        ("The order is 4172.", ["4172"]),
        ("Ask about order #4172, please", ["4172"]),
        ("She paid $85.50 for it", ["85.50"]),
        ("It was on 2026-02-11.", ["2026-02-11"]),
        ("An answer goes to ida@brook.test.", ["ida@brook.test"]),
        ("The ticket is ZX81Q.", ["ZX81Q"]),
        ("This person lives in Selby", ["Selby"]),
        ("the person is Ida, not someone else", ["Ida"]),
        ("They only care about the green thing", ["only care about the green"]),
    ],
)
def test_private_specifics_are_leaks(note: str, found: list[str]) -> None:
    assert leaks(note, SECRET, PUBLIC) == found


@pytest.mark.parametrize(
    "note",
    [
        "The person bought 3 clocks on 2026-03-01.",  # public numbers
        "The person said they are Tom.",
        "Ask which order it is, and where they live.",
        "There are 17 things to ask.",  # a number of the coach's own
        "Only ask what is needed. Paid or not does not matter.",  # sentence openers
        "They care about one thing.",
        "",
    ],
)
def test_public_words_are_none(note: str) -> None:
    assert leaks(note, SECRET, PUBLIC) == []


def test_a_value_that_the_reply_guessed_is_still_private() -> None:
    """Else a note could tell that the guess was right."""
    note = noted("The order 4172 is the right one.", reply="Is it order 4172?")
    assert note == (None, NoteCounts(1, leaked=1, with_thought=1, with_reaction=1))


class Says:
    """A coach with one answer."""

    name = "says"

    def __init__(self, answer: str | Exception | None) -> None:
        self.answer = answer

    async def note(self, turn: CoachTurn, *, seed: int) -> CoachNote | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return None if self.answer is None else CoachNote(self.answer, self.name)

    async def aclose(self) -> None:
        """Release nothing."""


def noted(
    answer: str | Exception | None, *, leak_check: bool = True, **changed: Any
) -> tuple[CoachNote | None, NoteCounts]:
    counts = NoteCounts()
    note = asyncio.run(
        write_note(Says(answer), turn(**changed), counts, seed=0, leak_check=leak_check)
    )
    return note, counts


def test_everything_is_counted() -> None:
    both = {"with_thought": 1, "with_reaction": 1}
    good = "Ask where to find the number."
    assert noted(good) == (CoachNote(good, "says"), NoteCounts(1, written=1, **both))
    assert noted(None) == (None, NoteCounts(1, none=1, **both))
    assert noted(InfraError("away")) == (None, NoteCounts(1, failed=1, **both))
    leaky = "Their order is 4172."
    assert noted(leaky) == (None, NoteCounts(1, leaked=1, **both))
    assert noted(leaky, leak_check=False)[1] == NoteCounts(1, written=1, **both)
    bare = {"thought_before": None, "thought_after": None, "next_utterance": ""}
    assert noted(good, **bare)[1] == NoteCounts(1, written=1)


def test_a_bug_of_a_coach_is_not_a_failed_note() -> None:
    with pytest.raises(KeyError):
        noted(KeyError("bug"))


# -- a model as coach -----------------------------------------------------------------------


Replies = Sequence[StubReply] | Callable[..., StubReply]


def ask(
    replies: Replies, config: CoachConfig | None = None, **changed: Any
) -> tuple[CoachNote | None, NoteCounts, list[str]]:
    """Ask a real HTTP coach for one note; also return the prompts that it got."""
    counts = NoteCounts()

    async def run(url: str) -> CoachNote | None:
        model = make_chat_model(f"openai:stub@{url}", options=QUICK)
        try:
            coach = ModelCoach(model, config)
            return await write_note(coach, turn(**changed), counts, seed=11)
        finally:
            await model.aclose()

    with StubServer(replies) as server:
        note = asyncio.run(run(server.url))
        prompts = [
            "\n".join(str(m["content"]) for m in request.body["messages"])
            for request in server.generations
        ]
        assert {request.body.get("seed") for request in server.generations} <= {11}
    return note, counts, prompts


def test_a_models_note() -> None:
    note, counts, prompts = ask(["  They feel ignored; ask for help finding the number. \n"])
    assert note is not None
    assert note.text == "They feel ignored; ask for help finding the number."
    assert note.source.startswith("model:")
    assert counts == NoteCounts(1, written=1, with_thought=1, with_reaction=1)
    assert len(prompts) == 1


@pytest.mark.parametrize(
    "answer", ["NONE", "none", " NONE. ", "<think>nothing to say</think>NONE", "<think>only this"]
)
def test_nothing_to_act_on_is_no_note(answer: str) -> None:
    note, counts, _ = ask([answer])
    assert note is None
    assert (counts.none, counts.written, counts.failed) == (1, 0, 0)


def test_reasoning_is_no_part_of_a_note() -> None:
    note, _, _ = ask(["<think>order 4172, from Selby</think>\nAsk what is in the way."])
    assert note is not None
    assert note.text == "Ask what is in the way."
    note, _, _ = ask([{"content": "Ask why.", "reasoning_content": "order 4172"}])
    assert note is not None
    assert note.text == "Ask why."


def test_long_notes_are_cut_to_whole_words() -> None:
    note, _, _ = ask(["ask gently about it " * 60])
    assert note is not None
    assert MAX_CHARACTERS - 10 < len(note.text) <= MAX_CHARACTERS
    assert note.text.split()[-1] in ("ask", "gently", "about", "it")


@pytest.mark.parametrize("trouble", [Fault(500), Fault(reset=True), Fault(200, "{not json")])
def test_a_failing_coach_is_counted_and_not_raised(trouble: Fault) -> None:
    note, counts, _ = ask([trouble])
    assert note is None
    assert counts == NoteCounts(1, failed=1, with_thought=1, with_reaction=1)


def test_a_models_leak_is_rejected_and_counted() -> None:
    note, counts, _ = ask(["The order number is 4172."])
    assert note is None
    assert (counts.leaked, counts.written) == (1, 0)


PRIVATE = ("BEFORE-7", "AFTER-8", "NEXT-9")


@pytest.mark.parametrize("style", ["prospective", "corrective"])
@pytest.mark.parametrize(
    ("thought", "shown"),
    [
        ("after", ("AFTER-8", "NEXT-9")),
        ("before", ("BEFORE-7", "NEXT-9")),
        ("both", ("BEFORE-7", "AFTER-8", "NEXT-9")),
    ],
)
def test_which_private_text_the_coach_sees(style: str, thought: str, shown: Sequence[str]) -> None:
    _, _, (prompt,) = ask(["NONE"], CoachConfig(style=style, thought=thought))
    assert [mark for mark in PRIVATE if mark in prompt] == list(shown)
    assert "I want a refund for the clock." in prompt
    assert ("give me the number once more" in prompt) is (style == "corrective")


@pytest.mark.parametrize("style", ["prospective", "corrective"])
@pytest.mark.parametrize("thought", ["after", "before", "both"])
def test_without_privilege_no_private_text_leaves(style: str, thought: str) -> None:
    """The ablation arm: everything the request holds follows from the public history."""
    config = CoachConfig(style=style, thought=thought, privileged=False)
    _, _, (prompt,) = ask(["NONE"], config)
    assert not [mark for mark in (*PRIVATE, "4172", "Selby", "Ida") if mark in prompt]
    assert prompt.count("(not available)") == 2


def test_a_missing_channel_is_said_to_be_missing() -> None:
    bare = {"thought_before": None, "thought_after": None, "next_utterance": ""}
    _, _, (prompt,) = ask(["NONE"], CoachConfig(thought="both"), **bare)
    assert prompt.count("(not available)") == 2


@pytest.mark.parametrize("wrong", [{"style": "prospektive"}, {"thought": "befor"}])
def test_unknown_styles_and_thoughts_are_named(wrong: dict[str, str]) -> None:
    with pytest.raises(UnknownNameError, match=next(iter(wrong.values()))):
        CoachConfig(**wrong)  # type: ignore[arg-type]


# -- placebo notes --------------------------------------------------------------------------


def test_the_ring_is_silent_below_eight_notes() -> None:
    ring = PlaceboRing(1)
    for n in range(7):
        ring.add(f"e{n}", f"note {n}")
        assert ring.draw("other", "x") is None
    ring.add("e7", "note 7")
    assert ring.draw("other", "x") is not None


def test_placebos_are_of_other_episodes_and_of_other_text() -> None:
    ring = PlaceboRing(1)
    for n in range(6):
        ring.add("mine", f"mine {n}")
    for text in ("same", "same", "other"):
        ring.add("yours", text)
    assert {ring.draw("mine", "same") for _ in range(40)} == {"other"}
    drawn = {ring.draw("theirs", "other") for _ in range(200)}
    assert drawn == {"same", *(f"mine {n}" for n in range(6))}
    for _ in range(2):
        assert ring.draw("yours", "x") in {f"mine {n}" for n in range(6)}


def test_nothing_fitting_is_no_placebo() -> None:
    ring = PlaceboRing(1)
    for _ in range(9):
        ring.add("yours", "same")
    assert ring.draw("mine", "same") is None
    assert ring.draw("yours", "x") is None


def test_the_oldest_note_falls_out() -> None:
    ring = PlaceboRing(1, size=10)
    for n in range(30):
        ring.add(f"e{n}", f"note {n}")
    assert {ring.draw("x", "x") for _ in range(400)} == {f"note {n}" for n in range(20, 30)}


def test_the_ring_goes_on_where_it_was() -> None:
    def draws(ring: PlaceboRing, count: int) -> list[str | None]:
        return [ring.draw("x", "x") for _ in range(count)]

    ring = PlaceboRing(5)
    for n in range(20):
        ring.add(f"e{n}", f"note {n}")
    draws(ring, 7)
    state = jsonio.loads(jsonio.dumps(ring.state()))
    twin = PlaceboRing(5)
    twin.restore(state)
    assert draws(ring, 12) == draws(twin, 12)
    twin.add("new", "new")
    assert len(ring.state()["notes"]) == 20
    assert draws(PlaceboRing(5), 1) == [None]


def test_draws_depend_on_the_seed_and_no_global_generator() -> None:
    def drawn(seed: int) -> list[str | None]:
        ring = PlaceboRing(seed)
        for n in range(20):
            ring.add(f"e{n}", f"note {n}")
        return [ring.draw("x", "x") for _ in range(10)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


# -- which turns are noted ------------------------------------------------------------------


def test_few_turns_are_all_noted() -> None:
    assert chosen_turns(4, 16, [False] * 4, seed=0) == [0, 1, 2, 3]
    assert chosen_turns(0, 16, [], seed=0) == []


def test_turns_after_a_thought_come_first_then_any_uniformly() -> None:
    thought = [False, True, False, True, True, False]
    for seed in range(30):
        assert chosen_turns(6, 3, thought, seed) == [1, 3, 4]
        two = chosen_turns(6, 2, thought, seed)
        assert len(two) == 2
        assert set(two) < {1, 3, 4}
        five = chosen_turns(6, 5, thought, seed)
        assert {1, 3, 4} < set(five)
        assert five == sorted(five)
    picked = [t for seed in range(300) for t in chosen_turns(6, 4, thought, seed)]
    for t in (0, 2, 5):
        assert picked.count(t) / 300 == pytest.approx(1 / 3, abs=0.1)


def test_coach_seeds_are_the_calls_own() -> None:
    seeds = {coach_seed(1, f"{b}/{e}", t) for b in range(2) for e in "ab" for t in range(3)}
    assert len(seeds) == 12
    assert coach_seed(1, "0/a", 0) == coach_seed(1, "0/a", 0) != coach_seed(2, "0/a", 0)


def test_names_of_fields_hold_no_value() -> None:
    values = {v for pool in VALUES.values() for v in pool}
    assert not values & {w for name in FIELD_NAMES.values() for w in name.split()}
    assert set(FIELD_NAMES) == {*VALUES, "intent"} >= {f for r in REQUIRED.values() for f in r}
