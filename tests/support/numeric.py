"""`python -m tests.support.numeric OUT`: losses beside those by hand, alone or under torchrun.

All at once: LoRA, two updates of a batch that was sampled a little off the policy, token advantages
of reward-to-go, CSD with placebos. Each process has whole groups of its own.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig

from mimesim import jsonio
from mimesim.seeds import fingerprint
from mimesim.train import launch
from mimesim.train.csd import CsdConfig
from mimesim.train.launch import Launch
from tests.support.credits import credit_of
from tests.support.trainers import ByHand, Fixed, Setting, make_samples, policy, rows_of, train

LORA = LoraConfig(
    r=4,
    lora_alpha=8,
    lora_dropout=0.0,
    target_modules=["q_proj", "v_proj", "down_proj"],
    task_type="CAUSAL_LM",
)
ALPHA, UPDATES = 0.3, 2


def main(out: Path) -> dict[str, Any]:
    """Train one batch; return and write losses, losses by hand, rows and the final weights."""
    Launch().start()
    whole = make_samples(policy(), 5, noise=0.4)
    processes, rank = launch.processes(), launch.rank()
    groups = sorted({sample.group for sample in whole})[rank::processes]
    mine = [sample for sample in whole if sample.group in groups]
    advantages = credit_of(whole)
    hand = ByHand(lambda s: advantages[s.tokens], alpha=ALPHA, windows=UPDATES)
    seen: list[list[int]] = []

    def all_of_them(model: Any, inputs: Any, _: Any) -> torch.Tensor:
        """The share of this process in the mean over the tokens of all of them."""
        seen.append([whole.index(sample) for _, sample in rows_of(inputs, whole)])
        plain = model.module if processes > 1 else model
        return hand(plain, inputs, whole) * processes

    run = train(
        out / str(rank),
        Fixed([mine]),
        Setting(CsdConfig(ALPHA), hand=all_of_them, peft=LORA),
        max_steps=UPDATES,
        steps_per_generation=UPDATES,
        per_device_train_batch_size=len(mine) // UPDATES,
        optim="adamw_torch",
        learning_rate=1e-2,
        **{k: v for k, v in Launch().arguments().items() if k.startswith("ddp")},
    )
    last = [str(p.detach().double().sum().item()) for p in run.model.parameters()]
    told = {
        "processes": processes,
        "loss": [step.loss for step in run.seen],
        "by_hand": [step.by_hand for step in run.seen],
        "rows": seen,
        "noted": [int(step.inputs["csd_mask"].sum()) for step in run.seen],
        "weights": fingerprint("\n".join(last)),
        "null_gap": run.logged("csd/null_gap")[0],
    }
    jsonio.write_json(out / f"numeric-{rank}.json", told)
    return told


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
