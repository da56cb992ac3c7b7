"""Episodes as traces of verifiers (`traces.jsonl`), one episode with two traces per line.

Read with verifiers 0.4.0. `assistant` is the agent as it saw the conversation; `user` is the user with
roles flipped, whose reasoning stands in `reasoning_content` when the private side is asked for. Nodes
form one chain by `parent`. How a trace was cut stands in its `stop_condition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mimesim.dialogue.export import GENERIC_SYSTEM, Options, messages_of, thoughts_of
from mimesim.dialogue.foreign_ends import VERIFIERS_CUTS
from mimesim.dialogue.stop import Status, StopReason
from mimesim.dialogue.thinking import split
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.dialogue.views import WireMessage, as_agent, as_user

Episode = Mapping[str, Any]
TYPE = "mimesim"
"""What our tasks are called."""


def rows(episodes: Iterable[Episode], options: Options) -> list[dict[str, Any]]:
    """Return one row per episode in which the user was heard."""
    heard = [e for e in episodes if any(m.role is Role.USER for m in messages_of(e))]
    return [_row(number, episode, options) for number, episode in enumerate(heard)]


def _row(number: int, episode: Episode, options: Options) -> dict[str, Any]:
    status = Status(episode["outcome"]["status"])
    name = str(episode["task"]["id"])
    task = {"type": TYPE, "data": {"idx": number, "name": name, "prompt": None}}
    traces = [_agent(task, episode, status), _user(task, episode, options, status)]
    return {
        "id": str(episode["id"]),
        "task": task,
        "traces": traces,
        "ok": status.counted,
        "errors": [
            {"type": str(error.get("type", "")), "message": str(error.get("message", ""))}
            for error in episode.get("errors", ())
            if not status.counted
        ],
    }


def _agent(task: Mapping[str, Any], episode: Episode, status: Status) -> dict[str, Any]:
    seen = as_agent(messages_of(episode), system=str(episode.get("system") or ""))
    nodes = _chain((_message(row), row.role == "assistant") for row in seen)
    reward = episode["outcome"].get("reward")
    rewards = {} if reward is None else {"reward": {"score": reward, "weight": 1.0}}
    return {**_trace(task, episode, "assistant", nodes, status), "rewards": rewards}


def _user(
    task: Mapping[str, Any], episode: Episode, options: Options, status: Status
) -> dict[str, Any]:
    system, thoughts = GENERIC_SYSTEM, None
    if options.with_private:
        system = options.user_prompt(episode) if options.user_prompt else GENERIC_SYSTEM
        thoughts = thoughts_of(episode)
    messages = list(messages_of(episode))
    while messages[-1].role is not Role.USER:  # what came after its last words it did not answer
        messages.pop()
    ending = PublicMessage(Role.AGENT, "-")  # the view wants something to answer
    seen = as_user([*messages, ending], system=system, thoughts=thoughts)[:-1]
    entries = []
    for row in seen:
        message = _message(row)
        if row.role == "assistant" and thoughts is not None:
            parts = split(row.content)
            message["content"] = parts.text
            if parts.thought:
                message["reasoning_content"] = parts.thought.reveal()
        entries.append((message, row.role == "assistant"))
    return {**_trace(task, episode, "user", _chain(entries), status), "rewards": {}}


def _trace(
    task: Mapping[str, Any],
    episode: Episode,
    name: str,
    nodes: Sequence[Mapping[str, Any]],
    status: Status,
) -> dict[str, Any]:
    stop = episode["stop"]
    reason = StopReason(stop["reason"])
    return {
        "id": f"{episode['id']}-{name}",
        "task": task,
        "agent": {"config": {}, "name": name, "trainable": name == "assistant"},
        "nodes": list(nodes),
        "metrics": {},
        "info": {"mimesim": {"stop": dict(stop), "status": status.value}},
        "is_completed": True,
        "ok": status.counted,
        "stop_condition": VERIFIERS_CUTS.get(reason, reason.value),
        "is_timeout": reason is StopReason.TIMEOUT,
    }


def _chain(entries: Iterable[tuple[dict[str, Any], bool]]) -> list[dict[str, Any]]:
    """Return the messages as nodes, each the child of the one before."""
    return [
        {"parent": place - 1 if place else None, "message": message, "sampled": sampled}
        for place, (message, sampled) in enumerate(entries)
    ]


def _message(row: WireMessage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": row.role, "content": row.content}
    if row.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in row.tool_calls
        ]
    if row.role == "tool":
        message["tool_call_id"] = row.tool_call_id or ""
    return message
