"""Rules of the gym `function`: parsed by a whitelist, evaluated exactly, told apart by meaning."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from fractions import Fraction

from mimesim.errors import DataError
from mimesim.seeds import fingerprint

NAMES = ("a", "b", "c", "d")
MAX_LENGTH = 300
"""Characters of a rule; what is longer could be nested beyond what can be walked."""
MAX_EXPONENT = 12
MAX_VALUE = 10**12
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_POINTS = (
    (2, 3, 5, 7),
    (11, 4, 9, 3),
    (1, 8, 2, 6),
    (-3, 5, 4, 2),
    (Fraction(1, 2), 3, Fraction(7, 3), 5),
    (13, Fraction(-5, 4), 6, 3),
    (10, 9, -7, Fraction(3, 2)),
    (4, 6, 3, 12),
)
"""Fixed points at which two rules must agree to count as one."""


class Undefined(Exception):
    """The rule has no value here: division by zero, a power out of bounds, a value too large."""


def parse(rule: str) -> ast.expr:
    """Return the expression of a rule over a, b, c, d.

    Raises:
        DataError: it is no arithmetic over these names, or too long.
    """
    if len(rule) > MAX_LENGTH:
        raise DataError(
            f"a rule of {len(rule)} characters", expected=f"{MAX_LENGTH} characters at most"
        )
    try:
        tree = ast.parse(rule, mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise DataError(f"{rule!r:.60} is no rule", expected="arithmetic over a b c d") from error
    for node in ast.walk(tree):
        named = isinstance(node, ast.Name) and node.id in NAMES
        number = isinstance(node, ast.Constant) and type(node.value) is int
        operation = isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS)
        signed = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd)
        part = isinstance(node, (*_OPERATORS, ast.USub, ast.UAdd, ast.Load))
        if not (named or number or operation or signed or part):
            raise DataError(
                f"{rule!r:.60} holds {type(node).__name__}",
                expected="a b c d, whole numbers, + - * / ** and parentheses",
            )
    return tree


def evaluate(tree: ast.expr, values: Sequence[int | Fraction]) -> Fraction:
    """Return the exact value at (a, b, c, d).

    Raises:
        Undefined: there is none.
    """
    return _exact(tree, dict(zip(NAMES, map(Fraction, values), strict=True)))


def evaluate_float(tree: ast.expr, values: Sequence[float]) -> float:
    """Return the value as the original computes it, in floats.

    Raises:
        Undefined: the original's evaluation fails.
    """
    try:
        value = _rough(tree, dict(zip(NAMES, map(float, values), strict=True)))
    except (ZeroDivisionError, OverflowError) as error:
        raise Undefined from error
    if isinstance(value, complex):
        raise Undefined
    return value


def signature(tree: ast.expr) -> str:
    """Return one name for all rules that agree at the fixed points."""
    values = []
    for point in _POINTS:
        try:
            values.append(str(evaluate(tree, point)))
        except Undefined:
            values.append("undefined")
    return "sig:" + fingerprint("|".join(values), 12)


def spell(value: Fraction) -> str:
    """Return a value as the agent reads it: whole, or to four decimals."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.4f}"


def _exact(node: ast.expr, env: Mapping[str, Fraction]) -> Fraction:
    if isinstance(node, ast.Name):
        return env[node.id]
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int)
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp):
        inner = _exact(node.operand, env)
        return -inner if isinstance(node.op, ast.USub) else inner
    assert isinstance(node, ast.BinOp)
    left, right = _exact(node.left, env), _exact(node.right, env)
    return _bounded(_apply(node.op, left, right))


def _apply(operator: ast.operator, left: Fraction, right: Fraction) -> Fraction:
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.Div):
        if right == 0:
            raise Undefined
        return left / right
    if right.denominator != 1 or abs(right) > MAX_EXPONENT or (left == 0 and right < 0):
        raise Undefined
    return left ** int(right)


def _bounded(value: Fraction) -> Fraction:
    if abs(value) > MAX_VALUE or value.denominator > MAX_VALUE:
        raise Undefined
    return value


def _rough(node: ast.expr, env: Mapping[str, float]) -> float:
    if isinstance(node, ast.Name):
        return env[node.id]
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int)
        return node.value
    if isinstance(node, ast.UnaryOp):
        inner = _rough(node.operand, env)
        return -inner if isinstance(node.op, ast.USub) else inner
    assert isinstance(node, ast.BinOp)
    left, right = _rough(node.left, env), _rough(node.right, env)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Div):
        return left / right
    power: float = float(left) ** right
    return power
