"""The local token model: lock-step batches with a living cache equal the naive way, row by row."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest
import torch

from mimesim.errors import CallerError, ContextExceeded
from mimesim.models.base import Continuation, Sampling
from mimesim.models.codec import TemplateCodec
from mimesim.models.local_tokens import LocalTokenModel, LocalTokenSession
from mimesim.models.tiny import TinyConfig, build_model, load_policy, token_model
from mimesim.seeds import generator
from tests.support import policies

TOKENS = policies.tokenizer()
PLAIN = range(7, len(TOKENS))
LIMIT = 7


@pytest.fixture(scope="module")
def model() -> Any:
    return policies.talkative(TOKENS, 1, end=6.0)


def tokens(model: Any) -> LocalTokenModel:
    return token_model(model, TOKENS, name="policy:test")


def texts(row: int, turns: int) -> list[list[int]]:
    """New ids of each turn: lengths differ from row to row and turn to turn."""
    rng = generator(row, "texts")
    return [[rng.choice(PLAIN) for _ in range(rng.randint(1, 12))] for _ in range(turns)]


async def replies(
    session: LocalTokenSession, row: int, turns: int, heat: float
) -> list[tuple[Continuation, list[int]]]:
    """Play a row: per turn the continuation, and the whole context before it."""
    context: list[int] = []
    found = []
    try:
        for turn, new in enumerate(texts(row, turns)):
            sampling = Sampling(temperature=heat, max_tokens=LIMIT, seed=100 * row + turn)
            context = [*context, *new]
            reply = await session.extend(new, sampling)
            found.append((reply, list(context)))
            context = [*context, *reply.ids]
    finally:
        session.close()
    return found


def play(
    model: Any, rows: Sequence[int], *, heat: float = 1.0
) -> dict[int, list[tuple[Continuation, list[int]]]]:
    """Play rows in one batch; row n has 1 + n % 4 turns."""

    async def run() -> dict[int, Any]:
        engine = tokens(model)
        sessions = {row: engine.session(f"row-{row:03}") for row in rows}
        jobs = [replies(sessions[row], row, 1 + row % 4, heat) for row in rows]
        return dict(zip(rows, await asyncio.gather(*jobs), strict=True))

    return asyncio.run(run())


def turn(seed: int = 1, heat: float = 1.0) -> Sampling:
    return Sampling(temperature=heat, max_tokens=LIMIT, seed=seed)


def within(seconds: float, work: Awaitable[Any]) -> Any:
    async def run() -> Any:
        return await asyncio.wait_for(work, seconds)

    return asyncio.run(run())


def test_log_probs_equal_a_full_unpadded_forward(model: Any) -> None:
    played = play(model, range(9))
    ends, lengths = set(), set()
    for row in played.values():
        for reply, context in row:
            naive = policies.naive_logprobs(model, context, reply.ids)
            assert reply.logprobs is not None
            assert torch.allclose(torch.tensor(reply.logprobs), naive, atol=1e-5, rtol=0)
            ends.add(reply.finish_reason)
            lengths.add(len(reply.ids))
    assert ends == {"stop", "length"}
    assert len(lengths) > 4


def test_a_reply_ends_on_its_stop_token_or_at_its_cap(model: Any) -> None:
    for row in play(model, range(9)).values():
        for reply, _ in row:
            assert TOKENS.eos_token_id not in reply.ids[:-1]
            stopped = reply.ids[-1] == TOKENS.eos_token_id
            assert reply.finish_reason == ("stop" if stopped else "length")
            assert stopped or len(reply.ids) == LIMIT
            assert len(reply.ids) <= LIMIT


def test_caps_may_differ_within_a_batch(model: Any) -> None:
    async def run() -> list[Continuation]:
        engine = tokens(model)
        sessions = [engine.session(f"{n}") for n in range(4)]
        jobs = [
            s.extend([9 + n], Sampling(temperature=1.0, max_tokens=1 + 3 * n, seed=n))
            for n, s in enumerate(sessions)
        ]
        return await asyncio.gather(*jobs)

    for n, reply in enumerate(asyncio.run(run())):
        assert len(reply.ids) <= 1 + 3 * n


def test_neighbors_do_not_matter(model: Any) -> None:
    together = play(model, range(9))
    for row in range(9):
        alone = play(model, [row])[row]
        assert [r.ids for r, _ in alone] == [r.ids for r, _ in together[row]]
        for (one, _), (two, _) in zip(alone, together[row], strict=True):
            assert one.logprobs == pytest.approx(two.logprobs, abs=1e-5)


def test_the_order_of_arrival_does_not_matter(model: Any) -> None:
    forwards, backwards = play(model, range(8)), play(model, range(7, -1, -1))
    for row in range(8):
        assert forwards[row] == backwards[row]


def test_samples_depend_on_the_seed() -> None:
    model = policies.talkative(TOKENS, 1)

    async def one(seed: int) -> tuple[int, ...]:
        session = tokens(model).session("a")
        return (await session.extend([9, 10], turn(seed))).ids

    drawn = [asyncio.run(one(seed)) for seed in (1, 1, 2, 3)]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 3


def test_samples_follow_the_distribution(model: Any) -> None:
    """2000 first tokens of one context against the model's own probabilities."""
    context = [9, 10, 11]

    async def run() -> list[int]:
        engine = tokens(model)
        sessions = [engine.session(f"{n:04}") for n in range(2000)]
        jobs = [
            s.extend(context, Sampling(temperature=1.0, max_tokens=1, seed=n))
            for n, s in enumerate(sessions)
        ]
        return [reply.ids[0] for reply in await asyncio.gather(*jobs)]

    drawn = torch.bincount(torch.tensor(asyncio.run(run())), minlength=len(TOKENS)) / 2000
    with torch.no_grad():
        wanted = model(input_ids=torch.tensor([context])).logits[0, -1].softmax(-1)
    assert (drawn - wanted).abs().max() < 0.04
    assert wanted.max() > 0.05


def test_temperature_scales_the_distribution_that_is_reported(model: Any) -> None:
    async def run() -> Continuation:
        session = tokens(model).session("a")
        return await session.extend([9, 10], Sampling(temperature=0.5, max_tokens=4, seed=3))

    reply = asyncio.run(run())
    ids = torch.tensor([[9, 10, *reply.ids]])
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, 1:-1] / 0.5
    scores = logits.log_softmax(-1).gather(1, ids[0, 2:, None]).squeeze(1)
    assert torch.allclose(torch.tensor(reply.logprobs), scores, atol=1e-5, rtol=0)


def test_greedy_equals_generate(model: Any) -> None:
    for row in play(model, range(6), heat=0.0).values():
        for reply, context in row:
            ids = torch.tensor([context])
            with torch.no_grad():
                wanted = model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    do_sample=False,
                    max_new_tokens=LIMIT,
                    pad_token_id=TOKENS.pad_token_id,
                )
            assert list(reply.ids) == wanted[0, len(context) :].tolist()


def test_new_rows_join_while_others_talk(model: Any) -> None:
    """Rows that come later get a cache of their own; nobody's samples change."""
    alone = {row: play(model, [row])[row] for row in (3, 7, 2)}

    async def run() -> dict[int, Any]:
        engine = tokens(model)
        first = [asyncio.ensure_future(replies(engine.session("row-003"), 3, 4, 1.0))]
        await asyncio.sleep(0.01)  # it has sampled at least once
        later = [replies(engine.session(f"row-{r:03}"), r, 1 + r % 4, 1.0) for r in (7, 2)]
        done = await asyncio.wait_for(asyncio.gather(*first, *later), 20)
        return dict(zip((3, 7, 2), done, strict=True))

    together = asyncio.run(run())
    for row, lines in alone.items():
        assert [r.ids for r, _ in lines] == [r.ids for r, _ in together[row]]


def test_closing_a_session_releases_the_others(model: Any) -> None:
    async def run() -> Continuation:
        engine = tokens(model)
        speaker, idler = engine.session("a"), engine.session("b")
        waiting = asyncio.ensure_future(speaker.extend([9], turn()))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        idler.close()
        idler.close()
        return await waiting

    assert within(10, run()).ids


def test_a_turn_that_was_given_up_spoils_nothing(model: Any) -> None:
    """A cancelled turn leaves; the rows that talk on sample what they would have sampled."""
    alone = play(model, [5])[5]

    async def run() -> list[Any]:
        engine = tokens(model)
        quitter, idler = engine.session("a"), engine.session("b")
        talker = engine.session("row-005")
        sampling = [Sampling(temperature=1.0, max_tokens=LIMIT, seed=500 + t) for t in range(2)]
        jobs = [s.extend([8 + n], sampling[0]) for n, s in enumerate((quitter, idler))]
        first = asyncio.gather(*jobs, talker.extend(texts(5, 2)[0], sampling[0]))
        said = [(await first)[2]]
        given_up = asyncio.ensure_future(quitter.extend([9], sampling[1]))
        await asyncio.sleep(0.01)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        quitter.close()
        going_on = asyncio.ensure_future(talker.extend(texts(5, 2)[1], sampling[1]))
        await asyncio.sleep(0.05)
        assert not going_on.done(), "the idle row has not moved yet"
        both = asyncio.gather(going_on, idler.extend([9], sampling[1]))
        return [*said, (await both)[0]]

    together = within(20, run())
    assert [r.ids for r in together] == [r.ids for r, _ in alone]


def test_a_full_context_ends_one_row_only() -> None:
    narrow = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=24)
    model = build_model(TOKENS, 1, narrow).eval()

    async def run() -> list[Any]:
        engine = tokens(model)
        sessions = [engine.session(name) for name in "abc"]
        sizes = (4, 18, 16)  # 18 + 7 > 24
        jobs = [
            s.extend([9] * size, Sampling(max_tokens=LIMIT, seed=1))
            for s, size in zip(sessions, sizes, strict=True)
        ]
        return await asyncio.gather(*jobs, return_exceptions=True)

    fits, full, other = within(10, run())
    assert isinstance(full, ContextExceeded)
    assert (full.party, full.reason) == ("agent", "context_exceeded")
    assert fits.ids
    assert other.ids


def test_the_context_counts_all_turns() -> None:
    narrow = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=24)
    model = policies.talkative(TOKENS, 1, end=-60.0, config=narrow)

    async def run() -> int:
        session = tokens(model).session("a")
        turns = 0
        while True:
            try:
                await session.extend([9], Sampling(max_tokens=LIMIT, seed=turns))
            except ContextExceeded:
                return turns
            turns += 1

    assert within(10, run()) == 3  # 3 x (1 + 7) = 24; nothing more fits


def test_an_error_of_the_model_reaches_every_waiting_row(model: Any) -> None:
    async def run() -> list[Any]:
        engine = tokens(model)
        sessions = [engine.session(name) for name in "ab"]
        jobs = [s.extend([i], turn()) for s, i in zip(sessions, (9, 10**6), strict=True)]
        return await asyncio.gather(*jobs, return_exceptions=True)

    assert all(isinstance(found, IndexError) for found in within(10, run()))


def test_an_error_before_sampling_reaches_every_waiting_row(model: Any) -> None:
    """A token cap that is no number breaks the batch before the model is asked."""
    source = tokens(model)
    broken = Sampling(max_tokens="many", seed=1)  # type: ignore[arg-type]

    async def work() -> list[Any]:
        sessions = [source.session(key) for key in ("a", "b")]
        turns = [s.extend([5, 6], t) for s, t in zip(sessions, (turn(), broken), strict=True)]
        return await asyncio.gather(*turns, return_exceptions=True)

    heard = within(5.0, work())
    assert [type(one) for one in heard] == [TypeError, TypeError]


def test_misuse_is_refused(model: Any) -> None:
    async def run() -> None:
        engine = tokens(model)
        session, idler = engine.session("a"), engine.session("b")
        waiting = asyncio.ensure_future(session.extend([9], turn()))
        await asyncio.sleep(0)
        with pytest.raises(CallerError, match="one turn at a time"):
            await session.extend([9], turn())
        idler.close()
        await waiting
        session.close()
        with pytest.raises(CallerError, match="closed"):
            await session.extend([9], turn())

    within(10, run())


def test_global_generators_are_left_alone(model: Any) -> None:
    before = torch.random.get_rng_state()
    play(model, range(3))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_seedless_turn_is_reproducible_too(model: Any) -> None:
    async def run() -> tuple[int, ...]:
        return (await tokens(model).session("a").extend([9], Sampling(max_tokens=LIMIT))).ids

    assert asyncio.run(run()) == asyncio.run(run())


def test_it_says_who_it_is_and_survives_its_folder(model: Any, tmp_path: Any) -> None:
    plain = policies.random_policy(TOKENS, 2)
    plain.save_pretrained(tmp_path)
    TOKENS.save_pretrained(tmp_path)
    loaded, words = load_policy(tmp_path)
    assert isinstance(TemplateCodec(words), TemplateCodec)
    ids = torch.tensor([[8, 9, 10]])
    with torch.no_grad():
        assert torch.equal(loaded(input_ids=ids).logits, plain(input_ids=ids).logits)
    identity = token_model(loaded, words, name="policy:x").identity
    assert (identity.kind, identity.name, identity.model) == ("policy", "policy:x", "llama")
