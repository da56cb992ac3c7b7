"""Plans of the project's recipes: ranges, what moves them, the published costs, equal defaults."""

from __future__ import annotations

import importlib
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from mimesim import config as configs
from mimesim.errors import ConfigError, UnknownNameError
from mimesim.train.plan import Asked, Plan, plan_recipe
from mimesim.train.plan.assumptions import assumed
from mimesim.train.plan.money import Prices, TokenPrice, default_prices, read_prices
from mimesim.train.plan.recipe import VIEWS, AgentSftView, read

ROOT = Path(__file__).resolve().parents[3]
TRAININGS = [
    path
    for path in sorted((ROOT / "recipes").rglob("*.toml"))
    if tomllib.loads(path.read_text("utf-8")).get("x-config") in VIEWS
]
SERVED = "http://127.0.0.1:8001/v1"


def plan(name: str, *overrides: str, **asked: Any) -> Plan:
    return plan_recipe(Path(name), Asked(overrides=overrides, prices=default_prices(), **asked))


@pytest.mark.parametrize("path", TRAININGS, ids=lambda p: p.stem)
def test_the_three_sides_are_in_order(path: Path) -> None:
    found = plan_recipe(path, Asked(prices=default_prices()))
    fast, point, slow = found.sides.values()
    for read_off in (
        lambda e: e.seconds,
        lambda e: e.gpu_hours,
        lambda e: e.trained,
        lambda e: e.teacher,
        lambda e: e.generated,
        lambda e: e.memory.whole,
        lambda e: e.dollars,
    ):
        assert 0 <= read_off(fast) <= read_off(point) <= read_off(slow)
    assert fast.seconds > 0


def same(view: Any, whole: Any, path: str = "") -> list[str]:
    """Return where a view says something else than the config that it is a view of."""
    found = []
    for entry in fields(view):
        here, key = getattr(view, entry.name), f"{path}{entry.name}"
        if isinstance(view, AgentSftView) and entry.name in ("token_budget", "stage"):
            continue  # the plan's own words: the config has no such fields
        there = getattr(whole, entry.name)
        if is_dataclass(here) and is_dataclass(there):
            found += same(here, there, f"{key}.")
        elif isinstance(here, tuple) and here and is_dataclass(here[0]):
            assert len(here) == len(there)
            found += [p for a, b in zip(here, there, strict=True) for p in same(a, b, f"{key}.")]
        elif entry.name not in ("init", "model", "coach") and here != there:
            found.append(f"{key}: {here!r}, not {there!r}")
    return found


@pytest.mark.parametrize("path", TRAININGS, ids=lambda p: p.stem)
def test_a_view_reads_what_the_training_reads(path: Path) -> None:
    module, _, name = tomllib.loads(path.read_text("utf-8"))["x-config"].partition(":")
    cls = vars(importlib.import_module(module))[name]
    assert same(read(path, Asked()).view, configs.load(cls, [path], env={})) == []


@pytest.mark.parametrize("kind", [k for k in VIEWS if "Rl" in k or "agent" in k or "midtrain" in k])
def test_a_view_has_the_defaults_of_its_config(kind: str) -> None:
    module, _, name = kind.partition(":")
    config = vars(importlib.import_module(module))[name]
    assert same(VIEWS[kind](), config()) == []


def test_a_copied_recipe_is_planned_as_the_original(tmp_path: Path) -> None:
    text = (ROOT / "recipes/paper/agent-csd.toml").read_text("utf-8")
    (tmp_path / "mine.toml").write_text(text, "utf-8")
    mine = plan_recipe(tmp_path / "mine.toml", Asked(prices=default_prices()))
    assert mine.sides == plan("csd").sides


def test_more_machines_are_faster_and_not_cheaper() -> None:
    small, large = plan("midtrain-9b", gpus=16), plan("midtrain-9b", gpus=32)
    for side in ("fast", "point", "slow"):
        assert large.sides[side].seconds == pytest.approx(small.sides[side].seconds / 2)
        assert large.sides[side].gpu_hours == pytest.approx(small.sides[side].gpu_hours)
        assert large.sides[side].memory.weights == small.sides[side].memory.weights / 2
    assert plan("csd", gpus=32).sides["point"].gpu_hours > plan("csd").sides["point"].gpu_hours


def test_the_work_of_mid_training_by_hand() -> None:
    found = plan("midtrain-9b", gpu="a100-80gb", gpus=32)
    shape = found.setting.shape
    per_token = 4 * shape.forward_flops(467 / 2)  # forward, backward, and forward again
    seconds = 400e6 * per_token * 1.05 * 1.05 / (32 * 312e12 * 0.5)
    assert found.sides["fast"].seconds == pytest.approx(seconds)
    assert shape.forward_flops(0) == pytest.approx(
        2 * (shape.parameters - 248_320 * 4096), rel=0.01
    )


def test_csd_costs_a_teacher_and_a_coach() -> None:
    csd, grpo = plan("csd").sides["point"], plan("grpo-mimesis").sides["point"]
    assert grpo.teacher == 0 < csd.teacher
    assert [call.role for call in grpo.calls] == ["user", "judge"]
    assert [call.role for call in csd.calls] == ["user", "judge", "coach"]
    assert csd.batch is not None
    assert grpo.batch is not None
    assert csd.batch.teaching > 0 == grpo.batch.teaching
    assert csd.batch.updating == grpo.batch.updating
    assert plan("csd-mini", "arm='grpo'", "csd.alpha=0").sides["point"].teacher == 0


def test_the_placebo_is_a_second_branch_or_a_second_row() -> None:
    packed = {d: plan("csd", f"notes.debias={d}", "arm=none") for d in ("true", "false")}
    rows = {
        d: plan("csd", f"notes.debias={d}", "csd.teacher='rows'", "arm=none")
        for d in ("true", "false")
    }
    ratio = {
        form: found["true"].sides["point"].teacher / found["false"].sides["point"].teacher
        for form, found in (("packed", packed), ("rows", rows))
    }
    assert ratio["rows"] == pytest.approx(2)
    assert 1 < ratio["packed"] < 1.6


def test_notes_asked_one_by_one_take_long() -> None:
    slow, fast = (plan("csd", f"notes.concurrency={n}").sides["point"].batch for n in (16, 512))
    assert slow is not None
    assert fast is not None
    assert slow.coaching > 5 * fast.coaching


def test_who_is_paid() -> None:
    paid, free = plan("grpo-gpt55").sides["point"], plan("grpo-mimesis").sides["point"]
    assert {call.place for call in paid.calls} == {"remote"}
    assert {call.place for call in free.calls} == {"served"}
    assert free.dollars == 0.0
    (user,) = (call for call in paid.calls if call.role == "user")
    cached = assumed("cached", "point")
    per_million = user.prompt_tokens * (5 - 4.5 * cached) + user.completion_tokens * 30
    assert user.dollars == pytest.approx(per_million / 1e6)


def test_an_unpriced_model_is_unknown_and_not_free(tmp_path: Path) -> None:
    overrides = ("user='roleplay:openai:gpt-7@https://api.example.org/v1'",)
    found = plan("grpo-gpt55", *overrides)
    assert found.sides["point"].dollars is None
    assert any("no price" in warning for warning in found.warnings)
    own = tmp_path / "prices.toml"
    own.write_text('date = "2027-01"\nmodel.gpt-7 = { prompt = 1, completion = 2 }\n', "utf-8")
    priced = plan_recipe(Path("grpo-gpt55"), Asked(overrides=overrides, prices=read_prices(own)))
    assert priced.sides["point"].dollars is not None
    assert priced.price_date == "2027-01"
    assert "gpt-5.5" in read_prices(own).model
    assert Prices().model == {}
    with pytest.raises(ConfigError, match="completion"):
        TokenPrice(prompt=1, completion=-2)


def test_the_published_costs_stand_beside_estimates_of_their_kind() -> None:
    reading, steps = plan("midtrain").error, plan("rl-9b").error
    assert reading is not None
    assert steps is not None
    days = [seconds / 86_400 for seconds in (reading.fast, reading.point, reading.slow)]
    assert days == pytest.approx([1.56, 2.69, 4.64], abs=0.01)
    assert (reading.published, round(reading.off, 2), reading.inside) == (414_720.0, -0.44, False)
    assert [steps.fast, steps.point, steps.slow] == pytest.approx([119, 294, 977], abs=1)
    assert (steps.published, round(steps.off, 2), steps.inside) == (350.0, -0.16, True)
    for name in ("csd", "thought-9b", "sft-8b", "function-start"):
        assert plan(name).to_json()["published"] is None
    assert any("unvalidated" in warning for warning in plan("csd").warnings)


def test_a_mixture_of_users_is_counted_by_its_shares() -> None:
    asked = "users=[{name='preset:gpt-5.6',weight=3},{name='scripted:neutral',from_batch=90}]"
    mixed, alone = (
        next(
            call.calls
            for call in plan("grpo-mimesis", users, "batches=180").sides["point"].calls
            if call.role == "user"
        )
        for users in (asked, "user='preset:gpt-5.6'")
    )
    assert mixed == pytest.approx(alone * (1 + 0.75) / 2)  # a script costs no call


def test_a_mixture_of_gyms_is_counted() -> None:
    """Rows as published, epochs of them, and who is asked in which share of all turns."""
    found = plan("csd")
    trained = {gym: rows.trained for gym, rows in found.rows.items()}
    assert trained == {"travel": 879, "turtle": 402, "function": 190, "tau": 475, "persuade": 359}
    assert sum(trained.values()) == 2_305
    assert sum(rows.held for rows in found.rows.values()) == 121
    assert found.epochs == pytest.approx(180 * 64 / 2_305)
    assert found.to_json()["rows"]["tau"] == {"trained": 475, "held": 25}
    calls = {call.role: call.calls for call in found.sides["point"].calls}
    turns = calls["coach"]
    assert calls["user"] / turns == pytest.approx(1 - 190 / 2_305), "nobody is met in function"
    assert calls["judge"] / turns == pytest.approx((879 + 402 + 359) / 2_305)
    # each gym with its own user, one of whom is a script
    own = "gyms=[{gym='travel',rows=60,user='scripted:neutral'},{gym='turtle',rows=20}]"
    (user,) = (c for c in plan("grpo-mimesis", own).sides["point"].calls if c.role == "user")
    assert user.calls == pytest.approx(turns / 4)
    assert plan("csd-mini").rows == {}


def test_a_preset_is_where_its_address_says() -> None:
    places = {
        name: next(
            call.place
            for call in plan("grpo-mimesis", f"user='preset:{name}'").sides["point"].calls
            if call.role == "user"
        )
        for name in ("mimesis-9b", "gpt-5.6")
    }
    assert places == {"mimesis-9b": "served", "gpt-5.6": "remote"}


def test_memory_is_held_against_the_machine() -> None:
    whole = plan("midtrain-9b", sharded=False)
    assert "even at the fast end" in whole.warnings[0]
    held = whole.sides["fast"].memory
    shape = whole.setting.shape
    assert held.weights + held.gradients + held.optimizer == pytest.approx(16 * shape.parameters)
    lora = plan("midtrain-9b", "lora_rank=16", sharded=False).sides["fast"].memory
    assert lora.optimizer < held.optimizer / 50
    kept = plan("midtrain-9b", "launch.gradient_checkpointing=false").sides["point"].memory
    assert kept.activations == kept.kept > 5 * kept.checkpointed


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("steps = 1\n", "does not say what it is for"),
        ('x-config = "mimesim.corpora.build:BuildConfig"\n', "this recipe is for mimesim.corpora"),
        (
            'x-config = "mimesim.train.midtrain:UserConfig"\ntoken_budget = 0\n',
            "nothing says how much",
        ),
        (
            'x-config = "mimesim.train.agent:AgentConfig"\n[x-plan]\nturn = 3\n',
            "unknown key 'x-plan.turn'",
        ),
        ('x-config = "mimesim.train.agent:AgentConfig"\ngym = "chess"\n', "unknown gym 'chess'"),
        ("x-config = \n", "not a valid TOML file"),
    ],
)
def test_what_cannot_be_planned_is_told(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text, "utf-8")
    with pytest.raises((ConfigError, UnknownNameError), match=told):
        plan_recipe(path, Asked(model="tiny"))


def test_names_are_found_and_closest_ones_told() -> None:
    with pytest.raises(UnknownNameError, match=r"'csd-min' \(did you mean 'csd-mini'\?\)"):
        plan_recipe(Path("csd-min"))
    with pytest.raises(UnknownNameError, match="unknown machine 'b200'"):
        plan("csd-mini", gpu="b200")
