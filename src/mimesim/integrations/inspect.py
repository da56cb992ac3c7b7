"""Inspect: our user as an agent, and a solver in which it talks to the model under test.

Tested with inspect-ai 0.3.285. As a model, our user is served by `mimesim serve` like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mimesim.integrations.visits import Person, Visit, Visits, missing, person_of
from mimesim.seeds import derive
from mimesim.users.base import UserSource

try:
    from inspect_ai.agent import Agent, AgentState, agent, run
    from inspect_ai.model import ChatMessage, ChatMessageUser
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.util import store
except ModuleNotFoundError as error:
    raise missing("Inspect", "inspect", "inspect-ai 0.3.285") from error

STOP = "mimesim_stop"
"""Key of the sample's store under which the reason of the end lies; "" = it goes on."""
People = Callable[[TaskState], Person]
"""Sample -> who its user is."""


@agent  # type: ignore[untyped-decorator]
def mimesim_user(
    person: Person, user: str | UserSource | Visits = "scripted:neutral", **settings: Any
) -> Agent:
    """Make our user an agent of Inspect; it adds its words, or nothing once it has left.

    One such agent is one person in one conversation: make it inside of a solver. When the
    conversation is over, the sample's store says why under `STOP`.

    Args:
        person: who the user is.
        user: door name or source, or `visits.Visits`, which many conversations share.
        settings: see `visits.Visits`.
    """
    visits = user if isinstance(user, Visits) else Visits(user, **settings)
    return _spoken_by(visits.visit(person))


@solver  # type: ignore[untyped-decorator]
def conversation(
    user: str | UserSource = "scripted:neutral",
    *,
    people: People | None = None,
    agent: Agent | None = None,
    max_turns: int = 20,
    **settings: Any,
) -> Solver:
    """Make a solver in which the user opens, and user and agent take turns until the user is done.

    A user that failed is the sample's error, which Inspect does not score.

    Args:
        user: door name or source.
        people: makes the person of a sample; None = `scenario` of its metadata, or its input as the
            goal. The input is the user's knowledge, so it does not reach the agent.
        agent: who answers; None = the model under test.
        max_turns: messages of the user.
        settings: see `visits.Visits`.
    """
    visits = Visits(user, **settings)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        visit = visits.visit((people or _person)(state), seed=_seed(visits, state))
        speak = _spoken_by(visit)
        state.messages = [m for m in state.messages if m.role == "system"]
        for _ in range(max_turns):
            talk = await speak(AgentState(messages=list(state.messages)))
            if len(talk.messages) == len(state.messages):
                return state
            state.messages = list(talk.messages)
            if agent is None:
                state = await generate(state)
            else:
                answered = await run(agent, state.messages)
                state.messages, state.output = list(answered.messages), answered.output
            if state.completed:
                break
        store().set(STOP, visit.stop or "max_turns")
        return state

    return solve


def _spoken_by(visit: Visit) -> Agent:
    async def execute(state: AgentState) -> AgentState:
        said = await visit.aturn([_plain(message) for message in state.messages])
        store().set(STOP, visit.stop)
        if said.text:
            state.messages.append(ChatMessageUser(content=said.text, source="generate"))
        return state

    return execute


def _person(state: TaskState) -> Person:
    known = state.metadata.get("scenario")
    return known if known else person_of(state.input_text, name=str(state.sample_id))


def _seed(visits: Visits, state: TaskState) -> int:
    return derive(visits.seed, "inspect", str(state.sample_id), state.epoch)


def _plain(message: ChatMessage) -> dict[str, str]:
    """Return role and words; Inspect keeps reasoning in parts of its own."""
    return {"role": message.role, "content": message.text}
