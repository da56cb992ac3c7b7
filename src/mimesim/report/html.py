"""HTML, made here and nowhere else: autoescaped templates, one file, no request to anywhere.

Every value is data and is escaped; the page's policy allows one style sheet and at most one script,
each by the hash of its exact text, so that nothing that slipped through could run or load.
"""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import mimesim
from mimesim.report.episodes_page import episodes_page
from mimesim.report.figures import printable, words
from mimesim.report.load import EpisodeFile
from mimesim.report.record_page import record_page
from mimesim.results import RunRecord
from mimesim.seeds import fingerprint

_TEMPLATES = Path(__file__).parent / "templates"


def render(found: RunRecord | EpisodeFile) -> str:
    """Return the page of a record or of an episode file; equal input gives equal bytes.

    Raises:
        DataError: a conversation of the record is not a valid episode.
    """
    if isinstance(found, RunRecord):
        return page_of("record.html.jinja", page=record_page(found))
    return page_of("episodes.html.jinja", script=_text("filter.js"), page=episodes_page(found))


def drawing(template: str, **values: Any) -> str:
    """Return a drawing that stands alone, as SVG text."""
    return printable(_environment().get_template(template).render(**values))


def page_of(template: str, *, script: str = "", **values: Any) -> str:
    """Return the page that one of our templates makes of `values`; equal input, equal bytes."""
    style = _text("style.css")
    text = (
        _environment()
        .get_template(template)
        .render(
            style=style,
            script=script,
            policy=_policy(style, script),
            version=mimesim.__version__,
            **values,
        )
    )
    return printable(text)


def _policy(style: str, script: str) -> str:
    """Return the content security policy: only these two texts count, nothing is fetched."""
    allowed = _hash(script) if script else "'none'"
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = bytes.fromhex(fingerprint(text, 64))
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


@cache
def _text(name: str) -> str:
    """Return one of our own assets."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["words"] = words
    return found
