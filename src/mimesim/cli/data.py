"""`mimesim data`: from human conversations to rows, and a look at them before any training."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mimesim.cli import from_logs
from mimesim.cli.output import emit_json, in_words, near, note, say, stdout
from mimesim.errors import ConfigError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Human conversations.")
app.command("from-logs")(from_logs.command)

_EVERY_S = 5.0
"""Seconds between two lines of progress."""

_WHEEL = "chitchat"
"""What is inspected where nothing is named."""
_MUCH = 0.1
"""Share of a training part whose loss by overlap is told."""

_SOURCES = "name:place, e.g. star:data/star/; a bare path means own logs, chitchat the wheel."


@app.callback()
def group() -> None:
    """Human conversations."""


@app.command()
def build(
    sources: Annotated[list[str] | None, typer.Argument(metavar="SOURCE...", help=_SOURCES)] = None,
    recipe: Annotated[
        list[Path] | None,
        typer.Option(
            "--recipe",
            help="Recipe by name or file (TOML): sources, their options (csv columns), shares.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value, e.g. --set near=0.9; --dry-run shows the keys."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the result; left out: out/data.")
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", help="jsonl (if left out) or parquet.")
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option("--tokenizer", help="tokenizer.json or its folder: count tokens.")
    ] = None,
    deny: Annotated[
        list[Path] | None,
        typer.Option("--deny", help="List of fingerprints whose texts are kept out."),
    ] = None,
    max_rejects: Annotated[
        float | None,
        typer.Option(
            "--max-rejects", help="Share of damaged records above which it fails; left out: 0.05."
        ),
    ] = None,
    i_have_rights: Annotated[
        bool,
        typer.Option("--i-have-rights", help="Take sources that are not for training, stamped."),
    ] = False,
    region: Annotated[str | None, typer.Option("--region", help=from_logs.REGION)] = None,
    option: Annotated[list[str] | None, typer.Option("--option", help=from_logs.OPTION)] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of order, splits and mix.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the resolved settings and leave.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Clean, deduplicate, split and mix conversations into rows that training reads.

    For example: mimesim data build star:data/star casino:data/casino.json logs.jsonl --out out/mix

    The same command again goes on where it was killed. A wrong name lists all corpora.
    """
    from mimesim import config as configs
    from mimesim.config import recipes
    from mimesim.corpora.build import BuildConfig

    typed = {
        "--out": ("out", None if out is None else str(out.absolute())),
        "SOURCE": ("source", _tables(sources, from_logs.pairs(option))),
        "--format": ("format", format),
        "--tokenizer": ("tokenizer", tokenizer),
        "--deny": ("deny", [str(path.absolute()) for path in deny] if deny else None),
        "--max-rejects": ("max_rejects", max_rejects),
        "--i-have-rights": ("i_have_rights", i_have_rights or None),
        "--region": ("region", from_logs.country(region) if region else None),
        "--seed": ("seed", seed),
    }
    files = [recipes.located(path, "data") for path in recipe or []]
    flags = [configs.Flag(name, key, value) for name, (key, value) in typed.items()]
    config = configs.load(BuildConfig, files, overrides=settings or [], flags=flags)
    if dry_run:
        _show(configs.dump(config), json=json)
        return
    _build(config, quiet=quiet, json=json)


@app.command()
def inspect(
    source: Annotated[str, typer.Argument(help=f"{_SOURCES} A built folder works, too.")] = _WHEEL,
    limit: Annotated[
        int, typer.Option(min=0, help="Read at most so many conversations; 0 = all.")
    ] = 0,
    samples: Annotated[int, typer.Option(min=0, help="Conversations to show.")] = 2,
    turns: Annotated[int, typer.Option(min=0, help="Turns shown of each.")] = 6,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help=from_logs.OPTION),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show terms, counts and a few conversations of a corpus, after cleaning and filtering."""
    from mimesim.corpora.load import open_corpus
    from mimesim.corpora.show import summary

    corpus = open_corpus(source, limit=limit or None, strict=False, options=from_logs.pairs(option))
    found = summary(corpus, samples=samples, turns=turns)
    if json:
        emit_json(found)
        return
    if source == _WHEEL:
        say("reading the wheel chitchat-dataset; own logs: mimesim data inspect chats.jsonl")
    _tell(found)


@app.command()
def fingerprint(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help=_SOURCES)],
    out: Annotated[Path, typer.Option("--out", help="The list to write.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Make a deny-list: fingerprints of users' texts that `build --deny` keeps out of training."""
    from mimesim.corpora.deny import write_deny_list

    found = write_deny_list(sources, out)
    for name, counts in found["sources"].items():
        say(f"{name}: {in_words(counts)}", json=json)
    say(f"{found['fingerprints']} fingerprints -> {near(out)}", json=json)
    if json:
        emit_json(found)


def _tables(
    sources: Sequence[str] | None, options: Mapping[str, str]
) -> list[dict[str, Any]] | None:
    """Return the sources of the command line as settings; all have the same options."""
    from mimesim.corpora.load import parse_source

    if not sources:
        if options:
            raise ConfigError(
                "no SOURCE that it is for", where="--option", expected="options in the recipe"
            )
        return None
    given = {"options": dict(options)} if options else {}
    return [{**parse_source(source)._asdict(), **given} for source in sources]


def _show(resolved: dict[str, Any], *, json: bool) -> None:
    from mimesim import config as configs

    if json:
        emit_json(resolved)
        return
    for key, value in configs.flatten(resolved):
        stdout().print(f"{key} = {value!r}")


def _build(config: Any, *, quiet: bool, json: bool) -> None:
    from mimesim.corpora.build import build as make
    from mimesim.corpora.built import is_built

    there = config.resume and is_built(config.out)
    found = make(config, on_progress=None if quiet else _Lines())
    if there:
        say("already built with these settings, nothing new", json=json)
    _tell_build(found, config.out, json=json)
    if json:
        emit_json({"out": str(config.out), "already_built": there, **found})


class _Lines:
    """A line of progress every few seconds."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def __call__(self, corpus: str, state: Any) -> None:
        now = time.monotonic()
        if now - self._told >= _EVERY_S:
            self._told = now
            counts = state.counts[state.source]
            note(f"{corpus}: {state.records:,} records read, {counts['kept']:,} dialogues kept")


def _tell_build(found: dict[str, Any], out: Path, *, json: bool) -> None:
    from mimesim.corpora.reading import left_out

    for source in found["sources"]:
        parts = {part: figures.get("dialogues", 0) for part, figures in source["parts"].items()}
        left = left_out(source["counts"])
        text = f"{source['name']}: {in_words(parts)}"
        say(text + (f"; left out: {in_words(left)}" if left else ""), json=json)
        _tell_overlap(left.get("overlap", 0), parts["train"], json=json)
        scrubbed = {n: c for n, c in source["counts"].items() if n.endswith("_masked")}
        if scrubbed:
            say(f"  contact data replaced: {in_words(scrubbed)}", json=json)
    for pair, n in found["shared_texts"].items():
        say(f"users' texts in both {pair}: {n}", json=json)
    say(f"rows -> {near(out)} (terms in {near(out / 'card.md')})", json=json)


def _tell_overlap(lost: int, kept: int, *, json: bool) -> None:
    """Warn where much of the training part left for texts that are held out, too."""
    if lost > _MUCH * (lost + kept):
        say(
            f"  overlap: {lost} of {lost + kept} training dialogues are left out since they share a user's"
            " text with validation or test; --set apart=false keeps them",
            json=json,
        )


def _tell(found: dict[str, Any]) -> None:
    for key, value in found["terms"].items():
        say(f"{_label(key)}: {in_words(value)}")
    say("")
    for key, value in sorted(found["counts"].items()):
        say(f"{_label(key)}: {value}")
    if found["label"]:
        say(f"\n{found['label']}")
    for sample in found["samples"]:
        say(f"\n{sample['id']}")
        for turn in sample["turns"]:
            say(f"  {turn['role']}: " + "\n    ".join(turn["text"].splitlines()))


def _label(key: str) -> str:
    """Return the name of a count or a term as people write it."""
    words = key.replace("_", " ")
    return {"evaluation only": "for evaluation only", "redistributable": "may be passed on"}.get(
        words, words
    )
