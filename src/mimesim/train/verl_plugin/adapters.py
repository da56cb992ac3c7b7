"""What verl is given: an agent loop, the CSD loss and a manager whose workers score noted contexts.

verl is imported in `register` and nowhere else. Written against the interfaces of verl 0.9.1 as
read; nothing here was ever run. How a conversation is played on verl's server is the caller's
function, named `module:function` in `MIMESIM_VERL_PLAYER`.
"""

from __future__ import annotations

import importlib
import itertools
import math
import os
import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from mimesim.errors import CallerError, ConfigError, EnvironmentFault, MissingExtraError
from mimesim.rollout.tokens import TokenRollout
from mimesim.train.teacher import Branch, NotedTurn
from mimesim.train.verl_plugin.rows import TURNS, loop_output, teacher_columns, teacher_rows
from mimesim.train.verl_plugin.settings import NAME, check_settings
from mimesim.train.verl_plugin.term import csd_losses, unpacked

VERSION = "0.9.1"
LOOP = "mimesis_user"
"""Name of the agent loop in rows (`agent_name`)."""

_REQUESTS = itertools.count()
_LOOPS = "verl.experimental.agent_loop.agent_loop"
_LOSSES = "verl.trainer.distillation.losses"


@dataclass(frozen=True, slots=True)
class Played:
    """One conversation as the caller's function returns it: its record, its score, its notes."""

    rollout: TokenRollout
    reward: float
    turns: Sequence[NotedTurn] = ()


Generate = Callable[[list[int]], Awaitable[tuple[list[int], list[float] | None]]]
"""Context ids -> sampled ids and their log-probs, from verl's server."""
Player = Callable[[Generate, Mapping[str, Any]], Awaitable[Played]]
"""(generate, row of the data) -> the conversation."""


def request_id() -> str:
    """Return a name that no other request of any process bears."""
    return f"mimesim-{platform.node()}-{os.getpid()}-{next(_REQUESTS)}"


def check_verl() -> None:
    """Make sure that the verl that the plug-in was written for is installed.

    Raises:
        MissingExtraError: there is none.
        EnvironmentFault: it is another version.
    """
    mend = 'pip install "mimesim[verl]" in an environment of its own, without the extra train'
    try:
        found = version("verl")
    except PackageNotFoundError:
        raise MissingExtraError("the verl plug-in needs verl", mend=mend) from None
    if found != VERSION:
        raise EnvironmentFault(f"verl {found} is installed", expected=f"verl {VERSION}", mend=mend)


def number(name: str, default: float) -> float:
    """Return a number from the environment, which is all that reaches verl's processes.

    Raises:
        ConfigError: it is no finite number.
    """
    text = os.environ.get(name, str(default))
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"{name} cannot be {text!r}", expected="a finite number")
    return value


def player() -> Player:
    """Return the caller's function that plays a conversation.

    Raises:
        ConfigError: `MIMESIM_VERL_PLAYER` names none.
    """
    name = os.environ.get("MIMESIM_VERL_PLAYER", "")
    module, _, function = name.partition(":")
    try:
        found: Player = vars(importlib.import_module(module))[function]
    except (KeyError, ValueError):
        raise ConfigError(
            f"MIMESIM_VERL_PLAYER names no function: {name!r}", expected="module:function"
        ) from None
    except ImportError as error:
        raise ConfigError(
            f"MIMESIM_VERL_PLAYER {name!r} cannot be imported: {error}", expected="module:function"
        ) from error
    return found


def register() -> None:
    """Register agent loop and loss with verl, and make sure that verl knows both.

    Raises:
        MissingExtraError, EnvironmentFault: see `check_verl`.
        CallerError: verl does not know them afterwards.
    """
    check_verl()
    loops, losses = importlib.import_module(_LOOPS), importlib.import_module(_LOSSES)
    padding = importlib.import_module("verl.workers.utils.padding")
    if NAME not in losses.DISTILLATION_LOSS_REGISTRY:
        settings = losses.DistillationLossSettings(names=[NAME], use_estimator=True)
        losses.register_distillation_loss(settings)(_loss(padding.no_padding_2_padding))
    loops.register(LOOP)(_loop(loops))
    assert_registered(losses.DISTILLATION_LOSS_REGISTRY, loops._agent_loop_registry)


def assert_registered(losses: Mapping[str, Any], loops: Mapping[str, Any]) -> None:
    """Make sure that verl would find both names.

    Raises:
        CallerError: naming the one that it does not know.
    """
    for name, known, kind in ((NAME, losses, "distillation loss"), (LOOP, loops, "agent loop")):
        if name not in known:
            raise CallerError(f"verl knows no {kind} {name!r}: the plug-in was not registered")


def _loss(padded: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return the loss as verl calls it; `padded` cuts the response out of packed rows."""

    def csd(config: Any, distillation_config: Any, model_output: Any, data: Any) -> Any:
        mask = data["response_mask"]
        mask = mask.to_padded_tensor(0) if mask.is_nested else mask
        teacher = unpacked(padded(data["teacher_logprobs"], data))
        student = padded(model_output["log_probs"], data)
        return csd_losses(student, teacher, mask, beta=number("MIMESIM_CSD_BETA", 5.0))

    return csd


def _loop(loops: Any) -> type:
    """Return the agent loop's class."""
    base: Any = loops.AgentLoopBase

    class MimesisUserLoop(base):
        """Plays one conversation through the caller's function."""

        async def run(self, sampling_params: dict[str, Any], **row: Any) -> Any:
            """Play a row and return its record."""
            request = request_id()

            async def generate(ids: list[int]) -> tuple[list[int], list[float] | None]:
                output = await self.server_manager.generate(
                    request_id=request, prompt_ids=ids, sampling_params=sampling_params
                )
                return output.token_ids, output.log_probs

            played = await player()(generate, row)
            fields = loop_output(played.rollout, reward=played.reward, turns=played.turns)
            return loops.AgentLoopOutput(metrics=loops.AgentLoopMetrics(), **fields)

    return MimesisUserLoop


def __getattr__(name: str) -> Any:
    """Make `NotedManager` when verl asks for it by name, for it needs verl's own class.

    Raises:
        AttributeError: another name.
    """
    if name != "NotedManager":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    register()
    return _manager(importlib.import_module("ray"), importlib.import_module(_LOOPS))


def _manager(ray: Any, loops: Any) -> type:
    """Return the class of verl's manager whose workers score noted contexts."""
    base: Any = loops.AgentLoopManager

    class NotedManager(base):
        """Starts workers of ours, under settings that train what is meant."""

        def __init__(self, config: Any, *more: Any, **named: Any) -> None:
            check_settings(config.distillation.distillation_loss)
            self.agent_loop_workers_class = ray.remote(_worker(loops))
            super().__init__(config, *more, **named)

    return NotedManager


def _worker(loops: Any) -> type:
    """Return the class of workers that score noted contexts on the policy's own server."""
    base: Any = loops.AgentLoopWorker

    class NotedWorker(base):
        """Puts noted scores where verl would put those of a frozen teacher."""

        async def _compute_teacher_logprobs(
            self,
            output: Any,
            prompt_ids: list[int],
            response_ids: list[int],
            validate: bool,  # noqa: FBT001 - verl's signature
            sample_kwargs: Any = None,
        ) -> None:
            if validate:
                return
            torch = importlib.import_module("torch")
            turns = output.extra_fields.pop(TURNS, ())
            found, scores = await scored(
                self.llm_client.generate, teacher_rows(prompt_ids, response_ids, turns)
            )
            columns = teacher_columns(
                found, scores, prompt=len(prompt_ids), response=len(response_ids)
            )
            output.extra_fields["teacher_logprobs"] = torch.tensor(columns)
            ids = torch.tensor([*prompt_ids, *response_ids], dtype=torch.int32)
            output.extra_fields["teacher_ids"] = ids[:, None].expand(-1, 3).contiguous()

    return NotedWorker


async def scored(
    generate: Callable[..., Awaitable[Any]], rows: Sequence[tuple[Branch, list[int]]]
) -> tuple[list[Branch], list[list[float]]]:
    """Return each branch with the log-probs that a server gives its reply.

    The server's list stands one place to the left, as in verl: entry i is about token i + 1.

    Raises:
        CallerError: the server answered with another number of log-probs than tokens.
    """
    scores: list[list[float]] = []
    for branch, ids in rows:
        output = await generate(
            request_id=request_id(),
            prompt_ids=ids,
            sampling_params={"max_tokens": 1, "temperature": 1.0, "prompt_logprobs": 0},
        )
        values = output.extra_fields["prompt_logprobs"]
        if len(values) != len(ids):
            raise CallerError(f"the server gave {len(values)} log-probs for {len(ids)} tokens")
        first = len(ids) - len(branch.reply) - 1
        scores.append([float(_first(value)) for value in values[first : len(ids) - 1]])
    return [branch for branch, _ in rows], scores


def _first(value: Any) -> Any:
    """Return the log-prob of the token itself; verl wraps it in a list of alternatives."""
    return value[0] if isinstance(value, list) else value
