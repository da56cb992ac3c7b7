"""Results of tau2-bench: simulated customers who may hold tools themselves (MIT).

    results.json            {"info": {"environment_info", "user_info", …}, "tasks": […],
                             "simulations": [{"id", "task_id", "trial", "termination_reason",
                             "reward_info", "messages": [{"role", "content", "tool_calls"}]}]}
    simulations/<id>.json   one simulation each, where the folder form was written

The users are models: these runs serve measurements, never training. Calls of tools, of either side,
are hidden. Runs by voice without messages are left out. A results file is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mimesim.corpora import places
from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Record, Unfit
from mimesim.corpora.formats.chats import plain, read_chat, required, stripped
from mimesim.corpora.formats.layout import named
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized
from mimesim.corpora.formats.tau_bench import without_markers
from mimesim.dialogue.foreign_ends import ours

INFO = CorpusInfo(
    name="tau2",
    license="MIT",
    redistributable="yes",
    training_allowed="yes",
    citation="Barres et al. (2025), tau2-Bench: Evaluating Conversational Agents in a Dual-Control "
    "Environment, arXiv 2506.07982",
    moderated=True,
    evaluation_only=True,
    simulated=True,
)

_ENDED = ("user_stop", "agent_stop", "max_steps")  # the conversation came to some end
_AGENT_FAULT = "agent_error"  # every other reason may be anybody's


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        yield replace(convert_normalized(value, INFO), language="en")
        return
    run = required(value, "id", "task_id", "termination_reason")
    messages = run.get("messages")
    if messages is None:
        raise Unfit("no_conversation", "the run keeps no messages")
    chat = read_chat(messages, "messages")
    domain = run.get("domain") or options.get("domain") or ""
    task = f"{domain}_{run['task_id']}" if domain else str(run["task_id"])
    yield HumanDialogue(
        id=named(("tau2", domain, run["task_id"], run.get("trial"), run["id"])),
        turns=chat.turns if options.get("verbatim") else without_markers(chat.turns),
        source=INFO.name,
        goal=_goal(run.get("task")),
        hidden={
            **plain(run.get("task") or {}, "description", "evaluation_criteria"),
            **plain({"tool_calls": list(_calls(messages))}, "tool_calls"),
        },
        outcome={"task": task, "trial": run.get("trial"), **_ending(run), **ours(run.get("info"))},
        group_keys=(f"tau2/{task}",),
        language="en",
        left_out=chat.left_out,
    )


def _ending(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return reward and success; both are unknown if something broke down that need not be the agent."""
    reason = run["termination_reason"]
    info = run.get("reward_info")
    reward = info.get("reward") if isinstance(info, Mapping) else None
    if reason == _AGENT_FAULT:
        known = 0.0 if reward is None else reward
    else:
        known = reward if reason in _ENDED else None
    return {
        "ended_by": reason,
        "reward": known,
        "success": None if known is None else known == 1,
    }


def _goal(task: Any) -> str:
    """Return the user's scenario as lines of field and text."""
    scenario = task.get("user_scenario") if isinstance(task, Mapping) else None
    if not isinstance(scenario, Mapping):
        return stripped(scenario)
    told = scenario.get("instructions")
    fields = told if isinstance(told, Mapping) else {"instructions": told}
    pairs = {"persona": scenario.get("persona"), **fields}
    return "\n".join(
        f"{key.replace('_', ' ')}: {text.strip()}"
        for key, text in pairs.items()
        if isinstance(text, str) and text.strip() and key != "domain"
    )


def _calls(messages: list[Any]) -> Iterator[dict[str, Any]]:
    for message in messages:
        for call in (message.get("tool_calls") if isinstance(message, Mapping) else None) or ():
            if isinstance(call, Mapping):
                by = "user" if call.get("requestor") == "user" else "agent"
                yield {"by": by, **plain(call, "name", "arguments")}


def _gather(records: Iterator[Record]) -> Iterator[Record]:
    """Take results apart into simulations, each with its task and domain."""
    known: dict[Path, dict[str, Any]] = {}
    for record in records:
        value, folder = record.value, places.file_of(record.where).parent
        if isinstance(value, Mapping) and {"info", "tasks"} <= value.keys():
            known[folder] = _shared(value)
            for number, run in enumerate(value.get("simulations") or (), start=1):
                where = f"{record.where}#simulations/{number}"
                yield Record(where, _completed(run, known[folder]))
        else:
            yield record._replace(value=_completed(value, known.get(folder.parent, {})))


def _shared(results: Mapping[str, Any]) -> dict[str, Any]:
    info = results.get("info")
    surroundings = info.get("environment_info") if isinstance(info, Mapping) else None
    domain = surroundings.get("domain_name") if isinstance(surroundings, Mapping) else None
    tasks = [task for task in results.get("tasks") or () if isinstance(task, Mapping)]
    return {"domain": domain, "tasks": {str(task.get("id")): task for task in tasks}}


def _completed(run: Any, shared: Mapping[str, Any]) -> Any:
    if not isinstance(run, Mapping) or is_normalized(run) or not shared:
        return run
    task = shared["tasks"].get(str(run.get("task_id")))
    return {"domain": shared["domain"], "task": task, **run}


def _claims(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    run = {"task_id", "termination_reason", "messages"} <= value.keys()
    return run or {"info", "tasks"} <= value.keys()


FORMAT = Format(
    info=INFO,
    convert=_convert,
    claims=_claims,
    gather=_gather,
    splits_lists=False,
    files=(".json", ".jsonl"),
    options=("domain", "verbatim"),
    messages=lambda value: value.get("messages"),
)
