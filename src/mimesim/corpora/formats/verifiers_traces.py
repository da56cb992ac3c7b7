"""Traces of verifiers: one episode per line, the agent's trace among its traces (`traces.jsonl`).

    {"id", "task": {"type", "data"}, "traces": [{"agent": {"name", "trainable"}, "nodes": [{"parent",
     "message", "sampled"}], "rewards": {"name": {"score", "weight"}}, "stop_condition"}], "ok"}

The trace of the trained side is the conversation; of branches the one that ends last counts. A trace
called `user` tells what the user thought. The users are models: these serve measurements, never
training.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Unfit
from mimesim.corpora.formats.chats import read_chat, required, stripped
from mimesim.dialogue.foreign_ends import ours

INFO = CorpusInfo(
    name="verifiers",
    license="as its owner says",
    redistributable="no",
    training_allowed="unknown",
    citation="the owner of the traces",
    moderated=False,
    evaluation_only=True,
    simulated=True,
)


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    episode = required(value, "task", "traces")
    trace = _trace(episode)
    messages = _chain(trace)
    chat = read_chat(messages, "nodes")
    yield HumanDialogue(
        id=str(episode.get("id") or ""),
        turns=chat.turns,
        source=INFO.name,
        goal=_goal(episode),
        outcome={
            "task": _task(episode),
            "ended_by": trace.get("stop_condition"),
            **_reward(trace, ok=episode.get("ok") is not False),
            **ours(trace.get("info")),
        },
        left_out=chat.left_out,
    )


def _messages(value: Any) -> Any:
    """Return the conversation of the agent, with what the trace `user` tells of the user's thoughts."""
    messages = _chain(_trace(value))
    users = [t for t in value["traces"] if _name(t) == "user"]
    spoken = _chain(users[0]) if users else []
    told = iter([m for m in spoken if m.get("role") == "assistant"])
    return [
        {**message, **_thought(next(told, {}))} if message.get("role") == "user" else message
        for message in messages
    ]


def _thought(message: Mapping[str, Any]) -> dict[str, Any]:
    text = message.get("reasoning_content")
    return {"reasoning_content": text} if isinstance(text, str) and text else {}


def _trace(episode: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the trace of the side that is measured.

    Raises:
        Unfit: `no_conversation`.
    """
    traces = [t for t in episode["traces"] if isinstance(t, Mapping) and t.get("nodes")]
    ranked = sorted(traces, key=lambda t: (_name(t) != "assistant", not _trainable(t)))
    if not ranked:
        raise Unfit("no_conversation", "no trace with nodes")
    return ranked[0]


def _about(trace: Any) -> Mapping[str, Any]:
    agent = trace.get("agent") if isinstance(trace, Mapping) else None
    return agent if isinstance(agent, Mapping) else {}


def _name(trace: Any) -> str:
    return str(_about(trace).get("name", ""))


def _trainable(trace: Any) -> bool:
    return _about(trace).get("trainable") is True


def _chain(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages from the root to the last node."""
    nodes = trace.get("nodes") or []
    place = len(nodes) - 1 if nodes else None
    found: list[dict[str, Any]] = []
    while place is not None:
        node = nodes[place] if isinstance(place, int) and 0 <= place < len(nodes) else None
        if not isinstance(node, Mapping) or len(found) == len(nodes):
            raise Unfit("bad_chain", f"node {place!r} of a trace")
        found.append(dict(node.get("message") or {}))
        place = node.get("parent")
    return found[::-1]


def _task(episode: Mapping[str, Any]) -> str:
    task = episode["task"]
    data = task.get("data") if isinstance(task, Mapping) else None
    data = data if isinstance(data, Mapping) else {}
    return str(data.get("name") or data.get("idx") or "")


def _goal(episode: Mapping[str, Any]) -> str:
    task = episode["task"]
    data = task.get("data") if isinstance(task, Mapping) else None
    return stripped(data.get("prompt")) if isinstance(data, Mapping) else ""


def _reward(trace: Mapping[str, Any], *, ok: bool) -> dict[str, Any]:
    """Return the weighted sum of the rewards; unknown where one is missing or the episode broke."""
    rewards = trace.get("rewards")
    parts = list(rewards.values()) if isinstance(rewards, Mapping) else []
    if not ok or not parts or not all(isinstance(part, Mapping) for part in parts):
        return {"reward": None, "success": None}
    scores = [(part.get("score"), part.get("weight", 1.0)) for part in parts]
    if any(not isinstance(n, int | float) for pair in scores for n in pair):
        return {"reward": None, "success": None}
    total = sum(score * weight for score, weight in scores)
    return {"reward": total, "success": total >= 1}


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and {"task", "traces"} <= value.keys()


FORMAT = Format(
    info=INFO,
    convert=_convert,
    claims=_claims,
    files=(".jsonl", ".json"),
    messages=_messages,
)
