"""What a behavior is: definition, applicability, parameters, directive and check in one object.

The directive is what a customer is told before the conversation; the check reads the public
transcript afterwards. Checks are logged, never rewarded. They look at generated customer turns
only, fold curly quotes and match values on token boundaries.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.prompts import render
from mimesim.scenarios.fields import fold, says
from mimesim.scenarios.manual import read_toml
from mimesim.scenarios.procedure import required_fields
from mimesim.scenarios.types import Manual, RequestType, Row

_TAXONOMY = Path(__file__).with_name("taxonomy.toml")


@cache
def taxonomy() -> dict[str, Any]:
    """Return the taxonomy file: one table per behavior id."""
    return read_toml(_TAXONOMY)


@dataclass(frozen=True, slots=True)
class Situation:
    """A row with its manual, and what was already said before the customer's first own turn."""

    row: Row
    manual: Manual
    replayed: tuple[PublicMessage, ...] = ()

    @property
    def request(self) -> RequestType:
        """The row's request type."""
        return self.manual.request(self.row.subflow)

    @property
    def required(self) -> tuple[str, ...]:
        """Fields the agent must get hold of in this row."""
        return required_fields(self.row, self.manual)

    def disclosed(self, field: str) -> bool:
        """Tell whether the replayed turns already hold the field's value."""
        value = str(self.row.record.get(field, ""))
        return any(says(m.content, value) for m in self.replayed if m.role is Role.USER)


class Behavior:
    """One of the 13 behaviors; subclasses override what differs.

    `told` names the parameters that the customer is given, every other parameter stays out of the
    directive.
    """

    id: str = ""
    told: tuple[str, ...] = ()
    has_check: bool = False

    @property
    def name(self) -> str:
        """The code name, e.g. `self_contradiction`."""
        return str(taxonomy()[self.id]["name"])

    @property
    def definition(self) -> str:
        """What it is, in one sentence."""
        return str(taxonomy()[self.id]["definition"])

    @property
    def annotated(self) -> int:
        """How many of the 700 annotated instances were of this kind."""
        return int(taxonomy()[self.id]["annotated"])

    @property
    def neighbors(self) -> tuple[str, ...]:
        """Ids of behaviors it is easily taken for."""
        return tuple(taxonomy()[self.id]["neighbors"])

    @property
    def min_turns(self) -> int:
        """Customer turns it needs to unfold."""
        return int(taxonomy()[self.id]["min_turns"])

    @property
    def judge_sees_thoughts(self) -> bool:
        """Whether a judge may read the customer's thoughts for it."""
        return bool(taxonomy()[self.id].get("judge_sees_thoughts", False))

    @property
    def options(self) -> Mapping[str, str]:
        """Wordings its parameters are drawn from."""
        return dict(taxonomy()[self.id].get("options", {}))

    def fitting(self, case: Situation) -> list[str]:
        """Return the fields or options that fit `case`; a behavior without any returns none."""
        return []

    def applicable(self, case: Situation) -> bool:
        """Tell whether this behavior makes sense in `case`."""
        return True

    def derive_params(self, case: Situation, rng: random.Random) -> dict[str, Any]:
        """Draw the parameters for an applicable case."""
        return {}

    def directive(self, params: Mapping[str, Any]) -> str:
        """Return what the customer is told."""
        return render(f"behaviors/{self.name}", **self.words(params))

    def words(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the directive's template."""
        return {name: params[name] for name in self.told}

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        """Score the generated turns of a transcript in [0, 1]; None = no check, or no occasion."""
        return None


def customer_turns(turns: Sequence[PublicMessage]) -> list[str]:
    """Return the folded texts of the customer's turns."""
    return [fold(m.content) for m in turns if m.role is Role.USER]


def exchanges(turns: Sequence[PublicMessage]) -> list[tuple[str, str]]:
    """Return (agent text, next customer text), both folded, for every answered agent turn."""
    out: list[tuple[str, str]] = []
    heard: list[str] = []
    for message in turns:
        if message.role is Role.AGENT:
            heard.append(fold(message.content))
        elif message.role is Role.USER:
            if heard:
                out.append((" ".join(heard), fold(message.content)))
            heard = []
    return out
