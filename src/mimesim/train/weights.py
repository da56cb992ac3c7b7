"""The weights of a training: what it starts from, adapters on them, and the checkpoint it leaves.

A start is the embedded model, a folder, or a hub id. What is written is always a whole model with
its tokenizer, adapters added in, so it loads wherever a folder does.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer

from mimesim import seeds
from mimesim.config.build import HUB
from mimesim.errors import ConfigError
from mimesim.models import templates
from mimesim.models.embedded import embedded_folder
from mimesim.models.local import Loaded, load_pretrained, quiet_loading

DType = Literal["bf16", "fp32"]


def load_start(place: Path | str, dtype: DType) -> Loaded:
    """Load the model of a start, its tokenizer with the template that it is trained with.

    Args:
        place: `embedded`, a folder, or `hub:<owner>/<name>`.
        dtype: precision of the weights.

    Raises:
        EnvironmentFault: no model there, a damaged one, or a template that is not fit for training.
    """
    return prepared(_address(str(place)), dtype)


def prepared(address: str, dtype: DType) -> Loaded:
    """Load a folder or hub id, ready for training: see `load_start`.

    Raises:
        EnvironmentFault: as there.
    """
    loaded = load_pretrained(address, dtype=dtype)
    templates.prepare(loaded.tokenizer)
    loaded.model.generation_config.eos_token_id = templates.end_of_turn_id(loaded.tokenizer)
    return loaded


def model_place(model: str) -> str:
    """Return the folder or hub id of a model that is named `embedded` or `[hf:]<folder or id>`.

    Raises:
        EnvironmentFault: it is the embedded one, which is not installed.
    """
    return str(embedded_folder()) if model == "embedded" else model.removeprefix("hf:")


def start_identity(place: Path | str) -> str:
    """Return what tells one start from another: the weights where they are in one file here."""
    weights = Path(place) / "model.safetensors"
    return seeds.file_fingerprint(weights) if weights.is_file() else str(place)


def _address(place: str) -> str:
    if place == "embedded":
        return str(embedded_folder().absolute())
    if place.startswith(HUB):
        return place.removeprefix(HUB)
    return str(Path(place).expanduser().absolute())


def with_lora(
    model: Any, rank: int, seed: int, *, alpha: float = 0.0, targets: Sequence[str] = ()
) -> Any:
    """Put LoRA adapters on linear layers.

    Args:
        model: what they are put on.
        rank: of the adapters.
        seed: of the run; peft draws from torch's generator.
        alpha: scale; 0 = twice the rank.
        targets: names of the layers; none = all linear ones but the head.

    Raises:
        ConfigError: the model has no such layer.
    """
    torch.manual_seed(seeds.derive(seed, "lora") % 2**32)
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha or 2 * rank,
        lora_dropout=0.0,
        target_modules=list(targets) or "all-linear",
        task_type="CAUSAL_LM",
    )
    try:
        return get_peft_model(model, config, autocast_adapter_dtype=False)
    except ValueError as error:
        raise ConfigError(
            f"no adapters can be put on {', '.join(targets) or 'the linear layers'}",
            where="lora_targets",
            expected="names of linear layers of the model, e.g. q_proj",
        ) from error


def save_whole(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model, adapters added in, and its tokenizer; what stood there gives way at once.

    `model` stays as it is, to the last bit.
    """
    beside = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    plain = model.get_base_model() if isinstance(model, PeftModel) else model
    state = _merged(plain) if isinstance(model, PeftModel) else None
    with quiet_loading():
        plain.save_pretrained(beside, state_dict=state)
    tokenizer.save_pretrained(beside)
    shutil.rmtree(folder, ignore_errors=True)
    beside.rename(folder)


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch is not followed by the checker
def _merged(base: Any) -> Mapping[str, torch.Tensor]:
    """Return the weights of a model with adapters, those added in, under their plain names."""
    state = {
        name.replace(".base_layer.", "."): value
        for name, value in base.state_dict().items()
        if "lora_" not in name
    }
    for name, layer in base.named_modules():
        if isinstance(layer, LoraLayer):
            for adapter in layer.active_adapters:
                weight = state[f"{name}.weight"]
                delta = layer.get_delta_weight(adapter)
                state[f"{name}.weight"] = weight + delta.to(weight.dtype)
    return state
