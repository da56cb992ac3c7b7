"""`python benchmarks/mask_speed.py`: cost of loss masks -> benchmarks/mask_speed.json.

How the cost of a token grows with the turns of a conversation, and how much is saved against a
reference that renders and tokenizes each prefix once. CPU time of this process; every figure is the
median of several repetitions, taken in turns so that load and clock speed cancel out in the ratios.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from transformers import AutoTokenizer

import mimesim
from mimesim import jsonio, seeds
from mimesim.models import embedded, templates
from mimesim.models.base import ChatMessage

OUT = Path(__file__).with_name("mask_speed.json")
TURNS = (10, 20, 40, 80, 160)
TOGETHER = 320
"""Turns of one sample: 32 conversations of 10, 2 of 160; a sample is then longer than the clock's
grain, and no length is measured on a colder cache than another."""
REPETITIONS = 15
TARGETS = {"token at 160 turns to token at 10": "0.85 to 1.15", "reference to ours, 40 turns": 8}
"""What is aimed at; recorded beside the figure."""

_TEXT = (
    "i would like to change my order please because the size is wrong and it came late can you tell "
    "me when the new one will arrive thanks that is all for today we can send it on monday"
)

Mask = Callable[[Any, list[ChatMessage]], tuple[list[int], list[int]]]


def conversation(turns: int, variant: int) -> list[ChatMessage]:
    """Return an invented conversation; another variant holds other words."""
    random = seeds.generator(variant, "mask-speed", turns)
    words = _TEXT.split()
    talk = [ChatMessage("system", "You are a customer. Write your next message and nothing else.")]
    for k in range(turns):
        text = " ".join(random.choices(words, k=random.randint(6, 18)))
        talk.append(ChatMessage(("assistant", "user")[k % 2], f"{text}."))
    return talk


def ours(tokenizer: Any, talk: list[ChatMessage]) -> tuple[list[int], list[int]]:
    """Mask as the project does."""
    row = templates.mask_rows(tokenizer, talk)
    return row.input_ids, row.labels


def reference(tokenizer: Any, talk: list[ChatMessage]) -> tuple[list[int], list[int]]:
    """Mask by what each longer prefix adds; header and separator are measured once."""
    bare = templates.render_ids(tokenizer, talk[:1])
    asked = templates.render_ids(tokenizer, talk[:1], add_generation_prompt=True)
    header = len(asked) - len(bare)
    ids: list[int] = []
    labels: list[int] = []
    for k, message in enumerate(talk, start=1):
        turn = templates.render_ids(tokenizer, talk[:k])[len(ids) :]
        learnt = [templates.IGNORED] * len(turn)
        if message.role == "assistant":
            learnt[header:-1] = turn[header:-1]  # the separator is the last token
        ids += turn
        labels += learnt
    return ids, labels


def per_token(mask: Mask, tokenizer: Any, turns: int, repetition: int) -> float:
    """Return CPU seconds per token of masking conversations of so many turns."""
    talks = [conversation(turns, repetition * TOGETHER + k) for k in range(TOGETHER // turns)]
    started = time.process_time()
    tokens = sum(len(mask(tokenizer, talk)[0]) for talk in talks)
    return (time.process_time() - started) / tokens


def main() -> None:
    """Measure everything and write the figures."""
    tokenizer = AutoTokenizer.from_pretrained(str(embedded.embedded_folder()))
    assert ours(tokenizer, conversation(40, 0)) == reference(tokenizer, conversation(40, 0))
    costs: dict[int, list[float]] = {turns: [] for turns in TURNS}
    slow: list[float] = []
    for repetition in range(REPETITIONS):
        for turns in TURNS:
            costs[turns].append(per_token(ours, tokenizer, turns, repetition))
        slow.append(per_token(reference, tokenizer, 40, repetition))
    medians = {turns: median(found) for turns, found in costs.items()}
    figures = {f"us_per_token_{turns}": round(cost * 1e6, 2) for turns, cost in medians.items()}
    figures["us_per_token_reference_40"] = round(median(slow) * 1e6, 2)
    ratios = {
        "token at 160 turns to token at 10": round(medians[160] / medians[10], 3),
        "reference to ours, 40 turns": round(median(slow) / medians[40], 2),
    }
    result = {
        "schema": "mimesim.benchmark/1",
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "load_1min": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
        },
        "versions": {n: version(n) for n in ("transformers", "tokenizers", "jinja2")}
        | {"mimesim": mimesim.__version__},
        "tokenizer": "SmolLM2 (embedded), plain ChatML",
        "repetitions": REPETITIONS,
        "figures": figures,
        "targets": TARGETS,
        "ratios": ratios,
    }
    jsonio.write_json(OUT, result)
    for name, value in {**figures, **ratios}.items():
        print(f"{name:36} {value}")


if __name__ == "__main__":
    main()
