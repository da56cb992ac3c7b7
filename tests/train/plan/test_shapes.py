"""Shapes: known parameter counts, and what a real model has."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim import jsonio
from mimesim.errors import DataError, UnknownNameError
from mimesim.models import tiny as policies
from mimesim.train.plan.shapes import SHAPES, read_shape, shape_of
from tests import tiny


@pytest.mark.parametrize(
    ("name", "billions"),
    [("qwen3-8b", 8.19), ("qwen3.5-9b", 8.95), ("qwen3.5-4b", 4.2), ("smollm2-135m", 0.1345)],
)
def test_the_table_has_the_sizes_that_are_told(name: str, billions: float) -> None:
    assert SHAPES[name].parameters == pytest.approx(billions * 1e9, rel=0.01)


def test_a_checkpoint_is_read(tmp_path: Path) -> None:
    tiny.save(tmp_path)
    real = sum(p.numel() for p in tiny.model().parameters())
    found = read_shape(tmp_path / "config.json")
    assert found.parameters == pytest.approx(real, rel=0.03)  # norms are left out
    assert shape_of(str(tmp_path)) == found
    assert shape_of(tmp_path.name, [tmp_path.parent]).parameters == found.parameters


def test_the_embedded_policy_is_in_the_table() -> None:
    words = policies.build_tokenizer(f"w{n}" for n in range(1000))
    real = sum(p.numel() for p in policies.build_model(words, 0).parameters())
    assert SHAPES["tiny"].parameters == pytest.approx(real, rel=0.02)


def test_layers_without_attention_keep_no_growing_cache(tmp_path: Path) -> None:
    inner = {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 32,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 248320,
        "tie_word_embeddings": False,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
    }
    jsonio.write_json(tmp_path / "config.json", {"text_config": inner})
    found, listed = read_shape(tmp_path / "config.json"), SHAPES["qwen3.5-9b"]
    assert found.parameters == listed.parameters
    assert found.cache_bytes == listed.cache_bytes == 8 * 2 * 4 * 256 * 2
    assert SHAPES["qwen3-8b"].cache_bytes == 36 * 2 * 8 * 128 * 2


def test_paths_and_aliases_name_a_shape() -> None:
    assert shape_of("out/qwen3.5-9b-text").name == "qwen3.5-9b"
    assert shape_of("embedded").name == "smollm2-135m"
    with pytest.raises(UnknownNameError, match=r"'qwen3-80b'.*did you mean.*--model"):
        shape_of("qwen3-80b")


@pytest.mark.parametrize(
    ("values", "told"),
    [({"num_experts": 8}, "mixture of experts"), ({"hidden_size": 8}, "num_hidden_layers")],
)
def test_what_is_no_dense_decoder_is_told(
    values: dict[str, int], told: str, tmp_path: Path
) -> None:
    jsonio.write_json(tmp_path / "config.json", values)
    with pytest.raises(DataError, match=told):
        read_shape(tmp_path / "config.json")
