"""The real SFTTrainer on a tiny model: learning, masks, resuming, determinism, refusals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen3_5TextConfig

from mimesim.errors import ConfigError, DataError, EnvironmentFault
from mimesim.models import templates
from mimesim.models.base import ChatMessage
from mimesim.train import sft
from mimesim.train.heldout import HeldOut, held_out_nll
from mimesim.train.rows import TrainRow
from mimesim.train.sft import Progress, SftConfig, run_sft
from tests import tiny

TOKENIZER = tiny.tokenizer()


def rows(count: int = 12) -> list[TrainRow]:
    made = []
    for i in range(count):
        masked = templates.mask_rows(
            TOKENIZER,
            [
                ChatMessage("user", f"hello {'there ' * (i % 5)}"),
                ChatMessage("assistant", f"i am fine, thank you {i}"),
            ],
        )
        made.append(TrainRow(f"r{i}", masked.input_ids, masked.labels))
    return made


def config(tmp_path: Path, **changes: Any) -> SftConfig:
    base: dict[str, Any] = {"out": tmp_path, "lr": 5e-3, "batch_size": 4, "log_every": 1}
    return SftConfig(**{**base, **changes})


def weights(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def mean_nll(model: Any, held: list[TrainRow]) -> float:
    found = held_out_nll(model, held)
    tokens = [token for part in (found.nll, found.end) for row in part.values() for token in row]
    return math.fsum(tokens) / len(tokens)


@pytest.mark.parametrize("rank", [0, 4])
def test_training_lowers_the_loss(tmp_path: Path, rank: int) -> None:
    model = tiny.model()
    before = mean_nll(model, rows())
    events: list[Progress] = []
    done = run_sft(
        model,
        TOKENIZER,
        rows(),
        config(tmp_path, epochs=6, lora_rank=rank, lr=2e-2 if rank else 5e-3),
        on_progress=events.append,
    )
    assert mean_nll(done.model, rows()) < before - 0.3
    assert done.steps == 18 == events[-1].step == events[-1].steps
    assert list(done.history) == events
    assert done.tokens == 6 * sum(len(row.input_ids) for row in rows())
    assert done.learnt_tokens == 6 * sum(row.learnt for row in rows())
    assert not (tmp_path / "unfinished").exists()
    assert not any("lora" in name for name, _ in done.model.named_parameters())
    assert type(done.model).forward is done.model.forward.__func__


def test_the_first_loss_is_the_mean_over_learnt_tokens(tmp_path: Path) -> None:
    batch = rows(4)
    expected = mean_nll(tiny.model(), batch)
    done = run_sft(tiny.model(), TOKENIZER, batch, config(tmp_path, steps=1))
    assert done.history[0].loss == pytest.approx(expected, rel=1e-4)


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    runs = [
        run_sft(tiny.model(), TOKENIZER, rows(), config(tmp_path, seed=seed, lora_rank=rank))
        for seed, rank in [(1, 0), (1, 0), (2, 0), (1, 2), (1, 2)]
    ]
    first, again, other, lora, lora_again = (weights(run.model) for run in runs)
    assert torch.equal(first, again)
    assert torch.equal(lora, lora_again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("rank", [0, 2])
def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, rank: int) -> None:
    whole = run_sft(
        tiny.model(), TOKENIZER, rows(), config(tmp_path / "a", epochs=3, lora_rank=rank)
    )

    class Killed(Exception):
        pass

    def kill(event: Progress) -> None:
        if event.step == 6:
            raise Killed

    halves = config(tmp_path / "b", epochs=3, lora_rank=rank, save_every=2)
    with pytest.raises(Killed):
        run_sft(tiny.model(), TOKENIZER, rows(), halves, on_progress=kill)
    torn = tmp_path / "b" / "unfinished" / "checkpoint-8"  # killed while it was being written
    torn.mkdir()
    resumed = run_sft(tiny.model(), TOKENIZER, rows(), halves)
    assert resumed.resumed_at in (4, 6)
    assert resumed.steps == whole.steps
    assert torch.equal(weights(resumed.model), weights(whole.model))
    assert [e.loss for e in resumed.history] == [e.loss for e in whole.history]


def test_the_order_is_laid_out_from_the_seed(tmp_path: Path) -> None:
    cfg = config(tmp_path, epochs=2, batch_size=5)
    order = sft._lay_out(rows(), cfg)
    assert len(order) == 30
    assert set(order[:15]) == set(order[15:]) == set(range(12))
    assert sft._lay_out(rows(2), config(tmp_path, batch_size=8)).count(0) == 4
    lengths = [len(row.input_ids) for row in rows(40)]
    grouped = sft._lay_out(rows(40), config(tmp_path, batch_size=8))
    spread = [
        max(lengths[i] for i in grouped[k : k + 8]) - min(lengths[i] for i in grouped[k : k + 8])
        for k in range(0, 40, 8)
    ]
    assert max(spread) < max(lengths) - min(lengths)


def test_a_row_with_nothing_to_learn_is_refused(tmp_path: Path) -> None:
    empty = TrainRow("void", [1, 2], [-100, -100])
    with pytest.raises(DataError, match=r"'void'.*all zero"):
        run_sft(tiny.model(), TOKENIZER, [*rows(), empty], config(tmp_path))
    with pytest.raises(DataError, match="no rows"):
        run_sft(tiny.model(), TOKENIZER, [], config(tmp_path))


def test_dropout_is_refused(tmp_path: Path) -> None:
    model = tiny.model()
    model.config.attention_dropout = 0.1
    with pytest.raises(ConfigError, match=r"attention_dropout = 0\.1"):
        run_sft(model, TOKENIZER, rows(), config(tmp_path))


def test_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_sft(tiny.model(), TOKENIZER, rows(), config(tmp_path, save_every=1))
    assert capfd.readouterr() == ("", "")


def test_packed_rows_train_as_padded_ones_do(tmp_path: Path) -> None:
    """Rows laid end to end in a micro-batch do not see one another."""
    padded, packed = (
        run_sft(tiny.model(), TOKENIZER, rows(), config(tmp_path, packing=packing))
        for packing in (False, True)
    )
    told = [event.loss for event in padded.history]
    assert [event.loss for event in packed.history] == pytest.approx(told, abs=1e-5)
    assert torch.allclose(weights(packed.model), weights(padded.model), atol=1e-5)


def test_packing_is_refused_where_a_state_runs_on(tmp_path: Path) -> None:
    model = tiny.model()
    model.config = Qwen3_5TextConfig(vocab_size=320, num_hidden_layers=4)
    with pytest.raises(EnvironmentFault, match=r"must not be packed: linear attention"):
        run_sft(model, TOKENIZER, rows(), config(tmp_path, packing=True))


def test_checkpointed_activations_change_nothing(tmp_path: Path) -> None:
    plain, checkpointed = (
        run_sft(tiny.model(), TOKENIZER, rows(), config(tmp_path, gradient_checkpointing=on))
        for on in (False, True)
    )
    told = [event.loss for event in plain.history]
    assert [event.loss for event in checkpointed.history] == pytest.approx(told, abs=1e-5)


def test_mixed_precision_keeps_the_weights_and_computes_in_bf16(tmp_path: Path) -> None:
    plain, mixed = (
        run_sft(tiny.model(), TOKENIZER, rows(), config(tmp_path, precision=precision))
        for precision in ("model", "mixed")
    )
    assert {p.dtype for p in mixed.model.parameters()} == {torch.float32}
    first, other = plain.history[0].loss, mixed.history[0].loss
    assert other != first
    assert other == pytest.approx(first, abs=0.02)


def test_a_finished_run_is_saved_whole(tmp_path: Path) -> None:
    done = run_sft(tiny.model(), TOKENIZER, rows(), config(tmp_path, steps=1))
    done.save(tmp_path / "model")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert torch.equal(weights(again), weights(done.model))
    assert done.sharded is None


def test_held_out_loss_counts_learnt_tokens_only() -> None:
    model = tiny.model()
    (row,) = rows(1)
    ids = torch.tensor([row.input_ids])
    with torch.no_grad():
        logps = torch.log_softmax(model(input_ids=ids).logits[0].float(), -1)
    wanted = [
        -float(logps[i - 1, label])
        for i, label in enumerate(row.labels)
        if label != templates.IGNORED
    ]
    for found in (held_out_nll(model, [row]), held_out_nll(model, rows(5), batch_size=5)):
        assert found.nll["r0"] == pytest.approx(wanted[:-1], abs=1e-5)
        assert found.end["r0"] == pytest.approx(wanted[-1:], abs=1e-5)


def test_intervals_are_over_conversations() -> None:
    found = HeldOut({"a": (1.0, 3.0), "b": (2.0,), "c": (6.0, 6.0)})
    summary = found.summary()
    assert summary["nll"] == pytest.approx(3.6)
    assert (summary["n_tokens"], summary["n_conversations"]) == (5, 3)
    low, high = summary["ci95"]
    assert 2.0 <= low < 3.6 < high <= 6.0
    better = HeldOut({"a": (0.5, 2.5), "b": (1.5,), "c": (5.5, 5.5)})
    gain = found.gain(better)
    assert gain["nll"] == pytest.approx(0.5)
    assert all(math.isclose(bound, 0.5) for bound in gain["ci95"])
