"""The behavior task: a grounded customer with at most one of the 13 behaviors, a third of them neutral.

A row is a composed case (`scenarios.views`). The identity check is replayed before the policy speaks,
so that the budget goes into the errand. The support agent has the real policy and sees only what was
said; the judge decides once, at the end. Checks, gaps and faults of the format are logged.

Modes: `fixed` for evaluation; `train` closes the format gate, `train-thinking` also on messages
without a thought; `compat` and `compat-train` pay 0 where the judge failed, as the original does.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, Field

from mimesim import prompts, seeds
from mimesim.corpora.base import Unfit
from mimesim.dialogue.stop import END_MARKER, UserAction, read_marker
from mimesim.dialogue.types import PublicMessage, Reply, Role
from mimesim.envs.base import Observation, Task
from mimesim.envs.tasks.base import (
    PACKS,
    POLICY,
    Line,
    Opening,
    Reaction,
    Row,
    Scene,
    Score,
    TaskInfo,
    UserTask,
)
from mimesim.envs.tasks.behavior_agent import agent_prompt, rule_reply, tidy_reply
from mimesim.envs.tasks.behavior_player import customer_line
from mimesim.envs.tasks.behavior_reward import (
    check_gap,
    format_faults,
    paid,
    thought_cites_directive,
)
from mimesim.envs.tasks.partner import PartnerRequest
from mimesim.envs.tasks.talk import as_partner
from mimesim.errors import UsageError
from mimesim.judges.base import JudgeRequest
from mimesim.judges.behavior import Performance, Said, Verdict, question
from mimesim.scenarios import behaviors, manual
from mimesim.scenarios.behaviors import Situation
from mimesim.scenarios.rows import row_to_scenario
from mimesim.scenarios.types import Manual
from mimesim.scenarios.types import Row as Case
from mimesim.scenarios.views import from_view

TURNS = 16
"""Most messages of a customer, whatever a row's budget."""
_AGENT = "agent"
_COMPAT, _TRAIN = "compat", "train"
_THINKING = ("train-thinking", "compat-train")
"""Modes in which every message must have a thought."""


class BehaviorRow(BaseModel):
    """Fields of one row, see `scenarios.views`; the original keeps four of them as JSON text."""

    scenario: Any
    env: Any
    behavior_ids: Any
    kwargs: Any
    flow: str = Field(min_length=1)
    subflow: str = Field(min_length=1)
    turn_budget: int = Field(default=8, ge=1)
    index: int = 0
    seed: int = 0
    source: str = "composed"
    split: str | None = None
    replay: str = "identity"
    manual: str = "company"


class BehaviorTask(UserTask[BehaviorRow]):
    """A customer against a support agent, judged by how the behavior was played."""

    info = TaskInfo(
        "behavior",
        "EXTRA",
        "be a customer of a support desk, difficult in one given way or not at all",
        "one message; the end marker to leave",
        PACKS / "behavior.jsonl",
        sources=("usersim_behavior",),
        judge_free=False,
        needs_partner=True,
        turns=TURNS,
        floor=0.0227,
        ceiling=1.0,
        modes=("fixed", _TRAIN, "train-thinking", _COMPAT, "compat-train"),
    )
    schema = BehaviorRow

    def take(self, row: BehaviorRow) -> Row:
        """Rebuild the composed case; what is shown is what its customer knows."""
        view = row.model_dump()
        source = view.pop("manual")
        try:
            book = _manual(source)
            case = from_view(view, "row")
            scenario = row_to_scenario(case, book)
        except (UsageError, LookupError, TypeError, ValueError) as error:
            raise Unfit("bad_row", str(error)) from None
        flow = book.flow(case.flow)
        public = {
            "behavior": case.behavior,
            "params": {k: v for k, v in case.params.items() if k != "true_value"},
            "directive": case.directive,
            "name": str(case.record["customer_name"]),
            "company": book.company,
            "goal": scenario.goal,
            "title": book.request(case.subflow).title,
            "description": flow.description,
            "facts": dict(scenario.facts),
            "replay": [{"role": m.role.value, "text": m.content} for m in scenario.history],
        }
        key = seeds.fingerprint(f"{source}|{sorted(case.record.items(), key=str)}", 12)
        hidden = {"row": case.to_json(), "manual": source}
        return Row(public=public, hidden=hidden, groups=(f"record:{key}",))

    async def open(self, scene: Scene) -> Opening:
        """Tell the customer who they are, and what was said so far."""
        shown = dict(scene.public)
        facts = [(key.replace("_", " "), _plain(value)) for key, value in shown["facts"].items()]
        system = prompts.render("tasks/behavior", end=END_MARKER, **{**shown, "facts": facts})
        first = prompts.render("tasks/behavior_start", replay=shown["replay"])
        return Opening(Observation(system=system, first_user=first))

    async def react(self, scene: Scene, said: str) -> Reaction:
        """Let the agent answer, or judge when the customer left or the budget is used up."""
        case, book = _case(scene.task), _manual(scene.hidden["manual"])
        marked = read_marker(said)
        left = marked.action is not UserAction.SAY
        lines = (*scene.lines, Line(POLICY, marked.text)) if marked.text else scene.lines
        if not any(line.by == POLICY for line in lines):
            return Reaction(score=Score(0.0, {"faults": ["empty_utterance"]}), left=left)
        if left:
            return Reaction(score=await self._score(scene, lines, left=True), left=True)
        before = [Line(_by(m["role"]), m["text"]) for m in scene.public["replay"]]
        heard = await scene.desk.hear(
            PartnerRequest(
                agent_prompt(case, book),
                as_partner([*before, *lines], start=prompts.render("tasks/partner/connected")),
                scene.seed,
                lambda: rule_reply(case, book, lines),
            )
        )
        reply = tidy_reply(heard)
        added = (Line(_AGENT, reply),)
        if scene.turn + 1 >= min(case.turn_budget, TURNS):
            return Reaction(lines=added, score=await self._score(scene, (*lines, *added)))
        return Reaction(reply, added)

    async def _score(self, scene: Scene, lines: tuple[Line, ...], *, left: bool = False) -> Score:
        case, book = _case(scene.task), _manual(scene.hidden["manual"])
        replies = scene.replies[: sum(line.by == POLICY for line in lines)]
        compat, train = _COMPAT in scene.mode, _TRAIN in scene.mode
        thinks = any(reply.thought is not None for reply in replies)
        faults = format_faults(replies, thinking=thinks or scene.mode in _THINKING)
        performance = _performance(scene, case, lines, replies, left=left)
        request: JudgeRequest[Any] = question(performance, seed=scene.seed)
        ask = scene.desk.may if compat or (train and faults) else scene.desk.must
        verdict: Verdict | None = await ask(request)
        check = _check(case, book, lines)
        name = behaviors.get(case.behavior).name if case.behavior else ""
        parts: dict[str, Any] = {
            "behavior": case.behavior,
            **(verdict.model_dump(mode="json") if verdict else {"judge_failed": True}),
            "check": check,
            "check_gap": check_gap(check, verdict),
            "faults": list(faults),
            "thought_cites_directive": thought_cites_directive(
                [reply.thought for reply in replies], case.directive, name
            ),
        }
        reward = paid(verdict, faults, training=train, compat=compat)
        assert reward is not None  # a verdict that decides was asked for with `must`
        return Score(reward, parts)

    def oracle(self, task: Task, turn: int) -> str:
        """Return the line of a customer that plays the behavior well under the agent by rule."""
        case, book = _case(task), _manual(task.hidden["manual"])
        lines: list[Line] = []
        for number in range(turn + 1):
            said = customer_line(case, book, lines, number)
            lines.append(Line(POLICY, read_marker(said).text))
            lines.append(Line(_AGENT, rule_reply(case, book, lines)))
        return said


@cache
def _manual(source: str) -> Manual:
    return manual.load(source)


def _case(task: Task) -> Case:
    return Case.from_json(task.hidden["row"], f"task {task.id}")


def _by(role: str) -> str:
    return POLICY if role == Role.USER.value else _AGENT


def _performance(
    scene: Scene,
    case: Case,
    lines: tuple[Line, ...],
    replies: tuple[Reply, ...],
    *,
    left: bool,
) -> Performance:
    thoughts = iter(reply.thought for reply in replies)
    before = [Said(Role(m["role"]), m["text"], replayed=True) for m in scene.public["replay"]]
    own = [
        Said(Role.USER, line.text, next(thoughts, None))
        if line.by == POLICY
        else Said(Role.AGENT, line.text)
        for line in lines
    ]
    return Performance(
        behavior=case.behavior,
        goal=f"{scene.public['title']}: {scene.public['goal']}",
        turns=(*before, *own),
        params=case.params,
        facts=scene.public["facts"],
        left=left,
    )


def _check(case: Case, book: Manual, lines: tuple[Line, ...]) -> float | None:
    """Return the behavior's own rule check of the generated turns."""
    if case.behavior is None:
        return None
    turns = [PublicMessage(Role.USER if m.by == POLICY else Role.AGENT, m.text) for m in lines]
    return behaviors.get(case.behavior).check(turns, Situation.of(case, book), case.params)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


TASK = BehaviorTask()
