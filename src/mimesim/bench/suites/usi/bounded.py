"""Whether patterns of others match in bounded time, tried out in a process that can be ended.

Matching has no time limit in Python, and which patterns explode cannot be read off them simply:
repeats inside repeats are harmless where they cannot trade letters. So every pattern is tried on
texts that drive the bad ones mad, made of its own letters and of what its repeats match, in a child process with a time limit.

    python -m mimesim.bench.suites.usi.bounded < patterns.json     the child
"""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence

from mimesim import jsonio
from mimesim.bench.suites.usi.examples import repeated

SECONDS = 0.5
"""Most CPU time for all texts of one pattern; sound ones need a hundredth of it as a rule."""
_WAIT = 60.0
_LONG = 120
_MOST = 12
_REPEATS = (30, _LONG)
_ENDINGS = ("\x00", "!", " ")
_FIXED = ("a", "ab", " ", "a ", "1", "_", "a_", "a1 ", ".", "'", "-", "no ", "is it ", "\n")


def check_speed(patterns: Sequence[str], seconds: float = SECONDS) -> int | None:
    """Return the place of the first pattern that does not end in `seconds`; None = all do."""
    if not patterns:
        return None
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__],
            input=jsonio.dumps([seconds, *patterns]).encode(),
            stdout=subprocess.PIPE,
            check=True,
            timeout=_WAIT + 20 * seconds * len(patterns),
        ).stdout
    except subprocess.TimeoutExpired as late:
        done = late.stdout or b""
    except subprocess.CalledProcessError as ended:
        if ended.returncode != -signal.SIGPROF:
            raise
        done = ended.stdout or b""  # the child was ended at a slow pattern
    finished = done.count(b"\n")
    return finished if finished < len(patterns) else None


def attacks(pattern: str) -> Iterator[str]:
    """Yield texts on which a pattern that can explode does so: its own words, many times over."""
    runs = re.findall(r"[^\W_]+(?: [^\W_]+)*", re.sub(r"\\[A-Za-z]", " ", pattern.lower()))
    signs = list(dict.fromkeys(re.findall(r"[^\w\s\\()|\[\]]", pattern)))[:_MOST]
    words = [made for run in runs[:_MOST] for made in (run, f"{run} ")]
    units = dict.fromkeys((*_FIXED, *words, *signs, *(f"a{sign}" for sign in signs)))
    start = runs[0] if runs else ""
    for unit, times, end in itertools.product(units, _REPEATS, _ENDINGS):
        yield unit * times + end
        if start and times < _LONG:
            yield f"{start} " + unit * times + end
    for (before, unit), times, end in itertools.product(repeated(pattern), _REPEATS, _ENDINGS):
        yield before + unit * times + end


def main() -> None:
    """Read seconds and patterns as JSON, and write a line for each that was fast enough."""
    seconds, *patterns = jsonio.loads(sys.stdin.read())
    for pattern in patterns:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        compiled = re.compile(pattern)
        for text in attacks(pattern):
            compiled.search(text)
            compiled.match(text)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write("ok\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
