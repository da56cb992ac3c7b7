"""The documents are true: links resolve, commands and options exist, Python blocks run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from mimesim.config import recipes

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md")]
    + [
        path
        for folder in ("docs", "benchmarks", "results")
        for path in (ROOT / folder).rglob("*.md")
    ]
)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
MAKE_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def blocks(path: Path, *languages: str) -> list[str]:
    """Return the fenced blocks of a document in one of `languages`."""
    return [body for name, body in FENCE.findall(path.read_text("utf-8")) if name in languages]


def shell_commands(text: str) -> list[list[str]]:
    """Return the commands of a shell block as words, continuation lines joined."""
    joined = text.replace("\\\n", " ")
    return [words for line in joined.splitlines() if (words := shlex.split(line, comments=True))]


def documented_commands() -> list[tuple[str, ...]]:
    """Return every command of ours that a document shows, once."""
    found = {}
    for path in DOCUMENTS:
        for block in blocks(path, "bash", "sh", "console"):
            for words in shell_commands(block):
                if Path(words[0]).name in ("mimesim", "make"):
                    found[Path(words[0]).name, *words[1:]] = path.name
    return list(found)


@cache
def help_text(*words: str) -> str:
    """Return the help of a command, or an empty string when there is no such command."""
    done = subprocess.run(
        [sys.executable, "-m", "mimesim", *words, "--help"],
        env={**os.environ, "COLUMNS": "220", "TERM": "dumb"},
        capture_output=True,
        text=True,
    )
    return done.stdout if done.returncode == 0 else ""


def command_help(words: tuple[str, ...]) -> str:
    """Return the help of the verb, or of the verb and its sub-verb, that `words` begin with."""
    verb = next((w for w in words if not w.startswith("-")), "")
    text = help_text(verb) if verb else help_text()
    rest = words[words.index(verb) + 1 :] if verb else ()
    if (
        rest
        and re.fullmatch(r"[a-z-]+", rest[0])
        and re.search(rf"^\W*{rest[0]}\s", text, re.MULTILINE)
    ):
        return help_text(verb, rest[0]) or text
    return text


@pytest.mark.parametrize("command", documented_commands(), ids=" ".join)
def test_the_command_exists_with_its_options(command: tuple[str, ...]) -> None:
    program, *words = command
    if program == "make":
        targets = [w for w in words if "=" not in w]
        assert set(targets) <= MAKE_TARGETS
        return
    text = command_help(tuple(words))
    assert text, f"`{' '.join(command)}`: no such verb"
    for flag in (w.split("=")[0] for w in words if w.startswith("--")):
        assert re.search(rf"{re.escape(flag)}\b", text), f"{flag} is not an option of {command[:3]}"


@pytest.mark.parametrize("command", documented_commands(), ids=" ".join)
def test_the_recipe_exists(command: tuple[str, ...]) -> None:
    verb = "user" if command[1:3] == ("train", "user") else "agent"
    for flag, name in pairwise(command):
        if flag == "--recipe":
            assert (ROOT / recipes.located(Path(name), verb)).is_file()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_relative_links_resolve(path: Path) -> None:
    broken = []
    for target in LINK.findall(path.read_text("utf-8")):
        if not target.startswith(("http://", "https://", "#", "mailto:")):
            place = (path.parent / target.split("#")[0]).resolve()
            if not place.exists():
                broken.append(target)
    assert broken == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_python_blocks_run(path: Path, tmp_path: Path) -> None:
    for block in blocks(path, "python"):
        file = tmp_path / "block.py"  # as a reader would keep it: with a place of its own
        file.write_text(block, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{path.name}:\n{block}\n{done.stderr}"


def test_the_readme_shows_the_way() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert {("make", "demo"), ("make", "test")} <= set(documented_commands())
    for path in re.findall(r"^([\w./-]+/?) {2,}", text, re.MULTILINE):
        assert (ROOT / path).exists() or (ROOT / "src/mimesim" / path).exists(), path
