"""Credit assignment: from step rewards to one advantage per agent token, pure float64 Python.

Turn credits share an outcome among turns, a trajectory score compares rollouts of one prompt, and
the group advantage is spread over the tokens of a rollout by the credits of their turns. The mean
over credited tokens stays the advantage: credits redistribute, they never scale.

`compat=True` repeats UserRL's published code, flaws included: float32 statistics, no floor, rounded
credits and scores, a "sum" that is a mean, and rollouts without any credit dropped.
Paper: UserRL (turn credit, trajectory score) and MIMESIS (R2G for both).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from mimesim.errors import UsageError

T = TypeVar("T")

TurnMethod = Literal["equalized", "em", "r2g", "naive"]
ScoreMethod = Literal["sum", "mean", "r2g"]
Zero = Literal["uniform", "drop"]

STD_FLOOR = 1e-3
"""Smallest standard deviation that divides; below it the scores of a group are one score."""
_EQUAL = 1e-8  # scores nearer than this are the same score
_COMPAT_EPSILON = 1e-6
NOT_AGENT = -1
"""Turn index of a token that is not the agent's: padding, prompt, user, tool, header."""


class CreditError(UsageError, ValueError):
    """Rewards, credits or spans that no advantage can be made from."""


@dataclass(frozen=True, slots=True)
class CreditConfig:
    """How credit is assigned.

    Attributes:
        turn: credit of a turn. score: score of a rollout.
        gamma: discount per turn of `r2g`, in [0, 1]. k: sharpness of `em`, > 0.
        zero: a rollout whose credits are all 0 gets credit 1 everywhere (`uniform`) or none.
        negative: credits of a rollout with a negative advantage; `equalized` blames its turns
            alike, because non-uniform credits would punish the best turns most.
        baseline: `group` mean, or `leave_one_out` (mean and spread of the other members).
        compat: repeat the original; overrides `zero` with `drop`.
    """

    turn: TurnMethod = "equalized"
    score: ScoreMethod = "sum"
    gamma: float = 0.8
    k: float = 2.0
    zero: Zero = "uniform"
    negative: Literal["as-is", "equalized"] = "as-is"
    baseline: Literal["group", "leave_one_out"] = "group"
    compat: bool = False

    def __post_init__(self) -> None:
        """Refuse values outside their range.

        Raises:
            CreditError: naming the key.
        """
        if not 0 <= self.gamma <= 1:
            raise CreditError(f"gamma is {self.gamma!r}", where="credit", expected="0 to 1")
        if not 0 < self.k < math.inf:
            raise CreditError(f"k is {self.k!r}", where="credit", expected="a number above 0")


@dataclass(frozen=True, slots=True)
class Rollout:
    """One rollout as credit sees it.

    Attributes:
        group: the prompt it belongs to.
        rewards: one per executed step, in order (an invalid action is a step with reward 0).
        token_turns: for each token of the row the step that generated it, or `NOT_AGENT`.
        valid: False when the episode is not counted: no statistics, no gradient.
    """

    group: Hashable
    rewards: Sequence[float]
    token_turns: Sequence[int]
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Assignment:
    """Advantages of a batch, rows in the order given, with what had to be counted.

    Attributes:
        tokens: per row one advantage per token, exactly 0 on tokens that are not the agent's.
        advantages: per row; None when the row has no valid score.
        scores: per row; None when invalid or not finite.
        in_loss: rows that may get a gradient: valid, in a group of at least two valid rows.
        removed: rows without a valid score.
        small_groups: groups with fewer than two valid rows. flat_groups: groups without spread.
        uniform_rows: rows whose credits were all 0 and became uniform.
        agent_tokens, uncredited_tokens: agent tokens of rows in the loss, and those with weight 0.
    """

    tokens: list[list[float]]
    advantages: list[float | None]
    scores: list[float | None]
    in_loss: list[bool]
    removed: int
    small_groups: int
    flat_groups: int
    uniform_rows: int
    agent_tokens: int
    uncredited_tokens: int

    @property
    def uncredited_token_share(self) -> float:
        """Share of agent tokens in the loss that got exactly no credit."""
        return self.uncredited_tokens / self.agent_tokens if self.agent_tokens else 0.0


def turn_credits(
    rewards: Sequence[float],
    method: TurnMethod,
    gamma: float = 0.8,
    k: float = 2.0,
    *,
    compat: bool = False,
) -> list[float]:
    """Return one credit per turn.

    equalized: 1. em: 1/2 + (1 - e^(-k r)) / (1 - e^(-k)) / 2, r clamped to [0, 1] (compat: not
    clamped, 4 decimals). r2g: discounted reward to go. naive: the reward itself (the paper
    reports collapse).

    Raises:
        CreditError: unknown method.
    """
    if method == "equalized":
        return [1.0] * len(rewards)
    if method == "em":
        return [_em(float(r), k, compat) for r in rewards]
    if method == "r2g":
        return _reward_to_go(rewards, gamma)
    if method == "naive":
        return [float(r) for r in rewards]
    raise CreditError(
        f"unknown turn credit {method!r}", expected="one of equalized, em, r2g, naive"
    )


def trajectory_score(
    rewards: Sequence[float], method: ScoreMethod, gamma: float = 0.8, *, compat: bool = False
) -> float:
    """Return the score that compares a rollout with its group; 0 without a turn.

    Under `compat`, `sum` is the mean rounded to 4 decimals, as in the original code.

    Raises:
        CreditError: unknown method.
    """
    if method not in ("sum", "mean", "r2g"):
        raise CreditError(f"unknown trajectory score {method!r}", expected="one of sum, mean, r2g")
    if not rewards:
        return 0.0
    if method == "r2g":
        return _reward_to_go(rewards, gamma)[0]
    total = math.fsum(rewards) if all(map(math.isfinite, rewards)) else math.nan
    if method == "mean":
        return total / len(rewards)
    return round(total / len(rewards), 4) if compat else total


def group_advantages(
    scores: Sequence[float | None], group_ids: Sequence[Hashable], *, compat: bool = False
) -> list[float | None]:
    """Return (score - mean) / max(std, 1e-3) within each group, std over n - 1.

    None and non-finite scores are left out of the statistics and stay None. A group without
    spread and a group of one get exactly 0. Under `compat`: float32, epsilon 1e-6 instead of the
    floor, and a group of one keeps its score.

    Raises:
        CreditError: lengths differ.
    """
    out: list[float | None] = [None] * len(scores)
    for rows in _groups(scores, group_ids).values():
        known = [(i, float(s)) for i in rows if (s := scores[i]) is not None]
        normalize = _normalized_compat if compat else _normalized
        for (i, _), advantage in zip(known, normalize([s for _, s in known]), strict=True):
            out[i] = advantage
    return out


def leave_one_out(
    scores: Sequence[float | None], group_ids: Sequence[Hashable]
) -> list[float | None]:
    """Return each score minus the mean of the others, over their std unless that is below 1e-3.

    Raises:
        CreditError: lengths differ.
    """
    out: list[float | None] = [None] * len(scores)
    for rows in _groups(scores, group_ids).values():
        known = {i: float(s) for i in rows if (s := scores[i]) is not None}
        for i, score in known.items():
            others = [s for j, s in known.items() if j != i]
            if not others:
                out[i] = 0.0
                continue
            mean, std = _moments(others)
            out[i] = (score - mean) / std if std >= STD_FLOOR else score - mean
    return out


def broadcast(
    advantage: float,
    credits: Sequence[float],
    token_counts: Sequence[int],
    zero: Zero = "uniform",
    *,
    compat: bool = False,
) -> list[float]:
    """Return the advantage of each agent token, turn after turn.

    Token i of a turn with credit w gets advantage * w * N / W, where N counts the tokens with
    w != 0 and W is the sum of w over all tokens.

    Args:
        advantage: of the rollout.
        credits: one per turn.
        token_counts: agent tokens of each turn.
        zero: what happens when no token has credit; `compat` always drops.
        compat: allow negative credits, as the original does.

    Raises:
        CreditError: a negative credit, or lengths differ.
    """
    if len(credits) != len(token_counts):
        raise CreditError(f"{len(credits)} credits for {len(token_counts)} turns")
    if not compat and any(c < 0 for c in credits):
        raise CreditError(
            f"turn credit {min(credits)!r} is negative",
            expected="credits of at least 0; gyms give no negative rewards",
            mend="use turn credit em or equalized, or compat",
        )
    weights = [
        float(c) for c, count in zip(credits, token_counts, strict=True) for _ in range(count)
    ]
    credited = sum(w != 0 for w in weights)
    total = math.fsum(weights)
    if credited == 0 or total == 0:
        spread = advantage if zero == "uniform" and not compat else 0.0
        return [spread] * len(weights)
    return [advantage * w * credited / total for w in weights]


def assign(batch: Sequence[Rollout], config: CreditConfig) -> Assignment:
    """Assign an advantage to every token of a batch of rollouts.

    Raises:
        CreditError: a token names a step that has no reward, or a credit is negative.
    """
    scores = [_score(rollout, config) for rollout in batch]
    ids = [rollout.group for rollout in batch]
    if config.baseline == "group":
        advantages = group_advantages(scores, ids, compat=config.compat)
    else:
        advantages = leave_one_out(scores, ids)
    groups = _groups(scores, ids)
    big = {row for rows in groups.values() if len(rows) > 1 for row in rows}
    in_loss = [row in big for row in range(len(batch))]
    tokens: list[list[float]] = []
    uniform = agent = uncredited = 0
    for rollout, advantage, used in zip(batch, advantages, in_loss, strict=True):
        if advantage is None:
            tokens.append([0.0] * len(rollout.token_turns))
            continue
        credits = _credits(rollout, advantage, config)
        row, counts = _spread(rollout, advantage, credits, config)
        tokens.append(row)
        if used:
            missing = sum(n for n, c in zip(counts, credits, strict=True) if c == 0)
            kept = missing == sum(counts) and config.zero == "uniform" and not config.compat
            uniform += kept and missing > 0
            agent += sum(counts)
            uncredited += 0 if kept else missing
    return Assignment(
        tokens=tokens,
        advantages=advantages,
        scores=scores,
        in_loss=in_loss,
        removed=sum(s is None for s in scores),
        small_groups=sum(len(groups.get(group, ())) < 2 for group in dict.fromkeys(ids)),
        flat_groups=sum(_flat([scores[i] for i in rows], config) for rows in groups.values()),
        uniform_rows=uniform,
        agent_tokens=agent,
        uncredited_tokens=uncredited,
    )


def assign_each(batch: Sequence[Rollout], configs: Sequence[CreditConfig]) -> Assignment:
    """Assign as `assign` does, every rollout by its own config; a group has one.

    Raises:
        CreditError: as `assign`.
    """
    if len(set(configs)) == 1:
        return assign(batch, configs[0])
    parts: dict[CreditConfig, list[int]] = {}
    for place, config in enumerate(configs):
        parts.setdefault(config, []).append(place)
    done = [assign([batch[i] for i in places], config) for config, places in parts.items()]
    order = [place for places in parts.values() for place in places]

    def rows(of: Callable[[Assignment], list[T]]) -> list[T]:
        found = zip(order, (row for part in done for row in of(part)), strict=True)
        return [row for _, row in sorted(found, key=lambda pair: pair[0])]

    return Assignment(
        tokens=rows(lambda part: part.tokens),
        advantages=rows(lambda part: part.advantages),
        scores=rows(lambda part: part.scores),
        in_loss=rows(lambda part: part.in_loss),
        removed=sum(part.removed for part in done),
        small_groups=sum(part.small_groups for part in done),
        flat_groups=sum(part.flat_groups for part in done),
        uniform_rows=sum(part.uniform_rows for part in done),
        agent_tokens=sum(part.agent_tokens for part in done),
        uncredited_tokens=sum(part.uncredited_tokens for part in done),
    )


def _em(reward: float, k: float, compat: bool) -> float:  # noqa: FBT001 - private, one caller
    r = reward if compat or math.isnan(reward) else min(1.0, max(0.0, reward))
    credit = 0.5 + 0.5 * math.expm1(-k * r) / math.expm1(-k)  # exact for a tiny k too
    return round(credit, 4) if compat else credit


def _reward_to_go(rewards: Sequence[float], gamma: float) -> list[float]:
    out = [0.0] * len(rewards)
    following = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        following = out[t] = rewards[t] + gamma * following
    return out


def _groups(
    scores: Sequence[float | None], group_ids: Sequence[Hashable]
) -> dict[Hashable, list[int]]:
    """Return the rows with a usable score, by group."""
    if len(scores) != len(group_ids):
        raise CreditError(f"{len(scores)} scores for {len(group_ids)} group ids")
    groups: dict[Hashable, list[int]] = {}
    for i, (score, group) in enumerate(zip(scores, group_ids, strict=True)):
        if score is not None and math.isfinite(score):
            groups.setdefault(group, []).append(i)
    return groups


def _moments(scores: Sequence[float]) -> tuple[float, float]:
    """Return mean and sample standard deviation in two passes; the latter is 0 for one score."""
    n = len(scores)
    mean = math.fsum(scores) / n
    if n < 2:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((s - mean) ** 2 for s in scores) / (n - 1))


def _normalized(scores: Sequence[float]) -> list[float]:
    if len(scores) < 2 or max(scores) - min(scores) < _EQUAL:
        return [0.0] * len(scores)
    mean, std = _moments(scores)
    return [(s - mean) / max(std, STD_FLOOR) for s in scores]


def _normalized_compat(scores: Sequence[float]) -> list[float]:
    """Repeat the original's float32 arithmetic, each operation rounded."""
    values = [_f32(s) for s in scores]
    mean, std = 0.0, 1.0
    if len(values) > 1:
        mean = _f32(_f32_sum(values) / len(values))
        squares = [_f32(_f32(v - mean) ** 2) for v in values]
        std = _f32(math.sqrt(_f32(_f32_sum(squares) / (len(values) - 1))))
    below = _f32(std + _f32(_COMPAT_EPSILON))
    return [_f32(_f32(v - mean) / below) for v in values]


def _f32(value: float) -> float:
    """Round to the nearest float32."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _f32_sum(values: Sequence[float]) -> float:
    total = 0.0
    for value in values:
        total = _f32(total + value)
    return total


def _flat(scores: Sequence[float | None], config: CreditConfig) -> bool:
    """Tell whether a group of at least two has no spread to learn from.

    Leaving one out, it is enough that the others of one member have none.
    """
    known = [s for s in scores if s is not None]
    if len(known) < 2:
        return False
    if config.baseline == "group":
        return max(known) - min(known) < _EQUAL
    rest = [known[:i] + known[i + 1 :] for i in range(len(known))]
    return any(_moments(others)[1] < STD_FLOOR for others in rest)


def _score(rollout: Rollout, config: CreditConfig) -> float | None:
    if not rollout.valid:
        return None
    score = trajectory_score(rollout.rewards, config.score, config.gamma, compat=config.compat)
    return score if math.isfinite(score) else None


def _credits(rollout: Rollout, advantage: float, config: CreditConfig) -> list[float]:
    blame_alike = config.negative == "equalized" and advantage < 0
    method: TurnMethod = "equalized" if blame_alike else config.turn
    return turn_credits(rollout.rewards, method, config.gamma, config.k, compat=config.compat)


def _spread(
    rollout: Rollout, advantage: float, credits: Sequence[float], config: CreditConfig
) -> tuple[list[float], list[int]]:
    """Return the token advantages of a row and its agent tokens per turn."""
    counts = [0] * len(credits)
    for turn in rollout.token_turns:
        if turn == NOT_AGENT:
            continue
        if not 0 <= turn < len(credits):
            raise CreditError(
                f"a token belongs to step {turn}, but there are {len(credits)} rewards",
                expected="one reward per step, and NOT_AGENT on all other tokens",
            )
        counts[turn] += 1
    flat = broadcast(advantage, credits, counts, config.zero, compat=config.compat)
    starts = [sum(counts[:turn]) for turn in range(len(counts))]
    row = [0.0 if t == NOT_AGENT else flat[starts[t]] for t in rollout.token_turns]
    return row, counts
