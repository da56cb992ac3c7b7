"""A user you can talk to: `trained:<path>` for our checkpoints, plain folders and user models."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mimesim import jsonio
from mimesim.dialogue.stop import END_MARKER, UserAction
from mimesim.dialogue.types import PublicMessage, Reply, Role
from mimesim.errors import ConfigError, DataError
from mimesim.users.base import UserRequest
from mimesim.users.catalog import describe
from mimesim.users.load import make_user
from mimesim.users.settings import INTENT, TRAINED, TrainedAs, read_settings, trained_as
from tests.support.speaker import save_speaker

END_TOKEN = "<|endconversation|>"
USER_TEMPLATE = (
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content']"
    " + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>user\\n' }}{% endif %}"
)
SCENARIO = {"id": "s", "goal": "send a teapot back", "facts": {"order_id": "55127"}}
TALK = (PublicMessage(Role.USER, "hello"), PublicMessage(Role.AGENT, "Which order is it?"))


def answer(folder: Path, *history: PublicMessage, **scenario: object) -> Reply:
    async def respond() -> Reply:
        source = make_user(f"trained:{folder}", options={"model_options": {"dtype": "fp32"}})
        try:
            heard = history[-1].content if history else ""
            user = source.start({**SCENARIO, **scenario}, seed=1)
            return await user.respond(UserRequest("chat", history, heard, 1))
        finally:
            await source.aclose()

    return asyncio.run(respond())


def card(folder: Path, **said: object) -> Path:
    jsonio.write_json(folder / "mimesim.json", said)
    return folder


def test_a_user_model_with_its_own_end_token(tmp_path: Path) -> None:
    """UserLM-like: no manifest, a special end token glued to the words, it writes as `user`."""
    folder = save_speaker(
        tmp_path, f"ok bye{END_TOKEN}", special=(END_TOKEN,), template=USER_TEMPLATE
    )
    assert trained_as(str(folder)) == TrainedAs(INTENT, False, None, END_TOKEN, "user")
    for history in ((), TALK):
        reply = answer(folder, *history)
        assert (reply.utterance, reply.action, reply.attempts) == ("ok bye", UserAction.END, 1)


def test_an_end_token_that_also_ends_the_generation_stays_visible(tmp_path: Path) -> None:
    folder = save_speaker(tmp_path, f"ok bye{END_TOKEN}", special=(END_TOKEN,))
    settings = jsonio.read_object(folder / "generation_config.json")
    number = next(
        token["id"]
        for token in jsonio.read_object(folder / "tokenizer.json")["added_tokens"]
        if token["content"] == END_TOKEN
    )
    jsonio.write_json(folder / "generation_config.json", {**settings, "eos_token_id": [2, number]})
    reply = answer(folder, *TALK)
    assert (reply.utterance, reply.action) == ("ok bye", UserAction.END)


def test_a_bare_end_token_says_nothing(tmp_path: Path) -> None:
    reply = answer(save_speaker(tmp_path, END_TOKEN, special=(END_TOKEN,)), *TALK)
    assert (reply.utterance, reply.action) == ("", UserAction.END)


def test_a_plain_folder_is_an_ordinary_chat_model(tmp_path: Path) -> None:
    folder = save_speaker(tmp_path, "where is my order?")
    assert trained_as(str(folder)) == TrainedAs()
    reply = answer(folder, *TALK)
    assert (reply.utterance, reply.action) == ("where is my order?", UserAction.SAY)


def test_a_checkpoint_of_ours_names_its_end(tmp_path: Path) -> None:
    folder = save_speaker(tmp_path, "ok bye<|over|>", special=("<|over|>",))
    card(folder, system_template="user/midtrain", thinking=False, end_marker="<|over|>")
    reply = answer(folder, *TALK)
    assert (reply.utterance, reply.action) == ("ok bye", UserAction.END)


def test_the_prompt_names_the_end_that_was_learnt(tmp_path: Path) -> None:
    card(tmp_path, end_marker="/close")
    assert "/close" in describe(f"trained:{tmp_path}")["example_prompt"]
    assert END_MARKER not in describe(f"trained:{tmp_path}")["example_prompt"]


def test_the_marker_of_a_scenario_wins(tmp_path: Path) -> None:
    folder = card(save_speaker(tmp_path, "bye <-ov>"), thinking=False, end_marker="/close")
    reply = answer(folder, *TALK, end={"markers": ["<-ov>"]})
    assert (reply.utterance, reply.action) == ("bye", UserAction.END)


def test_a_marker_that_could_be_text_is_refused(tmp_path: Path) -> None:
    card(tmp_path, end_marker="stop")
    with pytest.raises(DataError, match="end_marker"):
        trained_as(str(tmp_path))
    with pytest.raises(ConfigError, match="end_marker"):
        read_settings({"end_marker": "stop"}, where="x")
    with pytest.raises(ConfigError, match="speaks_as"):
        read_settings({"speaks_as": "agent"}, where="x")


def test_an_added_token_is_told_from_an_ordinary_word(tmp_path: Path) -> None:
    """A vocabulary may well hold the word `/close`."""
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": {"/close": 7}}}', "utf-8")
    assert trained_as(str(tmp_path)).template == TRAINED
    (tmp_path / "added_tokens.json").write_text('{"/close": 7}', "utf-8")
    assert trained_as(str(tmp_path)).end_marker == "/close"
