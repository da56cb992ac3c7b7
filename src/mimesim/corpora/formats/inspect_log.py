"""Logs of Inspect as JSON (`EvalLog`): one sample is one conversation.

    {"version", "status", "eval": {"task", "model", …}, "samples": [{"id", "epoch", "input", "messages",
     "scores": {"name": {"value"}}, "limit": {"type"}, "error", "metadata"}]}

Logs in the packed form (`.eval`) are made into JSON by `inspect log convert --to json`. Who wrote the
user's side the log does not say: these serve measurements, never training. A log is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Record, Unfit
from mimesim.corpora.formats.chats import read_chat, required
from mimesim.corpora.formats.layout import named
from mimesim.dialogue.foreign_ends import ours

INFO = CorpusInfo(
    name="inspect",
    license="as its owner says",
    redistributable="no",
    training_allowed="unknown",
    citation="the owner of the log",
    moderated=False,
    evaluation_only=True,
    simulated=True,
)
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Letters that scorers of Inspect give: correct, incorrect, partial, no answer."""
_NAMES = ("success", "reward")


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    sample = required(value, "id", "epoch", "messages")
    chat = read_chat(sample["messages"], "messages")
    task = str(sample["id"])
    metadata = sample.get("metadata")
    limit = sample.get("limit")
    yield HumanDialogue(
        id=named(("inspect", sample.get("task"), sample.get("run"), task, sample["epoch"])),
        turns=chat.turns,
        source=INFO.name,
        outcome={
            "task": task,
            "trial": sample["epoch"] - 1 if isinstance(sample["epoch"], int) else None,
            "ended_by": _ended_by(sample, limit),
            **_scores(sample),
            **ours({"mimesim": metadata}),
        },
        left_out=chat.left_out,
    )


def _ended_by(sample: Mapping[str, Any], limit: Any) -> str | None:
    if sample.get("error"):
        return "unexpected_error"
    kind = limit.get("type") if isinstance(limit, Mapping) else None
    return kind if isinstance(kind, str) else None


def _scores(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return success and reward: scores of these names, else of the only scorer there is."""
    scores = sample.get("scores")
    values = {
        name: _number(score.get("value"))
        for name, score in (scores.items() if isinstance(scores, Mapping) else ())
        if isinstance(score, Mapping)
    }
    if len(values) == 1 and not values.keys() & set(_NAMES):
        values = {"reward": next(iter(values.values()))}
    success, reward = (values.get(name) for name in _NAMES)
    if success is None and reward is not None:
        success = float(reward >= 1)
    return {"reward": reward, "success": None if success is None else success >= 1}


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        return _GRADES.get(value)
    return float(value) if isinstance(value, int | float) else None


def _gather(records: Iterator[Record]) -> Iterator[Record]:
    """Take logs apart into samples, each with task and run."""
    for record in records:
        value = record.value
        if not _claims(value):
            yield record
            continue
        about = value["eval"] if isinstance(value["eval"], Mapping) else {}
        shared = {"task": about.get("task"), "run": about.get("run_id") or about.get("task_id")}
        for number, sample in enumerate(value["samples"] or (), start=1):
            told = {**shared, **sample} if isinstance(sample, Mapping) else sample
            yield Record(f"{record.where}#samples/{number}", told)


def _messages(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise Unfit("no_conversation", "a sample that is no object")
    return value.get("messages")


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and {"eval", "samples"} <= value.keys()


FORMAT = Format(
    info=INFO,
    convert=_convert,
    claims=_claims,
    gather=_gather,
    splits_lists=False,
    files=(".json",),
    messages=_messages,
)
