"""One home per concept: a literal may stand in its home and nowhere else."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "mimesim"
TEXTS = [p for p in SOURCE.rglob("*") if p.suffix in {".py", ".jinja"}]

HOMES = {
    r"</?think": ("dialogue/thinking.py", "prompts/*.jinja"),
    r"#{3}[A-Z]": ("dialogue/stop.py", "prompts/*.jinja"),
    r"endconversation|</finished>|TERMINATE CHAT": ("dialogue/stop.py",),
    r"\bapply_chat_template\b|\brender_jinja_template\b": ("models/templates/rendering.py",),
    r"\bsha(1|256|512)\(|\bmd5\(|\bblake2": ("seeds.py",),
    r"\brandom\.Random\(": ("seeds.py",),
    r"\bSystemRandom\(|\bos\.urandom\(|\buuid4\(": (),
    r"^\s*(import json|from json import)\b": ("jsonio.py", "models/structured.py"),
    r"\bjson_repair\b": ("models/structured.py",),
    r"\bimport sqlite3\b": ("models/cache.py", "corpora/index.py", "envs/gyms/search/index.py"),
    r"\"mimesim\.episode/": ("dialogue/episode.py",),
    r"^\s*print\(": ("cli/*.py",),
    r"\bpickle\b": (),
    r"\beval\(|\bexec\(": (),
}
"""Pattern -> the files that may hold it, relative to the package."""

CODE_ONLY = re.compile(r"\.eval\(|model\.eval")


def offenders(pattern: str, homes: tuple[str, ...], files: list[Path], root: Path) -> list[str]:
    """Return `file:line` of every line outside `homes` that matches."""
    found = []
    for path in files:
        if any(fnmatch(path.relative_to(root).as_posix(), home) for home in homes):
            continue
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            if re.search(pattern, CODE_ONLY.sub("", line)):
                found.append(f"{path.relative_to(root)}:{number}: {line.strip()}")
    return found


@pytest.mark.parametrize("pattern", HOMES)
def test_the_literal_stays_in_its_home(pattern: str) -> None:
    assert offenders(pattern, HOMES[pattern], TEXTS, SOURCE) == []


def test_homes_exist() -> None:
    names = [p.relative_to(SOURCE).as_posix() for p in TEXTS]
    for home in {home for homes in HOMES.values() for home in homes}:
        assert any(fnmatch(name, home) for name in names), f"no file is {home}"


def test_a_planted_literal_is_found(tmp_path: Path) -> None:
    (tmp_path / "dialogue").mkdir()
    (tmp_path / "dialogue" / "thinking.py").write_text("OPEN = '<think>'\n", "utf-8")
    stray = tmp_path / "agent.py"
    stray.write_text("x = 1\ny = '</think>'\n", "utf-8")
    files = [stray, tmp_path / "dialogue" / "thinking.py"]
    assert offenders(r"</?think", HOMES[r"</?think"], files, tmp_path) == [
        "agent.py:2: y = '</think>'"
    ]
