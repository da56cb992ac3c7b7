"""The verl plug-in, as far as it goes without verl and without a GPU."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mimesim.errors import CallerError, ConfigError, EnvironmentFault, MissingExtraError
from mimesim.rollout.tokens import TokenRollout, TurnSpan
from mimesim.train.losses import csd_loss
from mimesim.train.teacher import NotedTurn, branches, scatter
from mimesim.train.verl_plugin import adapters
from mimesim.train.verl_plugin.rows import TURNS, loop_output, teacher_columns, teacher_rows
from mimesim.train.verl_plugin.settings import check_settings
from mimesim.train.verl_plugin.term import Noted, csd_losses, unpacked

ROLLOUT = TokenRollout(
    prompt_ids=(1, 2, 3),
    completion_ids=(10, 11, 20, 21, 12),
    env_mask=(1, 1, 0, 0, 1),
    logprobs=(-0.5, -0.6, 0.0, 0.0, -0.7),
    spans=(TurnSpan(0, 2, 1), TurnSpan(4, 5, 1)),
)
TURNS_NOTED = [NotedTurn(0, 2, 1, (7, 8), (9,)), NotedTurn(4, 5, 1, (7,))]
GOOD = {
    "loss_mode": "csd",
    "use_task_rewards": True,
    "use_policy_gradient": False,
    "loss_max_clamp": None,
    "distillation_loss_coef": 0.01,
}


def batch() -> tuple[torch.Tensor, Noted, torch.Tensor]:
    """Two rows of four tokens: three are noted, one of them with a placebo, one is padding."""
    student = torch.tensor([[-1.0, -2.0, -3.0, -0.5], [-0.1, -0.2, -0.3, -0.4]], requires_grad=True)
    noted = torch.tensor([[-0.5, -2.5, -9.0, -9.0], [-0.3, -9.0, -9.0, float("nan")]])
    placebo = torch.tensor([[-0.7, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, float("nan")]])
    kind = torch.tensor([[2.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]])
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 0]])
    return student, Noted(noted, placebo, kind), mask


def test_the_mean_verl_takes_is_the_loss_of_the_trainer() -> None:
    student, teacher, mask = batch()
    losses, logged = csd_losses(student, teacher, mask, beta=5.0)
    mean = losses.sum() / mask.sum()
    (own,) = torch.autograd.grad(mean, student)

    gap = torch.tensor([[0.2, -0.5, 0.0, 0.0], [-0.2, 0.0, 0.0, 0.0]])
    noted = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0]])
    wanted = csd_loss(student, gap, noted, beta=5.0, norm=torch.tensor(3.0))
    (theirs,) = torch.autograd.grad(wanted, student)
    assert losses.shape == (2, 4)
    torch.testing.assert_close(mean, wanted)
    torch.testing.assert_close(own, theirs)
    assert logged["csd/scale"] == 2.0
    assert logged["csd/noted_share"] == 0.5


def test_outside_noted_turns_is_nothing_and_nan_has_no_effect() -> None:
    student, teacher, mask = batch()
    losses, _ = csd_losses(student, teacher, mask, beta=5.0)
    assert (losses != 0).tolist() == [[True, True, False, False], [True, False, False, False]]


def test_without_notes_the_loss_is_a_connected_zero() -> None:
    student, teacher, mask = batch()
    losses, _ = csd_losses(student, teacher._replace(kind=torch.zeros(2, 4)), mask, beta=5.0)
    losses.sum().backward()
    assert student.grad is not None
    assert student.grad.abs().sum() == 0


def test_settings_as_needed_pass() -> None:
    check_settings(GOOD)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("loss_mode", "k3"),
        ("use_task_rewards", False),
        ("use_policy_gradient", True),
        ("use_policy_gradient", 0),
        ("loss_max_clamp", 10.0),
        ("distillation_loss_coef", 0.0),
        ("distillation_loss_coef", True),
    ],
)
def test_a_wrong_setting_is_named(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"distillation_loss\.{key}: .*to mend: .*{key}="):
        check_settings({**GOOD, key: value})


@pytest.mark.parametrize("key", list(GOOD))
def test_a_setting_left_to_verl_is_named(key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        check_settings({k: v for k, v in GOOD.items() if k != key})


def test_the_record_in_the_shape_of_verl() -> None:
    fields = loop_output(ROLLOUT, reward=0.25, turns=TURNS_NOTED)
    assert fields["prompt_ids"] == [1, 2, 3]
    assert fields["response_ids"] == [10, 11, 20, 21, 12]
    assert fields["response_mask"] == [1, 1, 0, 0, 1]
    assert fields["response_logprobs"] == [-0.5, -0.6, 0.0, 0.0, -0.7]
    assert (fields["reward_score"], fields["num_turns"]) == (0.25, 2)
    assert fields["extra_fields"] == {TURNS: TURNS_NOTED, "teacher": "cached"}


def test_noted_contexts_put_the_note_before_the_header() -> None:
    rows = [ids for _, ids in teacher_rows((1, 2, 3), ROLLOUT.completion_ids, TURNS_NOTED)]
    assert rows == [
        [1, 2, 7, 8, 3, 10, 11],
        [1, 2, 9, 3, 10, 11],
        [1, 2, 3, 10, 11, 20, 7, 21, 12],
    ]


def test_scores_come_back_to_where_the_trainer_puts_them() -> None:
    """A stub server's log-probs: minus the token they are about, one place to its left."""

    async def generate(*, prompt_ids: list[int], **_: Any) -> Any:
        values = [[-float(token)] for token in prompt_ids[1:]] + [[0.0]]
        return SimpleNamespace(extra_fields={"prompt_logprobs": values})

    rows = teacher_rows(ROLLOUT.prompt_ids, ROLLOUT.completion_ids, TURNS_NOTED)
    found, scores = asyncio.run(adapters.scored(generate, rows))
    assert scores == [[-10.0, -11.0], [-10.0, -11.0], [-12.0]]
    columns = teacher_columns(found, scores, prompt=3, response=5)
    assert len(columns) == 8
    ours = unpacked(torch.tensor(columns[2:7])[None])  # the cut that verl makes for its response

    own = branches([ROLLOUT.prompt_ids], [ROLLOUT.completion_ids], [TURNS_NOTED])
    theirs = scatter(own, [torch.tensor(s) for s in scores], torch.Size((1, 5)), "cpu")
    torch.testing.assert_close(ours.noted, theirs.noted)
    torch.testing.assert_close(ours.placebo, theirs.placebo)
    assert ours.kind.tolist() == [[2.0, 2.0, 0.0, 0.0, 1.0]]


def test_scores_of_an_unnoted_teacher_are_refused() -> None:
    with pytest.raises(CallerError, match="noted teacher"):
        unpacked(torch.zeros(1, 5, 1))


def test_a_server_that_scores_too_little_is_told() -> None:
    async def generate(**_: Any) -> Any:
        return SimpleNamespace(extra_fields={"prompt_logprobs": [0.0]})

    rows = teacher_rows(ROLLOUT.prompt_ids, ROLLOUT.completion_ids, TURNS_NOTED)
    with pytest.raises(CallerError, match="1 log-probs for 7 tokens"):
        asyncio.run(adapters.scored(generate, rows))


def test_the_loss_as_verl_calls_it() -> None:
    student, teacher, mask = batch()
    data = {"response_mask": mask, "teacher_logprobs": torch.stack(teacher, -1)}
    loss = adapters._loss(lambda tensor, _: tensor)
    losses, _ = loss(None, None, {"log_probs": student}, data)
    torch.testing.assert_close(losses, csd_losses(student, teacher, mask, beta=5.0)[0])


def test_missing_verl_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(adapters, "version", absent)
    with pytest.raises(MissingExtraError, match=r"mimesim\[verl\].*environment of its own"):
        adapters.register()


def test_another_verl_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters, "version", lambda _: "0.8.0")
    with pytest.raises(EnvironmentFault, match=r"verl 0\.8\.0 is installed.*0\.9\.1"):
        adapters.check_verl()


def test_both_names_must_be_known() -> None:
    adapters.assert_registered({"csd": 1}, {"mimesis_user": 1})
    with pytest.raises(CallerError, match="agent loop 'mimesis_user'"):
        adapters.assert_registered({"csd": 1}, {})
    with pytest.raises(CallerError, match="distillation loss 'csd'"):
        adapters.assert_registered({}, {"mimesis_user": 1})


@pytest.mark.parametrize("name", ["", "json", "json:", "no_such_module:f"])
def test_a_player_that_is_none_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIMESIM_VERL_PLAYER", name)
    with pytest.raises(ConfigError, match="module:function"):
        adapters.player()


def test_verl_is_imported_by_nobody_unasked() -> None:
    code = (
        "import sys, mimesim; assert not any(m.startswith(('verl', 'mimesim.train')) "
        "for m in sys.modules); import mimesim.train.verl_plugin; "
        "assert not {'verl', 'trl', 'ray'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PATH": ""})
