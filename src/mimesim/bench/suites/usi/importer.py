"""From a Python file with compiled patterns to a lexicon file, by reading its syntax only.

The file is parsed, never imported and never run. Taken are the module's constants that hold the
result of a compile call whose first argument is a literal, by the names that the public lists of
tau-USI use.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.bench.suites.usi.lexicon import SCHEMA, Lexicon, read_lexicon
from mimesim.errors import DataError

CONSTANTS: Mapping[str, tuple[str, str]] = {
    "POLITE_PATTERNS": ("politeness", "search"),
    "EMOTION_PATTERNS": ("emotion", "search"),
    "EMDASH_RE": ("dash", "search"),
    "ACK_ONLY_RE": ("ack_only", "match_start"),
    "ID_DENSITY_RE": ("identifier", "count"),
    "UNCERTAINTY_RE": ("uncertainty", "search"),
    "CERTAINTY_RE": ("certainty", "search"),
    "PUSHBACK_Q_RE": ("pushback_q", "search"),
    "CLARIFY_Q_RE": ("clarify_q", "search"),
    "INFO_Q_RE": ("info_q", "search"),
    "ACCUSATION_RE": ("accusation", "search"),
    "PIVOT_RE": ("pivot", "search"),
    "ID_CONFUSE_RE": ("identity_confusion", "search"),
}
"""Constant of the Python file -> detector and how it matches."""

_NEEDLESS = {"I", "IGNORECASE", "U", "UNICODE"}
"""Flags without effect on lower-cased text."""


def import_lexicon(source: Path | str, out: Path | str, *, licence: str = "") -> Lexicon:
    """Write the lexicon file `out` from the Python file `source`, and read it back.

    Raises:
        DataError: no Python file, a constant is missing or no literal pattern, or a pattern is bad.
    """
    found = _constants(Path(source))
    detectors = {}
    for constant, (name, match) in CONSTANTS.items():
        if constant not in found:
            raise DataError(
                f"the constant {constant} is missing",
                where=str(source),
                expected="the compiled patterns " + ", ".join(CONSTANTS),
            )
        pattern = _pattern(constant, found[constant], str(source))
        detectors[name] = {"match": match, "patterns": [{"type": "regex", "value": pattern}]}
    jsonio.write_json(
        out,
        {
            "schema": SCHEMA,
            "name": Path(source).stem,
            "source": Path(source).name,
            "licence": licence,
            "language": "en",
            "detectors": detectors,
        },
    )
    try:
        return read_lexicon(out)
    except DataError:
        Path(out).unlink(missing_ok=True)
        raise


def _constants(source: Path) -> dict[str, ast.expr]:
    """Return the values that the module assigns to our constants; the last assignment counts."""
    try:
        tree = ast.parse(source.read_bytes(), filename=str(source))
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise DataError(
            f"cannot be read as Python: {error}", where=str(source), expected="a Python file"
        ) from error
    found: dict[str, ast.expr] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and target.id in CONSTANTS and statement.value:
                found[target.id] = statement.value
    return found


def _pattern(constant: str, value: ast.expr, where: str) -> str:
    if not isinstance(value, ast.Call) or _called(value.func) != "compile" or not value.args:
        raise _unfit(constant, "it is no compile call", where)
    text = _literal(value.args[0])
    if text is None:
        raise _unfit(constant, "its pattern is no literal text", where)
    flags = [*value.args[1:], *(word.value for word in value.keywords)]
    for node in (inner for flag in flags for inner in ast.walk(flag)):
        named = isinstance(node, ast.Attribute)
        if isinstance(node, ast.Constant) or (named and _called(node) not in _NEEDLESS):
            raise _unfit(constant, "its flags change what the pattern means", where)
    return text


def _called(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _literal(node: ast.expr) -> str | None:
    """Return a text written out, or several joined by `+`; None = something else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _literal(node.left), _literal(node.right)
        return None if left is None or right is None else left + right
    return None


def _unfit(constant: str, why: str, where: str) -> DataError:
    return DataError(
        f"the constant {constant} cannot be taken: {why}",
        where=where,
        expected='NAME = re.compile(r"…", re.IGNORECASE)',
    )


def described(lexicon: Lexicon) -> dict[str, Any]:
    """Return what is told of a lexicon: its name, fingerprint and how many entries it has."""
    return {
        "name": lexicon.name,
        "title": lexicon.title,
        "fingerprint": lexicon.fingerprint,
        "detectors": {name: len(one.entries) for name, one in sorted(lexicon.detectors.items())},
    }
