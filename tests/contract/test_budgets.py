"""Budgets: small files, short functions, few parameters, plain names, documented modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = sorted((ROOT / "src" / "mimesim").rglob("*.py"))
TESTS = sorted(
    p for folder in ("tests", "examples", "benchmarks") for p in (ROOT / folder).rglob("*.py")
)

FILE_LINES = 500
TEST_FILE_LINES = 1000
FUNCTION_LINES = 80
PARAMETERS = 6
MEDIAN_FILE_LINES = 150
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    """Yield every function of a file, nested ones included."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, Function):
            yield node


def line_count(path: Path) -> int:
    """Return the number of lines of a file."""
    return len(path.read_text("utf-8").splitlines())


def parameters(function: Function) -> int:
    """Return the number of parameters the caller sees; `self` and `cls` do not count."""
    a = function.args
    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return len([n for n in names if n not in ("self", "cls")])


def is_overload_of_foreign_code(path: Path, function: Function) -> bool:
    """Tell whether a foreign base class dictates the signature (the TRL hooks)."""
    return path.parent.name == "train" and function.name.startswith("_get_per_token")


def test_files_are_short() -> None:
    long = [f"{p.relative_to(ROOT)}: {line_count(p)}" for p in SOURCE if line_count(p) > FILE_LINES]
    long += [
        f"{p.relative_to(ROOT)}: {line_count(p)}" for p in TESTS if line_count(p) > TEST_FILE_LINES
    ]
    assert long == []


def test_the_median_file_is_small() -> None:
    assert median(line_count(p) for p in SOURCE) < MEDIAN_FILE_LINES


def test_functions_are_short() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{f.lineno} {f.name}: {f.end_lineno - f.lineno + 1}"
        for path in SOURCE
        for f in functions(path)
        if f.end_lineno is not None and f.end_lineno - f.lineno + 1 > FUNCTION_LINES
    ]
    assert long == []


def test_functions_take_few_parameters() -> None:
    many = [
        f"{path.relative_to(ROOT)}:{f.lineno} {f.name}: {parameters(f)}"
        for path in SOURCE
        if path.parent.name != "cli"
        for f in functions(path)
        if parameters(f) > PARAMETERS and not is_overload_of_foreign_code(path, f)
    ]
    assert many == []


def test_modules_have_plain_names() -> None:
    assert [
        str(p.relative_to(ROOT)) for p in SOURCE if p.stem in VAGUE or p.parent.name in VAGUE
    ] == []


@pytest.mark.parametrize("path", SOURCE, ids=lambda p: str(p.relative_to(ROOT / "src")))
def test_the_module_says_what_it_is_for(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert docstring, f"{path.relative_to(ROOT)} has no module docstring"
    first = docstring.splitlines()[0]
    assert len(first) > 12, f"{path.relative_to(ROOT)}: {first!r} says nothing"
    assert not first.upper().startswith(("TODO", "FIXME", "XXX"))


def test_annotations_are_lazy_and_nothing_is_left_to_do() -> None:
    missing, unfinished = [], []
    for path in SOURCE:
        text = path.read_text("utf-8")
        body = ast.parse(text).body
        code = [
            n for n in body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
        ]
        if code and "from __future__ import annotations" not in text:
            missing.append(str(path.relative_to(ROOT)))
        if any(mark in text for mark in ("TODO", "FIXME", "NotImplementedError")):
            unfinished.append(str(path.relative_to(ROOT)))
    assert (missing, unfinished) == ([], [])


def probes(path: Path) -> list[str]:
    """Return the places where a file asks whether an attribute exists."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and (
            node.func.id == "hasattr"
            or (node.func.id == "getattr" and isinstance(node.args[1], ast.Constant))
        )
    ]


def test_own_types_are_not_probed() -> None:
    """Only code that meets foreign objects may ask: model libraries, extensions, agents by path."""
    foreign = (
        "src/mimesim/train",
        "src/mimesim/models",
        "src/mimesim/envs/agents/callables.py",
        "src/mimesim/registry.py",
    )
    own = [p for p in SOURCE if not str(p.relative_to(ROOT)).startswith(foreign)]
    assert [place for path in own for place in probes(path)] == []
