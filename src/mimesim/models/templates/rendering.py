r"""Messages to text and ids: the project's own template, and the one call of any template.

The own one is plain ChatML: `<|im_start|>{role}\n{content}<|im_end|>\n`, thoughts inline in the
content and kept in the history, so that rendering only ever appends. Contents are data: strings
that would tokenize to special tokens are broken apart before rendering, so no text can forge a
turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import TemplateError  # noqa: TID251 - what transformers' renderer raises
from transformers.utils.chat_template_utils import render_jinja_template

from mimesim.errors import EnvironmentFault
from mimesim.models.base import ChatMessage

_START, _END = "<|im_start|>", "<|im_end|>"
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""The project's own chat template; its marks are for other trainers, `masks` needs none."""

Message = ChatMessage | Mapping[str, str]

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def speaks_chatml(tokenizer: Any) -> bool:
    """Tell whether the project's template can be installed: its two tokens are known."""
    known = tokenizer.get_vocab()
    return _START in known and _END in known


def install(tokenizer: Any) -> None:
    """Give `tokenizer` the project's template; saving the tokenizer saves it too.

    Raises:
        EnvironmentFault: the vocabulary has no ChatML tokens.
    """
    if not speaks_chatml(tokenizer):
        known = tokenizer.get_vocab()
        missing = next(token for token in (_START, _END) if token not in known)
        raise EnvironmentFault(
            f"the tokenizer has no token {missing!r}",
            where=name(tokenizer),
            expected=f"the special tokens {_START} and {_END}",
            mend="take a model whose vocabulary has ChatML tokens",
        )
    tokenizer.chat_template = CHATML
    tokenizer.eos_token = _END
    if tokenizer.pad_token is None:
        tokenizer.pad_token = _END  # masks are made from lengths, never from the pad id


def neutralize(tokenizer: Any, text: str) -> str:
    """Break the spelling of every special token in `text`, so that it stays plain text.

    A control character that the tokenizer has no token for becomes U+FFFD: it would be read as the
    token for the unknown, which for some models is the end of the text.
    """
    return _neutral(tokenizer, special_tokens(tokenizer), text)


def plain(tokenizer: Any, messages: Sequence[Message]) -> list[dict[str, str]]:
    """Return messages as a template takes them, contents neutralized."""
    special = special_tokens(tokenizer)
    return [
        {"role": role, "content": _neutral(tokenizer, special, content)}
        for role, content in map(pair, messages)
    ]


def render(
    tokenizer: Any,
    messages: Sequence[Message],
    *,
    add_generation_prompt: bool = False,
    **variables: Any,
) -> str:
    """Return the text that the model reads.

    Args:
        tokenizer: a fast tokenizer with a chat template.
        messages: the conversation; contents are neutralized.
        add_generation_prompt: whether the header of the next assistant turn ends the text.
        variables: further variables of a foreign template, e.g. `enable_thinking`.

    Raises:
        EnvironmentFault: the template refuses these messages.
    """
    ready = plain(tokenizer, messages)
    return call_template(tokenizer, ready, prompt=add_generation_prompt, **variables)


def render_ids(
    tokenizer: Any,
    messages: Sequence[Message],
    *,
    add_generation_prompt: bool = False,
    **variables: Any,
) -> list[int]:
    """Return the token ids of `render`."""
    text = render(tokenizer, messages, add_generation_prompt=add_generation_prompt, **variables)
    return encode(tokenizer, text)


def encode(tokenizer: Any, text: str) -> list[int]:
    """Return the ids of a rendered `text`: special tokens are read, none is added."""
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def user_suffix_ids(tokenizer: Any, text: str) -> list[int]:
    """Return what follows the policy's end of turn when the user answers `text`.

    That is the separator, the user turn and the header of the next assistant turn; appended to
    the tokens so far it gives the same ids as rendering the whole conversation.

    Raises:
        EnvironmentFault: the template rewrites earlier turns.
    """
    opening = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    head = render(tokenizer, opening)
    whole = render(
        tokenizer, [*opening, {"role": "user", "content": text}], add_generation_prompt=True
    )
    closed = head.rstrip()  # the separator after the end of turn belongs to the suffix
    if not whole.startswith(head):
        raise EnvironmentFault(
            "the chat template rewrites earlier turns once a user message follows",
            where=name(tokenizer),
            expected="a template that only appends",
            mend="install the project's own template: mimesim.models.templates.install(tokenizer)",
        )
    return encode(tokenizer, whole[len(closed) :])


def call_template(
    tokenizer: Any, messages: Sequence[Mapping[str, str]], *, prompt: bool = False, **variables: Any
) -> str:
    """Call the template once on messages as they are; all rendering comes through here.

    Raises:
        EnvironmentFault: there is no template, or it refuses these messages.
    """
    template = tokenizer.chat_template
    if not template:
        raise EnvironmentFault(
            "the tokenizer has no chat template",
            where=name(tokenizer),
            mend="mimesim.models.templates.install(tokenizer)",
        )
    try:
        texts, _ = render_jinja_template(
            [messages],
            chat_template=template,
            add_generation_prompt=prompt,
            **{**tokenizer.special_tokens_map, **variables},
        )
    except (TemplateError, TypeError, ValueError) as error:
        raise EnvironmentFault(
            f"the chat template refuses a conversation: {error}",
            where=name(tokenizer),
            expected="a template that takes system, user and assistant messages",
        ) from error
    return str(texts[0])


def pair(message: Message) -> tuple[str, str]:
    """Return role and content."""
    if isinstance(message, ChatMessage):
        return message.role, message.content
    return message["role"], message["content"]


def special_tokens(tokenizer: Any) -> list[str]:
    """Return the spellings of the special tokens."""
    added = tokenizer.added_tokens_decoder.values()
    return [t.content for t in added if t.special and len(t.content.strip()) > 1]


def name(tokenizer: Any) -> str:
    """Name a tokenizer in an error."""
    return f"tokenizer {tokenizer.name_or_path or type(tokenizer).__name__}"


def _neutral(tokenizer: Any, special: Sequence[str], text: str) -> str:
    def spelled(match: re.Match[str]) -> str:
        ids = encode(tokenizer, match.group())
        return match.group() if ids and tokenizer.unk_token_id not in ids else "\ufffd"

    return _CONTROL.sub(spelled, _broken_apart(special, text))


def _broken_apart(special: Sequence[str], text: str) -> str:
    for token in special:
        if token in text:
            head, rest = re.escape(token[0]), re.escape(token[1:])
            text = re.sub(f"{head}(?={rest})", f"{token[0]} ", text)
    return text
