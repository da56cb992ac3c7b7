"""The private TRL hooks that `train/grpo` builds on still have the shape it expects.

The first tests read TRL's source without importing it, so they are quick and say exactly what
moved after an upgrade; the last one runs the two functions that carry our per-row entries.
"""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from mimesim.train.versions import SUPPORTED

if find_spec("trl") is None:
    pytest.skip("the train extra is not installed", allow_module_level=True)

Function = ast.FunctionDef | ast.AsyncFunctionDef

SIGNATURES = {
    "_generate_and_score_completions": ["self", "inputs"],
    "_compute_loss": ["self", "model", "inputs"],
    "_generate": ["self", "prompts"],
    "_prepare_inputs": ["self", "generation_batch"],
    "_generate_single_turn": [
        "self", "prompt_ids", "images", "multimodal_fields", "num_generations", "has_tool_images",
    ],
    "_calculate_rewards": ["self", "inputs", "prompts", "completions", "completion_ids_list"],
    "_get_per_token_logps_and_entropies": [
        "self", "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size",
        "compute_entropy", "compute_aux_loss",
    ],
}  # fmt: skip
"""Hook -> its first parameters, in order."""

ARITY = {
    "_generate": 8,
    "_generate_single_turn": 2,
    "_get_per_token_logps_and_entropies": 3,
}
"""Hook -> how many values its last `return` hands back."""


def source(relative: str, package: str = "trl") -> str:
    """Return the text of an installed file without importing its package."""
    spec = find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    return (Path(spec.origin).parent / relative).read_text("utf-8")


@cache
def trainer_class() -> ast.ClassDef:
    """Return the syntax tree of `GRPOTrainer`."""
    tree = ast.parse(source("trainer/grpo_trainer.py"))
    return next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "GRPOTrainer")


def method(name: str) -> Function:
    """Return the syntax tree of one method."""
    found = [n for n in trainer_class().body if isinstance(n, Function) and n.name == name]
    assert len(found) == 1, f"GRPOTrainer.{name} is gone"
    return found[0]


def outer_returns(function: Function) -> list[ast.expr]:
    """Return the values of a function's own `return` statements."""
    inner = {
        id(node)
        for f in ast.walk(function)
        if isinstance(f, Function | ast.Lambda) and f is not function
        for node in ast.walk(f)
    }
    return [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and node.value is not None and id(node) not in inner
    ]


def test_the_versions_that_are_checked_are_those_that_are_installed_with_the_extra(
    repository: Path,
) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]
    bounds = {
        name: (low, high)
        for line in project["optional-dependencies"]["train"]
        for name, low, high in re.findall(r"^(\w+)>=([\d.]+),<([\d.]+)$", line)
    }
    assert {name: bounds[name] for name in SUPPORTED} == SUPPORTED


def test_the_minor_version_is_the_one_the_hooks_were_read_in() -> None:
    assert version("trl").split(".")[:2] == ["1", "16"]


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name: str) -> None:
    names = [a.arg for a in method(name).args.args]
    assert names[: len(SIGNATURES[name])] == SIGNATURES[name]


@pytest.mark.parametrize("name", ARITY)
def test_number_of_returned_values(name: str) -> None:
    last = max(outer_returns(method(name)), key=lambda value: value.lineno)
    assert isinstance(last, ast.Tuple)
    assert len(last.elts) == ARITY[name]


def test_the_trainer_scales_the_loss_itself() -> None:
    flags = {
        target.id: node.value.value
        for node in trainer_class().body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert flags.get("loss_is_scaled_for_ga") is True


def test_rollout_func_is_an_argument_called_with_prompts_and_trainer() -> None:
    assert "rollout_func" in [a.arg for a in method("__init__").args.args]
    calls = [
        ast.unparse(node)
        for node in ast.walk(method("_generate"))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.rollout_func"
    ]
    assert calls == ["self.rollout_func(prompts, self)"]


@pytest.mark.parametrize(
    ("name", "needle"),
    [
        ("_generate", "extra_fields.pop('env_mask', None)"),
        ("_generate_and_score_completions", "output['tool_mask'] = tool_mask"),
        ("_compute_loss", "advantages.dim() == 1"),
        ("_compute_loss", "self.args.steps_per_generation"),
        ("_compute_loss", "inputs['tool_mask']"),
        ("_prepare_inputs", "self._generate_and_score_completions(generation_batch)"),
        ("_generate", "self.vllm_generation.sync_weights()"),
        ("_generate", "self._last_loaded_step = self.state.global_step"),
        ("_save_checkpoint", "super()._save_checkpoint(model, trial)"),
    ],
)
def test_behavior_relied_on_is_there(name: str, needle: str) -> None:
    assert needle in ast.unparse(method(name))


def test_a_callback_sees_the_model_and_its_gradients_before_the_update() -> None:
    text = source("trainer.py", "transformers")
    clip = text.index("grad_norm = self._get_grad_norm(model, grad_norm=grad_norm)")
    assert clip < text.index("self.callback_handler.on_pre_optimizer_step(", clip)
    callbacks = source("trainer_callback.py", "transformers")
    assert "model=self.model," in callbacks, "which is what `on_pre_optimizer_step` is given"


def test_numbers_of_a_batch_reach_callbacks_before_a_checkpoint_is_written() -> None:
    """The curve, alarms and validation of a batch belong into its checkpoint."""
    tree = ast.parse(source("trainer.py", "transformers"))
    function = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "_maybe_log_save_evaluate"
    )
    text = ast.unparse(function)
    assert text.index("self.log(") < text.index("self._save_checkpoint(")


def test_rows_are_shuffled_and_split_in_the_known_order() -> None:
    text = ast.unparse(method("_prepare_inputs"))
    steps = [text.index(f"{f}(") for f in ("shuffle_sequence_dict", "split_tensor_dict")]
    assert steps == sorted(steps)


@pytest.mark.parametrize(
    "name", ["_metrics", "_last_loaded_step", "eos_token_ids", "_tokenizer", "vllm_generation"]
)
def test_attribute_is_set(name: str) -> None:
    assert f"self.{name} =" in ast.unparse(trainer_class())


def test_the_base_trainer_counts_accumulation_steps() -> None:
    assert "self.current_gradient_accumulation_steps =" in source("trainer.py", "transformers")


def test_lists_and_scalars_survive_shuffle_and_split() -> None:
    import torch
    from trl.trainer.utils import shuffle_sequence_dict, split_tensor_dict

    rows = {
        "ids": torch.arange(8).reshape(4, 2),
        "spans": [[0], [1, 1], [], [3]],
        "count": torch.tensor(7.0),
        "absent": None,
    }
    shuffled = shuffle_sequence_dict(rows)
    for index, first in enumerate((shuffled["ids"][:, 0] // 2).tolist()):
        assert shuffled["spans"][index] == rows["spans"][first], "row entries moved apart"
    chunks = split_tensor_dict(shuffled, 2)
    assert [len(chunk["spans"]) for chunk in chunks] == [2, 2]
    assert all(chunk["count"].item() == 7.0 and chunk["absent"] is None for chunk in chunks)
