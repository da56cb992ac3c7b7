"""From what a recipe says to what has to be computed: the workload of each kind of training."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from mimesim.envs.load import gym_spec
from mimesim.errors import ConfigError
from mimesim.judges.load import SELF
from mimesim.train.gyms import held_rows
from mimesim.train.plan.assumptions import Side, Span
from mimesim.train.plan.recipe import (
    AgentView,
    FreshView,
    Notes,
    Read,
    SupervisedView,
    UserRlView,
    UserShareView,
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


class Split(NamedTuple):
    """Rows of a gym in an epoch, and those held out."""

    trained: int
    held: int


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
        rows: of each gym of a mixture.
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
    rows: Mapping[str, Split] = field(default_factory=dict)

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
    csd = view.csd.alpha > 0
    parties, cap = _mixture(view, notes) if view.gyms else _one_gym(view, notes)
    if csd:
        parties.append(Party("coach", *_coach(view, parties)))
    return _reinforced(
        view,
        notes,
        cap,
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
        rows=_rows(view),
    )


def _rows(view: AgentView) -> dict[str, Split]:
    """Return the rows of each gym of a mixture."""
    rows = [share.rows for share in view.gyms]
    held = held_rows(rows, view.validation)
    return {
        share.gym: Split(count - out, out)
        for share, count, out in zip(view.gyms, rows, held, strict=True)
    }


def _one_gym(view: AgentView, notes: Notes) -> tuple[list[Party], float]:
    """Return users and judge of a run in one gym, and its most turns."""
    facts = gym_spec(view.gym, view.profile or None)
    judged = notes.judged if notes.judged is not None else float(facts.needs_judge)
    met = _met(view.user, view.users, view.batches)
    judges = [(name, part * judged) for name, part in _graders(view.judge, met) if judged]
    return [*_shared("user", met), *_shared("judge", judges)], float(facts.max_steps)


def _mixture(view: AgentView, notes: Notes) -> tuple[list[Party], float]:
    """Return users and judges with their shares over all gyms, and the most turns of any."""
    rows = _rows(view)
    whole = sum(split.trained for split in rows.values())
    users: list[tuple[str, float]] = []
    judges: list[tuple[str, float]] = []
    caps = []
    for share in view.gyms:
        facts = gym_spec(share.gym, share.profile or None)
        weight = rows[share.gym].trained / whole
        own = (share.user, share.users) if share.user or share.users else None
        met = _met(*(own or (view.user, view.users)), view.batches)
        if facts.needs_user:
            users += [(name, part * weight) for name, part in met]
        if facts.needs_judge:
            graders = _graders(share.judge or view.judge, met)
            judges += [(name, part * weight) for name, part in graders]
        caps.append(min(share.max_steps or facts.max_steps, facts.max_steps))
    if judges and notes.judged is not None:
        graded = sum(weight for _, weight in judges)
        judges = [(name, weight / graded * notes.judged) for name, weight in judges]
    return [*_shared("user", users), *_shared("judge", judges)], float(max(caps))


def _met(user: str, users: Sequence[UserShareView], batches: int) -> list[tuple[str, float]]:
    """Return the users with their shares of all batches."""
    if not users:
        return [(user, 1.0)]
    shares = dict.fromkeys((one.name for one in users), 0.0)
    for batch in range(batches):
        here = [one for one in users if one.from_batch <= batch]
        total = sum(one.weight for one in here)
        for one in here:
            shares[one.name] += one.weight / total / batches
    return list(shares.items())


def _graders(judge: str, met: Sequence[tuple[str, float]]) -> Sequence[tuple[str, float]]:
    """Return who grades with their shares: one judge, or every user its own conversations."""
    return met if judge == SELF else [(judge, 1.0)]


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


def _coach(view: AgentView, parties: Sequence[Party]) -> tuple[Place, str]:
    """Return who writes the notes; the setting is a name, or a table with one."""
    said = view.coach
    name = said.get("name") if isinstance(said, Mapping) else said
    user = next((party for party in parties if party.role == "user"), None)
    if name == "user" and user is not None:
        return user.place, user.model
    return _place(str(name or "rule"))


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
