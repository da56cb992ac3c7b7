"""Chat templates of the shapes that model families have, and tokenizers that know their tokens.

The small ones are our own; the originals come out of the installed TRL package.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from mimesim.models import embedded, templates
from tests import tiny

_IM = ("<|im_start|>", "<|im_end|>")


@dataclass(frozen=True)
class Family:
    """One template: `end` closes a turn, `trims` tells whether contents lose outer white space."""

    name: str
    template: str
    tokens: tuple[str, ...]
    end: str
    trims: bool = False
    bos: str = "<s>"


_QWEN3 = (  # thoughts of earlier turns are dropped, the last turn gets an empty block
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role != 'assistant' %}{{ m.content }}"
    "{% elif loop.last %}{{ m.content if '</think>' in m.content else "
    "'<think>\n\n</think>\n\n' + m.content }}"
    "{% else %}{{ m.content.split('</think>')[-1].lstrip('\n') }}{% endif %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_QWEN35 = (  # every reply follows an empty block, and so does the prompt; a user must have spoken
    "{% if messages | selectattr('role', 'equalto', 'user') | list | length == 0 %}"
    "{{ raise_exception('nobody asked') }}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}<think>\n\n</think>\n\n{% endif %}"
    "{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n\n{% endif %}"
)
_LLAMA3 = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
_GEMMA = (  # no system message, strictly in turns, the user first
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role not in ('user', 'assistant') or (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('user and model take turns') }}{% endif %}"
    "<start_of_turn>{{ 'model' if m.role == 'assistant' else 'user' }}\n"
    "{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)

CHATML = Family("chatml", templates.CHATML, _IM, "<|im_end|>")
QWEN3 = Family("qwen3-like", _QWEN3, _IM, "<|im_end|>")
QWEN35 = Family("qwen3.5-like", _QWEN35, _IM, "<|im_end|>", trims=True)
LLAMA3 = Family(
    "llama3-like",
    _LLAMA3,
    ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    "<|eot_id|>",
    trims=True,
)
GEMMA = Family(
    "gemma-like", _GEMMA, ("<start_of_turn>", "<end_of_turn>"), "<end_of_turn>", trims=True
)
OWN = (CHATML, QWEN3, QWEN35, LLAMA3, GEMMA)


def original(family: Family, name: str) -> Family:
    """Return the template that TRL ships as `name`, with the tokens of a family."""
    text = (resources.files("trl") / "chat_templates" / f"{name}.jinja").read_text("utf-8")
    return replace(family, name=name, template=text)


ORIGINALS = (
    original(QWEN3, "qwen3"),
    original(QWEN35, "qwen3_5_nothink_training"),
    original(LLAMA3, "llama3"),
    original(LLAMA3, "llama3_1"),
    original(GEMMA, "gemma"),
    original(GEMMA, "gemma3"),
)
ALL = (*OWN, *ORIGINALS)


def in_memory(family: Family) -> Any:
    """Return the small byte-level tokenizer of the tests with the template of a family."""
    return _dressed(tiny.tokenizer(), family)


def smollm2(family: Family) -> Any:
    """Return the tokenizer of the embedded model with the template of a family."""
    return _dressed(AutoTokenizer.from_pretrained(str(embedded.embedded_folder())), family)


def _dressed(tokenizer: Any, family: Family) -> Any:
    known = tokenizer.get_vocab()
    new = [token for token in (*family.tokens, family.bos) if token not in known]
    tokenizer.add_tokens(new, special_tokens=True)
    tokenizer.bos_token = family.bos
    tokenizer.chat_template = family.template
    return tokenizer


def without_chatml(family: Family) -> Any:
    """Return the small tokenizer with a family's own tokens in place of ChatML's."""
    spelled = json.loads(tiny.tokenizer().backend_tokenizer.to_str())
    other = dict(zip(_IM, (family.tokens[0], family.end), strict=True))
    for token in spelled["added_tokens"]:
        token["content"] = other.get(token["content"], token["content"])
    vocabulary = spelled["model"]["vocab"].items()
    spelled["model"]["vocab"] = {other.get(word, word): n for word, n in vocabulary}
    made = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(spelled)),
        eos_token=family.end,
        additional_special_tokens=[family.tokens[0]],
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )
    return _dressed(made, family)
