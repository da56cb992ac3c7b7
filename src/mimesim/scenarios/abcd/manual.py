"""Builds a manual from ABCD's guidelines, procedures and ontology, with our tables.

Policy of a subflow = its instructions (without what tells agents how to fill in a survey) and its
actions, numbered, with all their sublines. A limit of the tables exists only where the guideline
words it; what cannot be used is counted in the manual's `skipped`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.errors import DataError
from mimesim.scenarios.limits import reads_of
from mimesim.scenarios.manual import conditions, read_toml
from mimesim.scenarios.types import DENIED, Flow, Limit, Manual, RequestType, Step, Tool

_FILES = ("guidelines.json", "kb.json", "ontology.json")
_ALWAYS = (
    *("customer_name", "username", "email", "phone", "member_level", "street_address"),
    *("full_address", "city", "state", "zip_code", "order_id", "purchase_date", "num_products"),
    *("product_names", "product_amounts", "amount"),
)
"""Fields of every composed record; a flow adds its own."""
_SURVEY = re.compile(r"survey|mark the conversation|conversation is successful", re.I)
_SURVEY_TAIL = re.compile(r",? and (?:remember to mark|fill out)\b.*", re.I)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@cache
def tables() -> dict[str, Any]:
    """Return our tables."""
    return read_toml(Path(__file__).with_name("tables.toml"))


@dataclass(frozen=True, slots=True)
class Guidelines:
    """The three files, as they are."""

    folder: Path
    guidelines: Mapping[str, Any]
    procedures: Mapping[str, Any]
    ontology: Mapping[str, Any]


def read_guidelines(folder: Path) -> Guidelines:
    """Read the files of a folder.

    Raises:
        DataError: one of them is missing or damaged.
    """
    parts = [_mapping(jsonio.read_json(folder / name), folder / name) for name in _FILES]
    return Guidelines(folder, *parts)


def _mapping(value: Any, where: Path) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"{type(value).__name__} at the top", where=str(where), expected="a map")
    return value


def build(raw: Guidelines, source: str, *, compat: bool = False) -> Manual:
    """Build the manual; `compat` follows the original task (its table, 46 subflows).

    Raises:
        DataError: a file has not the shape of ABCD's, or a procedure holds an unknown action.
    """
    skipped: Counter[str] = Counter()
    requests, limits = [], []
    for name, table in tables()["subflows"].items():
        if compat and name in tables()["compat"]["left_out"]:
            skipped["left out by the original task"] += 1
            continue
        lines = _policy(raw, table)
        if lines is None or name not in raw.procedures:
            skipped["subflow without guideline or procedure"] += 1
            continue
        found = [limit for limit in (_limit(e, name, lines) for e in _entries(name)) if limit]
        skipped["limit that the guideline does not word"] += len(_entries(name)) - len(found)
        limits += found
        names = tuple(limit.name for limit in found)
        requests.append(_request(name, raw.procedures[name], lines, names, compat=compat))
    skipped["question of fact, no procedure"] += sum(n in tables()["faq"] for n in raw.procedures)
    return Manual(
        name="abcd",
        company="AcmeBrands",
        general=(),
        flows=_flows(raw),
        tools=_tools(),
        limits=tuple(limits),
        request_types=tuple(requests),
        source=source,
        license="MIT",
        skipped={key: count for key, count in sorted(skipped.items()) if count},
        compat=compat,
        infeasible=tuple(tables()["compat"]["infeasible"]) if compat else (),
    )


def _flows(raw: Guidelines) -> tuple[Flow, ...]:
    out = []
    for name, table in tables()["flows"].items():
        told = raw.guidelines.get(table["title"], {})
        description = str(told.get("description") or table["title"])
        fields = (*_ALWAYS, *table["fields"])
        out.append(Flow(name, table["title"], description, fields))
    return tuple(out)


def _tools() -> tuple[Tool, ...]:
    used: dict[str, dict[str, None]] = {name: {} for name in tables()["kinds"]}
    for table in tables()["subflows"].values():
        for action in used:
            used[action].update(dict.fromkeys(_asked(action, table, compat=False)))
            used[action].update(dict.fromkeys(tables()["compat_actions"].get(action, ())))
    return tuple(
        Tool(
            name,
            tables()["kinds"][name],
            name.replace("-", " "),
            tuple(slots),
            identifies=name in tables()["identity_check"],
        )
        for name, slots in used.items()
    )


def _policy(raw: Guidelines, table: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the policy lines of a subflow; None = the guidelines do not have it."""
    flow = raw.guidelines.get(tables()["flows"][table["flow"]]["title"], {})
    entry = flow.get("subflows", {}).get(table["title"])
    if entry is None:
        return None
    where = f"{raw.folder / _FILES[0]}: {table['title']}"
    lines = [kept for line in _texts(entry, "instructions", where) if (kept := _unsurveyed(line))]
    actions = entry.get("actions", ())
    if not isinstance(actions, list):
        raise DataError("actions is no list", where=where, expected="a list of actions")
    for number, action in enumerate(actions, start=1):
        button = f"[{action.get('button')}] " if action.get("button") not in (None, "N/A") else ""
        lines.append(f"{number}. {button}{str(action.get('text', '')).strip()}".strip())
        lines += [f"- {line.strip()}" for line in _texts(action, "subtext", where)]
    return tuple(lines)


def _texts(entry: Mapping[str, Any], key: str, where: str) -> list[str]:
    value = entry.get(key) or []
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise DataError(f"{key} is no list of texts", where=where, expected="ABCD's guidelines")
    return value


def _unsurveyed(line: str) -> str:
    """Return a line without the sentences, or ends of sentences, about the agents' survey."""
    kept = []
    for sentence in _SENTENCE.split(line.strip()):
        if _SURVEY.search(sentence):
            sentence = _SURVEY_TAIL.sub(".", sentence)
        if not _SURVEY.search(sentence):
            kept.append(sentence)
    return " ".join(kept)


def _entries(name: str) -> list[dict[str, Any]]:
    return [entry for entry in tables()["limits"] if name in entry["subflows"]]


def _limit(entry: Mapping[str, Any], name: str, lines: Sequence[str]) -> Limit | None:
    text = next((line for line in lines if entry["cue"] in line), None)
    if text is None:
        return None
    when = conditions(entry["when"], f"tables: {name}")
    aside = bool(entry.get("aside", False))
    return Limit(name, DENIED, entry["request"], text, reads_of(when), when, aside)


def _request(
    name: str, actions: Any, lines: tuple[str, ...], limits: tuple[str, ...], *, compat: bool
) -> RequestType:
    table = tables()["subflows"][name]
    for action in actions:
        if action not in tables()["kinds"]:
            raise DataError(
                f"procedure of {name!r} holds the unknown action {action!r}",
                where="kb.json",
                expected="one of " + ", ".join(tables()["kinds"]),
            )
    steps = tuple(Step(action, _asked(action, table, compat=compat)) for action in actions)
    required = tuple(dict.fromkeys(field for step in steps for field in step.slots))
    identity = [f for s in steps if s.tool in tables()["identity_check"] for f in s.slots]
    return RequestType(
        name=name,
        flow=table["flow"],
        title=table["title"],
        goal=table["goal"],
        required=required,
        identity=tuple(dict.fromkeys(identity)),
        procedure=steps,
        instructions=lines,
        limits=limits,
        wishes=tuple(table.get("wishes", ())),
        traits=tuple(table.get("traits", ())),
        only={k: tuple(v) for k, v in table.get("only", {}).items()},
    )


def _asked(action: str, table: Mapping[str, Any], *, compat: bool) -> tuple[str, ...]:
    """Return the fields that an action asks for in a subflow, in order."""
    if compat:
        return tuple(tables()["compat_actions"][action])
    own = table.get("asks", {})
    if action in own:
        return tuple(own[action])
    if action == "verify-identity":
        return tuple(tables()["flows"][table["flow"]].get("verify", ()))
    return tuple(tables()["actions"][action])
