"""What the model behind a user is sent in a whole conversation, rendered by strict templates."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import mimesim
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.types import Identity
from mimesim.dialogue.views import GREETING
from mimesim.errors import EnvironmentFault
from mimesim.models import templates
from mimesim.models.base import ChatMessage, Sampling
from mimesim.models.local import Loaded, LocalChatModel, LocalOptions
from tests import tiny
from tests.support import families
from tests.support.stub_server import StubServer

WANTING_A_QUERY = ("qwen3_5_think", "qwen3_5_nothink", "qwen3_6", "qwen3_8")


def played(agent: Any, *replies: str) -> tuple[Episode, list[list[ChatMessage]]]:
    """Return one conversation, and the messages of every request of its user."""
    with StubServer(replies) as server:
        (episode,) = mimesim.simulate(
            agent, ["learn when the kettle ships"], user=f"trained:openai:stub@{server.url}"
        )
        sent = [request.body["messages"] for request in server.generations]
    return episode, [[ChatMessage(m["role"], m["content"]) for m in body] for body in sent]


@pytest.mark.parametrize("name", WANTING_A_QUERY)
def test_a_user_that_opens_is_rendered_where_somebody_must_have_asked(name: str) -> None:
    """C-TPL-01: the greeting is the query, and stands in the prompt alone."""
    episode, requests = played(
        lambda message: "On Monday.", "<think>ask</think>when?", "ok, thanks", "###STOP###"
    )
    tokenizer = families.in_memory(families.original(families.QWEN35, name))
    with pytest.raises(EnvironmentFault, match="No user query"):
        templates.render(tokenizer, requests[0][:1], add_generation_prompt=True)
    for messages in requests[:2]:
        assert messages[1] == ChatMessage("user", GREETING)
        text = templates.render(tokenizer, messages, add_generation_prompt=True)
        assert text.count(GREETING) == 1
    opened = requests[1][:3]
    assert [m.role for m in opened] == ["system", "user", "assistant"]
    assert "when?" in templates.render(tokenizer, opened)
    assert episode.turns[0].content == "when?"
    assert all(GREETING not in turn.content for turn in episode.turns)


def test_two_messages_of_the_agent_are_one_where_roles_must_alternate() -> None:
    """C-TPL-02: joined in order for the user's model, apart in the record."""
    said = ["Checking…", "It ships on Monday."]
    answer = [{"role": "assistant", "content": text} for text in said]
    episode, requests = played(lambda messages: answer, "when?", "ok, thanks", "###STOP###")
    assert requests[1][-1] == ChatMessage("user", "Checking…\n\nIt ships on Monday.")
    assert [t.content for t in episode.turns if t.role.value == "agent"][:2] == said
    for name in ("gemma", "gemma3"):
        tokenizer = families.in_memory(families.original(families.GEMMA, name))
        shaped = templates.inspect_template(tokenizer).shape(requests[1])
        text = templates.render(tokenizer, shaped, add_generation_prompt=True)
        assert "Checking…\n\nIt ships on Monday.<end_of_turn>" in text
        apart = [*requests[1][:-1], *(ChatMessage("user", text) for text in said)]
        with pytest.raises(EnvironmentFault):
            templates.render(tokenizer, apart)


def test_a_local_model_reads_a_refused_system_text_all_the_same() -> None:
    """C-TPL-03: found when the model is loaded; nothing of the text is lost on the way to it."""
    gemma = families.without_chatml(families.original(families.GEMMA, "gemma"))
    talk = [ChatMessage("system", "You live in Graz."), ChatMessage("user", "Hello")]
    with pytest.raises(EnvironmentFault):
        templates.render(gemma, talk)
    network = tiny.model()
    network.resize_token_embeddings(len(gemma))
    model = LocalChatModel(Loaded(network, gemma), LocalOptions(dtype="fp32"), Identity("llm", "x"))

    async def answered() -> int | None:
        try:
            return (await model.chat(talk, Sampling(max_tokens=1, seed=1))).usage.prompt_tokens
        finally:
            await model.aclose()

    one = [ChatMessage("user", "You live in Graz.\n\nHello")]
    told = templates.render_ids(gemma, one, add_generation_prompt=True)
    assert asyncio.run(answered()) == len(told)
