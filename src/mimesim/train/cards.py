"""Model cards: what a checkpoint was trained on, under which terms, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.corpora.base import CorpusInfo
from mimesim.train.rows import SYSTEM_TEMPLATE


def user_card(base_model: str, corpus: CorpusInfo, result: Mapping[str, Any]) -> str:
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
        f"- corpus: {corpus.name}",
        f"- license: {corpus.license} (redistributable: {corpus.redistributable}, "
        f"training: {corpus.training_allowed})",
        f"- source: {corpus.citation}",
        f"- moderated: {'yes' if corpus.moderated else 'no'}",
        f"- tokens: {result['tokens_trained']}, {result['learnt_tokens']} of them learnt, "
        f"in {result['steps']} updates",
        "",
        "## Measured",
        "",
        "Mean negative log-likelihood of held-out human turns, nats per token, 95 % interval over "
        f"{after['n_conversations']} conversations ({after['n_tokens']} tokens):",
        "",
        "| | NLL | 95 % interval |",
        "|---|---|---|",
        _line("before", before),
        _line("after", after),
        _line("gain", result["gain"]),
        "",
        "## Use",
        "",
        "`mimesim run --user trained:<this folder>`. For other programs: "
        f"the chat template stands in the tokenizer. The system text is the template "
        f"`{SYSTEM_TEMPLATE}`; the person is `assistant`, the other side `user`.",
    ]
    return "\n".join([*head, "---", "", *body]) + "\n"


def _line(name: str, found: Mapping[str, Any]) -> str:
    low, high = found["ci95"]
    interval = "unknown" if low is None else f"{low:.3f} to {high:.3f}"
    return f"| {name} | {found['nll']:.3f} | {interval} |"
