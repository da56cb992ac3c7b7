"""The repository names no machine, no private folder and no package registry."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = {".git", ".venv", "out", "build", "dist", "node_modules"}
BINARY = {".png", ".jpg", ".gz", ".safetensors", ".gguf", ".pyc", ".sqlite"}

FORBIDDEN = [
    r"(?<![\w.~-])/(work|root|home|opt|srv|mnt|Users)/\w",
    r"(?<![\w.])/tmp\b",
    r"\bshared/(spec|pilot|data|hooks)\b",
    r"\b(pypi\.org|pythonhosted\.org|download\.pytorch\.org|registry\.npmjs)\b",
    r"\b(helper|sub-?agent|coding) session",
    r"\bissues? (show|list|[A-L]\b(?!\w)|#?\d+\b)",
    r"\bBRIEF\.md\b",
]


def repository_files() -> list[Path]:
    """Return every text file of the checkout that could be committed."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            f for f in folders if f not in SKIPPED and not f.endswith(("cache__", "_cache"))
        ]
        folders[:] = [f for f in folders if f != ".hypothesis" and not f.endswith(".egg-info")]
        found += [Path(folder) / n for n in names if Path(n).suffix not in BINARY]
    return sorted(found)


def findings(paths: list[Path]) -> list[str]:
    """Return `file:line: text` of every forbidden mention."""
    rule = re.compile("|".join(FORBIDDEN))
    found = []
    for path in paths:
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), start=1):
            if rule.search(line):
                found.append(f"{path.name}:{number}: {line.strip()[:120]}")
    return found


def test_nothing_private_is_named() -> None:
    here = Path(__file__).resolve()
    assert findings([p for p in repository_files() if p != here]) == []


def test_a_planted_path_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "notes.md"
    planted.write_text("fine: out/demo, src/work/x\nsee " + "/work" + "/main\n", "utf-8")
    assert len(findings([planted])) == 1
