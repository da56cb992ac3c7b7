"""The data card of a build, for people (Markdown) and programs (JSON)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.corpora import built, reading
from mimesim.corpora.splits import PARTS

SCHEMA = "mimesim.card/1"

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
            part: _figures(
                sum((Counter(source["parts"][part]) for source in summary["sources"]), Counter()),
                known,
            )
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
    lines = ["# Data card", ""]
    lines += [f"- **Note:** {text}." for text in card["warnings"]]
    lines += ["", "## Parts", "", *_table("part", card["totals"].items())]
    for source in card["sources"]:
        lines += ["", f"## {source['name']}", "", *_terms(source["terms"])]
        lines += ["", *_table("part", source["parts"].items())]
        lines += ["", "Left out:", ""]
        lines += [f"- {name}: {n}" for name, n in source["left_out"].items()] or ["- nothing"]
        lines += ["", "Changed and counted while reading:", ""]
        lines += [f"- {name}: {n}" for name, n in source["changed"].items()] or ["- nothing"]
    lines += ["", "## Splits", ""]
    for name, counts in card["splits"].items():
        lines.append(f"- {name}: " + ", ".join(f"{key} {n}" for key, n in counts.items()))
    lines += ["", "## Texts of users (8 words or more) that occur in two corpora", ""]
    lines += [f"- {pair}: {n}" for pair, n in card["shared_texts"].items()] or ["- none"]
    return "\n".join(lines) + "\n"


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
