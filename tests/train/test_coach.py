"""The coach: what notes may say, what they may not, and what a model behind the coach is shown."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mimesim.dialogue.types import CoachNote, PublicMessage, Reply, Role
from mimesim.envs.base import AgentView, Observation
from mimesim.envs.gyms.support_desk.compact_agents import Reading
from mimesim.errors import ConfigError, UnknownNameError, UsageError
from mimesim.models.base import Completion
from mimesim.models.load import make_chat_model
from mimesim.models.scripted import Scripted
from mimesim.prompts import render
from mimesim.scenarios.compact import FIELD_NAMES, REQUIRED, VALUES, compose_scenario
from mimesim.train.coach import (
    MAX_CHARACTERS,
    NONE,
    CoachConfig,
    CoachExample,
    CoachTurn,
    ModelCoach,
    RuleCoach,
    Thinking,
    make_coach,
    read_coach,
    rule_note,
    same_model,
)
from mimesim.train.notes import (
    NoteCounts,
    leaks,
    write_note,
)
from mimesim.train.warmstart import vocabulary
from mimesim.users.base import UserRequest
from mimesim.users.load import make_user
from mimesim.users.scripted.compact import CompactUser
from mimesim.users.scripted.kinds import KINDS
from tests.support.coaching import turn
from tests.support.stub_server import Fault, StubServer
from tests.support.stub_server import Reply as StubReply

QUICK = {"backoff_s": 0.01, "backoff_max_s": 0.02, "budget_s": 1.0}
POLICY = "policy refund 30 gold 60 exchange 15 missing 60 cancel not shipped"


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


def test_names_of_fields_hold_no_value() -> None:
    values = {v for pool in VALUES.values() for v in pool}
    assert not values & {w for name in FIELD_NAMES.values() for w in name.split()}
    assert set(FIELD_NAMES) == {*VALUES, "intent"} >= {f for r in REQUIRED.values() for f in r}


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


# -- what is withheld -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "marks"),
    [
        (CoachConfig(channels="thought"), ["AFTER-8"]),
        (CoachConfig(channels="thought", thought="both"), ["BEFORE-7", "AFTER-8"]),
        (CoachConfig(channels="reaction"), ["NEXT-9"]),
        (CoachConfig(channels="reaction", thought="both"), ["NEXT-9"]),
        (CoachConfig(channels="thought", privileged=False), []),
    ],
)
@pytest.mark.parametrize("style", ["prospective", "corrective", "small"])
def test_one_channel_alone(style: str, config: CoachConfig, marks: list[str]) -> None:
    _, counts, (prompt,) = ask(["NONE"], replace(config, style=style))
    assert [mark for mark in PRIVATE if mark in prompt] == marks
    missing = 2 - bool(set(marks) - {"NEXT-9"}) - ("NEXT-9" in marks)
    assert prompt.count("(not available)") == missing
    assert counts.none == 1


@pytest.mark.parametrize("style", ["prospective", "corrective"])
def test_a_coach_without_privilege_is_not_told_that_it_sees_more(style: str) -> None:
    """Else the ablation would ask for something that is not there, and be answered NONE."""
    _, _, (whole,) = ask(["NONE"], CoachConfig(style=style))
    _, _, (bare,) = ask(["NONE"], CoachConfig(style=style, privileged=False))
    _, _, (half,) = ask(["NONE"], CoachConfig(style=style, channels="thought"))
    assert "You can see what the agent" in whole
    assert "work from the" not in whole
    assert "You can see what the agent" not in bare
    assert "work from the conversation alone" in bare
    assert "thought" in half.partition("Write")[0].partition("Say how")[0]
    assert "say next" not in half.partition(".")[0]
    assert "work from the rest" in half


def test_the_rule_coach_says_nothing_without_privilege() -> None:
    """Its note is the customer's state in other words: no state, no note."""
    seen = turn(wish_before=wish(missing=["order"]))

    def note(**how: Any) -> CoachNote | None:
        return asyncio.run(RuleCoach(CoachConfig("rule", **how)).note(seen, seed=0))

    assert (
        note()
        == note(channels="thought")
        == CoachNote("note wants refund lacks order number", "rule")
    )
    assert note(privileged=False) is None
    assert note(channels="reaction") is None


# -- small models as coach ------------------------------------------------------------------

SMALL = CoachConfig(style="small")


def test_a_small_model_reads_spoken_words_only() -> None:
    history = (
        PublicMessage(Role.USER, "Where is it?"),
        PublicMessage(Role.AGENT, 'One moment. <tool_call>{"name": "find"}</tool_call>'),
        PublicMessage(Role.TOOL, "SHELF-3 in stock"),
        PublicMessage(Role.AGENT, '{"choice": "search",\n "content": "SHELF-4"}'),
        PublicMessage(Role.AGENT, "```json\nSHELF-5\n```\nIt is\n<|im_end|>on the way."),
        PublicMessage(Role.USER, "Since <b>Monday</b>?"),
    )
    _, _, (prompt,) = ask(["NONE"], SMALL, history=history)
    case = prompt.rpartition("CONVERSATION\n")[2]
    assert case.split("\nPRIVATE")[0].splitlines() == [
        "Person: Where is it?",
        "Agent: One moment.",
        "Agent: It is on the way.",
        "Person: Since <b>Monday</b>?",
    ]
    assert "SHELF" not in prompt
    assert "give me the number once more" not in prompt, "it is prospective"


def test_the_small_prompt_has_three_examples_of_its_own_or_those_given() -> None:
    _, _, (prompt,) = ask(["NONE"], SMALL)
    assert prompt.count("CONVERSATION\n") == 4
    assert prompt.count("\nNOTE\n") + prompt.endswith("\nNOTE") == 4
    assert prompt.endswith("Next words: NEXT-9 fine, it is 4172.\nNOTE")
    example = CoachExample(("Person: hm", "Agent: yes?"), "The person said hm.", thought="odd")
    _, _, (own,) = ask(["NONE"], replace(SMALL, examples=(example,)))
    assert own.count("CONVERSATION\n") == 2
    assert (
        "Agent: yes?\nPRIVATE\nThought: odd\nNext words: (not available)\nNOTE\nThe person said hm."
        in own
    )


def test_the_examples_of_the_small_prompt_do_not_leak() -> None:
    """They teach what a note may say: each of them passes the check that notes have to pass."""
    cases = render("coach/small_examples").split("CONVERSATION\n")[1:]
    assert len(cases) == 3
    notes = []
    for case in cases:
        public, _, rest = case.partition("PRIVATE\n")
        private, _, note = rest.partition("NOTE\n")
        assert leaks(note.strip(), private, public) == []
        assert len(note.split()) <= 40
        notes.append(note.strip())
    assert notes[-1] == NONE
    assert all(note.startswith("The person ") for note in notes[:2])


def test_how_a_small_model_is_sampled() -> None:
    small, usual = SMALL.sampling, CoachConfig().sampling
    assert (small.temperature, small.max_tokens) == (0.7, 110)
    assert (usual.temperature, usual.max_tokens, usual.stop) == (0.0, 300, ())
    assert {"\nCONVERSATION", "\nPRIVATE", "\nNOTE"} == set(small.stop)
    own = CoachConfig(style="small", temperature=0.0, max_tokens=50).sampling
    assert (own.temperature, own.max_tokens) == (0.0, 50)

    def answer(request: Any) -> str:
        assert request.body["stop"] == list(small.stop)
        assert request.body["temperature"] == 0.7
        return "The person waits."

    note, _, _ = ask(answer, SMALL)
    assert note is not None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("NOTE: The person is cross. They also want tea.", "The person is cross."),
        ('\n"The person waits for a date"\nNOTE\nmore', "The person waits for a date"),
        ("The person " + "waits " * 60, ("The person " + "waits " * 38).strip()),
        ("<think>hm\n\nso</think>\n\nThe person waits.", "The person waits."),
    ],
)
def test_a_small_note_is_one_sentence_of_forty_words(answer: str, text: str) -> None:
    note, _, _ = ask([answer], SMALL)
    assert note is not None
    assert note.text == text


@pytest.mark.parametrize("answer", ["NONE", "Note: NONE.", "\n\nNone"])
def test_a_small_model_may_have_nothing_to_say(answer: str) -> None:
    note, counts, _ = ask([answer], SMALL)
    assert note is None
    assert counts.none == 1


# -- which coach ----------------------------------------------------------------------------


def test_the_user_model_coaches_and_its_reasoning_stays_with_it() -> None:
    """The model behind the frozen user, asked as a coach; its template opens the private block."""
    with StubServer(["secret plan about 4172</think>\n\nAsk what stands in the way."]) as server:
        name = f"roleplay:openai:stub@{server.url}"
        user = make_user(
            name, options={"thinking": True, "prefilled": True, "model_options": QUICK}
        )
        coach = make_coach(CoachConfig("user"), user)
        assert coach.name.startswith("user:openai:stub")

        async def run() -> CoachNote | None:
            try:
                return await coach.note(turn(), seed=1)
            finally:
                await user.aclose()
                await coach.aclose()

        note = asyncio.run(run())
        assert note == CoachNote("Ask what stands in the way.", coach.name)
        (request,) = server.generations
        assert [m["role"] for m in request.body["messages"]] == ["user"], "no part is played"


def test_a_thought_that_was_cut_is_no_note() -> None:
    """A prefilled opener cut at the cap bears no tag: everything is private."""
    cut = Completion("the order is 4172 and they", finish_reason="length")
    coach = ModelCoach(Scripted([cut]), thinking=Thinking(True, prefilled=True))
    assert asyncio.run(coach.note(turn(), seed=0)) is None


@pytest.mark.parametrize("user", ["scripted:realistic", "http://127.0.0.1:9/v1"])
def test_a_user_without_a_model_of_its_own_cannot_coach(user: str) -> None:
    with pytest.raises(ConfigError, match="has none that can be asked"):
        make_coach(CoachConfig("user"), make_user(user))


def test_coaches_by_name() -> None:
    user = make_user("scripted:realistic")
    assert isinstance(make_coach(CoachConfig("rule"), user), RuleCoach)
    assert make_coach(CoachConfig("model:scripted:echo"), user).name == "model:scripted:echo"
    with pytest.raises(UnknownNameError, match="scriptd"):
        make_coach(CoachConfig("model:scriptd:echo"), user)


def test_the_same_model_is_known_again() -> None:
    url = "http://127.0.0.1:9/v1"
    user = make_user(f"roleplay:openai:one@{url}")
    one, two = (make_coach(CoachConfig(f"model:openai:{m}@{url}"), user) for m in ("one", "two"))
    other = make_coach(CoachConfig("model:openai:one@http://127.0.0.2:9/v1"), user)
    assert same_model(one, user)
    assert same_model(make_coach(CoachConfig("user"), user), user)
    assert not same_model(two, user)
    assert not same_model(other, user)
    assert not same_model(RuleCoach(), user)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("rul", "unknown coach 'rul' .did you mean 'rule'"),
        ("model:", "names no model"),
        (CoachConfig(style="corrective"), "'coach.name' is missing"),
    ],
)
def test_what_names_no_coach(said: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_coach(said)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": "rule", "style": "corrective"}, "the rule coach"),
        ({"name": "rule", "style": "small"}, "the rule coach"),
        ({"max_tokens": 0}, "'max_tokens' cannot be 0"),
        ({"temperature": -1.0}, "'temperature' cannot be -1"),
        ({"timeout_s": 0.0}, "'timeout_s' cannot be 0"),
        ({"channels": "all"}, "coach channels 'all'"),
        ({"examples": (CoachExample((), "x"),)}, "'examples' are for the style 'small'"),
    ],
)
def test_settings_of_a_coach_that_cannot_be(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CoachConfig(**wrong)
