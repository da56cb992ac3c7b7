"""The live teacher: the same sampled reply, re-scored behind a coach note, without gradient.

Two forms that must agree: `rows` renders one row per noted turn, `packed` one row per episode
whose branches share the conversation through a block mask. A prefix is the student's own ids with
the note's ids put right before the assistant header; nothing is re-rendered.
Shapes: B rows, P prompt columns (left-padded), C completion columns (right-padded); n reply tokens,
V words of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mimesim.errors import CallerError


@dataclass(frozen=True, slots=True)
class NotedTurn:
    """A turn the teacher scores.

    Attributes:
        start, end: the reply in the completion, half-open.
        header: tokens between the note and the reply: the assistant header, and for an inline note
            the end of the message before it as well.
        note_ids: the note as one user message, or as more words of the last one; empty = the null
            probe.
        placebo_ids: an unrelated note; None = not debiased.
    """

    start: int
    end: int
    header: int
    note_ids: tuple[int, ...]
    placebo_ids: tuple[int, ...] | None = None


class TeacherScores(NamedTuple):
    """Log-probs (B, C) under the note and under the placebo; 0 where nothing was scored."""

    noted: Tensor
    placebo: Tensor
    has_placebo: Tensor


class Branch(NamedTuple):
    """A noted reply as one row: ids up to the header, then the reply; where it belongs."""

    row: int
    prefix: list[int]
    note: tuple[int, ...]
    header: list[int]
    reply: list[int]
    start: int
    placebo: bool


def branches(
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    turns: Sequence[Sequence[NotedTurn]],
) -> list[Branch]:
    """Cut every noted turn out of the student's own ids (no padding in the inputs).

    Raises:
        CallerError: a span lies outside its row.
    """
    found: list[Branch] = []
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        for turn in turns[row]:
            if not 0 <= turn.start < turn.end <= len(completion):
                raise CallerError(f"span {turn.start}:{turn.end} lies outside row {row}")
            before = [*prompt, *completion[: turn.start]]
            cut = len(before) - turn.header
            reply = list(completion[turn.start : turn.end])
            notes = [(turn.note_ids, False)]
            if turn.placebo_ids is not None:
                notes.append((turn.placebo_ids, True))
            for note, placebo in notes:
                found.append(
                    Branch(row, before[:cut], note, before[cut:], reply, turn.start, placebo)
                )
    return found


def scatter(
    found: Sequence[Branch], scores: Sequence[Tensor], shape: torch.Size, device: Any
) -> TeacherScores:
    """Put the log-probs of each branch's reply back to where the reply stands."""
    noted, placebo = (torch.zeros(shape, device=device) for _ in range(2))
    has_placebo = torch.zeros(shape, dtype=torch.bool, device=device)
    for branch, score in zip(found, scores, strict=True):
        columns = slice(branch.start, branch.start + len(branch.reply))
        if branch.placebo:
            placebo[branch.row, columns] = score
            has_placebo[branch.row, columns] = True
        else:
            noted[branch.row, columns] = score
    return TeacherScores(noted, placebo, has_placebo)


RowScorer = Callable[[Tensor, Tensor, int], Tensor]
"""(ids (b, n), mask (b, n), keep) -> log-probs (b, keep) of the last `keep` tokens."""


def score_rows(
    found: Sequence[Branch], score: RowScorer, *, batch: int, rounds: int, pad_id: int
) -> list[Tensor]:
    """Score one row per branch in `rounds` forwards of at most `batch` rows.

    Every rank makes the same number of forwards; one that runs out scores a dummy row.
    """
    scores: list[Tensor] = []
    for index in range(rounds):
        chunk = found[index * batch : (index + 1) * batch]
        rows = [[*b.prefix, *b.note, *b.header] for b in chunk] or [[pad_id]]
        replies = [b.reply for b in chunk] or [[pad_id]]
        ids, mask, keep = _left_right(rows, replies, pad_id)
        values = score(ids, mask, keep)
        scores += [values[i, : len(b.reply)] for i, b in enumerate(chunk)]
    return scores


def _left_right(
    rows: Sequence[Sequence[int]], replies: Sequence[Sequence[int]], pad_id: int
) -> tuple[Tensor, Tensor, int]:
    left, right = max(map(len, rows)), max(map(len, replies))
    ids = torch.full((len(rows), left + right), pad_id, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, (row, reply) in enumerate(zip(rows, replies, strict=True)):
        ids[i, left - len(row) : left] = torch.tensor(row)
        ids[i, left : left + len(reply)] = torch.tensor(reply)
        mask[i, left - len(row) : left + len(reply)] = 1
    return ids, mask, right


class PackedRow(NamedTuple):
    """One episode and its branches in one row; `parts` is (offset, context, branch)."""

    ids: list[int]
    positions: list[int]
    main: int
    parts: list[tuple[int, int, Branch]]


def pack(found: Sequence[Branch]) -> list[PackedRow]:
    """Pack the branches of each episode behind the longest prefix among them."""
    rows: list[PackedRow] = []
    by_row: dict[int, list[Branch]] = {}
    for branch in found:
        by_row.setdefault(branch.row, []).append(branch)
    for members in by_row.values():
        main = max((b.prefix for b in members), key=len)
        ids, positions, parts = list(main), list(range(len(main))), []
        for branch in members:
            tail = [*branch.note, *branch.header, *branch.reply]
            parts.append((len(ids), len(branch.prefix), branch))
            positions += range(len(branch.prefix), len(branch.prefix) + len(tail))
            ids += tail
        rows.append(PackedRow(ids, positions, len(main), parts))
    return rows


def packed_mask(
    rows: Sequence[PackedRow], width: int, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Return the additive float mask (b, 1, width, width): 0 = may look, the lowest = may not.

    Float on purpose: a bool mask is silently wrong with eager attention (design ruling 5).
    """
    allowed = torch.zeros(len(rows), width, width, dtype=torch.bool)
    for i, row in enumerate(rows):
        allowed[i, : row.main, : row.main] = _lower(row.main)
        for offset, context, branch in row.parts:
            size = len(branch.note) + len(branch.header) + len(branch.reply)
            block = slice(offset, offset + size)
            allowed[i, block, :context] = True
            allowed[i, block, block] = _lower(size)
        allowed[i, len(row.ids) :, 0] = True  # padding must look somewhere
    mask = torch.zeros(allowed.shape, dtype=dtype)
    return mask.masked_fill_(~allowed, torch.finfo(dtype).min)[:, None]


def _lower(size: int) -> Tensor:
    return torch.ones(size, size, dtype=torch.bool).tril()


Reader = Callable[[Branch, Tensor], Tensor]
"""(branch, log-probs (n, V) of its reply's places) -> what is kept of them, (n, ...)."""


def sampled(branch: Branch, logps: Tensor) -> Tensor:
    """Read the log-probs (n,) of the tokens that were sampled."""
    reply = torch.tensor(branch.reply, device=logps.device)
    return logps.gather(1, reply[:, None]).squeeze(1)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Reads (n, K + 2): the sampled token, K chosen ones, and the bucket of all others.

    The chosen ones are the K likeliest of the student, so its branches are read first.

    Attributes:
        count: K; a smaller vocabulary leaves one word for the bucket.
        ids: what was chosen, by (row, start) of the reply.
    """

    count: int
    ids: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    def __call__(self, branch: Branch, logps: Tensor) -> Tensor:
        """Read one branch; see `Reader`."""
        key = (branch.row, branch.start)
        if key not in self.ids:
            count = min(self.count, logps.shape[1] - 1)
            self.ids[key] = logps.detach().topk(count, dim=1).indices
        ids = self.ids[key]
        rest = logps.scatter(1, ids, -torch.inf).logsumexp(1, keepdim=True)
        return torch.cat((sampled(branch, logps)[:, None], logps.gather(1, ids), rest), 1)


def score_packed(
    model: Any,
    rows: Sequence[PackedRow],
    *,
    temperature: float,
    batch: int,
    pad_id: int,
    read: Reader = sampled,
) -> list[tuple[Branch, Tensor]]:
    """Score packed rows, `batch` at a time, sorted by length; pure-attention models only."""
    scored: list[tuple[Branch, Tensor]] = []
    for chunk in _chunks(rows, batch):
        ids, positions = _right_padded(chunk, pad_id)
        mask = packed_mask(chunk, ids.shape[1], model.dtype)
        hidden = _hidden(model, ids, mask, position_ids=positions.to(model.device))
        scored += _read(model, chunk, hidden, temperature, read)
    return scored


def score_apart(
    model: Any,
    found: Sequence[Branch],
    *,
    temperature: float,
    batch: int,
    pad_id: int,
    read: Reader = sampled,
) -> list[tuple[Branch, Tensor]]:
    """Score one row per branch in the same way, for models that take no block mask."""
    scored: list[tuple[Branch, Tensor]] = []
    for chunk in _chunks([pack([branch])[0] for branch in found], batch):
        ids, _ = _right_padded(chunk, pad_id)
        mask = torch.zeros_like(ids)
        for i, row in enumerate(chunk):
            mask[i, : len(row.ids)] = 1
        scored += _read(model, chunk, _hidden(model, ids, mask), temperature, read)
    return scored


def _chunks(rows: Sequence[PackedRow], batch: int) -> Iterator[list[PackedRow]]:
    ordered = sorted(rows, key=lambda r: len(r.ids))
    return (ordered[start : start + batch] for start in range(0, len(ordered), batch))


def _right_padded(chunk: Sequence[PackedRow], pad_id: int) -> tuple[Tensor, Tensor]:
    width = max(len(row.ids) for row in chunk)
    ids = torch.full((len(chunk), width), pad_id, dtype=torch.long)
    positions = torch.zeros_like(ids)
    for i, row in enumerate(chunk):
        ids[i, : len(row.ids)] = torch.tensor(row.ids)
        positions[i, : len(row.ids)] = torch.tensor(row.positions)
    return ids, positions


def _hidden(model: Any, ids: Tensor, mask: Tensor, **more: Tensor) -> Tensor:
    """Return the last hidden states (b, width, d), the vocabulary left out."""
    output = model.base_model(
        input_ids=ids.to(model.device),
        attention_mask=mask.to(model.device),
        use_cache=False,
        **more,
    )
    hidden: Tensor = output.last_hidden_state
    return hidden


def _read(
    model: Any, chunk: Sequence[PackedRow], hidden: Tensor, temperature: float, read: Reader
) -> list[tuple[Branch, Tensor]]:
    """Return what is read of every branch's reply from hidden states (b, width, d)."""
    where: list[tuple[int, int]] = []
    members: list[Branch] = []
    for i, row in enumerate(chunk):
        for offset, _, branch in row.parts:
            first = offset + len(branch.note) + len(branch.header) - 1
            where += [(i, first + k) for k in range(len(branch.reply))]
            members.append(branch)
    index = torch.tensor(where, device=hidden.device)
    logits = model.get_output_embeddings()(hidden[index[:, 0], index[:, 1]]).float() / temperature
    parts = logits.log_softmax(-1).split([len(b.reply) for b in members])
    return [(branch, read(branch, part)) for branch, part in zip(members, parts, strict=True)]
