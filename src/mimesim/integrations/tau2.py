"""tau2-bench: our user as a half-duplex user, and its command with this user known.

Tested with a checkout of sierra-research/tau2-bench at a2c0247 (tau2 1.0.1), which needs Python 3.12.
The package `tau2` of the public registry is about chemistry.

    python -m mimesim.integrations.tau2 run --domain airline --user mimesim --user-llm trained:out/user

The name of the user's model is the door name of our user, its arguments are the user's options.
A result with another user than tau2's own is not comparable with its published ones; every message
says who spoke.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from mimesim import __version__, jsonio
from mimesim.dialogue.stop import DIALECTS
from mimesim.errors import UsageError
from mimesim.integrations.visits import Visit, Visits, not_on_a_registry, person_of
from mimesim.scenarios.types import Scenario
from mimesim.users.load import is_scripted

_NEEDS = "a checkout of sierra-research/tau2-bench (tested with a2c0247), installed on Python 3.12"
try:
    from tau2.data_model.message import AssistantMessage, UserMessage
    from tau2.registry import registry
    from tau2.user.user_simulator_base import HalfDuplexUser, UserState
except ModuleNotFoundError as error:
    raise not_on_a_registry("tau2-bench", _NEEDS) from error

NAME = "mimesim"
DIALECT = "tau2"
_PARTS = ("Persona", "Instructions", "Domain", "Reason for call", "Known info", "Unknown info")
_SAMPLING = ("temperature", "seed", "user_tools")
"""Arguments of tau2 that a scripted user has no use for, or that are read here."""


class MimesimUser(HalfDuplexUser):
    """The user of one simulation; tau2 makes one for each.

    Args:
        instructions: the task's scenario; its parts are read where they are named.
        tools: tools of the user. Ours has none: a domain that gives some is refused, unless
            `llm_args` says `{"user_tools": "ignore"}` for tasks that can be done without.
        llm: door name of our user.
        llm_args: options of that user.

    Raises:
        UsageError: no such user, or the user is given tools.
    """

    def __init__(
        self,
        instructions: Any = None,
        tools: list[Any] | None = None,
        llm: str | None = None,
        llm_args: Mapping[str, Any] | None = None,
    ) -> None:
        given = dict(llm_args or {})
        if tools and given.get("user_tools") != "ignore":
            raise UsageError(
                "this domain gives the user tools, and ours has none",
                mend='pass {"user_tools": "ignore"} as user arguments if the tasks need none',
            )
        super().__init__(instructions=str(instructions or ""), tools=None)
        self.visit: Visit | None = None
        self._visits = _visits(llm or "", jsonio.dumps(given))
        self._seed = given.get("seed")

    def set_seed(self, seed: int) -> None:
        """Seed the conversation."""
        self._seed = seed

    def get_init_state(self, message_history: list[Any] | None = None) -> UserState:
        """Begin a conversation, where it begins or after a task's first messages."""
        person = scenario_of(self.instructions)
        self.visit = self._visits.visit(person, seed=self._seed, dialect=DIALECT)
        return UserState(system_messages=[], messages=list(message_history or []))

    def generate_next_message(
        self, message: Any, state: UserState
    ) -> tuple[UserMessage, UserState]:
        """Answer the agent: words, or the bare marker once the user has left and was answered.

        Raises:
            EpisodeError: the user failed; tau2 books no result then.
        """
        assert self.visit is not None, "tau2 asks for the initial state first"
        if not isinstance(message, AssistantMessage):
            raise UsageError("the user was sent the result of a tool, and has none")
        before = self.visit.session.usage.cost or 0.0
        state.messages.append(message)
        said = self.visit.turn([_plain(one) for one in state.messages])
        answer = UserMessage(
            role="user",
            content=said.worded(DIALECT),
            cost=(self.visit.session.usage.cost or 0.0) - before,
            raw_data={"simulator": NAME, "version": __version__, **self._who()},
        )
        state.messages.append(answer)
        return answer, state

    @classmethod
    def is_stop(cls, message: UserMessage) -> bool:
        """Tell whether a message is one of the bare markers."""
        return message.content in DIALECTS[DIALECT].values()

    def _who(self) -> dict[str, str]:
        assert self.visit is not None
        identity = self._visits.source.identity
        return {
            "user": identity.name,
            "prompt_hash": identity.prompt_hash,
            "stop": self.visit.stop,
        }


def scenario_of(instructions: str) -> Scenario:
    """Read a task's scenario, as tau2 writes it out, into a person.

    What the user wants, who it is, and how it shall act are told apart where the text has its usual
    headings; else all of it is the goal.
    """
    parts = _parts(instructions)
    goal = parts.get("Reason for call") or parts.get("Instructions") or instructions
    person = person_of(
        goal,
        name=goal[:80],
        persona=parts.get("Persona", ""),
        guidelines=parts.get("Task instructions", ""),
    ).to_json()
    if parts.get("Known info"):
        person["facts"] = {"known": parts["Known info"]}
    if parts.get("Unknown info"):
        person["unknown"] = [parts["Unknown info"]]
    return Scenario.from_json(person, "scenario of tau2")


def register(name: str = NAME) -> None:
    """Make the user known to tau2 under a name; twice is harmless."""
    if name not in registry.get_users():
        registry.register_user(MimesimUser, name)


def agent_gym(
    domain: str, task_id: str, user: str, options: Mapping[str, Any] | None = None
) -> Any:
    """Return tau2's `AgentGymEnv` with our user, which it does not take by name.

    Args:
        domain: of tau2.
        task_id: of one task.
        user: door name.
        options: of the user; see `MimesimUser`.
    """
    from tau2.gym.gym_agent import AgentGymEnv

    class WithOurUser(AgentGymEnv):
        def _get_user(self) -> MimesimUser:
            tools = None
            with suppress(ValueError):  # a domain whose users have none
                tools = self._get_environment().get_user_tools()
            scenario = self._get_task().user_scenario
            return MimesimUser(instructions=scenario, tools=tools, llm=user, llm_args=options)

    return WithOurUser(domain=domain, task_id=task_id)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command of tau2 with our user known to it."""
    from tau2.cli import main as theirs

    register()
    if arguments is not None:
        sys.argv = ["tau2", *arguments]
    theirs()


@cache
def _visits(name: str, options: str) -> Visits:
    """Make a kind of user once for all simulations of a run."""
    if not name:
        raise UsageError("no user is named", expected="--user-llm <user>, e.g. trained:out/user")
    given = jsonio.loads(options)
    unused = _SAMPLING if is_scripted(name) else _SAMPLING[1:]
    return Visits(name, options={k: v for k, v in given.items() if k not in unused} or None)


def _plain(message: Any) -> dict[str, Any]:
    return {"role": message.role, "content": message.content}


def _parts(text: str) -> dict[str, str]:
    """Return the text under each of tau2's headings, without its indents."""
    found: dict[str, list[str]] = {}
    here: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        name, colon, rest = bare.partition(":")
        if colon and name in (*_PARTS, "Task instructions"):
            here = found.setdefault(name, [])
            bare = rest.strip()
        if bare:
            here.append(bare)
    return {name: "\n".join(lines) for name, lines in found.items()}


if __name__ == "__main__":
    main()
