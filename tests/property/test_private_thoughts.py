"""No private thought reaches an agent, a public export or the public half of an episode.

Every thought of the simulator is marked `ZQX`. It writes them in every shape that models use, over
random conversations in the real gyms; a spy in the agent's chair keeps all that it is handed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim import jsonio, seeds
from mimesim.dialogue.episode import Episode, public_copy
from mimesim.dialogue.export import TARGETS, Options, export_rows
from mimesim.dialogue.thinking import split
from mimesim.dialogue.types import Identity, PublicMessage, Reply, Role, Thought
from mimesim.dialogue.views import SpokenTurn, as_agent, public, transcript
from mimesim.envs.actions import get_format
from mimesim.envs.base import AgentAction, AgentMove, AgentView, Choice, Task
from mimesim.envs.load import load_tasks, make_gym
from mimesim.errors import UserError
from mimesim.models.base import ChatMessage, Sampling
from mimesim.models.scripted import Scripted
from mimesim.rollout.engine import Cast, EngineConfig, Job, run_episodes
from mimesim.rollout.exports import inspect_log, table, tau2, verifiers
from mimesim.users.base import UserRequest, UserSource
from mimesim.users.guards import Situation, check
from mimesim.users.load import make_user
from mimesim.users.settings import read_settings
from mimesim.users.sources import make_source
from tests.support.stub_server import StubRequest, StubServer

MARK = "ZQX"

SHAPES = (
    "<think>{t}</think>{u}",
    "<think>\n{t}\n</think>\n\n{u}",
    "{t}</think>{u}",
    "{u} <think>{t}",
    "<think>{t}",
    "<think>{t}<think>{t}</think>{t}</think>{u}",
    "<seed:think>{t}</seed:think>{u}",
    "< THINK >{t}</ think >{u}",
    "<think>{t}</think>{u}<think>{t}</think> ###STOP###",
    "<thi<think>{t}</think>nk>{t}",
    "\u25c1think\u25b7{t}\u25c1/think\u25b7{u}",
    "{u} \u25c1think\u25b7{t}",
    "<longcat_think>{t}</longcat_think>{u}",
    "<mm:think>{t}</mm:think>{u}",
    "<think_fast>{t}</think_fast>{u}",
    "analysis{t}assistantfinal{u}",
    "analysis{t}assistantanalysis{t}assistantcommentary{t}assistantfinal{u}",
    "{t}assistantfinal{u}",
    "analysis{t}",
    "<|channel|>analysis<|message|>{t}<|end|><|start|>assistant<|channel|>final<|message|>{u}",
    "<|channel|>analysis<|message|>{t}",
    "{u}",
)
GUARDED = (
    "<plan>{t}</plan>{u}",
    "{u} <cot>{t}",
    "<internal>{t}</internal>{u}",
    "<think depth='2'>{t}",
    "```think\n{t}\n```\n{u}",
    "**Thinking:** {t}\n\n{u}",
    "{u}\n**Thoughts:** {t}",
    "{{think}}{t}{{/think}}{u}",
    "\u27e8think\u27e9{t}\u27e8/think\u27e9{u}",
    "\u2039think\u203a{t}\u2039/think\u203a{u}",
    "\u2039\u0442hink\u203a{t}",
    "<tool_call>{{{t}}}</tool_call>",
    "<function=f>{t}",
    '[TOOL_CALLS][{{"name": "{t}"}}]',
    "<scenario>{t}</scenario>{u}",
    "{t}</scenario> {u}",
)
"""Shapes that no model is trained to write, so that the guards forbid them rather than read them."""
WORDS = (
    "where is it",
    "the blue one",
    "i paid by card",
    "order 300",
    "ok",
    "why do you ask",
    "no idea",
)


def draw(rng: random.Random) -> str:
    """Return one raw text of a model, its thoughts marked."""
    thought = f"{MARK}{rng.randrange(1000)} keep it vague {MARK}"
    return rng.choice(SHAPES).format(t=thought, u=rng.choice(WORDS))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_splitter_knows_what_models_write(shape: str) -> None:
    assert MARK not in split(shape.format(t=f"{MARK} keep it vague", u="where is it")).text


@pytest.mark.parametrize("shape", GUARDED)
@pytest.mark.parametrize("words", ["where is it", ""])
def test_the_guards_forbid_what_the_splitter_cannot_read(shape: str, words: str) -> None:
    text = split(shape.format(t=f"{MARK} keep it vague", u=words)).text
    assert MARK not in text or any(fault.hard for fault in check(text, Situation()))


def writer(messages: Sequence[ChatMessage], sampling: Sampling) -> str:
    """Answer as a model would, by nothing but what it is asked."""
    key = "".join(m.content for m in messages)
    return draw(seeds.generator(sampling.seed or 0, key))


def held(value: Any) -> Iterator[Any]:
    """Yield everything that an object holds."""
    yield value
    if is_dataclass(value) and not isinstance(value, type):
        for entry in fields(value):
            yield from held(getattr(value, entry.name))
    elif isinstance(value, Mapping):
        for pair in value.items():
            yield from held(pair)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from held(inner)


def leaks(value: Any) -> list[str]:
    """Return what is private in something that an agent holds."""
    found = [f"a {type(v).__name__}" for v in held(value) if isinstance(v, Thought | Reply)]
    return found + [v for v in held(value) if isinstance(v, str) and MARK in v]


class Spy:
    """An agent that acts at random and keeps every view."""

    identity = Identity("scripted", "scripted:spy")

    def __init__(self) -> None:
        self.views: list[AgentView] = []

    def start(self, *, task: Task, seed: int, key: str) -> Spy:
        self._rng = seeds.generator(seed, key)
        return self

    async def act(self, view: AgentView) -> AgentMove:
        self.views.append(view)
        lines = ("may i have the order number ?", "which item ?", "one moment", "what else ?")
        choice = self._rng.choice([Choice.ACTION, Choice.ACTION, Choice.SEARCH])
        return AgentMove("", AgentAction(choice, self._rng.choice(lines)))

    async def aclose(self) -> None:
        """Do nothing."""


def simulator(**options: Any) -> UserSource:
    """Return the model-backed user with marked thoughts."""
    settings = read_settings({"thinking": True, "max_tokens": 64, **options}, where="test")
    return make_source("trained:test", Scripted(writer), template="user/trained", settings=settings)


def converse(
    user: UserSource, spy: Spy, profile: str, count: int, seed: int
) -> tuple[Episode, ...]:
    """Run random conversations in a real gym."""
    tasks = load_tasks("support-desk", profile=profile, split="test", seed=seed, count=count)
    cast = Cast(
        agent=spy,
        make_gym=lambda task, one: make_gym("support-desk", profile=profile, user=one),  # type: ignore[arg-type]
        action_format=get_format("line"),
        user=user,
    )
    config = EngineConfig(seed=seed, run_id="r", concurrency=1, retries=0)
    return asyncio.run(run_episodes([Job(task) for task in tasks], cast, config)).episodes


@pytest.mark.parametrize("profile", ["compact", "full"])
@pytest.mark.parametrize("mode", ["enforce", "flag", "off"])
def test_thoughts_stay_private_in_real_conversations(profile: str, mode: str) -> None:
    spy = Spy()
    episodes = converse(simulator(guards=mode), spy, profile, count=15, seed=3)
    assert len(spy.views) > 15
    assert leaks(spy.views) == []
    records = [episode.to_json() for episode in episodes]
    assert MARK in jsonio.dumps([record.get("private") for record in records])
    assert MARK not in jsonio.dumps([public_copy(record) for record in records])
    for target in TARGETS:
        assert MARK not in jsonio.dumps(list(export_rows(records, target)))
    for shape in (tau2.document, inspect_log.document, verifiers.rows, table.rows):
        assert MARK not in jsonio.dumps(shape(records, Options()))
    private = Options(with_private=True, user_prompt=lambda episode: "s")
    for target in ("openai", "sharegpt"):
        assert MARK not in jsonio.dumps(list(export_rows(records, target, private)))
    assert MARK in jsonio.dumps(list(export_rows(records, "openai-user", private)))


@pytest.mark.parametrize("profile", ["compact", "full"])
def test_scripted_users_hand_over_no_reply(profile: str) -> None:
    spy = Spy()
    episodes = converse(make_user("scripted:realistic"), spy, profile, count=20, seed=5)
    private = [episode.private or {} for episode in episodes]
    thoughts = [t["text"] for side in private for t in side["thoughts"] if t["text"]]
    assert thoughts
    shown = [v for v in held(spy.views) if isinstance(v, str)]
    assert [v for v in held(spy.views) if isinstance(v, Thought | Reply)] == []
    assert not any(
        thought in text for thought in set(thoughts) if len(thought) > 12 for text in shown
    )


def test_over_a_real_endpoint() -> None:
    def reply(request: StubRequest) -> str:
        return draw(seeds.generator(request.number))

    with StubServer(reply) as server:
        source = make_user(f"trained:openai:stub@{server.url}", options={"max_regen": 0})

        async def chat() -> list[PublicMessage]:
            heard: list[PublicMessage] = []
            errors: list[str] = []
            user = source.start({"id": "s", "goal": "send a teapot back"}, seed=1)
            try:
                for turn in range(30):
                    last = heard[-1].content if heard else ""
                    try:
                        answer = await user.respond(UserRequest("chat", tuple(heard), last, turn))
                    except UserError as error:
                        errors.append(f"{error} {error!r}")
                        continue
                    assert MARK not in repr(answer.guards)
                    heard.append(PublicMessage(Role.USER, answer.utterance))
                    heard.append(PublicMessage(Role.AGENT, "go on"))
            finally:
                await source.aclose()
            assert errors, "some replies must fail, or this test proves less"
            assert MARK not in "".join(errors)
            return heard

        heard = asyncio.run(chat())
        sent = jsonio.dumps([request.body for request in server.generations])
    assert MARK in sent, "the simulator's own history keeps its thoughts"
    assert heard
    assert leaks(heard) == []


turns = st.lists(
    st.tuples(st.sampled_from([Role.USER, Role.AGENT]), st.text(max_size=8), st.text(max_size=8)),
    max_size=10,
)


@given(turns)
def test_agent_side_views_hold_no_thought(drawn: list[tuple[Role, str, str]]) -> None:
    spoken = [
        SpokenTurn(PublicMessage(role, text), Thought(f"{MARK}{hidden}"))
        for role, text, hidden in drawn
        if MARK not in text
    ]
    seen = public(spoken)
    assert leaks([seen, as_agent(seen), transcript(seen)]) == []


@given(st.text(max_size=20).map(lambda s: f"{MARK}{s}"))
def test_a_thought_never_becomes_text_by_accident(words: str) -> None:
    thought = Thought(words)
    reply = Reply(thought, "hi", raw=words, wish={"now": words})
    for shown in (
        repr(thought),
        repr(reply),
        repr([thought]),
        repr(SpokenTurn(PublicMessage(Role.USER, "x"), thought)),
    ):
        assert MARK not in shown
    for accident in (lambda: str(thought), lambda: f"{thought}", lambda: format(thought, ">9")):
        with pytest.raises(TypeError):
            accident()
