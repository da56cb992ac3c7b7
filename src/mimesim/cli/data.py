"""`mimesim data`: look at human conversations before anything is trained on them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mimesim.cli.output import emit_json, say

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Human conversations.")


@app.callback()
def group() -> None:
    """Human conversations."""


@app.command()
def inspect(
    source: Annotated[
        str, typer.Argument(help="chitchat, or a .jsonl file of own logs.")
    ] = "chitchat",
    limit: Annotated[
        int, typer.Option(min=0, help="Read at most so many conversations; 0 = all.")
    ] = 0,
    samples: Annotated[int, typer.Option(min=0, help="Conversations to show.")] = 2,
    turns: Annotated[int, typer.Option(min=0, help="Turns shown of each.")] = 6,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show terms, counts and a few conversations of a corpus, after cleaning and filtering."""
    from mimesim.corpora.load import open_corpus
    from mimesim.corpora.show import summary

    found = summary(open_corpus(source, limit=limit or None), samples=samples, turns=turns)
    if json:
        emit_json(found)
    else:
        _tell(found)


def _tell(found: dict[str, Any]) -> None:
    for key, value in found["terms"].items():
        say(f"{key}: {value}")
    say("")
    for key, value in sorted(found["counts"].items()):
        say(f"{key}: {value}")
    if found["label"]:
        say(f"\n{found['label']}")
    for sample in found["samples"]:
        say(f"\n{sample['id']}")
        for turn in sample["turns"]:
            say(f"  {turn['role']}: {turn['text']}")
