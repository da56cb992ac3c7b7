"""Episodes as a log of Inspect (`EvalLog`, one JSON document), for its viewer and its readers.

Read with inspect_ai 0.3.285. One sample per episode, `epoch` = trial + 1. A score without a value is
refused there, so scores that could not be had stand in `metadata.unscored`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.export import Options, messages_of, thoughts_of
from mimesim.dialogue.foreign_ends import INSPECT_LIMITS
from mimesim.dialogue.stop import Status, StopReason
from mimesim.dialogue.types import PublicMessage, Role, Thought, ToolCall
from mimesim.dialogue.views import public
from mimesim.seeds import fingerprint

Episode = Mapping[str, Any]
VERSION = 2
_NO_TIME = "1970-01-01T00:00:00+00:00"
_ROLES = {Role.USER: "user", Role.AGENT: "assistant"}


def file_name(log: Mapping[str, Any]) -> str:
    """Return the name by which Inspect's list of logs finds the file: time, task, id."""
    about = log["eval"]
    when = about["created"][:19].replace(":", "-")
    task = "".join(c if c.isalnum() else "-" for c in about["task"])
    return f"{when}+00-00_{task}_{about['task_id']}.json"


def document(episodes: Sequence[Episode], options: Options) -> dict[str, Any]:
    """Return the log of these episodes."""
    first = episodes[0] if episodes else {}
    gym = str((first.get("task") or {}).get("gym") or "mimesim")
    ids = list(dict.fromkeys(str(e["task"]["id"]) for e in episodes))
    name = fingerprint(jsonio.canonical([str(e["id"]) for e in episodes]))
    agent = (first.get("agent") or {}).get("name", "agent")
    return {
        "version": VERSION,
        "status": "success",
        "eval": {
            "created": first.get("created_at") or _NO_TIME,
            "task": gym,
            "task_id": name,
            "run_id": str(first.get("run_id", "")),
            "dataset": {"name": gym, "samples": len(ids), "sample_ids": ids},
            "model": str(agent),
            "model_roles": {},
            "config": {"epochs": max((e.get("trial", 0) + 1 for e in episodes), default=1)},
            "packages": {"mimesim": str((first.get("software") or {}).get("version", ""))},
            "metadata": {"private": options.with_private},
        },
        "samples": [_sample(episode, options) for episode in episodes],
    }


def _sample(episode: Episode, options: Options) -> dict[str, Any]:
    stop, outcome = episode["stop"], episode["outcome"]
    reason, status = StopReason(stop["reason"]), Status(outcome["status"])
    scores, unscored = _scores(outcome)
    heard = [m.content for m in messages_of(episode) if m.role is Role.USER]
    sample: dict[str, Any] = {
        "id": str(episode["task"]["id"]),
        "epoch": episode.get("trial", 0) + 1,
        "input": heard[0] if heard else "",
        "target": "",
        "messages": _messages(episode, options),
        "scores": scores,
        "metadata": {
            "episode": str(episode["id"]),
            "stop": dict(stop),
            "status": status.value,
            "unscored": unscored,
        },
        "total_time": episode.get("duration_s") or 0.0,
    }
    if reason in INSPECT_LIMITS:
        sample["limit"] = {"type": INSPECT_LIMITS[reason], "limit": stop.get("limit") or 0.0}
    if not status.counted:
        told = f"{status.value}: {reason.value}"
        sample["error"] = {"message": told, "traceback": "", "traceback_ansi": ""}
    return sample


def _scores(outcome: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    values = {"success": outcome.get("success"), "reward": outcome.get("reward")}
    for name, score in (outcome.get("scores") or {}).items():
        values.setdefault(name, score.get("value") if isinstance(score, Mapping) else None)
    scores = {
        name: {"value": value if name != "success" else float(value)}
        for name, value in values.items()
        if value is not None
    }
    return scores, [name for name, value in values.items() if value is None]


def _messages(episode: Episode, options: Options) -> list[dict[str, Any]]:
    system = str(episode.get("system") or "")
    rows: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    thoughts = iter(thoughts_of(episode) if options.with_private else [])
    calls: dict[str, str] = {}
    for message in public(messages_of(episode)):
        if message.role is Role.TOOL and message.owner is Role.USER:
            continue  # the user's own tools have no place here
        calls |= {call.id: call.name for call in message.tool_calls}
        thought = next(thoughts, None) if message.role is Role.USER else None
        rows.append(_message(message, thought, calls))
    return rows


def _message(
    message: PublicMessage, thought: Thought | None, calls: Mapping[str, str]
) -> dict[str, Any]:
    if message.role is Role.TOOL:
        known = message.tool_call_id or ""
        name = message.name or calls.get(known, "")
        return {
            "role": "tool",
            "content": message.content,
            "tool_call_id": known,
            "function": name,
        }
    row: dict[str, Any] = {"role": _ROLES[message.role], "content": message.content}
    if thought:
        parts = [
            {"type": "reasoning", "reasoning": thought.reveal()},
            {"type": "text", "text": message.content},
        ]
        row["content"] = parts
    own = [call for call in message.tool_calls if call.owner is not Role.USER]
    if own and message.role is Role.AGENT:
        row["tool_calls"] = [_call(call) for call in own]
    return row


def _call(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = jsonio.loads(call.arguments or "{}")
    except ValueError:
        arguments = None
    found = {"id": call.id, "function": call.name, "type": "function"}
    if isinstance(arguments, dict):
        return {**found, "arguments": arguments}
    return {**found, "arguments": {}, "parse_error": call.arguments}
