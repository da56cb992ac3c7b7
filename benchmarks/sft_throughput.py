"""Training throughput: `train.sft.run_sft` beside plain TRL `SFTTrainer`, same model, same rows.

    python -m benchmarks.sft_throughput        -> benchmarks/sft_throughput.json

Both train all parameters of the same random model on the same rows with the same batch size,
optimizer, rate and number of updates; the plain trainer does what its documentation says for rows
that are tokens already. Runs alternate in one process with one thread, preparation included, and
what is reported is the median of the ratios of five pairs: of CPU time, for other processes may be
at work, with that of wall time beside it. Rows of mixed length let ours save padding, rows of one
length do not, so both are measured.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", TRL_EXPERIMENTAL_SILENCE="1"
)  # read by the libraries when they are imported

import torch
from datasets import Dataset
from transformers import PrinterCallback, Qwen3Config, Qwen3ForCausalLM
from trl import SFTConfig, SFTTrainer

import mimesim
from benchmarks.run import Cost, machine, measured
from mimesim import jsonio, seeds
from mimesim.models.local import quiet_loading
from mimesim.train.rows import TrainRow
from mimesim.train.sft import SftConfig, run_sft
from tests import tiny

OUT = Path(__file__).with_name("sft_throughput.json")
PAIRS = 5
BATCH, UPDATES, LR = 4, 8, 1e-3
LENGTHS = (32, 224)
THREADS = 1
TARGET = 0.95


def rows(count: int, *, mixed: bool) -> list[TrainRow]:
    """Return rows of random tokens; the second half of each is learnt."""
    random = seeds.generator(0, "throughput", str(mixed))
    made = []
    for i in range(count):
        length = random.randint(*LENGTHS) if mixed else sum(LENGTHS) // 2
        ids = [random.randrange(3, 300) for _ in range(length)]
        half = length // 2
        made.append(TrainRow(f"r{i}", ids, [-100] * half + ids[half:]))
    return made


def model() -> Any:
    """Return a random model whose arithmetic outweighs the bookkeeping around it."""
    words = tiny.tokenizer()
    config = Qwen3Config(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(0)
    return Qwen3ForCausalLM(config)


def ours(data: Sequence[TrainRow], folder: Path) -> int:
    """Train with `run_sft`; return the number of updates."""
    config = SftConfig(out=folder, lr=LR, batch_size=BATCH, steps=UPDATES, threads=THREADS)
    return run_sft(model(), tiny.tokenizer(), data, config).steps


def plain(data: Sequence[TrainRow], folder: Path) -> int:
    """Train with TRL's trainer as it is; return the number of updates."""
    held = Dataset.from_dict(
        {"input_ids": [r.input_ids for r in data], "labels": [r.labels for r in data]}
    )
    arguments = SFTConfig(
        output_dir=str(folder / "plain"),
        max_steps=UPDATES,
        per_device_train_batch_size=BATCH,
        learning_rate=LR,
        lr_scheduler_type="cosine",
        optim="adamw_torch",
        max_length=None,
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        dataloader_pin_memory=False,
        logging_steps=50,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = SFTTrainer(
        model=model(), args=arguments, train_dataset=held, processing_class=tiny.tokenizer()
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    steps: int = trainer.state.global_step
    return steps


def cost(train: Callable[[Sequence[TrainRow], Path], int], data: Sequence[TrainRow]) -> Cost:
    """Return what one run costs, preparation included."""
    with tempfile.TemporaryDirectory() as folder, quiet_loading(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measured(lambda: train(data, Path(folder)))


def compare(data: Sequence[TrainRow]) -> dict[str, Any]:
    """Return the medians of alternating runs, and of the ratios of their pairs."""
    for train in (ours, plain):  # first calls load and compile things
        cost(train, data[: BATCH * 2])
    pairs = []
    for k in range(PAIRS):
        order = (ours, plain) if k % 2 == 0 else (plain, ours)
        found = {train.__name__: cost(train, data) for train in order}
        pairs.append((found["ours"], found["plain"]))
    tokens = sum(len(row.input_ids) for row in data)
    mine = median(one.cpu for one, _ in pairs)
    return {
        "ours_cpu_s": round(mine, 3),
        "plain_cpu_s": round(median(other.cpu for _, other in pairs), 3),
        "ours_tokens_per_cpu_s": round(tokens / mine),
        "throughput_ratio": round(median(other.cpu / one.cpu for one, other in pairs), 3),
        "wall_ratio": round(median(other.wall / one.wall for one, other in pairs), 3),
        "pairs_cpu_s": [[round(one.cpu, 3), round(other.cpu, 3)] for one, other in pairs],
    }


def main() -> None:
    """Measure both kinds of rows and write the figures."""
    torch.set_num_threads(THREADS)
    figures = {
        name: compare(rows(BATCH * UPDATES, mixed=mixed))
        for name, mixed in (("mixed lengths", True), ("one length", False))
    }
    ratios = {name: found["throughput_ratio"] for name, found in figures.items()}
    jsonio.write_json(
        OUT,
        {
            "schema": "mimesim.benchmark/1",
            "machine": machine(),
            "versions": {n: version(n) for n in ("torch", "transformers", "trl", "accelerate")}
            | {"mimesim": mimesim.__version__},
            "command": "python -m benchmarks.sft_throughput",
            "pairs": PAIRS,
            "batch": BATCH,
            "updates": UPDATES,
            "threads": THREADS,
            "figures": figures,
            "targets": {"throughput_ratio": TARGET},
            "ratios": ratios,
        },
    )
    for name, ratio in ratios.items():
        print(f"{name:16} throughput, ours to plain TRL {ratio}")


if __name__ == "__main__":
    main()
