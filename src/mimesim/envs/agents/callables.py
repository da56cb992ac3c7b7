"""A Python callable as an agent: `python:<module:callable>`.

Arguments are chosen by name from the signature: `messages` (the public history in OpenAI form) or
one of `message`, `input`, `text` (the last user text), and any of the optional names below. A
signature that cannot be served is found before anything runs. Functions run in a thread, coroutines
in the loop (`users.calling`); what they raise is the agent's failure, never somebody's words.
"""

from __future__ import annotations

import asyncio
import copy
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mimesim.dialogue import views
from mimesim.dialogue.types import Identity, PublicMessage, Role
from mimesim.envs.actions import ActionFormat
from mimesim.envs.agents.answers import read_answer
from mimesim.envs.agents.prompting import system_text
from mimesim.envs.base import Agent, AgentMove, AgentSource, AgentView, GymSpec, Task, profile_of
from mimesim.envs.load import NO_GYM, gym_spec
from mimesim.errors import AgentError, UnknownNameError, UsageError
from mimesim.users.calling import call

HISTORY = "messages"
LAST_TEXT = ("message", "input", "text")
_SOURCE = ("identity", "start", "aclose")
OPTIONAL = ("conversation_id", "thread_id", "session_id", "turn", "context", "tools")


@dataclass(frozen=True, slots=True)
class Plan:
    """Which arguments a callable takes."""

    names: tuple[str, ...]


def plan_arguments(target: Callable[..., Any], name: str) -> Plan:
    """Decide from the signature which arguments to pass.

    Raises:
        UsageError: it takes both the history and the last text, neither, or something unknown.
    """
    known = (HISTORY, *LAST_TEXT, *OPTIONAL)
    chosen: list[str] = []
    takes_all = False
    for parameter in inspect.signature(target).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_all = True
        elif parameter.kind is parameter.VAR_POSITIONAL:
            continue
        elif parameter.name in known and parameter.kind is not parameter.POSITIONAL_ONLY:
            chosen.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise _signature_error(name, f"it requires {parameter.name!r}")
    inputs = [n for n in chosen if n == HISTORY or n in LAST_TEXT]
    if len(inputs) > 1:
        raise _signature_error(name, f"it takes {' and '.join(inputs)}")
    if not inputs and not takes_all:
        raise _signature_error(name, "it takes neither the history nor the last text")
    if takes_all:
        chosen += [n for n in ((HISTORY,) if not inputs else ()) + OPTIONAL if n not in chosen]
    return Plan(tuple(chosen))


def _signature_error(name: str, what: str) -> UsageError:
    return UsageError(
        f"agent {name!r} has an unusable signature: {what}",
        expected=f"either {HISTORY!r} or one of {', '.join(LAST_TEXT)}; optional "
        + ", ".join(OPTIONAL),
        mend="rename the parameters, or give the others defaults",
    )


def make_python(
    rest: str, action_format: ActionFormat, options: Mapping[str, Any] | None
) -> AgentSource:
    """Make the agent behind `module:callable`; a class is instantiated once per conversation.

    Raises:
        UnknownNameError: it cannot be imported.
        UsageError: it is not callable or its signature cannot be served.
    """
    if options:
        raise UsageError(f"agent 'python:{rest}' takes no options")
    return CallableAgents(_import(rest), name=f"python:{rest}", action_format=action_format)


def given_agent(target: Any, action_format: ActionFormat) -> AgentSource:
    """Return the source of an agent that is here as an object: a source, a class, or a callable.

    Raises:
        UsageError: it is none of them, or its signature cannot be served.
    """
    if not inspect.isclass(target) and all(hasattr(target, name) for name in _SOURCE):
        source: AgentSource = target
        return source
    named = target if inspect.isroutine(target) or inspect.isclass(target) else type(target)
    name = f"python:{named.__module__}:{named.__qualname__}"
    return CallableAgents(target, name=name, action_format=action_format)


def _import(path: str) -> Any:
    module, _, attribute = path.partition(":")
    if not module or not attribute.isidentifier():
        raise UsageError(f"agent 'python:{path}' is incomplete", expected="python:module:callable")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does, so that a bot beside the shell is found
    try:
        return getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:  # a script that ends itself on import
        raise UnknownNameError(
            f"agent 'python:{path}' cannot be loaded: {type(error).__name__}: {error}",
            expected="an importable module:callable",
        ) from error


class CallableAgents:
    """Makes one agent per conversation from a callable, a class, or an object with `reply`."""

    def __init__(self, target: Any, *, name: str, action_format: ActionFormat) -> None:
        self.identity = Identity("callable", name)
        self._target = target
        self._format = action_format
        self._plan = plan_arguments(_function(target, name), name)
        if inspect.isclass(target):
            _refuse_needs(target, name)

    def start(self, *, task: Task, seed: int, key: str) -> Agent:
        """Make the agent of one conversation.

        Raises:
            AgentError: the class could not be made.
        """
        name = self.identity.name
        try:
            made = self._target() if inspect.isclass(self._target) else self._target
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            raise AgentError(f"{type(error).__name__}: {error}") from error
        spec = gym_spec(task.gym, profile_of(task))
        call = Call(_function(made, name), self._plan, key, copy.deepcopy(dict(task.public)))
        return CallableAgent(call, self._format, spec)

    async def aclose(self) -> None:
        """Release nothing."""


def _function(target: Any, name: str) -> Callable[..., Any]:
    """Return the bound thing to call; for a class, of an unbound look at its methods."""
    found = getattr(target, "reply", None)
    if inspect.isclass(target):
        method = found or _own_call(target)
        if method is None:
            raise UsageError(f"agent {name!r}: the class has neither reply nor __call__")
        return _without_self(method)
    if found is None and not callable(target):
        raise UsageError(f"agent {name!r} is no callable and has no method 'reply'")
    return found or target  # type: ignore[no-any-return]


def _refuse_needs(kind: type, name: str) -> None:
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):  # of a built-in one nothing is known
        return
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.kind not in variadic:
            raise UsageError(
                f"agent {name!r}: the class needs {parameter.name!r} to be made",
                expected="a class that is made without arguments, anew for each conversation",
                mend="give it a default, or name an object or a function",
            )


def _own_call(kind: type) -> Callable[..., Any] | None:
    """Return the `__call__` of instances (a plain look-up would find the one of the class)."""
    owners = [owner for owner in kind.__mro__ if "__call__" in owner.__dict__]
    return owners[0].__dict__["__call__"] if owners else None


def _without_self(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)
    rest = list(signature.parameters.values())[1:]

    def unbound(**arguments: Any) -> None:
        raise AssertionError("looked at, never called")

    unbound.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
    return unbound


@dataclass(frozen=True, slots=True)
class Call:
    """A callable with what is the same in each of its calls of one conversation."""

    function: Callable[..., Any]
    plan: Plan
    conversation_id: str
    context: Mapping[str, Any]

    async def __call__(
        self, messages: list[dict[str, Any]], turn: int, tools: Sequence[Any]
    ) -> Any:
        """Call with fresh copies, so that nothing the callable changes is seen again.

        Raises:
            AgentError: whatever the callable raised.
        """
        last = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
        values = {
            HISTORY: messages,
            **dict.fromkeys(LAST_TEXT, last),
            **dict.fromkeys(OPTIONAL[:3], self.conversation_id),
            "turn": turn,
            "context": copy.deepcopy(self.context),
            "tools": copy.deepcopy(list(tools)),
        }
        arguments = {name: values[name] for name in self.plan.names}
        return await call(partial(self.function, **arguments), AgentError)


class CallableAgent:
    """One conversation of a callable."""

    def __init__(self, call: Call, action_format: ActionFormat, spec: GymSpec) -> None:
        self._call = call
        self._format = action_format
        self._spec = spec

    async def act(self, view: AgentView) -> AgentMove:
        """Call and read the answer; the driver asks once more for an empty one.

        Raises:
            AgentError: the callable raised, or returned what is no text.
        """
        tools = self._format.tool_schema(self._spec)
        answer = await self._call(self._messages(view), view.step, tools)
        return read_answer(answer, self._spec)

    async def aclose(self) -> None:
        """Release nothing."""

    def _messages(self, view: AgentView) -> list[dict[str, Any]]:
        opening = PublicMessage(Role.USER, view.observation.first_user)
        talk = self._spec.name == NO_GYM  # no actions to explain: an agent has its own words for it
        system = view.observation.system if talk else system_text(view, self._format, self._spec)
        rows = views.as_agent((opening, *view.messages), system=system)
        return [_openai_form(row) for row in rows]


def _openai_form(row: views.WireMessage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": row.role, "content": row.content}
    if row.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in row.tool_calls
        ]
    if row.tool_call_id is not None:
        message["tool_call_id"] = row.tool_call_id
    return message
