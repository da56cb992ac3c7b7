"""TRL: a gym of ours as an environment of its GRPO trainer, with the real trainer and a tiny model."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.envs.load import load_tasks
from mimesim.envs.turns.agents import trace_of
from mimesim.errors import InfraError, UsageError
from mimesim.integrations.trl import GymToolEnv, environment

SETTINGS: dict[str, Any] = {"split": "test", "episodes": 2}
BROKEN = {"search": "tests.integrations.test_sessions:broken"}


def test_an_episode_is_acted_through_the_one_tool() -> None:
    env = environment("telepathy", **SETTINGS)()
    task = load_tasks("telepathy", split="test", count=2)[1]
    told = env.reset(task=1, prompt=[], unknown="column")
    assert "interact_with_env" in told
    assert str(task.hidden.get("target", "?")) not in told
    for choice, content in trace_of(task):
        heard = env.interact_with_env(choice, content)
    assert env.get_reward() == 1.0
    assert "over" in env.interact_with_env("action", "more?")
    assert heard
    assert env.reset(task=1) == told
    assert env.get_reward() == 0.0


def test_a_failure_is_no_reward_and_no_words() -> None:
    env = environment("search", gym_options=BROKEN, **SETTINGS)()
    env.reset(task=0)
    assert "credit" not in env.interact_with_env("search", "x")
    with pytest.raises(InfraError, match="out of credit"):
        env.get_reward()


def test_a_wrong_setting_is_told_before_the_training() -> None:
    with pytest.raises(UsageError):
        environment("telepathee")
    with pytest.raises(UsageError):
        environment("telepathy", agent="null")


def test_trl_sees_one_tool_and_a_reward() -> None:
    pytest.importorskip("trl")
    from transformers.utils import get_json_schema
    from trl import GRPOTrainer

    assert "environment_factory" in inspect.signature(GRPOTrainer.__init__).parameters
    public = [
        name
        for name, _ in inspect.getmembers(GymToolEnv, predicate=inspect.isfunction)
        if not name.startswith("_")
    ]
    assert public == ["get_reward", "interact_with_env", "reset"]
    schema = get_json_schema(environment("telepathy", **SETTINGS)().interact_with_env)
    assert schema["function"]["name"] == "interact_with_env"
    assert set(schema["function"]["parameters"]["properties"]) == {"choice", "content"}


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_plays_and_learns_from_the_gyms_reward(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import qwen3_chat_template

    from tests.support.speaker import save_speaker

    choice, content = trace_of(load_tasks("telepathy", split="test", count=2)[0])[-1]
    call = {"name": "interact_with_env", "arguments": {"choice": choice, "content": content}}
    said = f"<tool_call>\n{jsonio.dumps(call)}\n</tool_call>"
    folder = save_speaker(tmp_path / "m", said, special=(said,), template=qwen3_chat_template)
    played: list[GymToolEnv] = []
    make = environment("telepathy", **SETTINGS)

    def factory() -> GymToolEnv:
        played.append(make())
        return played[-1]

    trainer = GRPOTrainer(
        AutoModelForCausalLM.from_pretrained(folder),
        args=GRPOConfig(
            output_dir=str(tmp_path / "out"),
            per_device_train_batch_size=2,
            num_generations=2,
            max_completion_length=64,
            max_tool_calling_iterations=1,
            max_steps=1,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            chat_template_kwargs={"enable_thinking": False},
        ),
        train_dataset=Dataset.from_list(
            [{"prompt": [{"role": "user", "content": "Play."}], "task": 0}] * 2
        ),
        processing_class=AutoTokenizer.from_pretrained(folder),
        environment_factory=factory,
    )
    trainer.train()
    logged = next(row for row in trainer.state.log_history if "reward" in row)
    assert logged["reward"] == 1.0
    assert logged["rewards/GymToolEnv/mean"] == 1.0
    assert logged["tools/call_frequency"] == 1.0
