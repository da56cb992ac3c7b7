"""`mimesim data from-logs`: conversations that happened, as scenarios to play again."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from mimesim.cli.output import emit_json, in_words, near, note, say
from mimesim.errors import ConfigError

OPTION = "key=value of the format of every SOURCE here, e.g. id=ticket for the columns of a csv."
REGION = "Country (ISO 3166-1) whose phone numbers are told without a country code, e.g. DE."
_EVERY_S = 5.0
_SOURCE = "A .jsonl file of own logs, name:place (star:data/star/), a built folder, or chitchat."
_JUDGE = "model:<model> reads along and every claim of it must quote the person; rule: rules alone."


def command(
    source: Annotated[str, typer.Argument(help=_SOURCE)],
    out: Annotated[Path, typer.Option("--out", help="Scenario file to write, .jsonl.")] = Path(
        "out/scenarios.jsonl"
    ),
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="Read at most so many conversations; 0 = all.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Of stand-ins and of the judge.")] = 0,
    judge: Annotated[str, typer.Option("--judge", help=_JUDGE)] = "rule",
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, help="Conversations judged at once.")
    ] = 8,
    keep_contacts: Annotated[
        bool, typer.Option("--keep-contacts", help="Keep e-mails, phones, names, addresses.")
    ] = False,
    region: Annotated[str, typer.Option("--region", help=REGION)] = "US",
    option: Annotated[list[str] | None, typer.Option("--option", help=OPTION)] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Distil by rule, show one scenario, write nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
) -> None:
    """Distil one scenario per conversation: goal, facts, what was held back, style, outcome.

    Every fact points to the turn that it comes from. Contact data is replaced by invented
    stand-ins. The same command again continues a file. Play it with
    mimesim run --scenarios FILE.
    """
    from mimesim.users.distill.making import Order, Report, make_scenarios
    from mimesim.users.distill.skipping import rejects_of

    if out.suffix != ".jsonl":
        raise ConfigError("a scenario file is JSON Lines", where=f"--out {out}", expected="X.jsonl")
    ruled = judge == "rule" or dry_run
    order = Order(
        source=source,
        out=None if dry_run else out,
        limit=limit,
        seed=seed,
        judge="" if ruled else judge,
        keep_contacts=keep_contacts,
        region=country(region),
        options=pairs(option),
        overwrite=overwrite,
        concurrency=concurrency,
    )
    told = _Told(quiet=quiet)
    if dry_run:
        _preview(order, json=json)
        return
    report: Report = asyncio.run(_make(order, make_scenarios, told))
    rejects = str(rejects_of(out)) if report.skipped.total() else None
    summary = {"out": str(out), **report.to_json(), "rejects": rejects}
    if not quiet:
        _summary(summary, json=json)
    if json:
        emit_json(summary)


def pairs(options: Sequence[str] | None) -> dict[str, str]:
    """Read `key=value` texts.

    Raises:
        ConfigError: one is something else.
    """
    found = {}
    for text in options or []:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"cannot read {text!r}", where="--option", expected="key=value")
        found[key.strip()] = value.strip()
    return found


def country(region: str) -> str:
    """Return the code of a country in capitals.

    Raises:
        ConfigError: it has not two letters.
    """
    if not re.fullmatch(r"[A-Za-z]{2}", region):
        expected = "two letters of ISO 3166-1, e.g. DE"
        raise ConfigError(f"no country {region!r}", where="--region", expected=expected)
    return region.upper()


async def _make(order: Any, make: Any, told: _Told) -> Any:
    if not order.judge:
        return await make(order, None, told)
    from mimesim.judges.load import make_judge

    judge = make_judge(order.judge, options={"max_tokens": 2048})
    try:
        return await make(order, judge, told)
    finally:
        with suppress(Exception):  # the work is done and on disk
            await judge.aclose()


class _Told:
    """Plain lines of progress, one every few seconds."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._last = time.monotonic()

    def __call__(self, report: Any) -> None:
        now = time.monotonic()
        if not self._quiet and now - self._last >= _EVERY_S:
            self._last = now
            note(f"{report.conversations} conversations, {report.scenarios} scenarios")


def _preview(order: Any, *, json: bool) -> None:
    """Show the first scenario that the source gives."""
    from mimesim.users.distill.making import preview

    scenario = preview(order)
    if json:
        emit_json(scenario.to_json())
        return
    say(f"goal: {scenario.goal}")
    withheld = {entry.fact for entry in scenario.withhold}
    for key, value in scenario.facts.items():
        place = scenario.meta["evidence"][key]
        late = ", told when asked" if key in withheld else ""
        say(f"{key}: {value} (turn {place['turn']}{late}): {place['quote']}")
    say("does not know: " + (", ".join(scenario.unknown) or "-"))
    say("style: " + in_words(dict(scenario.style)))
    say("outcome: " + in_words(dict(scenario.meta["outcome"])))


def _summary(found: dict[str, Any], *, json: bool) -> None:
    say(
        f"{found['scenarios']} scenarios of {found['conversations']} conversations "
        f"({found['resumed']} were there) -> {found['out']}",
        json=json,
    )
    if found["scenarios"]:
        per = found["facts"] / found["scenarios"]
        facts = (
            f"facts: {found['facts']} ({per:.1f} each), {found['withheld']} told only when asked"
        )
        say(facts, json=json)
    elif found["resumed"]:
        say("nothing new", json=json)
    for key, name in (("contacts_replaced", "contacts replaced"), ("skipped", "skipped")):
        if found[key]:
            say(f"{name}: {in_words(dict(found[key]))}", json=json)
    if found["rejects"]:
        say(f"each of them with its reason -> {near(found['rejects'])}", json=json)
    judged = found["judge"]
    if judged["results"]:
        say(f"judge: {in_words(dict(judged['results']))}", json=json)
        dropped = in_words(dict(judged["claims_dropped"])) or "none"
        say(f"claims: {judged['claims']}, dropped: {dropped}", json=json)
