"""A look at training rows before anything is trained: what carries loss, how long rows are.

Only the tokenizer is loaded, so this takes seconds for a model of any size. A corpus from which
nothing would be learnt is refused here as it is in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from transformers import AutoTokenizer

from mimesim.errors import EnvironmentFault
from mimesim.models import templates
from mimesim.models.local import quiet_loading
from mimesim.train.material import gather, read_corpus
from mimesim.train.midtrain import UserConfig, wanted
from mimesim.train.rows import TrainRow
from mimesim.train.sft import check_rows
from mimesim.train.weights import model_place

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def inspect_user(cfg: UserConfig, count: int = 2) -> dict[str, Any]:
    """Return what a user training with these settings would learn from.

    Args:
        cfg: settings of the training.
        count: training rows that are returned whole.

    Returns:
        JSON values: stage, model, corpus, n_rows, tokens, learnt_tokens, lengths and
        learnt_lengths (percentiles of tokens per row), max_length, counts (read, cut, left out;
        of training and held-out rows), and rows: id, tokens, learnt, and parts, the stretches
        of the text in order, each with `learnt` and `text`.

    Raises:
        DataError: nothing to train on, or a row whose loss mask is all zero.
        EnvironmentFault: model or corpus cannot be had, or the template is unfit.
    """
    corpus = read_corpus(wanted(cfg))
    tokenizer = _tokenizer(cfg.model)
    material = gather(tokenizer, wanted(cfg), corpus)
    rows = material.train.rows
    check_rows(rows)
    lengths = [len(row.input_ids) for row in rows]
    learnt = [row.learnt for row in rows]
    return {
        "stage": cfg.stage,
        "model": cfg.model,
        "corpus": cfg.corpus,
        "n_rows": len(rows),
        "tokens": sum(lengths),
        "learnt_tokens": sum(learnt),
        "lengths": percentiles(lengths),
        "learnt_lengths": percentiles(learnt),
        "max_length": cfg.max_length,
        "counts": material.counts(),
        "rows": [_shown(tokenizer, row) for row in rows[:count]],
    }


def percentiles(values: Sequence[int]) -> dict[str, int]:
    """Return p50, p90, p99 and max of `values`: each is one of them, the nearest rank."""
    ordered = sorted(values)
    return {
        name: ordered[max(0, -(-int(share * 100) * len(ordered) // 100) - 1)]
        for name, share in PERCENTILES.items()
    }


def parts(tokenizer: Any, row: TrainRow) -> list[dict[str, Any]]:
    """Return the text of a row in order, cut where what is learnt begins and ends."""

    def text(ids: list[int]) -> str:
        return str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))

    pairs = zip(row.input_ids, row.labels, strict=True)
    return [
        {"learnt": learnt, "text": text([token for token, _ in group])}
        for learnt, group in groupby(pairs, lambda pair: pair[1] != templates.IGNORED)
    ]


def _shown(tokenizer: Any, row: TrainRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "tokens": len(row.input_ids),
        "learnt": row.learnt,
        "parts": parts(tokenizer, row),
    }


def _tokenizer(model: str) -> Any:
    place = model_place(model)
    try:
        with quiet_loading():
            tokenizer = AutoTokenizer.from_pretrained(place)
    except Exception as error:  # tokenizer files raise every kind, whatever is wrong with them
        raise EnvironmentFault(
            f"the tokenizer cannot be loaded: {str(error).strip().partition(chr(10))[0]}",
            where=model,
            expected="a folder with a tokenizer, or a hub id owner/name",
        ) from error
    templates.prepare(tokenizer)
    return tokenizer
