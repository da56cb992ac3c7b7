"""Who grades in training: rules, one fixed model, or each user's own model (`judge = "self"`).

With the last one a change of the user changes the reward as well; that is how the published runs
were graded. Records say which of them it was, so their numbers are not taken for one another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mimesim.config import from_options
from mimesim.errors import ConfigError
from mimesim.judges.base import Judge
from mimesim.judges.load import SELF, make_judge
from mimesim.judges.rubric import JudgeSettings, RubricJudge
from mimesim.train.collect import World
from mimesim.users.base import UserSource
from mimesim.users.load import is_scripted
from mimesim.users.mixture import Mixture
from mimesim.users.sources import SimulatorSource


def fixed_judge(name: str, options: Mapping[str, Any]) -> Judge:
    """Return the one judge of all conversations.

    Raises:
        UsageError: a name that nobody has, or an option that it does not take.
    """
    return make_judge(name, options=options or None)


def own_judges(user: UserSource | Mixture, options: Mapping[str, Any]) -> dict[str, Judge]:
    """Return user name -> its own model as its judge; a scripted user is graded by the rules.

    Args:
        user: one or several.
        options: fields of `judges.rubric.JudgeSettings`.

    Raises:
        ConfigError: no model is known behind a user, or an option is unusable.
    """
    sources = user.sources if isinstance(user, Mixture) else (user,)
    return {source.identity.name: _own(source, options) for source in sources}


def _own(source: UserSource, options: Mapping[str, Any]) -> Judge:
    name = source.identity.name
    if is_scripted(name):
        return make_judge("rule")
    if not isinstance(source, SimulatorSource):
        raise ConfigError(
            f"'judge' is {SELF!r}, but no model is known behind the user {name!r}",
            expected="a user that is a model, or a judge by name",
        )
    settings = from_options(JudgeSettings, options, where="judge_options")
    return RubricJudge(source.model, name=f"{SELF}:{name}", settings=settings)


def judge_mode(worlds: Iterable[World]) -> str:
    """Return rule, fixed or self, as an evaluation has it; none where nobody grades."""
    found: set[str] = set()
    for world in worlds:
        own = SELF if world.own_judges else "fixed"
        found |= {own if judge.identity.kind == "llm" else "rule" for judge in world.judges}
    return ", ".join(sorted(found)) or "none"
