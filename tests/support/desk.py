"""A hand-written customer and a fixed desk task for tests of the support desk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mimesim.dialogue.stop import UserAction
from mimesim.dialogue.types import Reply, Thought
from mimesim.envs.base import AgentAction, Choice, StepResult, Task
from mimesim.envs.gyms.support_desk.full import FullDesk
from mimesim.envs.gyms.support_desk.full_tasks import task_of
from mimesim.jsonio import dumps
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.types import Row
from mimesim.users.base import User, UserRequest

RECORD: dict[str, Any] = {
    "customer_name": "ida bram",
    "username": "ibram77",
    "email": "ibram77@brookmail.test",
    "phone": "(415) 555-0142",
    "street_address": "4411 harrow lane",
    "city": "Selby",
    "state": "OR",
    "zip_code": "20417",
    "full_address": "4411 harrow lane, Selby, OR 20417",
    "member_level": "bronze",
    "order_id": "5512093381",
    "purchase_date": "2026-03-01",
    "payment_method": "debit card",
    "packaging": "yes",
    "product_names": ["tin lantern"],
    "product_amounts": [85],
    "num_products": "1",
    "amount": "85",
    "refund_target": "gift card",
}
ENV = {"as_of": "2026-03-11", "receipt": "yes", "clearance": "no"}
GOLD = (
    ("pull-up-account", {"customer_name": "ida bram"}),
    ("verify-identity", {"order_id": "5512093381", "zip_code": "20417"}),
    ("record-reason", {"reason": "wrong size"}),
    ("offer-refund", {"amount": "85", "refund_target": "gift card"}),
)
REQUIRED = ("customer_name", "order_id", "email", "zip_code")
CANARY = "canary-thought-7731"


def desk_task(
    *,
    verdict: str = "granted",
    record: Mapping[str, Any] | None = None,
    gold: Sequence[tuple[str, Mapping[str, str]]] = GOLD,
    required: Sequence[str] = REQUIRED,
) -> Task:
    """The task of the golden cases: four required fields, four gold steps."""
    row = Row(
        record={**RECORD, **(record or {})},
        env=ENV,
        flow="returns",
        subflow="return_wrong_size",
        behavior=None,
        params={},
        directive="",
        seed=1,
        index=0,
        split="test",
    )
    task = task_of(row, manuals.load())
    scenario = dict(task.scenario)
    scenario["success"] = {
        "verdict": verdict,
        "required": list(required),
        "gold": [{"tool": tool, "slots": dict(slots)} for tool, slots in gold],
    }
    return replace(task, hidden={**task.hidden, "scenario": scenario})


class Customer:
    """Answers what it is asked from `facts`; `replies` override the n-th answer (0 = opening)."""

    def __init__(
        self,
        facts: Mapping[str, Any] | None = None,
        *,
        withheld: Sequence[str] = (),
        replies: Mapping[int, Reply | Exception] | None = None,
    ) -> None:
        self.facts = {**RECORD, **(facts or {})}
        self.withheld = tuple(withheld)
        self.replies = dict(replies or {})
        self.turn = 0
        self.requests: list[UserRequest] = []

    async def respond(self, request: UserRequest) -> Reply:
        self.requests.append(request)
        turn, self.turn = self.turn, self.turn + 1
        planned = self.replies.get(turn)
        if isinstance(planned, Exception):
            self.replies.pop(turn)  # fails once
            raise planned
        if planned is not None:
            return planned
        told = [
            f"my {name.replace('_', ' ')} is {self.facts[name]}"
            for name in request.asked_fields
            if name in self.facts and name not in self.withheld
        ]
        words = ". ".join(told) or ("hello, it does not fit" if turn == 0 else "hm, i see")
        return Reply(Thought(CANARY), words)

    def snapshot(self) -> dict[str, Any]:
        return {"turn": self.turn}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.turn = state["turn"]


def says(text: str, action: UserAction = UserAction.SAY, **wish: str) -> Reply:
    return Reply(Thought(CANARY), text, action, wish=wish)


def say(text: str) -> AgentAction:
    return AgentAction(Choice.ACTION, text)


def call(name: str, **arguments: Any) -> AgentAction:
    return AgentAction(Choice.ANSWER, dumps({"name": name, "arguments": arguments}))


def close(resolution: str) -> AgentAction:
    return call("close_case", resolution=resolution, summary="done")


PULL = call("pull-up-account", customer_name="Ida Bram")
VERIFY = call("verify-identity", customer_name="ida bram", order_id="5512093381", zip_code="20417")
REASON = call("record-reason", reason="wrong size")
REFUND = call("offer-refund", amount=85, refund_target="gift card")
ASK_ALL = say("Please tell me your full name, order number, zip code and e-mail?")


async def start(user: User, task: Task | None = None, seed: int = 5) -> FullDesk:
    """A desk after its opening."""
    desk = FullDesk(user=user)
    await desk.reset(task or desk_task(), seed=seed)
    return desk


async def play(desk: FullDesk, *actions: AgentAction) -> list[StepResult]:
    """Execute the actions in order."""
    return [await desk.step(action) for action in actions]
