"""Whole matrices: several cells at once, a cell that is lost, what is missing, what is forecast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mimesim import jsonio
from mimesim.bench.config import Arm, EvaluationConfig, GymsConfig, MatrixConfig
from mimesim.bench.evaluate import evaluate
from mimesim.bench.forecast import forecast
from mimesim.bench.ready import missing, self_judge
from mimesim.cli.eval import app
from mimesim.errors import ConfigError, EnvironmentFault, UnknownNameError, UsageError
from mimesim.models.tiny import build_model, build_tokenizer
from mimesim.train.warmstart import vocabulary
from tests.support.stub_server import Fault, StubServer

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "eval" / "nine-users.toml"
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MOONSHOT_API_KEY")


def config(out: Path, **changes: Any) -> EvaluationConfig:
    settings: dict[str, Any] = {
        "arms": {"best": "oracle", "worst": "null"},
        "users": ("scripted:neutral", "scripted:realistic"),
        "matrix": MatrixConfig(tasks=4, seed=3, concurrency=4),
        "gyms": GymsConfig(names=("telepathy", "function")),
        "out": out,
    }
    return EvaluationConfig(**{**settings, **changes})


def test_cells_side_by_side_give_the_same_record(tmp_path: Path) -> None:
    one = evaluate(config(tmp_path / "one"))
    told: list[tuple[str, int, int]] = []
    many = evaluate(config(tmp_path / "many", jobs=4), lambda *said: told.append(said))
    assert many == one
    assert [(done, total) for _, done, total in told] == [(n, 6) for n in range(6)]
    assert {one.user for one in many.gym_averages} == {"scripted:neutral", "scripted:realistic"}
    assert [one.users for one in many.arm_averages] == [
        ("scripted:neutral", "scripted:realistic")
    ] * 2


def test_training_seeds_have_cells_of_their_own(tmp_path: Path) -> None:
    words = build_tokenizer(vocabulary())
    for seed, name in enumerate("ab"):
        build_model(words, seed).save_pretrained(tmp_path / name)
        words.save_pretrained(tmp_path / name)
    arms = tuple(
        Arm(label="mine", agent=f"policy:{tmp_path / name}", seed=seed, options={"max_tokens": 8})
        for seed, name in enumerate("ab")
    )
    chosen = config(
        tmp_path / "out",
        arms=(*arms, Arm(label="hasty", agent="scripted:eager")),
        agent_options={"temperature": 0.0},
        gyms=GymsConfig(),
        jobs=3,
    )
    record = evaluate(chosen)
    assert [(row.arm, row.user, row.seeds, row.n) for row in record.rows] == [
        ("mine", "scripted:neutral", (0, 1), 8),
        ("mine", "scripted:realistic", (0, 1), 8),
        ("hasty", "scripted:neutral", (0,), 4),
        ("hasty", "scripted:realistic", (0,), 4),
    ]
    assert record.seeds["training"] == (0, 1)
    (difference,) = record.differences
    assert (difference.arm, difference.baseline) == ("hasty", "mine")
    assert set(difference.per_seed) == {"seed 0", "seed 1"}
    folders = {path.name for path in (tmp_path / "out" / "cells" / "support-desk").iterdir()}
    assert folders >= {"mine-scripted-neutral", "mine-s1-scripted-neutral"}
    assert evaluate(chosen) == record


def test_a_user_that_dies_in_one_cell_costs_the_others_nothing(tmp_path: Path) -> None:
    """Two served users; one goes away after the preflight, and is back at the second start."""

    def dying(request: Any) -> Any:
        return Fault(status=503) if request.method == "POST" and not alive else "Yes"

    alive: list[bool] = []
    options = {"model_options": {"budget_s": 0.3, "backoff_s": 0.05, "api_key_env": ""}}
    with StubServer(["Yes"]) as good, StubServer(dying) as bad:
        users = tuple(f"roleplay:openai:stub@{server.url}" for server in (good, bad))
        chosen = config(
            tmp_path,
            arms={"best": "oracle"},
            users=users,
            user_options=dict.fromkeys(users, options),
            gyms=GymsConfig(names=("telepathy",)),
            give_up_after=3,
            jobs=2,
        )
        record = evaluate(chosen)
        (lost,) = record.lost
        assert (lost.arm, lost.seed, lost.user, lost.gym) == ("best", 0, users[1], "telepathy")
        assert "3 attempts in a row were lost" in lost.reason
        assert [row.user for row in record.rows] == [users[0]]
        assert record.arm_averages[0].incomplete == ("telepathy",)
        alive.append(True)
        again = evaluate(chosen)
    assert again.lost == ()
    assert [row.user for row in again.rows] == list(users)
    assert again.rows[0] == record.rows[0]


def test_a_matrix_without_one_finished_cell_is_an_error(tmp_path: Path) -> None:
    options = {"model_options": {"budget_s": 0.2, "backoff_s": 0.05, "api_key_env": ""}}
    with StubServer(lambda request: Fault(status=503) if request.method == "POST" else "x") as bad:
        user = f"roleplay:openai:stub@{bad.url}"
        with pytest.raises(EnvironmentFault, match="in a row were lost"):
            evaluate(
                config(
                    tmp_path,
                    arms={"best": "oracle"},
                    users=(user,),
                    user_options={user: options},
                    gyms=GymsConfig(names=("telepathy",)),
                    give_up_after=2,
                )
            )


def test_the_folder_of_another_run_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    evaluate(config(tmp_path, gyms=GymsConfig(names=("function",))))
    heard: list[str] = []
    with pytest.raises(UsageError, match=r"another configuration: .*matrix\.seed was 3, is 4"):
        evaluate(
            config(tmp_path, matrix=MatrixConfig(tasks=4, seed=4), jobs=4),
            lambda *said: heard.append(said[0]),
        )
    assert heard == []
    assert not (tmp_path / "cells" / "telepathy").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"arms": (Arm(label="a", agent="null"), Arm(label="a", agent="oracle"))},
            "'a' with seed 0 twice",
        ),
        ({"arms": (Arm(label=" ", agent="null"),)}, "empty label"),
        ({"jobs": 0}, "'jobs'"),
        ({"user_options": {"preset:gpt-5.6": {}}}, "who is no user here"),
        ({"arms": {"a b": "null", "a-b": "oracle"}}, "would share the folder"),
    ],
)
def test_what_makes_no_matrix_is_refused(tmp_path: Path, changes: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        evaluate(config(tmp_path, **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arms": {"a": "scripted:egger"}}, "did you mean 'scripted:eager'"),
        ({"arms": {"a": "polcy:x"}}, "did you mean 'policy'"),
        ({"users": ("scripted:neutrl",)}, "neutral"),
        ({"users": ("preset:gpt-56",)}, "did you mean 'gpt-5.6'"),
        ({"gyms": GymsConfig(names=("telepthy",))}, "did you mean 'telepathy'"),
        ({"gyms": GymsConfig(names=("all", "telepthy"))}, "did you mean 'telepathy'"),
        ({"gyms": GymsConfig(names=("telepathy",), judge="modl:x")}, "did you mean 'model'"),
    ],
)
def test_a_name_that_is_none_shows_in_the_forecast(
    tmp_path: Path, changes: Any, words: str
) -> None:
    with pytest.raises(UnknownNameError, match=words):
        forecast(config(tmp_path, **changes))


def test_what_is_missing_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    chosen = config(
        tmp_path,
        arms=(Arm(label="mine", agent=f"policy:{tmp_path}/none", seed=2),),
        users=("preset:gpt-5.6", "preset:kimi-k3", "trained:./none"),
    )
    found = missing(chosen)
    assert [line.partition(":")[0] for line in found] == [
        "arm 'mine, seed 2'",
        "preset",
        "preset",
        "user 'trained",
    ]
    assert "OPENAI_API_KEY" in found[1]
    assert "MOONSHOT_API_KEY" in found[2]
    with pytest.raises(
        EnvironmentFault, match=r"not ready: .*no model checkpoint.*MOONSHOT_API_KEY"
    ):
        evaluate(chosen)
    assert not (tmp_path / "cells").exists()


def test_every_user_can_judge_itself(tmp_path: Path) -> None:
    assert self_judge("scripted:neutral") == ("rule", {})
    assert self_judge("roleplay:embedded") == ("model:embedded", {})
    assert self_judge("trained:out/user") == ("model:hf:out/user", {})
    name, options = self_judge("preset:kimi-k3")
    assert name == "model:openai:kimi-k3@https://api.moonshot.ai/v1"
    assert options["model"]["api_key_env"] == "MOONSHOT_API_KEY"
    with pytest.raises(ConfigError, match="no model is known behind"):
        self_judge("tests.support.faulty:make")
    record = evaluate(config(tmp_path, gyms=GymsConfig(names=("search",), judge="self")))
    assert {(row.user, row.judge) for row in record.rows} == {
        ("scripted:neutral", "rule"),
        ("scripted:realistic", "rule"),
    }


# ---------------------------------------------------------------------------------- command line


def test_the_recipe_of_the_nine_users_is_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    arguments = ["agents", "--recipe", str(RECIPE), "--dry-run"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "448 cells" in shown.output
    assert "not ready: 5 things are missing" in shown.output
    result = CliRunner().invoke(app, [*arguments, "--json"])
    found = jsonio.loads(result.stdout.splitlines()[-1])
    assert (found["ready"], len(found["cells"]), len(found["missing"])) == (False, 448, 5)
    assert found["episodes"] == sum(cell["episodes"] for cell in found["cells"])
    parties = {row["party"] for row in found["calls_at_most"]}
    assert {"agent csd, seed 2", "user preset:osim-8b", "judge preset:osim-8b"} <= parties


def test_the_small_form_prints_every_format(tmp_path: Path) -> None:
    arguments = ["agents", "--recipe", str(RECIPE), "--quick", "--quiet", "--out", str(tmp_path)]
    arguments += ["--gyms", "function,telepathy", "--set", "matrix.tasks=3"]
    arguments += ["--set", "gyms.options={}", "--format", "md,latex,json,html", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    found = jsonio.loads(result.stdout.splitlines()[-1])
    assert [one["arm"] for one in found["arms"]] == ["oracle", "null"]
    assert len(found["references"]) == 5
    assert found["differences"][0]["p_holm"] is not None
    assert {path.name for path in tmp_path.glob("report.*")} == {
        "report.md",
        "report.tex",
        "report.html",
        "report.tables.json",
    }
    assert "(published)" in (tmp_path / "report.md").read_text("utf-8")


def test_arms_are_typed_with_their_seeds(tmp_path: Path) -> None:
    arguments = ["agents", "--gyms", "function", "--users", "scripted:neutral", "--dry-run"]
    arguments += ["--json", "--arm", "a=oracle", "--arm", "a@1=null"]
    found = jsonio.loads(CliRunner().invoke(app, arguments).stdout.splitlines()[-1])
    assert [(cell["arm"], cell["seed"]) for cell in found["cells"]] == [("a", 0), ("a", 1)]
    twice = CliRunner().invoke(app, [*arguments, "--arm", "a@1=oracle"])
    assert isinstance(twice.exception, ConfigError)
    assert "'a' with seed 1 twice" in str(twice.exception)
    wrong = CliRunner().invoke(app, [*arguments, "--format", "pdf"])
    assert isinstance(wrong.exception, UnknownNameError)
