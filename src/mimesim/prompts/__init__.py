"""Every text that a model reads, as template files: rendering, names and fingerprints.

A template is `prompts/<room>/<name>.jinja`, called `<room>/<name>` in code. Values are data: they
are never parsed as a template, and a missing value is an error, never an empty string. Values that
a stranger wrote go through one of two filters, so that they cannot end the block they stand in or
speak in another role: `quoted` (every line marked with a bar) and `inline` (one JSON string).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mimesim import jsonio, seeds
from mimesim.errors import CallerError
from mimesim.registry import unknown_name

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["names", "prompt_hash", "render"]

_ROOT = Path(__file__).parent
_REFERENCE = re.compile(r"""\{%-?\s*(?:include|import|from|extends)\s+["']([^"']+)\.jinja["']""")
_CONTROL = re.compile(r"<(?=[|/\s]*(?:\||think|seed:|im_|start_of|end_of|bos|eos|s>))", re.I)


def names() -> list[str]:
    """Return the names of all templates, sorted."""
    return sorted(path.relative_to(_ROOT).as_posix()[:-6] for path in _ROOT.rglob("*.jinja"))


def render(name: str, /, **values: Any) -> str:
    """Render template `name` with `values`, outer white space trimmed.

    Raises:
        UnknownNameError: no such template.
        CallerError: the template needs a value that was not given.
    """
    _source(name)
    from jinja2 import UndefinedError  # loaded on first use: importing mimesim stays light

    try:
        return _environment().get_template(f"{name}.jinja").render(values).strip()
    except UndefinedError as error:
        raise CallerError(f"prompt {name!r}: {error.message}") from error


def prompt_hash(*names: str) -> str:
    """Return one fingerprint of the named templates and of all that they include."""
    return seeds.fingerprint(
        "\x1e".join(f"{n}\x1f{_source(n)}" for n in _closure(list(dict.fromkeys(names))))
    )


def _closure(queue: list[str]) -> list[str]:
    found: list[str] = []
    while queue:
        name = queue.pop(0)
        if name not in found:
            found.append(name)
            queue += _REFERENCE.findall(_source(name))
    return found


@cache
def _source(name: str) -> str:
    known = names()
    if name not in known:
        raise unknown_name("prompt", name, known)
    return (_ROOT / f"{name}.jinja").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_ROOT),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["quoted"] = _quoted
    environment.filters["inline"] = _inline
    return environment


def _inert(value: object) -> str:
    """Break control tokens of chat templates apart, so that a value stays plain text."""
    return _CONTROL.sub("< ", str(value))


def _quoted(value: object) -> str:
    lines = re.split(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", _inert(value).strip())
    return "\n".join(f"| {line}".rstrip() for line in lines)


def _inline(value: object) -> str:
    return jsonio.dumps(_inert(value))
