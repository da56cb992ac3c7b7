"""Properties of credit assignment, and the numeric cases other trainers got wrong."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mimesim.train.credit import (
    NOT_AGENT,
    CreditConfig,
    CreditError,
    Rollout,
    assign,
    broadcast,
    group_advantages,
    leave_one_out,
    turn_credits,
)

unit = st.floats(0, 1)
scores = st.lists(unit, min_size=2, max_size=8)


@st.composite
def rollouts(draw: st.DrawFn) -> list[Rollout]:
    out = []
    for _ in range(draw(st.integers(2, 6))):
        rewards = draw(st.lists(unit, min_size=1, max_size=5))
        turns = st.sampled_from([NOT_AGENT, *range(len(rewards))])
        out.append(Rollout("g", rewards, draw(st.lists(turns, max_size=12))))
    return out


def test_one_of_the_others_alike_is_not_divided_by_noise() -> None:
    """C-RL-01: seven equal rewards have no spread, in double and in single precision."""
    found = leave_one_out([1.0] + [0.62] * 7, [0] * 8)
    assert found[0] == pytest.approx(0.38)
    assert all(a is not None and abs(a) < 1 for a in found)
    config = CreditConfig(baseline="leave_one_out")
    batch = [Rollout(0, [r], [0]) for r in [1.0] + [0.62] * 7]
    result = assign(batch, config)
    assert result.flat_groups == 1
    assert result.tokens[0] == pytest.approx([0.38])
    single = 0.6200000047683716  # the float32 nearest to .62
    assert leave_one_out([1.0] + [single] * 7, [0] * 8)[0] == pytest.approx(0.38, abs=1e-6)
    assert leave_one_out([0.5, None], [0, 0]) == [0.0, None]


def test_missing_scores_give_no_nan_and_no_loss() -> None:
    batch = [Rollout(1, [0.5], [0, 0])]
    batch += [Rollout(1, [0.5], [0], valid=False) for _ in range(3)]
    batch += [Rollout(2, [1.0], [0]), Rollout(2, [0.0], [0])]
    batch += [Rollout(2, [0.0], [0], valid=False), Rollout(2, [1.0], [0])]
    found = assign(batch, CreditConfig())
    assert found.advantages[:4] == [0.0, None, None, None]
    assert found.in_loss == [False] * 4 + [True, True, False, True]
    assert found.tokens[0] == [0.0, 0.0]
    assert found.tokens[6] == [0.0]
    assert found.advantages[4:] == pytest.approx([0.577350, -1.154701, None, 0.577350], abs=1e-6)
    assert (found.removed, found.small_groups, found.flat_groups) == (4, 1, 0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_reward_that_is_no_number_poisons_nobody(bad: float) -> None:
    batch = [Rollout(0, [r], [0]) for r in (1.0, bad, 0.0)]
    for turn in ("equalized", "em", "r2g"):
        found = assign(batch, CreditConfig(turn=turn))
        assert found.advantages[1] is None
        assert found.removed == 1
        assert [row[0] for row in found.tokens] == pytest.approx([0.70710678, 0.0, -0.70710678])


def test_a_group_without_any_valid_member_is_counted() -> None:
    found = assign([Rollout(0, [1.0], [0], valid=False)], CreditConfig())
    assert (found.small_groups, found.tokens, found.uncredited_token_share) == (1, [[0.0]], 0.0)


def test_a_rollout_without_a_step_scores_zero() -> None:
    found = assign([Rollout(0, [], []), Rollout(0, [1.0], [0])], CreditConfig())
    assert found.scores == [0.0, 1.0]
    assert found.tokens[0] == []


def test_blame_can_be_spread_alike() -> None:
    batch = [Rollout(0, [0.5, 0.0], [0, 1]), Rollout(0, [1.0, 1.0], [0, 1])]
    best_blamed = assign(batch, CreditConfig(turn="em")).tokens[0]
    assert best_blamed[0] < best_blamed[1] < 0
    alike = assign(batch, CreditConfig(turn="em", negative="equalized"))
    assert alike.tokens[0] == [alike.advantages[0]] * 2
    assert alike.tokens[1] == assign(batch, CreditConfig(turn="em")).tokens[1]


def test_wrong_use_is_told() -> None:
    with pytest.raises(CreditError, match="step 1, but there are 1 rewards"):
        assign([Rollout(0, [1.0], [0, 1]), Rollout(0, [0.0], [0])], CreditConfig())
    with pytest.raises(CreditError, match="2 scores for 1 group"):
        group_advantages([1, 2], [0])
    with pytest.raises(CreditError, match="1 credits for 2 turns"):
        broadcast(1, [1], [1, 1])
    with pytest.raises(CreditError, match=r"gamma is 1\.5; expected 0 to 1"):
        CreditConfig(gamma=1.5)
    with pytest.raises(CreditError, match="k is inf"):
        CreditConfig(k=math.inf)
    with pytest.raises(CreditError, match="negative"):
        assign(
            [Rollout(0, [-0.5, 0.1], [0, 1]), Rollout(0, [1.0], [0])],
            CreditConfig(turn="r2g", score="r2g"),
        )
    with pytest.raises(CreditError, match="unknown turn credit 'best'"):
        turn_credits([1], "best")  # type: ignore[arg-type]


@given(rollouts(), st.sampled_from(["equalized", "em", "r2g"]), st.sampled_from(["sum", "r2g"]))
def test_mean_over_credited_tokens_is_the_advantage(
    batch: list[Rollout], turn: str, score: str
) -> None:
    found = assign(batch, CreditConfig(turn=turn, score=score))
    for row, values, advantage in zip(batch, found.tokens, found.advantages, strict=True):
        mine = [v for v, t in zip(values, row.token_turns, strict=True) if t != NOT_AGENT]
        others = [v for v, t in zip(values, row.token_turns, strict=True) if t == NOT_AGENT]
        assert set(others) <= {0.0}
        credited = [v for v in mine if v != 0]
        assert advantage is not None
        if credited:
            assert sum(credited) / len(credited) == pytest.approx(advantage, abs=1e-9)


def test_em_stays_a_credit_whatever_its_sharpness() -> None:
    for k in (1e-18, 1e-9, 2.0, 700.0, 1e6):
        first, last = turn_credits([0.0, 1.0], "em", k=k)
        assert (first, last) == (0.5, 1.0)
    assert turn_credits([0.25], "em", k=1e-18) == pytest.approx([0.625])


@given(scores, st.randoms(use_true_random=False))
def test_permuting_the_group_permutes_advantages(values: list[float], rng: object) -> None:
    order = list(range(len(values)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    found = group_advantages(values, [0] * len(values))
    moved = group_advantages([values[i] for i in order], [0] * len(values))
    assert moved == [found[i] for i in order]


@given(scores, st.floats(-5, 5))
def test_a_constant_on_all_scores_changes_nothing(values: list[float], shift: float) -> None:
    assume(abs(max(values) - min(values) - 1e-8) > 1e-12)
    ids = [0] * len(values)
    moved = group_advantages([v + shift for v in values], ids)
    assert moved == pytest.approx(group_advantages(values, ids), abs=1e-6)


@given(rollouts())
def test_equalized_is_plain_grpo(batch: list[Rollout]) -> None:
    found = assign(batch, CreditConfig())
    for row, values, advantage in zip(batch, found.tokens, found.advantages, strict=True):
        plain = [0.0 if t == NOT_AGENT else advantage for t in row.token_turns]
        assert values == pytest.approx(plain)


@given(rollouts(), st.sampled_from(["equalized", "em", "r2g"]))
def test_default_and_compat_agree_where_the_flaws_do_not_bite(
    batch: list[Rollout], turn: str
) -> None:
    default = assign(batch, CreditConfig(turn=turn, score="r2g"))
    known = [s for s in default.scores if s is not None]
    mean = sum(known) / len(known)
    spread = math.sqrt(sum((s - mean) ** 2 for s in known) / (len(known) - 1))
    assume(spread > 0.05 and all(row.rewards[-1] > 0 for row in batch))
    compat = assign(batch, CreditConfig(turn=turn, score="r2g", compat=True))
    assert compat.advantages == pytest.approx(default.advantages, abs=1e-4)
    for ours, theirs in zip(default.tokens, compat.tokens, strict=True):
        # em rounds credits to 4 decimals, each at least .5, which moves a token a little more
        near = 1e-3 if turn == "em" else 1e-4
        assert theirs == pytest.approx(ours, rel=near, abs=1e-4)


@given(st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), unit)), max_size=12))
def test_groups_do_not_see_each_other(pairs: list[tuple[int, float | None]]) -> None:
    together = group_advantages([s for _, s in pairs], [g for g, _ in pairs])
    for group in {g for g, _ in pairs}:
        mine = [i for i, (g, _) in enumerate(pairs) if g == group]
        alone = group_advantages([pairs[i][1] for i in mine], [0] * len(mine))
        assert [together[i] for i in mine] == alone
