"""Published and hand-computed vectors of credit assignment: turns, scores, groups, tokens.

Rows that stand in the specification bear its number, G1 to G25.
"""

from __future__ import annotations

import pytest

from mimesim.train.credit import (
    NOT_AGENT,
    Assignment,
    CreditConfig,
    CreditError,
    Rollout,
    assign,
    broadcast,
    group_advantages,
    trajectory_score,
    turn_credits,
)


def near(values: object, places: float = 1e-6) -> object:
    return pytest.approx(values, abs=places)


@pytest.mark.parametrize(
    ("rewards", "method", "credits"),
    [
        pytest.param([0, 0, 1], "equalized", [1, 1, 1], id="G1"),
        pytest.param(
            *([0, 0.166667, 0.5, 0.8, 1], "em", [0.5, 0.663919, 0.865529, 0.961510, 1]), id="G2"
        ),
        pytest.param([0.4, 0, 0.7, 0, 1], "em", [0.818430, 0.5, 0.935662, 0.5, 1], id="G3"),
        ([0, 0.2, 0.5, 0.8, 1], "em", [0.5, 0.690640, 0.865529, 0.961510, 1]),
        pytest.param([3.0], "em", [1.0], id="G4"),
        pytest.param([0, 0, 1], "r2g", [0.64, 0.8, 1], id="G5"),
        pytest.param([0.4, 0, 0.7, 0, 1], "r2g", [1.2576, 1.072, 1.34, 0.8, 1], id="G6"),
        pytest.param([0.8, 0, 0.8, 1], "r2g", [1.824, 1.28, 1.6, 1], id="G7"),
        ([0.2, 0, 1], "r2g", [0.84, 0.8, 1.0]),
        ([0.2, 0, 1], "naive", [0.2, 0, 1]),
    ],
)
def test_turn_credits(rewards: list[float], method: str, credits: list[float]) -> None:
    assert turn_credits(rewards, method) == near(credits)


def test_g2_g4_turn_credits_compat() -> None:
    found = turn_credits([0, 0.166667, 0.5, 0.8, 1], "em", compat=True)
    assert found == [0.5, 0.6639, 0.8655, 0.9615, 1.0]
    assert turn_credits([3.0], "em", compat=True) == [1.0768]


@pytest.mark.parametrize(
    ("rewards", "total", "mean", "compat", "r2g"),
    [
        pytest.param([0.8, 0, 0.8, 1], 2.6, 0.65, 0.65, 1.824, id="G8"),
        pytest.param([0, 0, 1], 1, 0.333333, 0.3333, 0.64, id="G9"),
        ([0.2, 0, 1], 1.2, 0.4, 0.4, 0.84),
        pytest.param([1], 1, 1, 1, 1, id="G9, turn 1"),
        pytest.param([0, 1], 1, 0.5, 0.5, 0.8, id="G9, turn 2"),
        pytest.param([0] * 15 + [1], 1, 0.0625, 0.0625, 0.035184, id="G9, turn 16"),
    ],
)
def test_trajectory_scores(
    rewards: list[float], total: float, mean: float, compat: float, r2g: float
) -> None:
    assert trajectory_score(rewards, "sum") == near(total)
    assert trajectory_score(rewards, "mean") == near(mean)
    assert trajectory_score(rewards, "sum", compat=True) == near(compat)
    assert trajectory_score(rewards, "r2g") == near(r2g)


@pytest.mark.parametrize(
    ("scores", "default", "compat"),
    [
        pytest.param(
            *([1] + [0] * 7, [2.474874] + [-0.353553] * 7, [2.474867] + [-0.353552] * 7), id="G10"
        ),
        pytest.param([0.35] * 8, [0.0] * 8, [0.028882] * 8, id="G11"),
        pytest.param([0.5] * 8, [0.0] * 8, [0.0] * 8, id="G11, halves"),
        # The float32 result; the same formula in float64 would give -.495050 and 1.485149.
        pytest.param(
            *([0.5, 0.5, 0.5, 0.5002], [-0.05] * 3 + [0.15], [-0.495196] * 3 + [1.484999]),
            id="G12",
        ),
        pytest.param([0.7], [0.0], [0.699999], id="G13"),
        pytest.param(
            *([0.65, 0.25, 0.4, 0], [1.193381, -0.275396, 0.275396, -1.193381], None), id="G14"
        ),
        ([0.84, 1.2, 0, 0], [0.543694, 1.136814, -0.840254, -0.840254], None),
    ],
)
def test_group_advantages(
    scores: list[float], default: list[float], compat: list[float] | None
) -> None:
    ids = ["g"] * len(scores)
    assert group_advantages(scores, ids) == near(default)
    if compat is not None:
        assert group_advantages(scores, ids, compat=True) == near(compat)


@pytest.mark.parametrize(
    "scores",
    [[1] + [0] * 7, [0.35] * 8, [0.5] * 8, [0.5, 0.5, 0.5, 0.5002], [0.64, 0.8, 0, 0.5]],
)
def test_compat_is_what_torch_makes_of_the_original_formula(scores: list[float]) -> None:
    torch = pytest.importorskip("torch")
    single = torch.tensor(scores, dtype=torch.float32)
    theirs = (single - torch.mean(single)) / (torch.std(single) + 1e-6)
    assert group_advantages(scores, [0] * len(scores), compat=True) == near(theirs.tolist())


def test_constant_group_is_exactly_zero() -> None:
    assert group_advantages([0.35] * 8, [0] * 8) == [0.0] * 8


def test_g12_near_constant_compat_group_is_blown_up() -> None:
    found = group_advantages([0.5, 0.5, 0.5, 0.5002], [0] * 4, compat=True)
    assert found == near([-0.495050] * 3 + [1.485149], 2e-4)


def test_g20_invalid_member_is_left_out() -> None:
    found = group_advantages([0.64, 0.8, None, 0.5], [0] * 4)
    assert found[2] is None
    assert [a for a in found if a is not None] == near([-0.044412, 1.021466, -0.977054])


@pytest.mark.parametrize(
    ("advantage", "credits", "counts", "expected"),
    [
        pytest.param(1.5, [0.8, 1], [3, 2], [1.363636] * 3 + [1.704545] * 2, id="G15"),
        pytest.param(
            1.5,
            [0.64, 0.8, 1, 0],
            [2, 1, 2, 3],
            [1.176471] * 2 + [1.470588] + [1.838235] * 2 + [0] * 3,
            id="G16",
        ),
        pytest.param(-1, [0.5, 1], [4, 1], [-0.833333] * 4 + [-1.666667], id="G17"),
        (1, [0.84, 0.8, 1.0], [2, 1, 1], [0.965517] * 2 + [0.919540, 1.149425]),
        (1, [0.690640, 0.5, 1.0], [2, 1, 1], [0.958796] * 2 + [0.694136, 1.388272]),
        (-1, [1, 1, 0], [2, 1, 1], [-1, -1, -1, 0]),
    ],
)
def test_broadcast(
    advantage: float, credits: list[float], counts: list[int], expected: list[float]
) -> None:
    assert broadcast(advantage, credits, counts) == near(expected)


def test_g18_broadcast_without_credit() -> None:
    assert broadcast(-0.5, [0, 0], [3, 2]) == [-0.5] * 5
    assert broadcast(-0.5, [0, 0], [3, 2], zero="drop") == [0.0] * 5
    assert broadcast(-0.5, [0, 0], [3, 2], compat=True) == [0.0] * 5


def test_g19_broadcast_refuses_negative_credit() -> None:
    with pytest.raises(CreditError, match="negative"):
        broadcast(1, [1, -0.9], [1, 1])
    assert broadcast(1, [1, -0.9], [1, 1], compat=True) == near([20, -18])


def _row(rewards: list[float], counts: list[int], group: str = "g") -> Rollout:
    tokens: list[int] = []
    for turn, count in enumerate(counts):
        tokens += [turn] * count + [NOT_AGENT]
    return Rollout(group, rewards, tokens)


BATCH = [
    _row([0, 0, 1], [2, 1, 2]),
    _row([0, 1], [2, 2]),
    _row([0, 0, 0], [1, 1, 1]),
    _row([0.5, 0], [2, 1]),
]


def agent_tokens(found: Assignment) -> list[list[float]]:
    return [
        [value for value, turn in zip(values, row.token_turns, strict=True) if turn != NOT_AGENT]
        for values, row in zip(found.tokens, BATCH, strict=True)
    ]


def rows(found: Assignment) -> list[float]:
    return [value for row in agent_tokens(found) for value in row]


A_R2G = [0.448257, 0.910973, -1.402609, 0.043380]


def test_g21_r2g_r2g_end_to_end() -> None:
    found = assign(BATCH, CreditConfig(turn="r2g", score="r2g"))
    assert found.scores == near([0.64, 0.8, 0, 0.5])
    assert found.advantages == near(A_R2G)
    expected = [0.351574] * 2 + [0.439467] + [0.549334] * 2
    expected += [0.809754] * 2 + [1.012192] * 2 + [-1.402609] * 3 + [0.043380] * 2 + [0]
    assert rows(found) == near(expected)
    assert (found.uniform_rows, found.uncredited_tokens, found.agent_tokens) == (1, 1, 15)
    assert found.uncredited_token_share == near(1 / 15)


def test_g21_r2g_r2g_compat_drops_the_failed_rollout() -> None:
    found = assign(BATCH, CreditConfig(turn="r2g", score="r2g", compat=True))
    assert found.advantages == near([0.448255, 0.910970, -1.402605, 0.043380])
    assert agent_tokens(found)[2] == [0.0] * 3
    assert found.uniform_rows == 0
    assert found.uncredited_tokens == 4


def test_g22_equalized_r2g_is_constant_per_row() -> None:
    found = assign(BATCH, CreditConfig(turn="equalized", score="r2g"))
    sizes = (5, 4, 3, 3)
    assert rows(found) == near([a for a, n in zip(A_R2G, sizes, strict=True) for _ in range(n)])


def test_g23_em_compat_sum() -> None:
    found = assign(BATCH, CreditConfig(turn="em", score="sum", compat=True))
    assert found.scores == near([0.3333, 0.5, 0, 0.25])
    assert found.advantages == near([0.299883, 1.100052, -1.299975, -0.099961])
    expected = [0.21420] * 3 + [0.42840] * 2 + [0.73337] * 2 + [1.46674] * 2
    expected += [-1.29997] * 3 + [-0.11634] * 2 + [-0.06721]
    assert rows(found) == near(expected, 1e-5)


@pytest.mark.parametrize(
    ("score", "scores", "advantages"),
    [
        pytest.param("mean", [0.333333, 0.5, 0, 0.25], [0.3, 1.1, -1.3, -0.1], id="G24"),
        pytest.param(
            *("sum", [1, 1, 0, 0.5], [0.783349, 0.783349, -1.305582, -0.261116]), id="G25"
        ),
    ],
)
def test_equalized_end_to_end(score: str, scores: list[float], advantages: list[float]) -> None:
    found = assign(BATCH, CreditConfig(turn="equalized", score=score))
    assert found.scores == near(scores)
    assert found.advantages == near(advantages)
    assert [set(row) for row in agent_tokens(found)] == [{a} for a in found.advantages]


def test_failed_rollouts_contribute_nothing_under_drop() -> None:
    batch = [_row([0.2, 0, 1], [1, 1, 1]), _row([1.2], [1]), _row([0], [2]), _row([0, 0], [1, 1])]
    found = assign(batch, CreditConfig(turn="r2g", score="r2g", zero="drop"))
    assert found.advantages == near([0.5437, 1.1368, -0.8403, -0.8403], 1e-4)
    assert set(found.tokens[2] + found.tokens[3]) == {0.0}
