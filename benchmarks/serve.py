"""What the server costs in front of a model -> benchmarks/serve.json.

    python -m benchmarks.serve [SECONDS]

A stub writes 64 tokens, one every 20 ms, for 64 requests at once: so fast can it be at most, whatever
the machine. Callers that never pause first saturate it; then 70 % as many ask the bare stub and the
server in front of it in turns, so that what else the machine does hits both. At the end 64 callers
read streams through the server for a minute. Stub, server and callers are processes of their own.
Seconds depend on the machine and are never asserted; the ratio of the throughputs is what counts.
On a machine that does other things, too, `chrt -r 1 python -m benchmarks.serve` keeps them out of it;
the file says so (`real_time`).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import mimesim
from benchmarks.run import machine
from mimesim import jsonio

OUT = Path(__file__).with_name("serve.json")
TOKENS, PACE_S, SLOTS = 64, 0.02, 64
SHARE = 0.7
"""Of the saturating callers; a reply takes as long as before, so this is the load, too."""
LEG_S = 15.0
STREAM_S = 60.0
ROUNDS = 3
TARGET = 0.95
WORDS = [f"thing-{i}" for i in range(TOKENS)]
ROWS = [
    {"role": "system", "content": "You want 64 things from a shop, one after the other."},
    {"role": "user", "content": "Hi! How can I help you today?"},
]


# -- the stub ----------------------------------------------------------------------------------


class Stub:
    """A model server that is as fast as its pace, up to its number of slots."""

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(SLOTS)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = re.search(r"(?i)content-length: *(\d+)", head)
                body = await reader.readexactly(int(length[1])) if length else b""
                if head.startswith("GET"):
                    send(writer, {"object": "list", "data": [{"id": "stub", "object": "model"}]})
                elif json.loads(body).get("stream"):
                    await self.stream(writer)
                    return
                else:
                    async with self.free:
                        await asyncio.sleep(TOKENS * PACE_S)
                    send(writer, whole())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def stream(self, writer: asyncio.StreamWriter) -> None:
        """Write one token after the other, and close."""
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        async with self.free:
            start = asyncio.get_running_loop().time()
            for i, word in enumerate(WORDS):
                left = start + (i + 1) * PACE_S - asyncio.get_running_loop().time()
                await asyncio.sleep(max(0.0, left))
                delta = {"index": 0, "delta": {"content": f"{word} "}, "finish_reason": None}
                event = {"id": "s", "object": "chat.completion.chunk", "created": 0}
                line = json.dumps({**event, "model": "stub", "choices": [delta]})
                writer.write(f"data: {line}\n\n".encode())
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()


def whole() -> dict[str, Any]:
    """Return a reply that is not streamed."""
    message = {"role": "assistant", "content": " ".join(WORDS)}
    return {
        "id": "s",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 30, "completion_tokens": TOKENS, "total_tokens": 30 + TOKENS},
    }


def send(writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
    """Write a JSON answer."""
    raw = json.dumps(value).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(raw)}"
    writer.write(head.encode() + b"\r\n\r\n" + raw)


async def run_stub() -> None:
    """Serve on a free port, and say where."""
    server = await asyncio.start_server(Stub().serve, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", file=sys.stderr, flush=True)
    await server.serve_forever()


# -- the callers -------------------------------------------------------------------------------


@dataclass
class Leg:
    """What some callers got in some time."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    chunks: int = 0
    errors: int = 0
    cpu_s: float = 0.0

    @property
    def rate(self) -> float:
        """Replies per second."""
        return len(self.latencies) / self.seconds

    def quantile(self, share: float) -> float:
        """Return a quantile of the time of a reply, in milliseconds."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def call(url: str, model: str) -> tuple[float, int]:
    """Read one stream to its end; returns its seconds and chunks.

    Raises:
        OSError: it broke, or is no whole stream.
    """
    host, port = re.match(r"http://([\d.]+):(\d+)", url).groups()  # type: ignore[union-attr]
    body = json.dumps({"model": model, "stream": True, "messages": ROWS})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n"
    started = time.perf_counter()
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
        raw = await reader.read(-1)
    finally:
        writer.close()
    if not raw.startswith(b"HTTP/1.1 200") or b"data: [DONE]" not in raw:
        raise OSError(raw[:200].decode("latin-1"))
    return time.perf_counter() - started, raw.count(b"data: ") - 1


async def _leg(url: str, model: str, callers: int, seconds: float) -> Leg:
    leg = Leg()
    started = time.perf_counter()

    async def ask_on(number: int) -> None:
        await asyncio.sleep(number / callers * TOKENS * PACE_S)  # not all in step
        while time.perf_counter() - started < seconds:
            try:
                latency, chunks = await call(url, model)
            except (OSError, asyncio.IncompleteReadError):
                leg.errors += 1
            else:
                leg.latencies.append(latency)
                leg.chunks += chunks

    await asyncio.gather(*map(ask_on, range(callers)))
    leg.seconds = time.perf_counter() - started
    return leg


def leg(process: subprocess.Popen[str], url: str, callers: int, seconds: float) -> Leg:
    """Let callers ask without a pause, and note the CPU time of the process that they ask."""
    before = cpu_of(process.pid)
    model = "stub" if "benchmarks.serve" in process.args else "user"  # type: ignore[operator]
    done = asyncio.run(_leg(url, model, callers, seconds))
    done.cpu_s = cpu_of(process.pid) - before
    return done


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def started(*command: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server that says on its first line where it is."""
    whole = [sys.executable, "-m", *command]
    with subprocess.Popen(whole, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+?/v1", process.stderr.readline())
            assert found is not None, f"{command} did not start"
            yield process, found[0]
        finally:
            process.terminate()


def figures(seconds: float, stream_s: float) -> dict[str, Any]:
    """Measure everything."""
    callers = int(SHARE * SLOTS)
    with started("benchmarks.serve", "--stub") as (stub, bare):
        user = f"roleplay:openai:stub@{bare}"
        options = ("--port", "0", "--quiet", "--concurrency", str(2 * SLOTS))
        with started("mimesim", "serve", "--user", user, *options) as (server, ours):
            leg(server, ours, 8, 2.0)  # everything is loaded and connected
            full = leg(stub, bare, SLOTS * 3 // 2, seconds)
            pairs = []
            for _ in range(ROUNDS):
                pairs.append(
                    (leg(stub, bare, callers, seconds), leg(server, ours, callers, seconds))
                )
            streams = leg(server, ours, 64, stream_s)
    legs = [one for pair in pairs for one in pair] + [full, streams]
    print(f"errors: {sum(one.errors for one in legs)}")
    front = [one for _, one in pairs]
    added = [b.quantile(0.5) - a.quantile(0.5) for a, b in pairs]
    return {
        "saturation_replies_per_s": round(full.rate, 2),
        "load_share": round(median(a.rate for a, _ in pairs) / full.rate, 3),
        "callers": callers,
        "bare_replies_per_s": round(median(a.rate for a, _ in pairs), 2),
        "replies_per_s": round(median(one.rate for one in front), 2),
        "throughput_ratio": round(median(b.rate / a.rate for a, b in pairs), 4),
        "added_ms_median": round(median(added), 1),
        "added_ms_p95": round(median(b.quantile(0.95) - a.quantile(0.95) for a, b in pairs), 1),
        "chunks_per_reply": round(streams.chunks / max(1, len(streams.latencies)), 1),
        "cpu_ms_per_reply": round(
            1000 * sum(o.cpu_s for o in front) / sum(len(o.latencies) for o in front), 2
        ),
        "cpu_us_per_chunk": round(
            1e6 * sum(o.cpu_s for o in front) / sum(o.chunks for o in front), 1
        ),
        "errors": sum(one.errors for one in legs),
        "streams": {
            "at_once": 64,
            "seconds": round(streams.seconds, 1),
            "replies": len(streams.latencies),
            "errors": streams.errors,
            "reply_ms_median": round(streams.quantile(0.5), 1),
            "reply_ms_p95": round(streams.quantile(0.95), 1),
        },
    }


def main() -> None:
    """Measure and write the file; a number of seconds makes every leg so short and writes none."""
    short = float(sys.argv[1]) if sys.argv[1:] else 0.0
    found = figures(short or LEG_S, short or STREAM_S)
    report = {
        "schema": "mimesim.benchmark/1",
        "machine": {**machine(), "real_time": os.sched_getscheduler(0) == os.SCHED_RR},
        "versions": {"mimesim": mimesim.__version__},
        "stub": {"tokens": TOKENS, "pace_ms": 1000 * PACE_S, "at_once": SLOTS},
        "targets": {"throughput_ratio": TARGET, "errors": 0},
        "figures": found,
    }
    print(json.dumps(report, indent=1))
    if not short:
        jsonio.write_json(OUT, report)


if __name__ == "__main__":
    if sys.argv[1:] == ["--stub"]:
        asyncio.run(run_stub())
    else:
        main()
