"""The profile `compact` of the gym `function`: few rules over one-digit numbers, for tiny policies.

The rule joins two of the four numbers, the input that counts stands in the first line, and one
answer ends the episode. Agents write the line grammar, in words of a small vocabulary. A rule may
occur in training and test, but never with the same input.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

from mimesim import prompts
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import Role
from mimesim.envs.actions import get_format
from mimesim.envs.base import AgentAction, AgentMove, AgentView, Choice, Task
from mimesim.envs.gyms.function import gym, rules
from mimesim.envs.turns.law import BadAction, Turn, invalid_text
from mimesim.envs.turns.splits import split_of
from mimesim.errors import AgentError, DataError
from mimesim.seeds import generator

PROFILE = "compact"
SPEC = replace(
    gym.SPEC,
    choices=(Choice.ACTION, Choice.ANSWER),
    max_steps=6,
    profiles=(PROFILE,),
    summary="the same with few rules over one-digit numbers and one answer, for tiny policies",
)
RULES = tuple(
    [f"{x} {sign} {y}" for sign in "+*" for x, y in combinations(rules.NAMES, 2)]
    + [f"{x} - {y}" for x, y in permutations(rules.NAMES, 2)]
)
"""All rules of this profile."""
SMALLEST, LARGEST = 1, 9
_LINE = get_format("line")
_ACT = "act "
_TELLING = ((2, 6, 7, 9), (9, 7, 6, 2))
"""Two of the inputs at which every rule has a value of its own."""
_TREES = {rule: rules.parse(rule) for rule in RULES}
_TRIES = 20


class CompactFunction(gym.FunctionGym):
    """One episode (single use)."""

    SPEC = SPEC
    BAD_TRIAL = f"a trial is four numbers from {SMALLEST} to {LARGEST}"

    def system(self, task: Task) -> str:
        """Return what the agent is told."""
        return prompts.render("envs/function/compact")

    async def act(self, state: gym.State, action: AgentAction) -> Turn[gym.State]:
        """Try, or answer once."""
        if action.choice is not Choice.ANSWER:
            return self._try(state, action.content)
        turn = self._answer(state, action.content.removeprefix(_ACT))
        return turn if turn.over else replace(turn, over=StopReason.CASE_CLOSED)

    def _try(self, state: gym.State, content: str) -> Turn[gym.State]:
        words = content.replace(",", " ").split()
        if any(not (SMALLEST <= int(w) <= LARGEST) for w in words if w.lstrip("+-").isdecimal()):
            raise BadAction(self.BAD_TRIAL)
        return super()._try(state, content)


def make_tasks(split: str, seed: int, count: int) -> list[Task]:
    """Return `count` tasks of a split; no two have the same rule and input.

    Raises:
        DataError: there are not so many.
    """
    rng = generator(seed, "function-compact", split)
    found: dict[str, Task] = {}
    for _ in range(_TRIES * count):
        if len(found) == count:
            break
        task = _draw(rng, split, f"ms-fn-compact-{split}-{seed}-{len(found):05d}")
        if task is not None:
            found.setdefault(task.groups[0], task)
    if len(found) < count:
        raise DataError(f"only {len(found)} questions of {count} were found", where="function")
    return list(found.values())


def _draw(rng: random.Random, split: str, name: str) -> Task | None:
    rule, case = rng.choice(RULES), _inputs(rng)
    shown = " ".join(map(str, case))
    group = f"{rule} at {shown}"
    if split_of("function", group) != split:
        return None
    value = _value(rule, case)
    return Task(
        gym="function",
        id=name,
        split=split,
        groups=(group,),
        public={"profile": PROFILE, "intro": f"input {shown}"},
        hidden={
            "rule": rule,
            "test_case": list(case),
            "expected": value,
            "oracle_trace": [["answer", str(value)]],
            "scenario": {"id": name, "goal": "none", "meta": {"profile": "asked"}},
        },
        meta={"source": "mimesim", "license": "Apache-2.0", "schema": 1},
    )


def _inputs(rng: random.Random) -> tuple[int, ...]:
    return tuple(rng.randint(SMALLEST, LARGEST) for _ in rules.NAMES)


def _value(rule: str, inputs: Sequence[int]) -> int:
    return int(rules.evaluate(_TREES[rule], inputs))


def moves(task: Task) -> list[tuple[str, str]]:
    """Return what a random agent does here: a trial, or the value of any rule."""
    case = _case_in(str(task.public["intro"]))
    values = sorted({_value(rule, case) for rule in RULES})
    return [("action", "2 3 5 9"), *(("answer", str(value)) for value in values)]


def _case_in(first: str) -> tuple[int, ...]:
    return tuple(int(word) for word in first.split()[1:])


@dataclass
class Tried:
    """What both scripted agents know: the trials, their values, and the rules that fit."""

    case: tuple[int, ...]
    trials: list[tuple[int, ...]]
    values: list[int]

    def fitting(self) -> list[str]:
        """Return the rules that no trial speaks against."""
        seen = list(zip(self.trials, self.values, strict=False))
        return [r for r in RULES if all(_value(r, trial) == value for trial, value in seen)]

    def answers(self) -> list[int]:
        """Return the values that these rules give the input that counts, one for each rule."""
        return [_value(rule, self.case) for rule in self.fitting()]


class EagerAgent:
    """Tries one input, whatever it may tell, and answers by a rule that fits."""

    def __init__(self, task: Task, seed: int) -> None:
        self._seed = seed
        self._trials: list[tuple[int, ...]] = []

    async def act(self, view: AgentView) -> AgentMove:
        """Try or answer.

        Raises:
            AgentError: the gym answered a trial with no number.
        """
        known = Tried(_case_in(view.observation.first_user), self._trials, _values_in(view))
        rng = generator(self._seed, view.step)
        if known.trials:
            answers = known.answers()
            if not answers:
                raise AgentError("no rule fits what the trials gave")
            return _move(Choice.ANSWER, str(rng.choice(answers)))
        self._trials.append(self._next(known, rng))
        return _move(Choice.ACTION, " ".join(map(str, self._trials[-1])))

    def _next(self, known: Tried, rng: random.Random) -> tuple[int, ...]:
        return next(drawn for drawn in iter(lambda: _inputs(rng), None) if drawn != known.case)

    async def aclose(self) -> None:
        """Release nothing."""


class PatientAgent(EagerAgent):
    """Tries an input at which no two rules have one value, and knows the rule."""

    def _next(self, known: Tried, rng: random.Random) -> tuple[int, ...]:
        return next(trial for trial in _TELLING if trial != known.case)


def _values_in(view: AgentView) -> list[int]:
    told = [m.content for m in view.messages if m.role is Role.TOOL]
    try:
        return [int(text) for text in told]
    except ValueError as error:
        raise AgentError(f"a trial gave {told[-1]!r}") from error


def _move(choice: Choice, content: str) -> AgentMove:
    action = AgentAction(choice, content)
    return AgentMove(_LINE.render(action), action)


def vocabulary() -> list[str]:
    """Return every word that an episode of this profile can hold, for word-level tokenizers."""
    texts = [
        prompts.render("envs/function/compact"),
        "input act ask",
        invalid_text(CompactFunction.BAD_TRIAL, SPEC),
        *(gym.REFUSED, gym.UNDEFINED, gym.WRONG, gym.RIGHT),
    ]
    numbers = range(SMALLEST - LARGEST, LARGEST * LARGEST + 1)
    return sorted({*" ".join(texts).split(), *map(str, numbers)})
