"""Model cards: what a checkpoint was trained on, under which terms, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.corpora.base import CorpusInfo
from mimesim.train.rows import SYSTEM_TEMPLATE


def user_card(base_model: str, corpora: Sequence[CorpusInfo], result: Mapping[str, Any]) -> str:
    """Return the model card of a trained user as Markdown with a YAML head."""
    before, after = result["before"], result["after"]
    head = [
        "---",
        f"base_model: {base_model}",
        "library_name: transformers",
        "tags: [user-simulator]",
    ]
    label = ["", f"> **{result['label']}**"] if result["label"] else []
    body = [
        "# A user simulator",
        *label,
        "",
        "It writes what a person writes next. A research environment for agents, not a product.",
        "",
        "## Trained on",
        "",
        "| corpus | license | redistributable | training | moderated | source |",
        "|---|---|---|---|---|---|",
        *(_terms(corpus) for corpus in corpora),
        "",
        f"- tokens: {result['tokens_trained']}, {result['learnt_tokens']} of them learnt, "
        f"in {result['steps']} updates",
        "",
        "## Measured",
        "",
        "Mean negative log-likelihood of held-out human turns, nats per content token (ends of "
        f"turns apart), 95 % interval over {after['n_conversations']} conversations "
        f"({after['n_tokens']} tokens):",
        "",
        "| | NLL | 95 % interval | end of turn |",
        "|---|---|---|---|",
        _line("before", before),
        _line("after", after),
        _line("gain", result["gain"]),
        *_by_source(before, after),
        "",
        "## Use",
        "",
        "`mimesim run --user trained:<this folder>`. For other programs: "
        f"the chat template stands in the tokenizer. The system text is the template "
        f"`{SYSTEM_TEMPLATE}`; the person is `assistant`, the other side `user`.",
    ]
    return "\n".join([*head, "---", "", *body]) + "\n"


def _terms(corpus: CorpusInfo) -> str:
    moderated = "yes" if corpus.moderated else "no"
    cells = (corpus.name, corpus.license, corpus.redistributable, corpus.training_allowed)
    return f"| {' | '.join(cells)} | {moderated} | {corpus.citation} |"


def _by_source(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return a table of the corpora, with the mean over them, where there are several."""
    if "sources" not in after:
        return []
    rows = [
        f"| {name} | {before['sources'][name]['nll']:.3f} | {found['nll']:.3f} |"
        for name, found in after["sources"].items()
    ]
    mean = f"| mean over corpora | {before['macro']['nll']:.3f} | {after['macro']['nll']:.3f} |"
    return ["", "| corpus | before | after |", "|---|---|---|", *rows, mean]


def _line(name: str, found: Mapping[str, Any]) -> str:
    low, high = found["ci95"]
    interval = "unknown" if low is None else f"{low:.3f} to {high:.3f}"
    end = "" if found["end_nll"] is None else f"{found['end_nll']:.3f}"
    return f"| {name} | {found['nll']:.3f} | {interval} | {end} |"
