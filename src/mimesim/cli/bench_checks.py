"""`mimesim bench selftest`, `import-lexicon`, `verify-lexicon`: what is known beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimesim.cli.bench_suite import Json
from mimesim.cli.output import BELOW_THRESHOLD, emit_json, in_words, near, say
from mimesim.errors import DataError

if TYPE_CHECKING:
    from mimesim.bench.suites.goldens.base import Outcome


def selftest(
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder of the development data.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", help="Checks that begin so, with commas, e.g. usi,ece.")
    ] = None,
    json: Json = False,
) -> None:
    """Compute numbers that are known beforehand; exit code 1 where one differs."""
    from mimesim.bench.suites.goldens.load import checks

    if data is not None and not data.is_dir():
        raise DataError("no such folder", where=f"--data {data}", expected="the development data")
    wanted = [word.strip() for word in (only or "").split(",") if word.strip()]
    outcomes = {}
    for check in checks(wanted):
        outcomes[check.name] = check.outcome(data)
        say(_told(check.name, outcomes[check.name]), json=json)
    counts = {
        kind: sum(one.verdict == kind for one in outcomes.values())
        for kind in ("passed", "failed", "skipped")
    }
    say(in_words(counts), json=json)
    if json:
        rows = [{"name": n, "verdict": o.verdict, "reason": o.reason} for n, o in outcomes.items()]
        emit_json({**counts, "checks": rows})
    if counts["failed"]:
        raise typer.Exit(BELOW_THRESHOLD)


def import_lexicon(
    source: Annotated[Path, typer.Argument(help="Python file of the official word lists.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Lexicon file to write, .json.")],
    terms: Annotated[
        str, typer.Option("--license", help="License of the lists, kept in the file.")
    ] = "",
    json: Json = False,
) -> None:
    """Make a lexicon file of the official word lists; the Python file is read, never run."""
    from mimesim.bench.suites.usi import importer

    told = importer.described(importer.import_lexicon(source, out, licence=terms))
    say(in_words(told), json=json)
    say(f"lexicon -> {near(out)}", json=json)
    if json:
        emit_json({**told, "out": str(out)})


def verify_lexicon(
    lexicon: Annotated[Path, typer.Argument(help="Lexicon file.")],
    runs: Annotated[
        str, typer.Option("--runs", help="The 200 airline runs of GPT-4o: tau-bench:<file>.")
    ],
    json: Json = False,
) -> None:
    """Check whether a lexicon gives the official values; exit code 1 where one differs."""
    from mimesim.bench.suites.usi.lexicon import read_lexicon
    from mimesim.bench.suites.usi.verify import verify_lexicon as verified

    found = verified(read_lexicon(lexicon), runs)
    for line in found.differences:
        say(line, json=json)
    say(f"{found.lexicon.name}, fingerprint {found.lexicon.fingerprint}", json=json)
    if json:
        emit_json(found.to_json())
    if found.differences:
        raise typer.Exit(BELOW_THRESHOLD)


def _told(name: str, outcome: Outcome) -> str:
    if outcome.verdict == "passed":
        return f"passed   {name}: {outcome.found}"
    if outcome.verdict == "skipped":
        return f"skipped  {name}: {outcome.reason}"
    return f"FAILED   {name}: {outcome.reason}; found {outcome.found}, expected {outcome.expected}"
