"""Qwen3.5 checkpoints with a vision tower to text-only ones that carry the plain ChatML template.

Trainers that read of a vision tower load a processor instead of the tokenizer and refuse rows of
tokens. What is written here is the text model alone: same weights under its own names, same logits,
the bare tokenizer with the project's template, and no processor files.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from mimesim import jsonio
from mimesim.errors import EnvironmentFault, UsageError
from mimesim.models import templates
from mimesim.models.local import quiet_loading

_FAMILIES = ("qwen3_5", "qwen3_5_moe")
_LEFT_OUT = {"visual": "vision tower", "mtp": "multi-token prediction"}
"""Second or first part of a weight's name -> what it belongs to."""
_WEIGHTS = (".safetensors", ".safetensors.index.json")


@dataclass(frozen=True, slots=True)
class Converted:
    """A written text-only checkpoint.

    Attributes:
        parameters: of the text model, tied ones counted once.
        left_out: parameters that were not taken over, by what they belong to.
        files: files of the source that were not taken over, processor files among them.
    """

    out: Path
    parameters: int
    left_out: Mapping[str, int]
    files: tuple[str, ...]


def convert(source: Path, out: Path) -> Converted:
    """Write the text model of the checkpoint `source` to the new folder `out`.

    The folder appears complete or not at all; weights keep their precision.

    Raises:
        UsageError: `source` has no vision tower to leave out, or `out` is taken.
        EnvironmentFault: `source` is no readable checkpoint or lacks weights, its vocabulary has
            no ChatML tokens, or `out` cannot be written.
    """
    config = _config(source)
    if out.exists():
        raise UsageError(
            "there is something already",
            where=str(out),
            expected="a folder that is still to be made",
        )
    with quiet_loading():
        model, tokenizer = _load(source, config)
    templates.install(tokenizer)
    model.config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    left_out = _left_out(source)
    temporary = ""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-")
        _write(source, Path(temporary), model, tokenizer, left_out)
        Path(temporary).rename(out)
    except OSError as error:
        raise jsonio.disk_fault(out, error) from error
    except SafetensorError as error:
        raise jsonio.disk_fault(out, OSError(0, str(error))) from error
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
    kept = {path.name for path in out.iterdir()}
    files = sorted(path.name for path in source.iterdir() if path.is_file())
    return Converted(
        out=out,
        parameters=sum(weight.numel() for weight in model.parameters()),
        left_out=left_out,
        files=tuple(f for f in files if f not in kept and not f.endswith(_WEIGHTS)),
    )


def _config(source: Path) -> Any:
    if not (source / "config.json").is_file():
        raise EnvironmentFault(
            "no model checkpoint here",
            where=str(source),
            expected="a folder with config.json, weights and tokenizer",
        )
    try:
        config = AutoConfig.from_pretrained(str(source))
    except (OSError, ValueError, KeyError) as error:
        raise _unreadable(source, error) from error
    if config.model_type not in _FAMILIES:
        raise UsageError(
            f"a checkpoint of type {config.model_type!r} has no vision tower to leave out",
            where=str(source),
            expected="a Qwen3.5 checkpoint with one, of type " + " or ".join(map(repr, _FAMILIES)),
            mend="train on it as it is",
        )
    return config


def _load(source: Path, config: Any) -> tuple[Any, Any]:
    """Load text model and bare tokenizer, making sure that every weight was in the checkpoint."""
    text = config.get_text_config()
    # The outer config rules; where it alone says so, the head would be drawn at random.
    text.tie_word_embeddings = text.tie_word_embeddings or config.tie_word_embeddings
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(source))
        model, found = AutoModelForCausalLM.from_pretrained(
            str(source), config=text, dtype="auto", output_loading_info=True
        )
    except Exception as error:  # weights, configs and tokenizers each raise their own kinds
        raise _unreadable(source, error) from error
    absent = sorted({*found["missing_keys"], *(key for key, *_ in found["mismatched_keys"])})
    if absent:
        raise EnvironmentFault(
            f"the checkpoint lacks {len(absent)} weights of its text model, {absent[0]} first",
            where=str(source),
            expected="a complete checkpoint",
            mend="fetch it again",
        )
    return model, tokenizer


def _write(
    source: Path, folder: Path, model: Any, tokenizer: Any, left_out: Mapping[str, int]
) -> None:
    with quiet_loading():
        # Otherwise the names would get back what stood for the model around the text model.
        model.save_pretrained(folder, save_original_format=False)
    tokenizer.save_pretrained(folder)
    for path in sorted(source.glob("LICENSE*")):
        shutil.copyfile(path, folder / path.name)
    made = {"kind": "text model", "source": source.name, "left_out": dict(left_out)}
    jsonio.write_json(folder / "mimesim.json", made)
    folder.chmod(0o755)  # temporary folders and weights are made for one's own eyes only
    for path in folder.iterdir():
        path.chmod(0o644)


def _left_out(source: Path) -> dict[str, int]:
    """Count the parameters that are not taken over, from the heads of the weight files."""
    counts: Counter[str] = Counter()
    for path in sorted(source.glob("*.safetensors")):
        with safe_open(path, "pt") as weights:
            for key in weights.keys():  # noqa: SIM118 - not a mapping
                parts = [part for part in key.split(".")[:2] if part in _LEFT_OUT]
                if parts:
                    counts[_LEFT_OUT[parts[0]]] += prod(weights.get_slice(key).get_shape())
    return dict(counts)


def _unreadable(source: Path, error: Exception) -> EnvironmentFault:
    return EnvironmentFault(
        f"the checkpoint cannot be read: {str(error).strip().partition(chr(10))[0]}",
        where=str(source),
        expected="a checkpoint folder of transformers",
        mend="check the folder, or fetch it again",
    )
