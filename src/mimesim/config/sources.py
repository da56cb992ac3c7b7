"""Reading config sources: files with line numbers, `.env`, variables, environment, `--set`.

The result is a tree of tables and lists whose leaves are `Raw`: a value that knows where it came
from, so that a message can name file and line.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.config import recipes
from mimesim.errors import ConfigError

ENV_PREFIX = "MIMESIM__"
"""Environment variables of this prefix set config keys; `__` stands for a dot."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HEADER = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?")
_NAME = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_KEY = re.compile(rf"^\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*[=:]")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a key came from: a file with its text, the environment, or the command line."""

    name: str
    text: str = ""
    folder: Path | None = None

    def at(self, path: Sequence[str]) -> str:
        """Return `file:line`, or the name alone when the line cannot be told."""
        line = _line_of(self.text, path) if self.text else 0
        return f"{self.name}:{line}" if line else self.name


@dataclass(frozen=True, slots=True)
class Raw:
    """A value as read. `text` is the unparsed text of an override, which may mean a string."""

    value: Any
    source: Source
    text: str | None = None


def source_of(value: Any) -> Source:
    """Return the source of the first leaf below `value`."""
    if isinstance(value, Raw):
        return value.source
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((source_of(child) for child in inner), Source("config"))


def read_file(path: Path) -> tuple[dict[str, Any], Source]:
    """Read a TOML, JSON or YAML file by its extension; a run manifest gives its config.

    Raises:
        ConfigError: missing, damaged, or not a table.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(
            f"cannot read the config file: {reason}",
            where=str(path),
            expected="a TOML, JSON or YAML file",
            mend="check the path",
        ) from error
    source = Source(str(path), text, recipes.base(path))
    try:
        value = _parse(path, text)
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"not a valid {path.suffix.lstrip('.').upper()} file: {error}", where=str(path)
        ) from error
    if isinstance(value, dict) and str(value.get("schema", "")).startswith("mimesim.run/"):
        value = value.get("config", {})
    if not isinstance(value, dict):
        raise ConfigError("the file does not hold a table of keys", where=str(path))
    return value, source


def read_dotenv(path: Path) -> dict[str, str]:
    """Return the `NAME=value` lines of a `.env` file; empty when there is none."""
    if not path.is_file():
        return {}
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").split("\n"):
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and name.strip().isidentifier():
            found[name.strip()] = value.strip().strip("\"'")
    return found


def _parse(path: Path, text: str) -> Any:
    if path.suffix == ".toml":
        return tomllib.loads(text)
    if path.suffix == ".json":
        return jsonio.loads(text)
    if path.suffix in (".yaml", ".yml"):
        return _parse_yaml(path, text)
    raise ConfigError(
        f"unknown config format {path.suffix!r}", where=str(path), expected=".toml, .json or .yaml"
    )


def _parse_yaml(path: Path, text: str) -> Any:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise ConfigError(
            "reading YAML needs PyYAML",
            where=str(path),
            mend="write the config as TOML, or pip install pyyaml",
        ) from error
    try:
        _refuse_repeated(yaml.compose(text, Loader=yaml.SafeLoader), path, yaml.MappingNode)
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"not a valid YAML file: {error}", where=str(path)) from error


def _refuse_repeated(node: Any, path: Path, mapping: type) -> None:
    """Raise for a key that stands twice in one YAML mapping (PyYAML would take the last)."""
    children = node.value if node is not None and isinstance(node.value, list) else []
    seen: set[str] = set()
    for child in children:
        if not isinstance(node, mapping):
            _refuse_repeated(child, path, mapping)
            continue
        key, value = child
        if str(key.value) in seen:
            raise ConfigError(
                f"the key {key.value!r} stands twice",
                where=f"{path}:{key.start_mark.line + 1}",
                mend="keep one of them",
            )
        seen.add(str(key.value))
        _refuse_repeated(value, path, mapping)


def substituted(value: Any, source: Source, path: tuple[str, ...], env: Mapping[str, str]) -> Any:
    """Wrap leaves as `Raw` and replace `${VAR}` inside strings."""
    if isinstance(value, dict):
        return {
            str(key): substituted(inner, source, (*path, str(key)), env)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [substituted(inner, source, (*path, str(i)), env) for i, inner in enumerate(value)]

    def replace(match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        if name in env:
            return env[name]
        if default is not None:
            return default
        raise ConfigError(
            f"key {'.'.join(path)!r}: the environment variable {name!r} is not set",
            where=source.at(path),
            mend=f"set it, or write ${{{name}:-default}}",
        )

    return Raw(_VARIABLE.sub(replace, value) if isinstance(value, str) else value, source)


def merge(base: dict[str, Any], new: Mapping[str, Any]) -> None:
    """Lay `new` over `base`, table by table."""
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            merge(base[key], value)
        else:
            base[key] = value


def apply_environment(tree: dict[str, Any], env: Mapping[str, str]) -> None:
    """Set the keys that `MIMESIM__A__B=value` variables name."""
    for name in sorted(env):
        if name.startswith(ENV_PREFIX):
            keys = [part.lower() for part in name[len(ENV_PREFIX) :].split("__")]
            put(tree, keys, _typed(env[name], Source(f"environment variable {name}")))


def apply_override(tree: dict[str, Any], text: str) -> None:
    """Set one key from `dotted.key=value`.

    Raises:
        ConfigError: no equals sign, or the key leads through something that is no table.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"cannot read {text!r}", where="--set", expected="key=value")
    keys = [part.strip() for part in key.split(".")]
    put(tree, keys, _typed(value.strip(), Source(f"--set {key.strip()}")))


def _typed(text: str, source: Source) -> Any:
    """Return an override as TOML reads it; a leaf keeps its text, for it may be meant as one."""
    value = wrapped(_toml_value(text), source)
    return Raw(value.value, source, text) if isinstance(value, Raw) else value


def put(tree: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    """Set one key of a tree; `value` is a `Raw`, or a table or list of them.

    Raises:
        ConfigError: the key leads through something that is no table, or names no list entry.
    """
    source = source_of(value)
    node: Any = tree
    for position, key in enumerate(keys[:-1]):
        if isinstance(node, list):
            node = node[_index(node, key, source)]
            continue
        inner = node.get(key)
        if not isinstance(inner, dict | list):
            inner = node[key] = {}
        node = inner
        if not isinstance(node, dict | list):
            raise ConfigError(
                f"{'.'.join(keys[: position + 1])!r} is not a table", where=source.name
            )
    if isinstance(node, list):
        node[_index(node, keys[-1], source)] = value
    else:
        node[keys[-1]] = value


def _index(values: list[Any], key: str, source: Source) -> int:
    if not key.isdigit() or int(key) >= len(values):
        raise ConfigError(
            f"no list entry {key!r}", where=source.name, expected=f"0 to {len(values) - 1}"
        )
    return int(key)


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text


def wrapped(value: Any, source: Source) -> Any:
    """Return tables and lists with their leaves as `Raw`."""
    if isinstance(value, Mapping):
        return {str(key): wrapped(inner, source) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [wrapped(inner, source) for inner in value]
    return Raw(value, source)


def _line_of(text: str, path: Sequence[str]) -> int:
    """Return the line of the dotted key `path`, by table headers and keys; 0 = not found.

    Nested values (JSON, YAML, inline tables) are found by the last part of their key.
    """
    wanted = [part for part in path if not part.isdigit()]
    if not wanted:
        return 0
    inside = re.compile(rf"""(?<![\w-])["']?{re.escape(wanted[-1])}["']?\s*[=:]""")
    table: list[str] = []
    nearest = 0
    for number, line in enumerate(text.split("\n"), start=1):
        header = _HEADER.match(line) if "=" not in line else None
        key = _KEY.match(line)
        if header:
            table = _parts(header.group(1))
        if wanted == (table if header else table + _parts(key.group(1)) if key else None):
            return number
        if not nearest and inside.search(line):
            nearest = number
    return nearest


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
