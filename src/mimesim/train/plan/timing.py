"""Seconds: peak numbers of the machine, the assumptions, and the work; nothing is measured here."""

from __future__ import annotations

from dataclasses import dataclass

from mimesim.train.plan.assumptions import Side, assumed
from mimesim.train.plan.machines import Machine
from mimesim.train.plan.shapes import Shape
from mimesim.train.plan.workload import Party, Reinforced, Supervised


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What runs where.

    Attributes:
        shape: of what is trained. machine, count: what trains it.
        user_shape: of a user that is served. servers: machines that serve it.
        engine: who samples. sharded: see `recipe.Asked`.
    """

    shape: Shape
    machine: Machine
    count: int
    user_shape: Shape
    servers: int
    engine: str
    sharded: bool

    @property
    def sampled_width(self) -> int:
        """Bytes of a weight while sampling."""
        return 2 if self.machine.is_gpu else 4


def work_seconds(work: float, setting: Setting, efficiency: str, side: Side) -> float:
    """Return the seconds of so many FLOPs on all machines together."""
    rate = setting.machine.flops * assumed(efficiency, side)
    return work / (setting.count * rate)


def token_seconds(setting: Setting, shape: Shape, active: float, context: float, side: Side) -> float:  # fmt: skip
    """Return the seconds in which each of `active` conversations of a machine grows by one token.

    The slowest of three: launching, reading weights and cache, computing.
    """
    machine, width = setting.machine, setting.sampled_width
    hf = assumed("hf_step", side) * shape.layers
    launch = assumed("vllm_step", side) if setting.engine == "vllm" else hf
    cache = active * (context * shape.cache_bytes * width / 2 + shape.state_bytes)
    read = (width * shape.parameters + cache) / (
        machine.bandwidth * assumed("decode_bandwidth", side)
    )
    compute = active * shape.forward_flops(context)
    return max(launch, read, compute / (machine.flops * assumed("forward_mfu", side)))


def supervised_seconds(load: Supervised, setting: Setting, side: Side) -> float:
    """Return the seconds of a supervised training."""
    row = load.row.at(side)
    flops = load.tuning.passes * setting.shape.forward_flops(row / 2) * load.tokens.at(side)
    work = work_seconds(flops * assumed("padding", side), setting, "training_mfu", side)
    forwards = load.tokens.at(side) / (row * load.tuning.micro * setting.count)
    launched = forwards * _launching(load.tuning.passes, setting, side)
    return max(work, launched) * assumed("around", side)


def _launching(passes: float, setting: Setting, side: Side) -> float:
    """Return the least seconds of a micro-batch: its kernels are launched one by one."""
    return passes * setting.shape.layers * assumed("hf_step", side)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSeconds:
    """Where the time of one generation batch goes, in seconds.

    Attributes:
        sampling: the policy writes. waiting: for the user, judge or partner.
        coaching: for notes. teaching: teacher passes. updating: forward and backward.
        around: everything else.
    """

    sampling: float
    waiting: float
    coaching: float
    teaching: float
    updating: float
    around: float

    @property
    def whole(self) -> float:
        """All of it."""
        return (
            self.sampling
            + self.waiting
            + self.coaching
            + self.teaching
            + self.updating
            + self.around
        )


def batch_seconds(load: Reinforced, setting: Setting, side: Side) -> BatchSeconds:
    """Return the seconds of one generation batch.

    The conversations run side by side, and the batch ends with its longest one.
    """
    talk, shape = load.conversation(side), setting.shape
    student = talk.student
    active = load.rollouts / setting.count
    longest = load.longest.at(side)
    mean_active = max(1.0, active * min(1.0, talk.generated / longest))
    step = token_seconds(setting, shape, mean_active, student / 2, side)
    prefill = load.rollouts * (student - talk.generated) * shape.forward_flops(student / 2)
    sampling = longest * step + work_seconds(prefill, setting, "forward_mfu", side)

    turns = min(load.cap, max(talk.turns, longest / talk.reply))
    waits = sum(
        (1.0 if party.once else turns) * _answer_seconds(load, setting, party, side)
        for party in load.parties
        if party.role != "coach"
    )
    rounds = max(1.0, load.rollouts * min(load.noted, talk.turns) / load.at_a_time)
    coaching = sum(
        rounds * _answer_seconds(load, setting, party, side)
        for party in load.parties
        if party.role == "coach"
    )
    forward = shape.forward_flops(student / 2)
    update = load.rollouts * student * load.tuning.passes * forward * assumed("padding", side)
    teacher = load.rollouts * teacher_tokens(load, side) * forward
    forwards = max(1.0, load.rollouts / max(1.0, load.tuning.micro) / setting.count)
    parts = {
        "sampling": sampling,
        "waiting": waits,
        "coaching": coaching,
        "teaching": work_seconds(teacher, setting, "forward_mfu", side),
        "updating": max(
            work_seconds(update, setting, "training_mfu", side),
            forwards * _launching(load.tuning.passes, setting, side),
        ),
    }
    return BatchSeconds(**parts, around=sum(parts.values()) * (assumed("around", side) - 1))


def _answer_seconds(load: Reinforced, setting: Setting, party: Party, side: Side) -> float:
    """Return how long a conversation waits for one answer of a party, on average over its turns."""
    if party.place == "here":
        return 0.0
    if party.place == "remote":
        return party.share * assumed("call", side)
    at_once = load.at_a_time if party.role == "coach" else load.rollouts
    active = max(1.0, at_once / setting.servers)
    talk = load.conversation(side)
    step = token_seconds(setting, setting.user_shape, active, talk.student / 2, side)
    return party.share * answer_tokens(load, party, side) * step


def answer_tokens(load: Reinforced, party: Party, side: Side) -> float:
    """Return the tokens that one answer of a party has."""
    if party.role == "judge":
        return assumed("verdict", side)
    if party.role == "coach":
        return load.note.at(side)
    thought = assumed("thought", side) if party.role == "user" else 0.0
    return load.message.at(side) + thought


def teacher_tokens(load: Reinforced, side: Side) -> float:
    """Return the tokens of all teacher passes of one conversation."""
    if not load.noted:
        return 0.0
    talk = load.conversation(side)
    noted = min(float(load.noted), talk.turns)
    one = talk.teacher_packed(noted) if load.packed else talk.teacher_rows(noted)
    # the packed form lays both notes of a turn into one row, the other needs a row for each
    second = (talk.teacher_packed(noted) - talk.student) if load.packed else one
    return one + (load.scored - 1) * second
