"""The teacher: packed rows equal naive ones, an empty note changes nothing."""

from __future__ import annotations

import pytest
import torch

from mimesim.errors import CallerError
from mimesim.models.tiny import TinyConfig, build_model, build_tokenizer
from mimesim.train.teacher import (
    Branch,
    NotedTurn,
    branches,
    pack,
    packed_mask,
    scatter,
    score_packed,
    score_rows,
)

WORDS = [f"w{i}" for i in range(40)]


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    shape = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=256)
    return build_model(build_tokenizer(WORDS), 3, shape).eval()


def plain_logps(model: torch.nn.Module, ids: list[int], start: int) -> torch.Tensor:
    """Log-probs of ids[start:] in one unpadded forward: the naive form."""
    row = torch.tensor([ids])
    logits = model(input_ids=row).logits[0, start - 1 : -1].float()
    return logits.log_softmax(-1).gather(1, row[0, start:, None]).squeeze(1)


PROMPTS = [[2, 8, 9, 10, 3, 2, 6], [2, 8, 9, 3, 2, 6]]
COMPLETIONS = [
    [11, 12, 3, 2, 5, 13, 3, 2, 6, 14, 15, 16, 3],
    [21, 3, 2, 5, 22, 23, 3, 2, 6, 24, 3],
]
TURNS = [
    [NotedTurn(0, 3, 2, (2, 5, 30, 31, 3), (2, 5, 32, 3)), NotedTurn(9, 13, 2, (2, 5, 33, 3))],
    [NotedTurn(9, 11, 2, (2, 5, 34, 35, 36, 3), (2, 5, 37, 3))],
]


def expected(model: torch.nn.Module, branch: Branch) -> torch.Tensor:
    head = [*branch.prefix, *branch.note, *branch.header]
    return plain_logps(model, [*head, *branch.reply], len(head))


@torch.no_grad()
def test_packed_rows_equal_naive_rows(model: torch.nn.Module) -> None:
    found = branches(PROMPTS, COMPLETIONS, TURNS)
    scored = score_packed(model, pack(found), temperature=1.0, batch=2, pad_id=0)
    assert len(scored) == 5
    for branch, values in scored:
        assert torch.allclose(values, expected(model, branch), atol=2e-6, rtol=0)


@torch.no_grad()
def test_rows_equal_naive_rows(model: torch.nn.Module) -> None:
    found = branches(PROMPTS, COMPLETIONS, TURNS)

    def score(ids: torch.Tensor, mask: torch.Tensor, keep: int) -> torch.Tensor:
        logits = model(input_ids=ids, attention_mask=mask).logits[:, -keep - 1 : -1].float()
        return logits.log_softmax(-1).gather(2, ids[:, -keep:, None]).squeeze(2)

    scores = score_rows(found, score, batch=2, rounds=4, pad_id=0)  # one round more than needed
    assert len(scores) == len(found)
    for branch, values in zip(found, scores, strict=True):
        assert torch.allclose(values, expected(model, branch), atol=2e-6, rtol=0)


@torch.no_grad()
def test_null_probe(model: torch.nn.Module) -> None:
    """An empty note leaves the prefix token for token, and the log-probs, as they are."""
    empty = [[NotedTurn(t.start, t.end, t.header, ()) for t in row] for row in TURNS]
    found = branches(PROMPTS, COMPLETIONS, empty)
    for branch in found:
        whole = [*PROMPTS[branch.row], *COMPLETIONS[branch.row]]
        end = len(PROMPTS[branch.row]) + branch.start
        assert [*branch.prefix, *branch.note, *branch.header] == whole[:end]
    for branch, values in score_packed(model, pack(found), temperature=1.0, batch=2, pad_id=0):
        whole = [*PROMPTS[branch.row], *COMPLETIONS[branch.row]]
        student = plain_logps(model, whole, len(PROMPTS[branch.row]))
        part = student[branch.start : branch.start + len(branch.reply)]
        assert torch.allclose(values, part, atol=2e-6, rtol=0)


@torch.no_grad()
def test_a_note_does_change_the_scores(model: torch.nn.Module) -> None:
    found = branches(PROMPTS[:1], COMPLETIONS[:1], TURNS[:1])
    noted = {
        b.start: v
        for b, v in score_packed(model, pack(found), temperature=1.0, batch=2, pad_id=0)
        if not b.placebo
    }
    student = plain_logps(model, [*PROMPTS[0], *COMPLETIONS[0]], len(PROMPTS[0]))
    assert (noted[9] - student[9:13]).abs().max() > 1e-4


def test_mask_lets_a_branch_see_its_context_only(model: torch.nn.Module) -> None:
    rows = pack(branches(PROMPTS[:1], COMPLETIONS[:1], TURNS[:1]))
    row = rows[0]
    allowed = packed_mask(rows, len(row.ids))[0, 0] == 0
    offset, context, branch = row.parts[0]
    size = len(branch.note) + len(branch.header) + len(branch.reply)
    last = allowed[offset + size - 1]
    assert last[:context].all()
    assert not last[context : row.main].any()
    assert last[offset : offset + size].all()
    assert not last[offset + size :].any()


def test_scatter_puts_scores_where_the_reply_stands() -> None:
    found = branches(PROMPTS, COMPLETIONS, TURNS)
    values = [torch.arange(1.0, len(b.reply) + 1) for b in found]
    scores = scatter(found, values, torch.Size((2, 13)), "cpu")
    assert scores.noted[0].tolist() == [1, 2, 3, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]
    assert scores.has_placebo[0].tolist() == [True] * 3 + [False] * 10
    assert scores.placebo[1].tolist() == [0] * 9 + [1, 2, 0, 0]


def test_a_span_outside_its_row_is_an_error() -> None:
    with pytest.raises(CallerError, match="outside row 0"):
        branches(PROMPTS[:1], COMPLETIONS[:1], [[NotedTurn(10, 14, 2, ())]])
