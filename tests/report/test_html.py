"""The page: complete, self-contained, reproducible, and with no markup from data."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.report.html import render
from mimesim.report.load import EpisodeFile
from mimesim.results import (
    Conversation,
    Difference,
    Estimate,
    MatrixRow,
    RunRecord,
    SampleReply,
    Tile,
    UserSample,
)
from tests.report import samples

HOSTILE = "<img src=x onerror=\"document.title='owned'\"></script><script>alert(1)</script>"
TAGS = """
html head meta title link style body svg symbol path rect circle line text use header div p nav a
main section h1 h2 h3 ul li span b i em table thead tbody tr th td details summary figure figcaption
article label input form select option output script footer pre code dl dt dd
"""
ALLOWED = set(TAGS.split())


class Tags(HTMLParser):
    """Collects elements, ids, addresses and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.open: list[str] = []
        self.unclosed = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "link", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.unclosed += 1

    def handle_data(self, data: str) -> None:
        self.text += data


def _episodes(*made: object) -> EpisodeFile:
    return EpisodeFile(Path("x.jsonl"), tuple(made))  # type: ignore[arg-type]


PAGES = {
    "record": lambda: render(samples.record()),
    "bare record": lambda: render(RunRecord("t", "v")),
    "episodes": lambda: render(_episodes(*samples.episodes(8))),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_well_formed_and_self_contained(name: str) -> None:
    page = PAGES[name]()
    tags = Tags(page)
    assert set(tags.names) <= ALLOWED
    assert (tags.open, tags.unclosed) == ([], 0)
    for key, value in tags.attributes:
        assert not key.startswith("on")
        assert key != "style"
        if key in ("href", "src"):
            assert re.match(r"#|data:image/svg", value or "")
    assert "url(" not in page
    assert "@import" not in page
    ids = [value for key, value in tags.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    for key, value in tags.attributes:
        if key == "href" and (value or "").startswith("#"):
            assert (value or "")[1:] in ids


@pytest.mark.parametrize("name", PAGES)
def test_equal_input_gives_equal_bytes(name: str) -> None:
    assert PAGES[name]() == PAGES[name]()


def test_the_policy_allows_exactly_what_is_shipped() -> None:
    from base64 import b64encode
    from hashlib import sha256

    page = PAGES["episodes"]()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    allowed = policy[1].replace("&#39;", "'")
    assert "default-src 'none'" in allowed
    for tag in ("style", "script"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert inside
        digest = b64encode(sha256(inside[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in allowed
    assert "script-src &#39;none&#39;" in PAGES["record"]()


def test_a_record_shows_every_section() -> None:
    tags = Tags(PAGES["record"]())
    ids = {value for key, value in tags.attributes if key == "id"}
    wanted = "matrix differences distortion curves users conversations limits provenance"
    assert set(wanted.split()) <= ids
    for text in (
        samples.record().verdict,
        "not resolved",
        "Private thought",
        "I hate reading numbers out.",
        "9f31ac02d7be11f0",
        "33 min 30 s",
    ):
        assert text in tags.text


def test_empty_sections_do_not_appear() -> None:
    tags = Tags(PAGES["bare record"]())
    ids = {value for key, value in tags.attributes if key == "id"}
    assert ids == {"lock", "provenance"}


def test_hostile_text_stays_text() -> None:
    """C-SEC-01 without a browser: no element and no script of a stranger is in the page."""
    bad = samples.episode(
        said=HOSTILE,
        id=f"x{HOSTILE}",
        system=HOSTILE,
        private={"persona": "<b>bold</b>", "thoughts": [{"turn": 0, "text": HOSTILE}]},
    )
    record = RunRecord(
        HOSTILE,
        HOSTILE,
        rows=(MatrixRow(HOSTILE, HOSTILE, Estimate(0.5, method=HOSTILE), note=HOSTILE),),
        differences=(Difference(HOSTILE, HOSTILE, Estimate(0.1), per_seed={HOSTILE: 0.1}),),
        tiles=(Tile(HOSTILE, HOSTILE, HOSTILE),),
        user_samples=(
            UserSample(((HOSTILE, HOSTILE),), (SampleReply(HOSTILE, HOSTILE, HOSTILE),), HOSTILE),
        ),
        conversations=(Conversation(bad.to_json(), HOSTILE, HOSTILE),),
        limits=(HOSTILE,),
        seeds={HOSTILE: (1,)},
        notes={"rows": HOSTILE},
        provenance=replace(samples.record().provenance, machine={HOSTILE: HOSTILE}),
    )
    for page in (render(record), render(_episodes(bad))):
        tags = Tags(page)
        assert set(tags.names) <= ALLOWED
        assert tags.text.count("onerror") >= 5
        assert "<b>bold</b>" in tags.text
        assert page.count("<script") <= 1


@given(st.text())
def test_any_utterance_can_be_shown(said: str) -> None:
    page = render(_episodes(samples.episode(said=said)))
    page.encode("utf-8")
    assert set(Tags(page).names) <= ALLOWED


def test_a_public_copy_shows_no_private_words() -> None:
    page = render(_episodes(samples.episode(private=None)))
    assert "I hate reading numbers out" not in page
    assert "Private side" in page
