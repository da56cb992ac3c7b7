"""The data card of a build, for people (Markdown) and programs (JSON)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.corpora import built, reading
from mimesim.corpora.splits import PARTS

SCHEMA = "mimesim.card/1"

_SPLITS = (
    "Dialogues that belong together (one person, one instruction, one tree) make a component, which is "
    "never parted. `components` counts them, `largest_component` the dialogues of the largest one."
)
_MEANING = {
    "records": "entries of the files",
    "dialogues": "conversations that these entries gave",
    "kept": "of these, fit to be learnt from; they go on to splits, overlap and mixing",
    "unreadable": "pieces of a file that are no entry at all",
    "messages_left_out": "messages of neither side, such as system texts and tool calls",
    "parts_left_out": "parts of messages that are no text, such as images",
    "empty_turns": "turns without text, dropped",
    "merged_turns": "turns joined to the one before, of the same side",
    "filtered_turns": "turns that a cut for toxicity took: the toxic one and all after it",
    "surrogates_replaced": "broken characters",
    "dialogues_scrubbed": "conversations in which contact data was replaced",
    "duplicate": "the same conversation again",
    "near_duplicate": "a user's side much like an earlier one",
    "duplicate_id": "an id again, with other words",
    "overlap": "training dialogues that share a user's text with validation or test; "
    "apart = false keeps them",
    "mixing": "left out for the shares of the mix",
    "denied": "a text of the deny-list",
    "group_full": "enough of one person or tree",
}
"""Counts in words, where the name does not say it."""

UNMODERATED = "not moderated: what is trained on it bears a label"


def write(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write `card.json` and `card.md` from what a build counted."""
    card = as_json(summary)
    jsonio.write_json(folder / built.CARD, card)
    jsonio.write_text(folder / built.CARD_TEXT, as_markdown(card))


def as_json(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the card as JSON values: warnings, totals, and one entry per source."""
    known = summary["tokens_known"]
    sources = [_source(source, known) for source in summary["sources"]]
    return {
        "schema": SCHEMA,
        "warnings": warnings([source["terms"] for source in summary["sources"]]),
        "totals": {
            part: _figures(_total(source["parts"][part] for source in summary["sources"]), known)
            for part in PARTS
        },
        "sources": sources,
        "splits": summary["splits"],
        "shared_texts": summary["shared_texts"],
    }


def warnings(terms: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what whoever uses a mix of corpora with these terms must know."""
    found = []
    named = {
        "{} is share-alike: everything derived from this mix takes over its license ({}); build it "
        "apart if that is not wanted": [
            t for t in terms if t["redistributable"] == "share-alike" and len(terms) > 1
        ],
        "{} is share-alike: what is derived from it takes over its license ({})": [
            t for t in terms if t["redistributable"] == "share-alike" and len(terms) == 1
        ],
        "{} must not be passed on ({})": [t for t in terms if t["redistributable"] == "no"],
        "{} may not be used for training ({}); rights were claimed with --i-have-rights": [
            t for t in terms if t["training_allowed"] == "no"
        ],
        "{} serves evaluation only ({}); rights were claimed with --i-have-rights": [
            t for t in terms if t["evaluation_only"]
        ],
        "whether {} may be used for training is not known ({})": [
            t for t in terms if t["training_allowed"] == "unknown"
        ],
        "{} is not moderated ({}); a word filter is no guarantee": [
            t for t in terms if not t["moderated"]
        ],
        "the users of {} are models ({}): no reference for people": [
            t for t in terms if t["simulated"]
        ],
    }
    for text, meant in named.items():
        for term in {t["name"]: t for t in meant}.values():
            found.append(text.format(term["name"], term["license"]))
    return found


def as_markdown(card: Mapping[str, Any]) -> str:
    """Return the card as Markdown."""
    lines = ["# Data card"]
    if card["warnings"]:
        lines += ["", *(f"- **Note:** {text}." for text in card["warnings"])]
    lines += ["", "## Parts", "", *_table("part", card["totals"].items())]
    for source in card["sources"]:
        lines += ["", f"## {source['name']}", "", *_terms(source["terms"])]
        lines += ["", *_table("part", source["parts"].items())]
        lines += ["", "Left out:", ""]
        lines += _explained(source["left_out"]) or ["- nothing"]
        lines += ["", "Changed and counted while reading:", ""]
        lines += _explained(source["changed"]) or ["- nothing"]
    lines += ["", "## Splits", "", _SPLITS, ""]
    for name, counts in card["splits"].items():
        lines.append(f"- {name}: " + ", ".join(f"{key} {n}" for key, n in counts.items()))
    lines += ["", "## Texts of users (8 words or more) that occur in two corpora", ""]
    lines += [f"- {pair}: {n}" for pair, n in card["shared_texts"].items()] or ["- none"]
    return "\n".join(lines) + "\n"


def _explained(counts: Mapping[str, int]) -> list[str]:
    return [
        f"- {name}: {n}" + (f" ({_MEANING[name]})" if name in _MEANING else "")
        for name, n in counts.items()
    ]


def _total(parts: Iterable[Mapping[str, int | None]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update({name: n or 0 for name, n in part.items()})
    return total


def _source(source: Mapping[str, Any], known: bool) -> dict[str, Any]:  # noqa: FBT001 - a fact
    counts = source["counts"]
    return {
        "name": source["name"],
        "place": source["place"],
        "terms": source["terms"],
        "parts": {part: _figures(source["parts"][part], known) for part in PARTS},
        "left_out": reading.left_out(counts),
        "changed": {n: c for n, c in counts.items() if not n.startswith("left_out_")},
    }


def _figures(counts: Mapping[str, int], known: bool) -> dict[str, int | None]:  # noqa: FBT001
    names = ("dialogues", "turns", "user_turns", "words", "user_words", "tokens", "user_tokens")
    return {
        name: counts.get(name, 0) if known or not name.endswith("tokens") else None
        for name in names
    }


def _terms(terms: Mapping[str, Any]) -> list[str]:
    moderation = "moderated" if terms["moderated"] else UNMODERATED
    return [
        f"- license: {terms['license']}",
        f"- may be passed on: {terms['redistributable']}",
        f"- training allowed: {terms['training_allowed']}",
        f"- texts: {moderation}",
        f"- cite: {terms['citation']}",
    ]


def _table(first: str, rows: Any) -> list[str]:
    lines: list[str] = []
    for name, figures in rows:
        if not lines:
            heads = [first, *(head.replace("_", " ") for head in figures)]
            lines = [_line(heads), _line(["---"] * len(heads))]
        lines.append(_line([name, *("unknown" if n is None else str(n) for n in figures.values())]))
    return lines


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
