"""The page in a real browser: hostile text does not run, nothing is fetched, the filters work.

Skipped where no Chromium is installed; run by hand before a release.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mimesim.report.html import render
from mimesim.report.load import EpisodeFile
from mimesim.results import Conversation, RunRecord
from tests.report import samples

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason=f"no browser: none of {', '.join(NAMES)} is installed"
)


def dom(page: Path, profile: Path) -> str:
    """Return the document after its scripts have run."""
    assert BROWSER
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--virtual-time-budget=2000",
    ]
    done = subprocess.run(
        [BROWSER, *flags, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()],
        capture_output=True,
        timeout=120,
        check=True,
    )
    return done.stdout.decode("utf-8")


@pytest.fixture
def trap() -> Iterator[tuple[str, list[str]]]:
    """A server that writes down every request."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    server.server_close()
    thread.join()


def hostile(address: str) -> str:
    """Return an utterance that tries everything."""
    return (
        f"<img src={address}/img onerror=\"document.title='owned'\">"
        f"<script src={address}/js></script><script>document.title='owned'</script>"
        f"<style>@import url({address}/css)</style><svg onload=\"document.title='owned'\">"
        f"<a href=\"javascript:document.title='owned'\">x</a>"
    )


def test_hostile_text_is_shown_and_does_not_run(
    tmp_path: Path, trap: tuple[str, list[str]]
) -> None:
    """C-SEC-01 in a browser: the title stays, nothing is asked for over the network."""
    address, seen = trap
    private = {"persona": "<b>bold</b>", "thoughts": [{"turn": 0, "text": hostile(address)}]}
    bad = samples.episode(said=hostile(address), private=private)
    pages = {
        "episodes": render(EpisodeFile(Path("x.jsonl"), (bad, samples.episode(1)))),
        "record": render(RunRecord("sound", "v", conversations=(Conversation(bad.to_json()),))),
    }
    for name, page in pages.items():
        path = tmp_path / f"{name}.html"
        path.write_text(page, encoding="utf-8")
        found = dom(path, tmp_path / "profile")
        assert "<title>owned" not in found
        assert "<img" not in found
        assert "&lt;b&gt;bold&lt;/b&gt;" in found
        assert f"&lt;img src={address}/img onerror=" in found
    assert seen == []


def test_the_filters_come_alive(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    page = render(EpisodeFile(Path("x.jsonl"), tuple(samples.episodes(6))))
    assert 'class="filters" hidden' in page
    path.write_text(page, encoding="utf-8")
    found = dom(path, tmp_path / "profile")
    assert 'class="filters" hidden' not in found
    assert ">6 of 6</output>" in found
