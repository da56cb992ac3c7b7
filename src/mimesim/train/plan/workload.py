"""From what a recipe says to what has to be computed: the workload of each kind of training."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from mimesim.envs.load import gym_spec
from mimesim.errors import ConfigError
from mimesim.train.plan.assumptions import Side, Span
from mimesim.train.plan.recipe import (
    AgentView,
    FreshView,
    Notes,
    Read,
    SupervisedView,
    UserRlView,
    span,
)
from mimesim.train.plan.volume import Conversation
from mimesim.users.load import is_scripted
from mimesim.users.presets import PREFIX, resolve

Place = Literal["here", "served", "remote"]
_SHORT = 64
"""Reply cap up to which a policy is one of our tiny ones, which speak in a few words."""
_URL = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class Party:
    """Who takes part beside the policy.

    Attributes:
        role: user, judge, partner or coach.
        place: `here` costs nothing (scripts and rules), `served` needs machines of its own,
            `remote` is paid by the token.
        model: its name.
        share: of the turns in which it is called.
        once: called once a conversation instead.
    """

    role: str
    place: Place
    model: str
    share: float = 1.0
    once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What is trained, and how.

    Attributes:
        lora: adapters only. width: bytes of a weight. checkpointing: activations twice.
        micro: rows whose activations exist at once.
    """

    lora: bool
    width: int
    checkpointing: bool
    micro: float

    @property
    def passes(self) -> float:
        """Work of an update in forward passes: a frozen weight has no gradient of its own."""
        return (2.0 if self.lora else 3.0) + self.checkpointing


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervised:
    """Rows that are read.

    Attributes:
        label: the stage in words. model: what is trained, as the recipe names it.
        tokens: all that pass through the model. row: of one. longest: of the longest row.
        update_rows: rows of a micro-batch times accumulation, on one machine.
        fresh: the rows are made by the run itself.
    """

    label: str
    model: str
    tuning: Tuning
    tokens: Span
    row: Span
    longest: float
    update_rows: int
    cores: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinforced:
    """Conversations that are played and learnt from.

    Attributes:
        batches: generation batches. rollouts: of one. updates: optimizer steps of one.
        prompt, turns, reply, message, note: see `volume.Conversation`.
        longest: tokens written in the longest conversation of a batch. cap: most turns.
        parties: everyone else.
        noted: most noted turns; 0 = no teacher. scored: teacher forwards per noted turn.
        packed: one teacher row an episode instead of one a turn.
        at_a_time: most notes that are asked for at once.
        agent: an agent is trained, else a user.
    """

    label: str
    model: str
    tuning: Tuning
    batches: int
    rollouts: int
    updates: int
    prompt: Span
    turns: Span
    reply: Span
    message: Span
    note: Span
    longest: Span
    cap: float
    parties: Sequence[Party]
    noted: int = 0
    scored: int = 1
    packed: bool = True
    at_a_time: int = 16
    agent: bool = True
    cores: int = 1

    def conversation(self, side: Side) -> Conversation:
        """Return a mean conversation."""
        return Conversation(
            prompt=self.prompt.at(side),
            turns=self.turns.at(side),
            reply=self.reply.at(side),
            message=self.message.at(side),
            note=self.note.at(side),
        )


Workload = Supervised | Reinforced


def workload_of(read: Read) -> Workload:
    """Return the workload of a recipe.

    Raises:
        ConfigError: the recipe does not say how much there is to read.
        UnknownNameError: no such gym or profile.
    """
    if isinstance(read.view, SupervisedView):
        return _supervised(read, read.view)
    if isinstance(read.view, FreshView):
        return _fresh(read, read.view)
    if isinstance(read.view, UserRlView):
        return _user_rl(read.view, read.notes)
    return _agent_rl(read.view, read.notes)


def _supervised(read: Read, view: SupervisedView) -> Supervised:
    notes = read.notes
    row = span(notes.row_tokens, view.max_length / 4, view.max_length)
    budget = float(view.token_budget or 0)
    if notes.rows is not None:
        rows = span(notes.rows, 0, 0)
        whole = Span(rows.fast * row.fast, rows.slow * row.slow)
        tokens = Span(*(min(budget, end) if budget else end for end in whole))
    elif budget:
        tokens = Span(budget, budget)
    else:
        raise ConfigError(
            "nothing says how much there is to read",
            where=str(read.path),
            expected="token_budget above 0, or rows and row_tokens in [x-plan]",
            mend="add --set x-plan.rows=<conversations>",
        )
    return Supervised(
        label={"midtrain": "mid-training", "thought": "thought SFT"}.get(view.stage, view.stage),
        model=view.model,
        tuning=_tuning(
            view.lora_rank,
            view.dtype,
            checkpointing=view.launch.gradient_checkpointing,
            micro=view.batch_size,
        ),
        tokens=Span(tokens.fast * view.epochs, tokens.slow * view.epochs),
        row=row,
        longest=float(view.max_length),
        update_rows=view.batch_size * view.accumulation,
        cores=view.threads,
    )


def _fresh(read: Read, view: FreshView) -> Supervised:
    row = span(read.notes.row_tokens, 60, 240)
    count = view.steps * view.batch
    return Supervised(
        label="warm start",
        model="tiny",
        tuning=_tuning(0, "fp32", checkpointing=False, micro=view.batch),
        tokens=Span(count * row.fast, count * row.slow),
        row=row,
        longest=2 * row.slow,
        update_rows=view.batch,
        cores=view.threads,
    )


def _tuning(lora_rank: int, dtype: str, *, checkpointing: bool, micro: float) -> Tuning:
    width = 2 if dtype == "bf16" else 4
    return Tuning(lora=lora_rank > 0, width=width, checkpointing=checkpointing, micro=micro)


def _user_rl(view: UserRlView, notes: Notes) -> Reinforced:
    total = sum(task.weight for task in view.tasks)
    judges = [(task.judge, task.weight / total) for task in view.tasks]
    partners = [(task.partner, task.weight / total) for task in view.tasks]
    parties = [*_shared("judge", judges, once=True), *_shared("partner", partners)]
    return _reinforced(
        view,
        notes,
        float(view.scenes.turn_budget),
        label="user RL",
        parties=parties,
        tuning=_tuning(view.lora_rank, view.dtype, checkpointing=False, micro=_micro(view)),
        agent=False,
    )


def _shared(role: str, doors: Iterable[tuple[str, float]], *, once: bool = False) -> list[Party]:
    """Return the parties of one role from door names with their shares."""
    shares: dict[tuple[Place, str], float] = {}
    for door, share in doors:
        found = _place(door)
        shares[found] = shares.get(found, 0.0) + share
    return [Party(role, place, model, share, once) for (place, model), share in shares.items()]


def _agent_rl(view: AgentView, notes: Notes) -> Reinforced:
    facts = gym_spec(view.gym, view.profile or None)
    csd = view.csd.alpha > 0
    judged = notes.judged if notes.judged is not None else float(facts.needs_judge)
    parties = _shared("user", _met(view))
    if judged:
        parties.append(Party("judge", *_place(view.judge), judged))
    if csd:
        parties.append(Party("coach", *_coach(view)))
    return _reinforced(
        view,
        notes,
        float(facts.max_steps),
        label="agent RL with CSD" if csd else "agent RL",
        parties=parties,
        tuning=_tuning(
            view.lora_rank,
            view.dtype,
            checkpointing=view.launch.gradient_checkpointing,
            micro=_micro(view),
        ),
        noted=view.notes.max_noted if csd else 0,
        scored=2 if view.notes.debias else 1,
        packed=view.csd.teacher == "packed",
        at_a_time=view.notes.concurrency,
    )


def _met(view: AgentView) -> list[tuple[str, float]]:
    """Return the users with their shares of all batches."""
    if not view.users:
        return [(view.user, 1.0)]
    shares = dict.fromkeys((user.name for user in view.users), 0.0)
    for batch in range(view.batches):
        here = [user for user in view.users if user.from_batch <= batch]
        total = sum(user.weight for user in here)
        for user in here:
            shares[user.name] += user.weight / total / view.batches
    return list(shares.items())


def _micro(view: UserRlView | AgentView) -> float:
    """Return the rows of one backward pass, of all machines together."""
    return view.prompts * view.group / (view.minibatches * view.accumulation)


def _reinforced(
    view: UserRlView | AgentView, notes: Notes, turn_cap: float, **more: Any
) -> Reinforced:
    """Put together what both kinds of reinforcement share; what is unknown follows from the caps."""
    reply_cap = float(view.policy.max_tokens)
    few_words = reply_cap <= _SHORT
    reply = span(notes.reply, max(1.0, reply_cap / 4), reply_cap)
    turns = span(notes.turns, max(1.0, turn_cap / 4), turn_cap)
    most = turn_cap * reply.slow
    return Reinforced(
        model=view.init,
        batches=view.batches,
        rollouts=view.prompts * view.group,
        updates=view.minibatches,
        prompt=span(notes.prompt, *((50, 200) if few_words else (300, 1152))),
        turns=turns,
        reply=reply,
        message=span(notes.message, *((5, 20) if few_words else (60, 256))),
        note=span(notes.note, *((8, 16) if few_words else (80, 150))),
        longest=span(notes.longest, min(2 * turns.fast * reply.fast, most), most),
        cap=turn_cap,
        cores=view.threads,
        **more,
    )


def _coach(view: AgentView) -> tuple[Place, str]:
    """Return who writes the notes; the setting is a name, or a table with one."""
    said = view.coach
    name = said.get("name") if isinstance(said, Mapping) else said
    return _place(view.user if name == "user" else str(name or "rule"))


def _place(door: str) -> tuple[Place, str]:
    """Return where a party with this door name runs, and the name of its model."""
    if door.startswith(PREFIX):
        door, _ = resolve(door)
    if is_scripted(door) or door.startswith("rule") or not door:
        return "here", door
    found = _URL.search(door)
    if found is not None and found.start() == 0:
        return ("served" if _is_local(door) else "remote"), door
    model = door.split("@")[0].rpartition(":")[2] if "@" in door else door.partition(":")[2]
    if found is None or _is_local(found.group()):
        return "served", model
    return "remote", model


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return (
        "." not in host or host.startswith(("127.", "10.", "192.168.")) or host.endswith(".local")
    )
