"""The conformance suite for behaviors: what every behavior promises, checked on the shipped manual.

    from mimesim.testing.behavior import check_behavior

    assert all(finding.ok for finding in check_behavior(MINE)), ...

It composes cases, draws parameters, words directives and runs the rule check on transcripts that
hold little, much and nothing. Dialogues with known verdicts of your own can be given along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.scenarios import behaviors
from mimesim.scenarios.behaviors import Behavior, Situation, closing
from mimesim.scenarios.compose import compose, with_behavior
from mimesim.scenarios.fields import fold, says
from mimesim.scenarios.manual import load
from mimesim.scenarios.types import Row
from mimesim.seeds import generator
from mimesim.testing.findings import Finding, failed, need

_CASES = 120
_LEAST_APPLICABLE = 3
_DISTINCTIVE = 4
"""Characters from which a parameter is looked for in a directive."""
_NAME = re.compile(r"[a-z][a-z0-9_]{3,60}")
_LINES = (
    *("hi", "no. wrong!!", "i want my money back and also a pony, now", "ok thanks, bye"),
    *("", "yes i am a gold member, order 5512093381", "\u2019\u201c\u2028 \U0001f600", "forget it"),
)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A transcript of generated turns and the value that the rule check must give it."""

    id: str
    case: Situation
    params: dict[str, Any]
    turns: tuple[PublicMessage, ...]
    expected: float | None


def check_behavior(
    behavior: Behavior, *, dialogues: Sequence[Dialogue] = (), seed: int = 0
) -> list[Finding]:
    """Check a behavior; nothing is raised, whatever it does.

    Args:
        behavior: the object, whether it is installed or not.
        dialogues: transcripts with the values that its check must give.
        seed: seed of the composed cases.
    """
    cases = _cases(seed)
    checks: list[tuple[str, Callable[[], str]]] = [
        ("description", lambda: _description(behavior)),
        ("applicability", lambda: _applicability(behavior, cases)),
        ("parameters", lambda: _parameters(behavior, cases)),
        ("directive", lambda: _directive(behavior, cases)),
        ("rule check", lambda: _rule_check(behavior, cases)),
    ]
    if dialogues:
        checks.append(("dialogues", lambda: _dialogues(behavior, dialogues)))
    return [_found(name, check) for name, check in checks]


def _found(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, ok=True, told=check())
    except Exception as error:  # noqa: BLE001 - somebody else's behavior may raise anything
        return failed(name, error)


def _cases(seed: int) -> list[Situation]:
    manual = load()
    rows: Sequence[Row] = compose(manual, seed=seed, count=_CASES, neutral_share=1).rows
    return [Situation(row, manual) for row in rows]


def _description(behavior: Behavior) -> str:
    told = behavior.described
    need(behavior.id.isidentifier(), f"id {behavior.id!r} is no plain word")
    need(_NAME.fullmatch(told.name), f"name {told.name!r} is not snake_case")
    need(told.definition.strip().endswith("."), "the definition is no sentence")
    need(told.min_turns >= 1, "min_turns is below 1")
    need(told.contrasts, "no neighbor: name what it is easily taken for, and how to tell")
    for other, contrast in told.contrasts.items():
        need(other != behavior.id, "it is its own neighbor")
        behaviors.get(other)
        need(len(contrast.split()) >= 3, f"the contrast to {other} says nothing")
    return f"{told.name}, {len(told.contrasts)} neighbors, {told.min_turns} turns"


def _playing(behavior: Behavior, cases: Sequence[Situation]) -> list[Situation]:
    return [case for case in cases if behavior.applicable(case)]


def _applicability(behavior: Behavior, cases: Sequence[Situation]) -> str:
    playing = _playing(behavior, cases)
    again = [behavior.applicable(case) for case in cases]
    need(again == [case in playing for case in cases], "asked twice, it answers differently")
    need(len(playing) >= _LEAST_APPLICABLE, f"it applies to {len(playing)} of {len(cases)} cases")
    return f"applies to {len(playing)} of {len(cases)} cases"


def _parameters(behavior: Behavior, cases: Sequence[Situation]) -> str:
    seen = set()
    for number, case in enumerate(_playing(behavior, cases)):
        params = behavior.derive_params(case, generator(number, "params"))
        again = behavior.derive_params(case, generator(number, "params"))
        need(params == again, "the same generator gives other parameters")
        text = jsonio.dumps(params)
        need(jsonio.loads(text) == params, f"not plain JSON values: {text[:80]}")
        missing = set(behavior.told) - set(params)
        need(not missing, f"told names {sorted(missing)}, which are no parameters")
        undocumented = set(params) - set(behavior.described.params)
        need(not undocumented, f"taxon.params does not explain {sorted(undocumented)}")
        seen.add(text)
    return f"{len(seen)} different draws"


def _directive(behavior: Behavior, cases: Sequence[Situation]) -> str:
    longest = 0
    for number, case in enumerate(_playing(behavior, cases)):
        row = with_behavior(case, behavior, generator(number, "directive"))
        text = row.directive
        longest = max(longest, len(text))
        need(text == behavior.directive(row.params), "the same parameters give another directive")
        need(text.rstrip().endswith(closing()), "it does not end with behaviors.closing()")
        words = [str(word) for word in behavior.words(row.params).values()]
        for word in words:
            need(says(text, word), f"it does not tell {word!r}")
        own = fold(text.replace(closing(), ""))
        need(fold(behavior.name.replace("_", " ")) not in own, "it names the behavior")
        for key, value in row.params.items():
            if key not in behavior.told and isinstance(value, str) and len(value) >= _DISTINCTIVE:
                inside = any(says(word, value) for word in words)
                need(inside or not says(own, value), f"it tells {key}, which is not in told")
        problems = behavior.problems(Situation(row, case.manual))
        need(not problems, "; ".join(problems))
    return f"at most {longest} characters"


def _rule_check(behavior: Behavior, cases: Sequence[Situation]) -> str:
    scores: list[float | None] = []
    for number, case in enumerate(_playing(behavior, cases)[:24]):
        row = with_behavior(case, behavior, generator(number, "check"))
        played = Situation(row, case.manual)
        for turns in _transcripts(row, number):
            score = behavior.check(turns, played, row.params)
            need(score == behavior.check(turns, played, row.params), "it scores differently twice")
            need(score is None or 0 <= score <= 1, f"a score of {score!r}")
            need(score is None or behavior.has_check, "it scores although has_check is false")
            unsaid = [turn for turn in turns if turn.role is Role.AGENT]
            silent = behavior.check(unsaid, played, row.params)
            need(not silent, f"{silent!r} for a customer who said nothing")
            scores.append(score)
    if not behavior.has_check:
        return "none"
    need(any(score is not None for score in scores), "it never scores anything")
    return f"{len(scores)} transcripts scored"


def _transcripts(row: Row, number: int) -> list[list[PublicMessage]]:
    """Return nothing, chatter, and everything the customer knows, in turns."""
    rng = generator(number, "transcripts")
    agent = [
        "What is your order number?",
        "I am sorry, that is not possible.",
        "Could you tell me your full name, zip code and membership level?",
    ]
    chatter = [
        PublicMessage(Role.AGENT, rng.choice(agent)) if odd else PublicMessage(Role.USER, line)
        for line in rng.sample(_LINES, len(_LINES))
        for odd in (True, False)
    ]
    everything = ", ".join(str(value) for value in row.record.values())
    return [[], chatter, [*chatter, PublicMessage(Role.USER, everything)]]


def _dialogues(behavior: Behavior, dialogues: Sequence[Dialogue]) -> str:
    for one in dialogues:
        score = behavior.check(list(one.turns), one.case, one.params)
        same = score is one.expected or (
            None not in (score, one.expected) and abs((score or 0) - (one.expected or 0)) < 1e-6
        )
        need(same, f"{one.id}: {score!r} instead of {one.expected!r}")
    return f"{len(dialogues)} dialogues"
