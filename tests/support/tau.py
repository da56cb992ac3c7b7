"""Parties for tests of the gym `tau`, and a folder of the shape of a tau-bench checkout."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.stop import UserAction
from mimesim.dialogue.types import Reply, Thought
from mimesim.envs.actions import get_format
from mimesim.envs.base import AgentAction, AgentMove, Choice, StepResult, Task
from mimesim.envs.gyms.tau.gym import SPEC, TauGym
from mimesim.users.base import User, UserRequest

CANARY = "canary-thought-8830"


def says(text: str, action: UserAction = UserAction.SAY) -> Reply:
    """Return a reply with a private thought."""
    return Reply(Thought(CANARY), text, action)


STOPS = says("", UserAction.END)


class Customer:
    """Says the lines it was given, one a turn; the last one repeats. It keeps what it was asked."""

    def __init__(self, *lines: Reply | Exception) -> None:
        self.lines = list(lines) or [says("hello there")]
        self.asked: list[UserRequest] = []

    async def respond(self, request: UserRequest) -> Reply:
        """Say the next line, or fail with it."""
        self.asked.append(request)
        line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        if isinstance(line, Exception):
            raise line
        return line

    def snapshot(self) -> dict[str, Any]:
        """Return nothing: a failed line is gone."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take nothing over."""


def say(words: str) -> AgentAction:
    """Return words to the customer."""
    return AgentAction(Choice.ACTION, words)


def use(content: str) -> AgentAction:
    """Return a call of a tool."""
    return AgentAction(Choice.ANSWER, content)


def look(content: str) -> AgentAction:
    """Return a look-up."""
    return AgentAction(Choice.SEARCH, content)


def line(text: str) -> AgentAction:
    """Return what the line grammar makes of a line."""
    return get_format("line").parse(AgentMove(text), SPEC)


async def started(
    task: Task, user: User | None = None, options: Mapping[str, Any] | None = None
) -> TauGym:
    """Return a gym that is under way."""
    gym = TauGym(user=user or Customer(), options=options)
    await gym.reset(task, seed=7)
    return gym


def run(
    task: Task, *actions: AgentAction, user: User | None = None, **options: Any
) -> list[StepResult]:
    """Play some actions and return what came of each."""

    async def episode() -> list[StepResult]:
        gym = await started(task, user, options)
        return [await gym.step(action) for action in actions]

    return asyncio.run(episode())


def told(result: StepResult) -> str:
    """Return all that the agent reads of a step."""
    return "\n".join(message.content for message in result.feedback)


_TOOL = """
class Tool:
    pass
"""
_TYPES = """
from pydantic import BaseModel


class Action(BaseModel):
    name: str
    kwargs: dict


class Task(BaseModel):
    user_id: str
    actions: list[Action]
    instruction: str
    outputs: list[str]
    annotator: str = ""
"""
_TOOLS = """
import time
from pathlib import Path

from tau_bench.envs.tool import Tool


def _info(name, *names):
    texts = {one: {"type": "string", "description": "words for " + one} for one in names}
    parameters = {"type": "object", "properties": texts, "required": list(names)}
    told = {"name": name, "description": "does " + name, "parameters": parameters}
    return {"type": "function", "function": told}


class Show(Tool):
    @staticmethod
    def invoke(data, key):
        return str(data["things"][key])

    @staticmethod
    def get_info():
        return _info("show", "key")


class Paint(Tool):
    @staticmethod
    def invoke(data, key, colors):
        data["things"][key]["colors"] = colors
        return "painted"

    @staticmethod
    def get_info():
        told = _info("paint", "key", "colors")
        told["function"]["parameters"]["properties"]["colors"] = {"type": "array"}
        return told


class Spoil(Tool):
    @staticmethod
    def invoke(data, key):
        data["things"][key]["colors"].append("rust")
        raise KeyError("it broke")

    @staticmethod
    def get_info():
        return _info("spoil", "key")


class Wait(Tool):
    @staticmethod
    def invoke(data, path):
        for _ in range(500):
            if Path(path).exists():
                return "it is there"
            time.sleep(0.01)
        return "it never came"

    @staticmethod
    def get_info():
        return _info("wait", "path")


class Transfer(Tool):
    @staticmethod
    def invoke(data, summary):
        return "passed on"

    @staticmethod
    def get_info():
        return _info("transfer_to_human_agents", "summary")


ALL_TOOLS = [Show, Paint, Spoil, Wait, Transfer]
"""
_DATA = """
import json
from pathlib import Path


def load_data():
    return json.loads((Path(__file__).parent / "things.json").read_text("utf-8"))
"""
_TASKS = """
from tau_bench.types import Action, Task

{name} = [
    Task(
        user_id="mo_1",
        instruction="You are Mo. You want the chair painted green. The chair is thing c1.",
        actions=[
            Action(name="show", kwargs={{"key": "c1"}}),
            Action(name="paint", kwargs={{"key": "c1", "colors": ["green"]}}),
        ],
        outputs=[],
    ),
    Task(
        user_id="mo_1",
        instruction="You are Mo. You want something that nobody can do.",
        actions=[Action(name="transfer_to_human_agents", kwargs={{"summary": "none"}})],
        outputs=[],
    ),
    Task(
        user_id="bo_2",
        instruction="You are Bo. You want to know where the shop is, and how many chairs it has.",
        actions=[],
        outputs=["IL", "1,0".replace(",", "")],
    ),
]
"""


def checkout(root: Path) -> Path:
    """Write a folder of the shape of a tau-bench checkout; importing its packages would fail."""
    package = root / "tau_bench"
    broken = 'raise ImportError("this package needs a model client")\n'
    _write(package / "__init__.py", broken)
    _write(package / "types.py", _TYPES)
    _write(package / "envs" / "__init__.py", broken)
    _write(package / "envs" / "tool.py", _TOOL)
    for domain, files in {"retail": ("test", "train", "dev"), "airline": ("test",)}.items():
        home = package / "envs" / domain
        _write(home / "__init__.py", broken)
        _write(home / "wiki.py", f'WIKI = "Be kind to the customers of {domain}."\n')
        _write(home / "tools" / "__init__.py", _TOOLS)
        _write(home / "data" / "__init__.py", _DATA)
        things = {"things": {"c1": {"colors": ["red"]}, "c2": {"colors": []}}}
        jsonio.write_json(home / "data" / "things.json", things)
        for file in files:
            _write(home / f"tasks_{file}.py", _TASKS.format(name=f"TASKS_{file.upper()}"))
    return root


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), "utf-8")
