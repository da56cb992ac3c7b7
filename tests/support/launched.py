"""`python -m tests.support.launched OUT ACCUMULATION`: one small run, alone or under torchrun."""

from __future__ import annotations

import sys
from pathlib import Path

from mimesim import jsonio
from mimesim.models import templates
from mimesim.models.base import ChatMessage
from mimesim.train import launch
from mimesim.train.launch import Launch
from mimesim.train.rows import TrainRow
from mimesim.train.sft import SftConfig, run_sft
from tests import tiny


def rows(count: int = 24) -> list[TrainRow]:
    """Return rows of mixed length."""
    tokenizer = tiny.tokenizer()
    made = []
    for i in range(count):
        asked = f"hello {'there ' * (i % 7)}"
        told = f"i am fine, thank you {'so much ' * (i % 3)}{i}"
        masked = templates.mask_rows(
            tokenizer, [ChatMessage("user", asked), ChatMessage("assistant", told)]
        )
        made.append(TrainRow(f"r{i}", masked.input_ids, masked.labels))
    return made


def main(out: Path, accumulation: int) -> None:
    """Train, save, and write what the first process saw."""
    Launch().start()
    told: list[float] = []
    config = SftConfig(
        out=out,
        lr=5e-3,
        batch_size=2,
        accumulation=accumulation,
        epochs=2,
        log_every=1,
        save_every=2,
    )
    done = run_sft(
        tiny.model(),
        tiny.tokenizer(),
        rows(),
        config,
        on_progress=lambda event: told.append(event.loss),
    )
    done.save(out / "model")
    jsonio.write_json(
        out / f"seen-{'first' if launch.is_first() else 'other'}.json",
        {
            "processes": launch.processes(),
            "told": told,
            "losses": [event.loss for event in done.history],
            "tokens": done.tokens,
        },
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
