"""Agents written for the full desk: oracle, null, eager, patient.

All but the oracle know the manual, which is the agent's to know, and read public text only. They
work through the request's procedure, decide by the limits, and close.
"""

from __future__ import annotations

from collections.abc import Mapping

from mimesim import jsonio
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.envs.base import AgentAction, AgentMove, AgentView, Choice, Task
from mimesim.envs.gyms.support_desk import reading
from mimesim.envs.gyms.support_desk.case import read_case
from mimesim.envs.gyms.support_desk.scoring import ABANDONED, DENIED, ESCALATED, GRANTED, Call
from mimesim.envs.gyms.support_desk.texts import LEFT
from mimesim.envs.gyms.support_desk.tools import CLOSE
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.fields import says_field
from mimesim.scenarios.limits import holds
from mimesim.scenarios.procedure import HANDOVER_SLOTS, HANDOVER_TOOL
from mimesim.scenarios.records import load_pools
from mimesim.scenarios.types import RequestType, Step

MOVES = (
    ("action", "Could you tell me the order number?"),
    ("action", "Could you tell me the email address and the zip code?"),
    ("action", "I am afraid that is not possible."),
    ("search", "tools"),
    ("search", "policy"),
    *(
        ("answer", jsonio.dumps({"name": CLOSE, "arguments": {"resolution": r, "summary": ""}}))
        for r in (GRANTED, DENIED, ESCALATED, ABANDONED)
    ),
)
"""What a random agent draws from: it asks, reads and closes, and never uses what it hears."""
_BEFORE_VERDICT = ("identity", "check", "record")


class Clerk:
    """Works a case through: asks for what is missing, calls the tools, decides, closes.

    Attributes:
        max_asks: how often a field is asked for before it is given up.
    """

    max_asks = 1

    def __init__(self, task: Task, seed: int) -> None:
        self._manual = manuals.load(str(task.meta.get("manual", "company")))
        self._pools = load_pools(self._manual.name)
        self._flow = str(task.public["flow"])
        self._facts: dict[str, str] = {"as_of": str(task.public["as_of"])}
        self._asks: dict[str, int] = {}
        self._made: list[Call] = []
        self._errand = self._manual.request_types[0]
        self._heard = ""
        self._question = ""
        self._read = 0
        self._left = False
        self._verified = False

    async def act(self, view: AgentView) -> AgentMove:
        """Choose the next move."""
        if not self._heard:
            self._hear(PublicMessage(Role.USER, view.observation.first_user))
        for message in view.messages[self._read :]:
            self._hear(message)
        self._read = len(view.messages)
        self._errand = self._guess()
        if self._left:
            return self._close(self._verdict() if self._verified else ABANDONED)
        if view.steps_left == 1:
            return self._close(self._verdict() if self._verified else ESCALATED)
        missing = self._missing()
        if missing:
            return self._ask(missing)
        if not set(self._errand.identity) <= set(self._facts):
            return self._close(ESCALATED)
        step = self._next_call()
        return self._do(step) if step else self._close(self._verdict())

    async def aclose(self) -> None:
        """Release nothing."""

    def _guess(self) -> RequestType:
        return reading.guess_request(self._heard, self._flow, self._manual)

    def _hear(self, message: PublicMessage) -> None:
        if message.role is Role.USER:
            self._heard = f"{self._heard}\n{message.content}"
            self._learn(message.content)
        elif message.role is Role.TOOL:
            self._left = self._left or message.content == LEFT
            self._facts.update(reading.read_result(message.content))
            self._take_result(message.content)

    def _learn(self, text: str) -> None:
        self._facts.update(reading.read_values(text, self._question, self._pools))

    def _take_result(self, text: str) -> None:
        """Note whether the last call identified the customer, or showed a value to be wrong."""
        if not self._made or not text.startswith(self._made[-1].name):
            return
        call = self._made[-1]
        if "no match" not in text:
            self._verified = self._verified or call.name == "verify-identity"
        elif self._asks.get(next(iter(call.arguments)), 0) < self.max_asks:
            for slot in call.arguments:
                self._facts.pop(slot, None)
            self._made.pop()

    def _missing(self) -> tuple[str, ...]:
        return tuple(
            name
            for name in self._errand.required
            if name not in self._facts and self._asks.get(name, 0) < self.max_asks
        )

    def _ask(self, names: tuple[str, ...]) -> AgentMove:
        for name in names:
            self._asks[name] = self._asks.get(name, 0) + 1
        self._question = reading.question_for(names)
        return AgentMove(self._question, AgentAction(Choice.ACTION, self._question))

    def _verdict(self) -> str:
        """Decide by the limits whose facts are known; a refusal outranks a hand-over."""
        outcomes = {
            limit.outcome
            for limit in self._manual.limits_of(self._errand.name)
            if reading.known_limits(self._facts, limit.reads)
            and holds(limit, self._facts, self._facts)
        }
        return DENIED if DENIED in outcomes else ESCALATED if ESCALATED in outcomes else GRANTED

    def _next_call(self) -> Call | None:
        """Return the next call of the procedure that was not made yet."""
        made = {call.name for call in self._made}
        for step in self._errand.procedure:
            early = self._manual.tool(step.tool).kind in _BEFORE_VERDICT
            if step.tool in made or not set(step.fields) <= set(self._facts):
                continue
            if early or self._verdict() == GRANTED:
                return Call(step.tool, self._slots(step))
        if self._verdict() == ESCALATED and HANDOVER_TOOL not in made:
            return Call(HANDOVER_TOOL, HANDOVER_SLOTS)
        return None

    def _slots(self, step: Step) -> Mapping[str, str]:
        return {
            slot: step.fixed[slot]
            if slot in step.fixed
            else self._facts[step.sources.get(slot, slot)]
            for slot in step.slots
        }

    def _do(self, call: Call) -> AgentMove:
        self._made.append(call)
        return _answer(call)

    def _close(self, resolution: str) -> AgentMove:
        return _answer(Call(CLOSE, {"resolution": resolution, "summary": "closed by rule"}))


class EagerAgent(Clerk):
    """Asks once for everything, then acts on what it has."""


class PatientAgent(Clerk):
    """Asks until it has everything, three times at most for one field."""

    max_asks = 3


class OracleAgent(Clerk):
    """Knows the hidden side: the request, the verdict, the gold procedure. It still has to ask."""

    max_asks = 3

    def __init__(self, task: Task, seed: int) -> None:
        super().__init__(task, seed)
        self._case = read_case(task)

    def _guess(self) -> RequestType:
        return self._case.request

    def _learn(self, text: str) -> None:
        truth = self._case.truth({})
        for name in self._case.required:
            spoken = f"{self._question} {text}" if len(truth[name]) <= 3 else text
            if says_field(spoken, name, truth[name]):
                self._facts[name] = truth[name]

    def _missing(self) -> tuple[str, ...]:
        needed = set(self._case.required)
        return tuple(name for name in super()._missing() if name in needed)

    def _verdict(self) -> str:
        return self._case.verdict

    def _next_call(self) -> Call | None:
        for step in self._case.steps[len(self._made) :]:
            return step
        return None

    def _take_result(self, text: str) -> None:
        if "no match" not in text and self._made and text.startswith("verify-identity"):
            self._verified = True


class NullAgent:
    """Closes the case at once, refusing it."""

    def __init__(self, task: Task, seed: int) -> None:
        """Take nothing from the task."""

    async def act(self, view: AgentView) -> AgentMove:
        """Close."""
        return _answer(Call(CLOSE, {"resolution": DENIED, "summary": ""}))

    async def aclose(self) -> None:
        """Release nothing."""


def _answer(call: Call) -> AgentMove:
    content = jsonio.dumps({"name": call.name, "arguments": dict(call.arguments)})
    return AgentMove(content, AgentAction(Choice.ANSWER, content))
