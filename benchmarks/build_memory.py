"""Peak memory of `mimesim data build` on a large file -> benchmarks/build_memory.json.

    python benchmarks/build_memory.py --megabytes 2000
    python benchmarks/build_memory.py --megabytes 2000 --plain --out benchmarks/build_memory_plain.json

Writes invented conversations of that size (some repeated, some nearly, some with contact data) to a
temporary folder, builds them in a process of their own, and records the peak resident memory of that
process, the time, and the bytes of the index per dialogue. Everything is on (language, contact data,
equal and near duplicates), or, with `--plain`, nothing is looked for.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import mimesim
from mimesim import jsonio, seeds

OUT = Path(__file__).with_name("build_memory.json")
TARGET_MB = 600
"""What is aimed at for 2 GB."""

_PLAIN = ['duplicates="keep"', 'pii="off"', "apart=false"]
_WORDS = 20_000
_SYLLABLES = ("ba", "do", "ki", "lu", "mer", "no", "pas", "ru", "sil", "ta", "ven", "zo")


def main() -> None:
    """Generate, build, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--plain", action="store_true", help="no duplicates, languages, contacts")
    parser.add_argument("--folder", type=Path, help="where the temporary files go")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        found = measured(Path(name), asked.megabytes, plain=asked.plain)
    jsonio.write_json(asked.out, found)
    print(jsonio.dumps(found))


def measured(folder: Path, megabytes: int, *, plain: bool) -> dict[str, object]:
    """Build a generated file of `megabytes` and return what it took."""
    source, out = folder / "chats.jsonl", folder / "built"
    rows = generate(source, megabytes * 10**6)
    command = [sys.executable, "-m", "mimesim", "data", "build", f"own:{source}", "--out", str(out)]
    started = time.perf_counter()
    watch = _Watch(out)
    with watch:
        settings = _PLAIN if plain else ['languages=["en"]']
        asked = [word for setting in settings for word in ("--set", setting)]
        subprocess.run([*command, *asked, "--quiet"], check=True)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    manifest = jsonio.read_object(out / "build.json", "sources")
    return {
        "settings": settings,
        "file_mb": source.stat().st_size / 1e6,
        "dialogues": rows,
        "peak_mb": round(peak, 1),
        "target_mb": TARGET_MB,
        "seconds": round(seconds, 1),
        "index_bytes_per_dialogue": round(watch.index_bytes / rows, 1),
        "counts": manifest["sources"][0]["counts"],
        "machine": {
            "cpus": os.cpu_count(),
            "load": os.getloadavg()[0],
            "platform": platform.platform(),
            "python": platform.python_version(),
            "mimesim": mimesim.__version__,
        },
    }


class _Watch:
    """Notes the largest size of the index, which is gone when a build is finished."""

    def __init__(self, out: Path) -> None:
        self.index_bytes = 0
        self._path = out / ".build" / "index.sqlite"
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._done.wait(0.2):
            if self._path.is_file():
                self.index_bytes = max(self.index_bytes, self._path.stat().st_size)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        self._thread.join()


def generate(path: Path, size: int) -> int:
    """Write invented conversations until the file has `size` bytes; return how many."""
    rng = seeds.generator(0, "build-memory")
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(_WORDS)]
    words += ["the", "and", "of", "to", "in", "you", "that", "is", "please", "what"] * 1500
    written = count = 0
    last: list[dict[str, str]] = []
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        while written < size:
            last = _turns(rng, words, last)
            row = {"id": f"c{count}", "user_key": f"p{count // 3}", "turns": last}
            written += stream.write(jsonio.dumps(row) + "\n")
            count += 1
    return count


def _turns(
    rng: random.Random, words: list[str], last: list[dict[str, str]]
) -> list[dict[str, str]]:
    kind = rng.random()
    if last and kind < 0.03:
        return last
    if last and kind < 0.06:
        return [{**turn, "text": f"{turn['text']} {rng.choice(words)}"} for turn in last]
    turns = [
        {
            "role": ("user", "agent")[i % 2],
            "text": " ".join(rng.choices(words, k=rng.randint(5, 60))),
        }
        for i in range(rng.randint(2, 14))
    ]
    if kind > 0.95:
        turns[0]["text"] += (
            f" write to person{rng.randint(0, 10**6)}@mail.example or 415 555 01{rng.randint(10, 99)}"
        )
    return turns


if __name__ == "__main__":
    main()
