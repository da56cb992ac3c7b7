"""The gym `function`: find a hidden arithmetic rule by trying it, without any language model.

The input that counts is shown on request and refused as a trial. Trials are whole numbers, so that
no number near it gives its value away, as it does in the original (`compat`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from mimesim import prompts
from mimesim.dialogue.stop import StopReason
from mimesim.envs.base import AgentAction, Choice, GymSpec, Task
from mimesim.envs.gyms.function import rules
from mimesim.envs.turns.law import BadAction, Opening, Turn, TurnGym
from mimesim.errors import DataError

SPEC = GymSpec(
    name="function",
    choices=(Choice.SEARCH, Choice.ACTION, Choice.ANSWER),
    max_steps=16,
    step_bounds=(0.0, 1.0),
    return_bound=1.0,
    needs_user=False,
    needs_judge=False,
    summary="find a hidden rule over four numbers by trying it out",
)
REFUSED = "The rule cannot be tried on the input that counts."
UNDEFINED = "The rule has no value for these inputs."
WRONG = "That is not the value."
RIGHT = "That is the value."
BROKEN = "These inputs could not be worked out."
_FOUR = re.compile(
    r"\s*([-+]?\d{1,6})(?:[\s,]+([-+]?\d{1,6}))(?:[\s,]+([-+]?\d{1,6}))"
    r"(?:[\s,]+([-+]?\d{1,6}))\s*",
    re.ASCII,
)
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,3})?", re.ASCII)
_LOOSE = re.compile(r"-?\d+\.?\d*")
_LARGEST = 1000
_CLOSE = 1e-6
_DECIMALS = 4
NO_LOOK_UP = 'only "test" can be looked up'


@dataclass(frozen=True, slots=True)
class State:
    """What was tried, and whether the value was told."""

    tried: tuple[tuple[int, ...], ...] = ()
    solved: bool = False


@dataclass(frozen=True, slots=True)
class Hidden:
    """The hidden side of a task."""

    rule: str
    case: tuple[int, ...]
    expected: Fraction


def read_hidden(task: Task) -> Hidden:
    """Return the hidden side.

    Raises:
        DataError: it lacks something, or its value is not the rule's.
    """
    where = f"task {task.id!r}"
    try:
        case = tuple(task.hidden["test_case"])
        expected = Fraction(task.hidden["expected"])
        rule = task.hidden["rule"]
        if len(case) != len(rules.NAMES) or any(type(v) is not int for v in case):
            raise DataError("test_case is not four whole numbers", where=where)
        value = rules.evaluate(rules.parse(rule), case)
    except (KeyError, TypeError, ValueError, rules.Undefined) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{type(error).__name__}: {error}",
            where=where,
            expected="rule, test_case (four whole numbers) and expected",
        ) from error
    if abs(value - expected) > Fraction(1, 10**6):
        raise DataError(f"expected is {expected}, the rule gives {value}", where=where)
    return Hidden(rule, case, expected)


class FunctionGym(TurnGym[State]):
    """One episode (single use)."""

    SPEC = SPEC
    STATE = State
    BAD_TRIAL: ClassVar[str] = "a trial is four whole numbers, none of them beyond a thousand"

    def system(self, task: Task) -> str:
        """Return what the agent is told."""
        return prompts.render("envs/function/system")

    async def begin(self, task: Task) -> Opening[State]:
        """Start: the rule is set."""
        self._hidden = read_hidden(task)
        self._tree = rules.parse(self._hidden.rule)
        return Opening(State(), str(task.public.get("intro", "The rule is set.")))

    async def act(self, state: State, action: AgentAction) -> Turn[State]:
        """Try, look or answer."""
        if action.choice is Choice.SEARCH:
            return Turn(state, self._test(action.content))
        if action.choice is Choice.ACTION:
            return self._try(state, action.content)
        return self._answer(state, action.content)

    def succeeded(self, state: State) -> bool:
        """Tell whether the value was told."""
        return state.solved

    def forbidden(self) -> list[str]:
        """Return the rule and its value; no secret is a value that trials or the input show too."""
        value = self._hidden.expected
        shown = bool(self.state.tried) or value in self._hidden.case
        return [self._hidden.rule, *([] if shown else [str(value)])]

    def answer(self) -> str:
        """Return the value."""
        return f"The value is {self._hidden.expected}."

    def _test(self, content: str) -> str:
        if content.strip().lower() != "test":
            if self.compat.function_probe == "floats":
                return NO_LOOK_UP
            raise BadAction(NO_LOOK_UP)
        return "The input that counts: " + " ".join(map(str, self._hidden.case))

    def _try(self, state: State, content: str) -> Turn[State]:
        if self.compat.function_probe == "floats":
            return Turn(state, self._loose(content))
        match = _FOUR.fullmatch(content)
        values = tuple(int(text) for text in match.groups()) if match else ()
        if not values or max(map(abs, values)) > _LARGEST:
            raise BadAction(self.BAD_TRIAL)
        if values == self._hidden.case:
            return Turn(state, REFUSED)
        after = State((*state.tried, values), state.solved)
        try:
            return Turn(after, rules.spell(rules.evaluate(self._tree, values)))
        except rules.Undefined:
            return Turn(after, UNDEFINED)

    def _loose(self, content: str) -> str:
        """Try as the original does: any four numbers that can be found, as floats."""
        values = [float(text) for text in _LOOSE.findall(content)]
        if len(values) != len(rules.NAMES):
            return "exactly four numbers are needed"
        if values == [float(v) for v in self._hidden.case]:
            return REFUSED
        try:
            return str(round(rules.evaluate_float(self._tree, values), _DECIMALS))
        except rules.Undefined:
            return BROKEN

    def _answer(self, state: State, content: str) -> Turn[State]:
        value = self._value(content)
        if value is None:
            return Turn(state, BROKEN)
        if not math.isfinite(value) or abs(value - float(self._hidden.expected)) > _CLOSE:
            return Turn(state, WRONG)
        done = State(state.tried, solved=True)
        return Turn(done, RIGHT, reward=1.0, over=StopReason.GOAL_REACHED)

    def _value(self, content: str) -> float | None:
        """Read an answer; None = compat could not read it either."""
        text = content.strip()
        if self.compat.function_probe == "floats":
            try:
                return float(text)
            except ValueError:
                return None
        if not _NUMBER.fullmatch(text):
            raise BadAction("an answer is one number")
        return float(text)


def moves(task: Task) -> list[tuple[str, str]]:
    """Return what a random agent does here."""
    trials: list[tuple[str, Any]] = [("action", f"{a} {b} {a} {b}") for a in (1, 2) for b in (3, 5)]
    return [("search", "test"), *trials, ("answer", "0"), ("answer", "12")]
