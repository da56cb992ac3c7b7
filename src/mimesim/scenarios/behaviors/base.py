"""What a behavior is: definition, applicability, parameters, directive and check in one object.

The directive is what a customer is told before the conversation; the check reads the public
transcript afterwards. Checks are logged, never rewarded. They look at generated customer turns
only, fold curly quotes and match values on token boundaries.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.errors import DataError
from mimesim.prompts import render
from mimesim.scenarios.fields import fold, says
from mimesim.scenarios.manual import read_toml
from mimesim.scenarios.procedure import required_fields
from mimesim.scenarios.replay import replayed
from mimesim.scenarios.types import Manual, RequestType, Row

_TAXONOMY = Path(__file__).with_name("taxonomy.toml")


@cache
def taxonomy() -> dict[str, Any]:
    """Return the taxonomy file: one table per behavior id, `neutral`, and `contrasts` by pair."""
    return read_toml(_TAXONOMY)


@dataclass(frozen=True, slots=True)
class Taxon:
    """What a behavior is called, what it is, and what it borders on.

    Attributes:
        name: code name, e.g. `self_contradiction`.
        definition: what it is, in one or two sentences; a judge is shown it.
        min_turns: customer turns it needs to unfold.
        contrasts: id of a neighbor, easily taken for it -> how to tell the two apart.
        annotated: how many of the 700 annotated instances were of this kind.
        judge_sees_thoughts: whether a judge may read the customer's thoughts for it.
        options: wordings its parameters are drawn from.
        applies, params, check, examples: for people: where it makes sense, what each parameter
            is, how the rule check scores (empty = there is none), lines of such a customer.
    """

    name: str
    definition: str
    min_turns: int
    contrasts: Mapping[str, str]
    applies: str = "always"
    params: Mapping[str, str] = field(default_factory=dict)
    check: str = ""
    examples: tuple[str, ...] = ()
    annotated: int = 0
    judge_sees_thoughts: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@cache
def taxon_of(behavior: str) -> Taxon:
    """Return what the taxonomy file says about one of the built-in behaviors.

    Raises:
        DataError: it says nothing, or leaves out how to tell a neighbor apart.
    """
    raw, pairs = taxonomy().get(behavior), taxonomy().get("contrasts", {})
    if raw is None:
        raise DataError(
            f"behavior {behavior!r} has no description",
            expected="taxon = Taxon(...) in its class, or a table of it in taxonomy.toml",
        )
    contrasts = {}
    for other in raw["neighbors"]:
        pair = next((p for p in (f"{behavior}/{other}", f"{other}/{behavior}") if p in pairs), None)
        if pair is None:
            raise DataError(
                f"neighbors {behavior} and {other} have no contrast",
                where=str(_TAXONOMY),
                expected=f'contrasts."{behavior}/{other}"',
            )
        contrasts[other] = str(pairs[pair])
    return Taxon(
        name=str(raw["name"]),
        definition=str(raw["definition"]),
        min_turns=int(raw["min_turns"]),
        contrasts=contrasts,
        applies=str(raw["applies"]),
        params=dict(raw["params"]),
        check=str(raw.get("check", "")),
        examples=tuple(raw["examples"]),
        annotated=int(raw["annotated"]),
        judge_sees_thoughts=bool(raw.get("judge_sees_thoughts", False)),
        options=dict(raw.get("options", {})),
    )


def neutral_definition() -> str:
    """Return what a judge of a neutral customer is shown as the definition."""
    return str(taxonomy()["neutral"]["definition"])


@dataclass(frozen=True, slots=True)
class Situation:
    """A row with its manual, and what was already said before the customer's first own turn."""

    row: Row
    manual: Manual
    replayed: tuple[PublicMessage, ...] = ()

    @classmethod
    def of(cls, row: Row, manual: Manual) -> Situation:
        """Return the situation of a row, the identity check that it replays included."""
        return cls(row, manual, replayed(row, manual))

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
    """One way of being difficult; subclasses override what differs.

    A built-in behavior is described by the taxonomy file and worded by the prompt template of its
    name. One of an extension sets `taxon` and overrides `directive`; everything about it then
    stands in one file.

    Attributes:
        id: short name, B1 to B13; the name of the entry point for an extension.
        taxon: its description; None = the taxonomy file has it.
        told: the parameters that the customer is given; every other one stays out of the directive.
        has_check: whether `check` scores anything.
    """

    id: str = ""
    taxon: Taxon | None = None
    told: tuple[str, ...] = ()
    has_check: bool = False

    @property
    def described(self) -> Taxon:
        """What it is called, what it is, what it borders on."""
        return self.taxon or taxon_of(self.id)

    @property
    def name(self) -> str:
        """The code name, e.g. `self_contradiction`."""
        return self.described.name

    @property
    def definition(self) -> str:
        """What it is, in one or two sentences."""
        return self.described.definition

    @property
    def annotated(self) -> int:
        """How many of the 700 annotated instances were of this kind."""
        return self.described.annotated

    @property
    def neighbors(self) -> tuple[str, ...]:
        """Ids of behaviors it is easily taken for."""
        return tuple(self.described.contrasts)

    @property
    def min_turns(self) -> int:
        """Customer turns it needs to unfold."""
        return self.described.min_turns

    @property
    def judge_sees_thoughts(self) -> bool:
        """Whether a judge may read the customer's thoughts for it."""
        return self.described.judge_sees_thoughts

    @property
    def options(self) -> Mapping[str, str]:
        """Wordings its parameters are drawn from."""
        return self.described.options

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

    def problems(self, case: Situation) -> list[str]:
        """Return what is wrong with the parameters of a row; those of an extension check here."""
        return []

    def check(
        self, turns: Sequence[PublicMessage], case: Situation, params: Mapping[str, Any]
    ) -> float | None:
        """Score the generated turns of a transcript in [0, 1]; None = no check, or no occasion."""
        return None


def closing() -> str:
    """Return the sentence that every directive ends with."""
    return render("behaviors/closing")


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
