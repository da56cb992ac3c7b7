"""The hidden side of a task of `tau`, read strictly, and the domain that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mimesim.envs.base import Task, profile_of
from mimesim.envs.gyms.tau import bench, world
from mimesim.envs.gyms.tau.customer import NEEDS, Errand
from mimesim.envs.gyms.tau.domain import Call, Domain, gold_digest
from mimesim.errors import DataError


@dataclass(frozen=True, slots=True)
class Hidden:
    """What the agent must not know.

    Attributes:
        instruction: who the customer is and what this person wants.
        actions: calls after which the database is right.
        outputs: texts that the agent must have said.
        ref: which of the domain's databases.
        errand: what the scripted customer of `mini` wants; None = it speaks from the instruction.
    """

    instruction: str
    actions: tuple[Call, ...]
    outputs: tuple[str, ...]
    ref: str = ""
    errand: Errand | None = None


def domain_of(task: Task) -> Domain:
    """Return the domain of a task.

    Raises:
        EnvironmentFault: it is one of tau-bench, whose checkout was not opened in this process.
        DataError: there is no such domain.
    """
    name = profile_of(task)
    if name == world.NAME:
        return world.shop()
    if name in bench.DOMAINS:
        return bench.opened_domain(name)
    raise DataError(
        f"public.profile is {name!r}",
        where=f"task {task.id!r}",
        expected=" or ".join([world.NAME, *bench.DOMAINS]),
    )


def read_hidden(task: Task, domain: Domain) -> Hidden:
    """Return the hidden side.

    Raises:
        DataError: it lacks something, or an episode could not use it.
    """
    where = f"task {task.id!r}"
    instruction = task.hidden.get("instruction")
    if not isinstance(instruction, str) or not instruction.strip():
        raise DataError(
            f"hidden.instruction is {instruction!r:.60}", where=where, expected="a text"
        )
    outputs = task.hidden.get("outputs")
    if not isinstance(outputs, list) or not all(isinstance(one, str) and one for one in outputs):
        raise DataError(
            f"hidden.outputs is {outputs!r:.60}", where=where, expected="a list of texts"
        )
    first = task.public.get("first_message", "")
    if not isinstance(first, str):
        raise DataError(f"public.first_message is {first!r:.60}", where=where, expected="a text")
    actions = _actions(task, domain, where)
    if domain.name != world.NAME:
        return Hidden(instruction, actions, tuple(outputs))
    hidden = Hidden(instruction, actions, tuple(outputs), _world(task, where), _errand(task, where))
    unmoved = gold_digest(domain, hidden.ref, ()) == gold_digest(domain, hidden.ref, actions)
    if unmoved and not outputs:
        raise DataError(
            "nothing has to be done or said: an agent that does nothing would win",
            where=where,
            expected="an action that changes the database, or a required output",
        )
    return hidden


def _actions(task: Task, domain: Domain, where: str) -> tuple[Call, ...]:
    actions = task.hidden.get("actions")
    if not isinstance(actions, list):
        raise DataError(f"hidden.actions is {actions!r:.60}", where=where, expected="a list")
    found = []
    for one in actions:
        name = one.get("name") if isinstance(one, Mapping) else None
        kwargs = one.get("kwargs") if isinstance(one, Mapping) else None
        if name not in domain.tools or not isinstance(kwargs, Mapping):
            raise DataError(
                f"hidden.actions holds {one!r:.80}",
                where=where,
                expected="objects of name (a tool) and kwargs (an object)",
            )
        found.append(Call(str(name), dict(kwargs)))
    return tuple(found)


def _world(task: Task, where: str) -> str:
    ref: Any = task.hidden.get("db_ref")
    if type(ref) is not int or not 0 <= ref < world.WORLDS:
        raise DataError(
            f"hidden.db_ref is {ref!r:.40}", where=where, expected=f"a number below {world.WORLDS}"
        )
    return str(ref)


def _errand(task: Task, where: str) -> Errand:
    script = task.hidden.get("script")
    intent = script.get("intent") if isinstance(script, Mapping) else None
    facts = script.get("facts") if isinstance(script, Mapping) else None
    if not isinstance(intent, str) or intent not in NEEDS or not isinstance(facts, Mapping):
        raise DataError(
            f"hidden.script is {script!r:.80}",
            where=where,
            expected="an object of intent (" + ", ".join(NEEDS) + ") and facts",
        )
    lost = [n for n in NEEDS[intent] if not isinstance(facts.get(n), str) or not facts[n]]
    if lost:
        raise DataError(f"hidden.script.facts lacks {lost[0]!r}", where=where, expected="a text")
    return Errand(intent, {str(key): str(value) for key, value in facts.items()})
