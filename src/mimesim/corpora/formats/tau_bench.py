"""Runs of tau-bench: a simulated customer, an agent with tools, and a reward (MIT).

    [{"task_id", "trial", "reward", "info": {"task": {"user_id", "instruction", "actions", "outputs"}},
      "traj": [{"role": "system" | "user" | "assistant" | "tool", "content", "tool_calls"?}]}]

The domain is not in the file, so it is the option `domain`. The users are models: these runs serve
measurements, never training. The instruction is the user's goal; gold actions are hidden. With the
option `verbatim` the users' marks at the end stay, for scores that were defined with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, HumanTurn
from mimesim.corpora.formats.chats import plain, read_chat, required
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized
from mimesim.dialogue import stop
from mimesim.errors import ConfigError

INFO = CorpusInfo(
    name="tau-bench",
    license="MIT",
    redistributable="yes",
    training_allowed="yes",
    citation="Yao et al. (2024), tau-bench: A Benchmark for Tool-Agent-User Interaction in "
    "Real-World Domains, arXiv 2406.12045",
    moderated=True,
    evaluation_only=True,
    simulated=True,
)


def without_markers(turns: Iterable[HumanTurn]) -> tuple[HumanTurn, ...]:
    """Return the turns without the marks by which a simulated user ended a conversation.

    Unlike in a live conversation, a mark also counts where it is glued to the last word.
    """
    return tuple(
        replace(turn, text=stop.cut_markers(turn.text)) if turn.role == "user" else turn
        for turn in turns
    )


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        told = {**value, "goal": value.get("instruction"), "instruction": None}
        dialogue = convert_normalized(told, INFO)
        domain = dialogue.id.split("/")[1] if dialogue.id.count("/") > 1 else ""
        row = value
    else:
        row = required(value, "task_id", "reward", "traj")
        domain = _domain(options)
        dialogue = _run(row, domain)
    task = f"{domain}_{row.get('task_id')}"
    yield replace(
        dialogue,
        turns=dialogue.turns if options.get("verbatim") else without_markers(dialogue.turns),
        outcome={
            "task": task,
            "trial": row.get("trial", 0),
            "reward": row.get("reward"),
            "success": row.get("reward") == 1,
        },
        group_keys=(f"tau-bench/{task}",),
        language="en",
    )


def _domain(options: Mapping[str, Any]) -> str:
    domain = options.get("domain")
    if not isinstance(domain, str) or not domain:
        raise ConfigError(
            "the file does not say to which domain its tasks belong",
            where="tau-bench",
            expected="the option domain, e.g. airline or retail",
        )
    return domain


def _run(row: Mapping[str, Any], domain: str) -> HumanDialogue:
    info = row.get("info")
    task = info.get("task") if isinstance(info, Mapping) else None
    task = task if isinstance(task, Mapping) else {}
    chat = read_chat(row["traj"], "traj")
    return HumanDialogue(
        id=f"tau_bench/{domain}/{row['task_id']}/{row.get('trial', 0)}",
        turns=chat.turns,
        source=INFO.name,
        goal=str(task.get("instruction") or "").strip(),
        hidden={
            **plain(task, "user_id", "outputs"),
            **({"gold_actions": task["actions"]} if "actions" in task else {}),
        },
        left_out=chat.left_out,
    )


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and {"task_id", "reward", "traj"} <= value.keys()


FORMAT = Format(
    info=INFO,
    convert=_convert,
    claims=_claims,
    files=(".json", ".jsonl"),
    options=("domain", "verbatim"),
    messages=lambda value: value.get("traj"),
)
