"""A tiny random Qwen3.5 with a vision tower becomes a text model of the same logits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration
from typer.testing import CliRunner

from mimesim.errors import EnvironmentFault, UsageError
from mimesim.models import templates
from mimesim.models.local import load_pretrained
from mimesim.train import convert as converting
from tests import tiny

IDS = torch.tensor([[11, 25, 40, 7, 9, 120, 33, 64]])
STOCK = "{% for m in messages %}{{ m.content }}{% endfor %}"


def config(*, tied: bool, tied_inside: bool) -> Qwen3_5Config:
    text: dict[str, Any] = {
        "vocab_size": len(tiny.tokenizer()),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "max_position_embeddings": 512,
        "tie_word_embeddings": tied_inside,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [1, 1, 0],
            "mrope_interleaved": True,
        },
    }
    vision = {
        "depth": 1,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_heads": 2,
        "out_hidden_size": 32,
        "num_position_embeddings": 16,
        "patch_size": 4,
    }
    return Qwen3_5Config(text_config=text, vision_config=vision, tie_word_embeddings=tied)


def checkpoint(
    folder: Path, *, tied: bool = False, tied_inside: bool = False
) -> Qwen3_5ForConditionalGeneration:
    """Write a checkpoint as it comes from the hub, and return its model."""
    model = Qwen3_5ForConditionalGeneration(config(tied=tied, tied_inside=tied_inside)).eval()
    model.save_pretrained(folder)
    tokenizer = tiny.tokenizer()
    tokenizer.chat_template = STOCK
    tokenizer.save_pretrained(folder)
    for name in ("preprocessor_config.json", "video_preprocessor_config.json"):
        (folder / name).write_text('{"processor_class": "Qwen3VLProcessor"}', "utf-8")
    (folder / "LICENSE").write_text("Apache License", "utf-8")
    return model


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=IDS).logits


@pytest.mark.parametrize(
    ("tied", "inside"), [(False, False), (True, True), (True, False)]
)  # the last: only the outer config says so
def test_the_text_model_keeps_its_logits(tmp_path: Path, tied: bool, inside: bool) -> None:
    whole = checkpoint(tmp_path / "whole", tied=tied, tied_inside=inside)
    made = converting.convert(tmp_path / "whole", tmp_path / "text")
    loaded = load_pretrained(str(made.out), dtype="fp32")
    assert type(loaded.model).__name__ == "Qwen3_5ForCausalLM"
    assert torch.equal(logits(whole), logits(loaded.model))
    of_text = sum(p.numel() for n, p in whole.named_parameters() if "visual" not in n)
    of_vision = sum(p.numel() for n, p in whole.named_parameters() if "visual" in n)
    assert (made.parameters, made.left_out) == (of_text, {"vision tower": of_vision})


def test_nothing_of_vision_is_left_and_the_template_is_ours(tmp_path: Path) -> None:
    checkpoint(tmp_path / "whole")
    made = converting.convert(tmp_path / "whole", tmp_path / "text")
    written = json.loads((made.out / "config.json").read_text("utf-8"))
    assert written["model_type"] == "qwen3_5_text"
    assert "vision" not in json.dumps(written)
    with safe_open(made.out / "model.safetensors", "pt") as weights:
        names = list(weights.keys())
    assert {name.split(".")[1] for name in names} == {"embed_tokens", "layers", "norm", "weight"}
    assert made.files == ("preprocessor_config.json", "video_preprocessor_config.json")
    assert (made.out / "LICENSE").read_text("utf-8") == "Apache License"
    loaded = load_pretrained(str(made.out), dtype="fp32")
    assert loaded.tokenizer.chat_template == templates.CHATML
    end = templates.end_of_turn_id(loaded.tokenizer)
    assert loaded.model.generation_config.eos_token_id == end == loaded.model.config.eos_token_id


def test_weights_keep_their_precision_and_prediction_heads_are_told(tmp_path: Path) -> None:
    checkpoint(tmp_path / "whole").to(torch.bfloat16).save_pretrained(tmp_path / "whole")
    path = tmp_path / "whole" / "model.safetensors"
    extra = {"mtp.fc.weight": torch.zeros(3, 5, dtype=torch.bfloat16)}
    save_file({**load_file(path), **extra}, path, {"format": "pt"})
    made = converting.convert(tmp_path / "whole", tmp_path / "text")
    assert made.left_out["multi-token prediction"] == 15
    with safe_open(made.out / "model.safetensors", "pt") as weights:
        assert {weights.get_tensor(name).dtype for name in weights.keys()} == {torch.bfloat16}  # noqa: SIM118


def test_a_checkpoint_that_lacks_weights_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path / "whole")
    path = tmp_path / "whole" / "model.safetensors"
    weights = load_file(path)
    del weights["model.language_model.norm.weight"]
    save_file(weights, path, {"format": "pt"})
    with pytest.raises(EnvironmentFault, match=r"lacks 1 weights .*norm\.weight"):
        converting.convert(tmp_path / "whole", tmp_path / "text")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["whole"]


def test_a_text_model_has_nothing_to_leave_out(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'qwen3'.*train on it as it is"):
        converting.convert(tiny.save(tmp_path / "plain"), tmp_path / "text")


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="no model checkpoint"):
        converting.convert(tmp_path / "nowhere", tmp_path / "text")
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_5"', "utf-8")
    with pytest.raises(EnvironmentFault, match="cannot be read") as caught:
        converting.convert(tmp_path, tmp_path / "text")
    assert "\n" not in str(caught.value)


def test_a_taken_folder_is_left_alone(tmp_path: Path) -> None:
    checkpoint(tmp_path / "whole")
    (tmp_path / "text").mkdir()
    with pytest.raises(UsageError, match="something already"):
        converting.convert(tmp_path / "whole", tmp_path / "text")


def test_the_command_tells_what_was_left_out(tmp_path: Path) -> None:
    import typer

    from mimesim.cli import convert

    checkpoint(tmp_path / "whole")
    app = typer.Typer()
    app.command()(convert.command)
    ran = CliRunner().invoke(
        app, [str(tmp_path / "whole"), "--out", str(tmp_path / "text"), "--json"]
    )
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["checkpoint"] == str(tmp_path / "text")
    assert "preprocessor_config.json" in told["files_left_out"]
    assert "vision tower" in ran.stderr
