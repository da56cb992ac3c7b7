"""Episodes as a results file of tau2-bench (`results.json`, one document).

Read with tau2 1.0.1. Our stop reason stands in `info` of each simulation, since tau2 knows fewer. The
file says who played the user: results with another user than tau2's own compare with no leaderboard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.export import GENERIC_SYSTEM, Options, messages_of, thoughts_of
from mimesim.dialogue.foreign_ends import TAU2
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import PublicMessage, Role, Thought, ToolCall
from mimesim.dialogue.views import public

Episode = Mapping[str, Any]
_ROLES = {Role.USER: "user", Role.AGENT: "assistant", Role.TOOL: "tool"}


def document(episodes: Sequence[Episode], options: Options) -> dict[str, Any]:
    """Return the results file of these episodes; the goals go out only with the private side."""
    tasks: dict[str, dict[str, Any]] = {}
    for episode in episodes:
        name = str(episode["task"]["id"])
        tasks.setdefault(
            name, {"id": name, "user_scenario": {"instructions": _told(episode, options)}}
        )
    return {
        "timestamp": str(episodes[0].get("created_at", "")) if episodes else "",
        "info": _info(episodes),
        "tasks": list(tasks.values()),
        "simulations": [_simulation(episode, options) for episode in episodes],
    }


def _told(episode: Episode, options: Options) -> str:
    if options.with_private and options.user_prompt is not None:
        return options.user_prompt(episode)
    return GENERIC_SYSTEM


def _info(episodes: Sequence[Episode]) -> dict[str, Any]:
    first = episodes[0] if episodes else {}
    trials: dict[str, int] = {}
    for episode in episodes:
        task = str(episode["task"]["id"])
        trials[task] = trials.get(task, 0) + 1
    limits = first.get("limits") or {}
    version = (first.get("software") or {}).get("version", "")
    return {
        "git_commit": f"mimesim {version}".strip(),
        "num_trials": max(trials.values(), default=1),
        "max_steps": limits.get("max_steps") or max((len(e["turns"]) for e in episodes), default=1),
        "max_errors": 0,
        "user_info": {"implementation": _names(episodes, "user")},
        "agent_info": {"implementation": _names(episodes, "agent")},
        "environment_info": {
            "domain_name": str((first.get("task") or {}).get("gym", "")),
            "policy": str(first.get("system") or ""),
        },
    }


def _names(episodes: Sequence[Episode], side: str) -> str:
    found = {str((episode.get(side) or {}).get("name", "")) for episode in episodes}
    return "mimesim " + (", ".join(sorted(found - {""})) or "none")


def _simulation(episode: Episode, options: Options) -> dict[str, Any]:
    stop, outcome, task = episode["stop"], episode["outcome"], episode["task"]
    reward = outcome.get("reward")
    info = {"task": str(task["id"]), "stop": dict(stop), "success": outcome.get("success")}
    return {
        "id": str(episode["id"]),
        "task_id": str(task["id"]),
        "trial": episode.get("trial", 0),
        "seed": episode.get("seed"),
        "start_time": str(episode.get("created_at", "")),
        "end_time": str(episode.get("finished_at", "")),
        "duration": episode.get("duration_s") or 0.0,
        "termination_reason": TAU2[StopReason(stop["reason"])],
        "reward_info": None if reward is None else {"reward": reward},
        "messages": _messages(episode, options),
        "info": {"mimesim": {**info, "private": options.with_private}},
    }


def _messages(episode: Episode, options: Options) -> list[dict[str, Any]]:
    thoughts = iter(thoughts_of(episode) if options.with_private else [])
    found = []
    for message in public(messages_of(episode)):
        thought = next(thoughts, None) if message.role is Role.USER else None
        found.append(_message(message, thought))
    return found


def _message(message: PublicMessage, thought: Thought | None) -> dict[str, Any]:
    if message.role is Role.TOOL:
        return {
            "role": "tool",
            "id": message.tool_call_id or "",
            "content": message.content,
            "requestor": _requestor(message.owner),
            "error": False,
        }
    row: dict[str, Any] = {"role": _ROLES[message.role], "content": message.content or None}
    row["tool_calls"] = [_call(call) for call in message.tool_calls] or None
    if thought:
        row["raw_data"] = {"mimesim": {"thought": thought.reveal()}}
    return row


def _call(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = jsonio.loads(call.arguments or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):  # tau2 takes objects only
        arguments = {"arguments": call.arguments}
    return {
        "id": call.id,
        "name": call.name,
        "arguments": arguments,
        "requestor": _requestor(call.owner),
    }


def _requestor(owner: Role | None) -> str:
    return "user" if owner is Role.USER else "assistant"
