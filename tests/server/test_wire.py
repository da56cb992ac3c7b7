"""What callers send: whose words are whose, odd contents, and what is refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mimesim.dialogue.views import GREETING
from mimesim.models.base import ChatMessage, Sampling
from tests.support.served import Served, served, speaking


def echo(messages: list[ChatMessage], sampling: Sampling) -> str:
    """Answer with nothing of interest."""
    return "I see, and then?"


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with speaking(echo, max_messages=400) as one:
        yield one


def shown(server: Served, messages: list[Any], **more: Any) -> list[tuple[str, str]]:
    """Return what the model behind the user was shown after its prompt."""
    answer = server.ask(messages, **more)
    assert answer.status_code == 200, answer.text
    assert server.model is not None
    asked = server.model.requests[-1][0]
    assert asked[0].role == "system"
    assert asked[-1].role == "user"
    return [(m.role, m.content) for m in asked[1:]]


def row(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


PROMPT = row("system", "You want a tea pot.")


def test_both_ways_of_sending_roles_mean_the_same(server: Served) -> None:
    flipped = [PROMPT, row("user", "Hello?"), row("assistant", "A pot."), row("user", "Which?")]
    natural = [row("assistant", "Hello?"), row("user", "A pot."), row("assistant", "Which?")]
    told = {"instructions": "You want a tea pot."}
    want = [("user", "Hello?"), ("assistant", "A pot."), ("user", "Which?")]
    assert shown(server, flipped) == want
    assert shown(server, natural, mimesim={**told, "roles": "natural"}) == want
    assert shown(server, natural, model="user:natural", mimesim=told) == want
    by_metadata = {"mimesim_roles": "natural", "mimesim_instructions": "You want a tea pot."}
    assert shown(server, natural, metadata=by_metadata) == want
    answer = server.post(
        {"model": "user", "messages": natural, "mimesim": told}, x_mimesim_roles="natural"
    )
    assert answer.status_code == 200


def test_the_agents_prompt_is_never_shown_in_natural_roles(server: Served) -> None:
    rows = [row("system", "POLICY: deny"), row("assistant", "Hello?")]
    answer = server.ask(rows, mimesim={"roles": "natural", "instructions": "You want a pot."})
    assert server.model is not None
    assert "POLICY" not in "".join(m.content for m in server.model.requests[-1][0])
    assert "not shown" in answer.headers["x-mimesim-warnings"]


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        ([PROMPT], [("user", GREETING)]),
        ([PROMPT, row("user", " \n")], [("user", GREETING)]),
        ([PROMPT, row("assistant", "A pot."), row("user", "Which?")],
         [("user", GREETING), ("assistant", "A pot."), ("user", "Which?")]),
        ([PROMPT, row("user", "Checking…"), row("user", "It ships on Monday.")],
         [("user", "Checking…\n\nIt ships on Monday.")]),
        ([PROMPT, row("user", None, tool_calls=[{"id": "1"}]), row("tool", '{"eta":"Mon"}'),
          row("user", "It arrives Monday.")], [("user", "It arrives Monday.")]),
        ([PROMPT, row("user", "Hi?"), row("assistant", None, tool_calls=[{"id": "2"}]),
          row("tool", "restarted", tool_call_id="2"), row("user", "And now?")],
         [("user", "Hi?\n\nAnd now?")]),
        ([PROMPT, row("user", [{"type": "text", "text": "Your code"}, {"type": "text", "text": "is 41."}])],
         [("user", "Your code\nis 41.")]),
        ([PROMPT, row("user", [{"type": "input_audio", "input_audio": {}},
                               {"type": "text", "text": "Your code is 41."}])],
         [("user", "Your code is 41.")]),
        ([PROMPT, row("user", "<think>they want a refund, deny</think>Hello?")], [("user", "Hello?")]),
        ([PROMPT, row("user", "Hi"), row("assistant", "<think>I lie</think>A pot.",
                                         reasoning_content="I lie"), row("user", "Which?")],
         [("user", "Hi"), ("assistant", "A pot."), ("user", "Which?")]),
        ([row("developer", "You want"), PROMPT, row("user", "ok \ud83d done")],
         [("user", "ok \ufffd done")]),
    ],
    ids=["opening", "blank greeting", "greeting seeded", "neighbors", "agent tools", "user tools",
         "parts", "audio beside text", "agent thinks", "own thoughts", "surrogate"],
)  # fmt: skip
def test_the_model_is_shown_the_strictest_grammar(
    server: Served, rows: list[Any], want: list[tuple[str, str]]
) -> None:
    assert shown(server, rows) == want


@pytest.mark.parametrize(
    ("change", "status", "param"),
    [
        ({"messages": []}, 400, "messages"),
        ({"messages": "hello"}, 400, "messages"),
        ({"messages": None}, 400, "messages"),
        ({"messages": ["hello"]}, 400, "messages[0]"),
        ({"messages": [row("narrator", "x")]}, 400, "messages[0].role"),
        ({"messages": [row(["user"], "x")]}, 400, "messages[0].role"),
        ({"messages": [row("user", 7)]}, 400, "messages[0]"),
        ({"messages": [row("user", [{"type": "image_url", "image_url": {}}])]}, 400, "messages[0]"),
        ({"messages": [row("user", [{"type": "input_audio"}])]}, 400, "messages[0]"),
        ({"messages": [row("user", "a"), row("assistant", "b")]}, 400, "messages"),
        ({"messages": [row("user", "a"), row("assistant", "b"), row("user", "")]}, 400, "messages"),
        ({"messages": [row("user", "a")] * 401}, 400, "messages"),
        ({"model": "nobody"}, 404, "model"),
        ({"model": "user:sideways"}, 404, "model"),
        ({"model": None}, 400, "model"),
        ({"model": {"a": 1}}, 400, "model"),
        ({"n": 2}, 400, "n"),
        ({"logprobs": True}, 400, "logprobs"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format"),
        ({"audio": {"voice": "x"}}, 400, "audio"),
        ({"tools": [{"type": "function"}]}, 400, "tools"),
        ({"temperature": "hot"}, 400, "temperature"),
        ({"temperature": True}, 400, "temperature"),
        ({"top_p": 3}, 400, "top_p"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"seed": 1.5}, 400, "seed"),
        ({"stop": [1]}, 400, "stop"),
        ({"stream": "yes"}, 400, "stream"),
        ({"metadata": 3}, 400, "metadata"),
        ({"mimesim": 3}, 400, "mimesim"),
        ({"mimesim": {"persnoa": "x"}}, 400, "mimesim"),
        ({"mimesim": {"dialect": "klingon"}}, 400, "mimesim"),
        ({"mimesim": {"episode": "../../etc/passwd"}}, 400, "mimesim"),
        ({"mimesim": {"scenario_id": "nowhere"}}, 404, "mimesim.scenario_id"),
        ({"mimesim": {"scenario": {"goal": "x", "persnoa": "y"}}}, 400, "mimesim"),
        ({"mimesim": {"scenario": {"goal": "x", "facts": {"a": "###STOP###"}}}}, 400, "mimesim"),
        ({"mimesim": {"scenario": {"goal": "x", "behavior": "os:system"}}}, 400, "mimesim"),
        ({"mimesim": {"scenario": {"goal": "x", "meta": {"manual": "/etc/x.toml"}}}}, 400, "mimesim"),
        ({"mimesim": {"scenario": {"goal": "x"}, "behavior": "os:system"}}, 400, "mimesim"),
        ({"mimesim": {"scenario": {"goal": "x"}, "behavior": "B99"}}, 400, "mimesim"),
        ({"mimesim": {"instructions": "x", "behavior": "B9"}}, 400, "mimesim"),
    ],
)  # fmt: skip
def test_bad_requests_get_one_line_and_a_reason(
    server: Served, change: dict[str, Any], status: int, param: str
) -> None:
    good = {"model": "user", "messages": [row("user", "a")]}
    answer = server.post({**good, **change})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (status, param), answer.text
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    assert "\n" not in error["message"]


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'"x"', b"\xff\xfe{", b"[" * 100_000, b'{"model": NaN}']
)
def test_bodies_that_are_no_request(server: Served, raw: bytes) -> None:
    answer = server.post(raw)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_404_names_what_is_served(server: Served) -> None:
    answer = server.post({"model": "usr", "messages": []})
    assert "did you mean 'user'" in answer.json()["error"]["message"]
    assert "trained:stub" in answer.json()["error"]["message"]


def test_unknown_fields_are_named_and_settings_reach_the_model(server: Served) -> None:
    answer = server.ask(
        [PROMPT], frobnicate=1, temperature=0.25, top_p=0.5, max_completion_tokens=99, seed=5
    )
    assert "frobnicate" in answer.headers["x-mimesim-warnings"]
    assert server.model is not None
    sampling = server.model.requests[-1][1]
    assert (sampling.temperature, sampling.top_p, sampling.max_tokens) == (0.25, 0.5, 99)
    server.ask([PROMPT], seed=5)
    server.ask([PROMPT], seed=6)
    seeds = [request[1].seed for request in server.model.requests[-3:]]
    assert seeds[0] == seeds[1] != seeds[2]


def test_strangers_who_give_no_seed_meet_different_draws(server: Served) -> None:
    for _ in range(4):
        server.ask([row("system", "never seen before")])
    assert server.model is not None
    assert len({request[1].seed for request in server.model.requests[-4:]}) == 4


def test_stop_strings_cut_the_utterance(server: Served) -> None:
    answer = server.ask([PROMPT], stop=[" and"])
    assert answer.json()["choices"][0]["message"]["content"] == "I see,"


def test_people_are_named_in_every_way(server: Served) -> None:
    scenario = {"goal": "swap a kettle", "persona": "Mira Olten"}
    told = [
        {"mimesim": {"scenario": scenario}},
        {"messages": [row("system", '{"goal": "swap a kettle", "persona": "Mira Olten"}')]},
        {"mimesim": {"scenario": {**scenario, "behavior": "B9"}}},
        {"mimesim": {"scenario": scenario, "behavior": "B9"}},
        {"mimesim": {"scenario": scenario}, "model": "trained:stub+B9"},
    ]
    prompts = []
    for one in told:
        answer = server.post({"model": "user", "messages": [row("user", "hi")], **one})
        assert answer.status_code == 200, answer.text
        assert server.model is not None
        prompts.append(server.model.requests[-1][0][0].content)
    assert all("swap a kettle" in prompt and "Mira Olten" in prompt for prompt in prompts)
    assert prompts[0] == prompts[1] != prompts[2] == prompts[3] == prompts[4]
    by_system = server.ask([row("system", "Wants tea.")])
    assert by_system.status_code == 200
    assert server.model.requests[-1][0][0].content == "Wants tea."


@pytest.mark.parametrize("behavior", [f"B{n}" for n in range(1, 14)])
def test_every_behavior_is_played_by_somebody_of_the_desk(server: Served, behavior: str) -> None:
    answer = server.ask([row("user", "hi")], model=f"user+{behavior}")
    assert answer.status_code == 200, answer.text
    assert server.model is not None
    plain = server.ask([row("user", "hi")], model="user+neutral")
    assert plain.status_code == 200
    told, neutral = (request[0][0].content for request in server.model.requests[-2:])
    assert "Like an ordinary customer" in neutral
    assert "Like an ordinary customer" not in told


def test_system_text_can_be_wrapped_into_our_own_form() -> None:
    with speaking(echo, system="wrap") as server:
        server.said("hi", prompt="You want a tea pot.")
        assert server.model is not None
        prompt = server.model.requests[-1][0][0].content
    assert "You want a tea pot." in prompt
    assert prompt != "You want a tea pot."


def test_scenarios_of_the_server_are_found_by_name() -> None:
    people = [{"id": "kettle", "goal": "swap a kettle"}, {"id": "lamp", "goal": "return a lamp"}]
    with speaking(echo, scenarios=people) as server:
        assert server.model is not None

        def prompt(**more: Any) -> str:
            answer = server.post({"model": "user", "messages": [row("user", "hi")], **more})
            assert answer.status_code == 200, answer.text
            return str(server.model.requests[-1][0][0].content)  # type: ignore[union-attr]

        assert "return a lamp" in prompt(model="user/lamp")
        assert "swap a kettle" in prompt(mimesim={"scenario_id": "kettle"})
        met = {prompt(mimesim={"episode": f"e{i}"}) for i in range(12)}
        assert len(met) == 2, "episodes without a name of their own meet everybody"
        assert len({prompt(seed=i) for i in range(12)}) == 2, "so do seeds"
        assert len({prompt(seed=5) for _ in range(4)}) == 1
        assert len({prompt() for _ in range(12)}) == 2, "so do strangers"


DEEP = json.loads("[" * 400 + "]" * 400)


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"modalities": 5}, "modalities"),
        ({"mimesim": []}, "mimesim"),
        ({"metadata": []}, "metadata"),
        ({"stop": {}}, "stop"),
        ({"stop": ["I"]}, "stop"),
        ({"n": True}, "n"),
        ({"stream": 0}, "stream"),
        ({"mimesim": {"scenario": {"goal": "a b", "meta": {"x": DEEP}}}}, "mimesim"),
        (
            {
                "mimesim": {
                    "scenario": {"goal": "a b", "facts": dict.fromkeys(map(str, range(999)), "x")}
                }
            },
            "mimesim",
        ),
        ({"mimesim": {"scenario": {"goal": "a " * 40_000}}}, "mimesim"),
        (
            {"messages": [row("system", '{"goal": "a b", "meta": ' + json.dumps(DEEP) + "}")]},
            "mimesim",
        ),
    ],
)
def test_what_keeps_a_server_busy_is_the_callers_fault(
    server: Served, more: dict[str, Any], param: str
) -> None:
    answer = server.post({"model": "user", "messages": [row("user", "hi")], **more})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
    nested = server.post(b"[" * 100_000)
    assert (nested.status_code, nested.json()["error"]["code"]) == (400, "invalid_json")


def test_what_no_file_can_hold_is_taken_out_of_a_scenario() -> None:
    with served("scripted:neutral") as server:
        scenario = {"goal": "return a lamp", "script": ["odd \ud83d one\0", "bye now"]}
        answer = server.ask([row("user", "hi")], mimesim={"scenario": scenario})
        assert answer.json()["choices"][0]["message"]["content"] == "odd \ufffd one\ufffd"


def test_a_stranger_stays_the_same_person_until_the_end() -> None:
    goals = [f"return lamp {i}" for i in range(9)]
    people = [{"id": f"p{i}", "goal": goal} for i, goal in enumerate(goals)]

    def playing(messages: list[ChatMessage], sampling: Sampling) -> str:
        number = next(i for i, goal in enumerate(goals) if goal in messages[0].content)
        return f"It is number {number} that I mean" + ", still" * (len(messages) // 2 - 1)

    with speaking(playing, scenarios=people) as server:
        for number in range(6):  # a harness may draw another seed for each call
            talk, who = [row("user", "hi")], set()
            for turn in range(3):
                answer = server.ask(talk, **({"seed": 50 + turn} if number % 2 else {}))
                assert answer.status_code == 200, answer.text
                said = answer.json()["choices"][0]["message"]["content"]
                who.add(said.partition(",")[0])
                talk += [row("assistant", said), row("user", f"and then, {number} {turn}?")]
            assert len(who) == 1
        told = [row("user", "hi"), row("assistant", "elsewhere"), row("user", "yes?")]
        served = {server.ask(told).json()["choices"][0]["message"]["content"] for _ in range(3)}
        assert len(served) == 1, "unknown words choose somebody, and always the same"


def test_a_long_history_is_trimmed_and_the_scenario_stays() -> None:
    from mimesim.errors import ContextExceeded

    def short_sighted(messages: list[ChatMessage], sampling: Sampling) -> str:
        if len(messages) > 40:
            raise ContextExceeded("full", party="agent")
        return "Still waiting."

    words = [f"message {i}" for i in range(299)]
    with speaking(short_sighted) as server:
        body = server.said(*words)
        assert server.model is not None
        asked = server.model.requests[-1][0]
    assert body["content"] == "Still waiting."
    assert body["guards"] == ["trimmed"]
    assert asked[0].content == "You want a tea pot."
    assert asked[-1].content == "message 298"
    assert [m.role for m in asked[1:4]] == ["user", "assistant", "user"]


def test_a_prompt_that_can_never_fit_is_the_callers_error() -> None:
    from mimesim.errors import ContextExceeded

    def blind(messages: list[ChatMessage], sampling: Sampling) -> str:
        raise ContextExceeded("full", party="agent")

    with speaking(blind) as server:
        answer = server.ask([PROMPT, row("user", "hi")])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")


def test_scripted_users_play_scenarios_and_say_that_they_read_no_prose() -> None:
    with served("scripted:realistic") as server:
        body = server.said("Hello?", prompt="You are a pirate.")
        assert "prose" in body["warnings"][0]
        told = {"scenario": {"goal": "x", "opening": "the kettle leaks – help 📦"}}
        assert server.said("Hello?", mimesim=told)["content"] == "the kettle leaks – help 📦"
