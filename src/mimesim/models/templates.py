r"""Chat templates: the only code that turns messages into token ids, masks and user suffixes.

One plain ChatML template serves supervised training, reinforcement learning and serving, and
travels with every checkpoint inside its tokenizer: `<|im_start|>{role}\n{content}<|im_end|>\n`,
thoughts inline in the content and kept in the history, so that rendering only ever appends. All
functions work with any fast tokenizer, whatever its vocabulary; whether a foreign template is fit
for training is what `check_template` finds out. Contents are data: strings that would tokenize to
special tokens are broken apart before rendering, so no text can forge a turn.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jinja2 import TemplateError  # noqa: TID251 - what transformers' renderer raises
from transformers.utils.chat_template_utils import render_jinja_template

from mimesim.dialogue import thinking
from mimesim.dialogue.types import Thought
from mimesim.errors import DataError, EnvironmentFault
from mimesim.models.base import ChatMessage

IGNORED = -100
"""Label of a token that carries no loss."""

_START, _END = "<|im_start|>", "<|im_end|>"
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""The project's own chat template."""

_MARK = re.compile(r"\{%-?\s*generation\s*-?%\}")

Message = ChatMessage | Mapping[str, str]


class MaskedRow(NamedTuple):
    """One tokenized conversation; `labels` is IGNORED where nothing is learnt, same length."""

    input_ids: list[int]
    labels: list[int]


class _Rendered(NamedTuple):
    text: str
    spans: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """What a template can do.

    Attributes:
        marks: it marks what the assistant generates, its end of turn included.
        append_only: a longer conversation starts with the text of a shorter one, thoughts kept.
        two_users: two user messages in a row are rendered.
        system: a system message is rendered.
        trouble: why no conversation can be held with it; empty = one can.
        reason: why it cannot be trained with; empty = it can.
    """

    marks: bool
    append_only: bool
    two_users: bool
    system: bool
    trouble: str
    reason: str


def install(tokenizer: Any) -> None:
    """Give `tokenizer` the project's template; saving the tokenizer saves it too.

    Raises:
        EnvironmentFault: the vocabulary has no ChatML tokens.
    """
    known = tokenizer.get_vocab()
    missing = [token for token in (_START, _END) if token not in known]
    if missing:
        raise EnvironmentFault(
            f"the tokenizer has no token {missing[0]!r}",
            where=_name(tokenizer),
            expected=f"the special tokens {_START} and {_END}",
            mend="take a model whose vocabulary has ChatML tokens",
        )
    tokenizer.chat_template = CHATML
    tokenizer.eos_token = _END
    if tokenizer.pad_token is None:
        tokenizer.pad_token = _END  # masks are made from lengths, never from the pad id


def neutralize(tokenizer: Any, text: str) -> str:
    """Break the spelling of every special token in `text`, so that it stays plain text."""
    for token in _special(tokenizer):
        if token in text:
            head, rest = re.escape(token[0]), re.escape(token[1:])
            text = re.sub(f"{head}(?={rest})", f"{token[0]} ", text)
    return text


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
    return _render(tokenizer, messages, prompt=add_generation_prompt, variables=variables).text


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


def mask_rows(
    tokenizer: Any, messages: Sequence[Message], learn: Sequence[bool] | None = None
) -> MaskedRow:
    """Tokenize a conversation once and label what is learnt: content and end of turn only.

    Args:
        tokenizer: a fast tokenizer whose template marks generations.
        messages: the conversation, the learnt side as `assistant`.
        learn: one flag per assistant message, in order; None = all of them. A history that was
            given, not produced, has False.

    Raises:
        EnvironmentFault: the template has no marks, or a token straddles a border of a turn.
        DataError: nothing in this conversation is learnt.
    """
    text, spans = _render(tokenizer, messages, marks=True)
    turns = sum(_pair(message)[0] == "assistant" for message in messages)
    if len(spans) != turns:
        raise _no_marks(tokenizer)
    flags = [True] * turns if learn is None else list(learn)
    kept = [span for span, flag in zip(spans, flags, strict=True) if flag]
    coded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids: list[int] = coded["input_ids"]
    labels = _label(ids, coded["offset_mapping"], kept, tokenizer)
    if all(label == IGNORED for label in labels):
        raise DataError(
            "no token of this conversation is learnt",
            expected="at least one message of the learnt side",
            mend="drop the conversation or choose the other side",
        )
    return MaskedRow(ids, labels)


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
        raise _not_append_only(tokenizer)
    return encode(tokenizer, whole[len(closed) :])


def end_of_turn_id(tokenizer: Any) -> int:
    """Return the id that closes an assistant turn, the token a sampler stops at."""
    row = mask_rows(
        tokenizer, [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    )
    return [label for label in row.labels if label != IGNORED][-1]


def inspect_template(tokenizer: Any) -> TemplateFacts:
    """Render fixed conversations and tell what the template of `tokenizer` can do."""
    if not tokenizer.chat_template:
        return TemplateFacts(False, False, False, False, "it has none", "it has none")
    talk = _probe()
    system = _contains(tokenizer, talk[:2], "sys7")
    talk = talk if system else talk[1:]
    trouble = _trouble(tokenizer, talk)
    append_only = _append_only(tokenizer, talk)
    two_users = _contains(tokenizer, [*talk, {"role": "user", "content": "again9"}], "again9")
    marks = not trouble and _marks(tokenizer, talk)
    reasons = (
        (append_only, "it rewrites or drops earlier turns once another message follows"),
        (two_users, "it refuses two user messages in a row"),
        (marks, "it does not mark exactly what the assistant generates: content and end of turn"),
    )
    reason = trouble or next((text for fit, text in reasons if not fit), "")
    return TemplateFacts(marks, append_only, two_users, system, trouble, reason)


def check_serving(tokenizer: Any) -> TemplateFacts:
    """Make sure that a conversation can be held with `tokenizer`: nothing said gets lost.

    Raises:
        EnvironmentFault: it cannot; one line with the reason.
    """
    facts = inspect_template(tokenizer)
    if facts.trouble:
        raise EnvironmentFault(
            f"the chat template is not fit for conversations: {facts.trouble}",
            where=_name(tokenizer),
            expected="a template that keeps every message",
            mend="take a model with a chat template of its own, or mend chat_template.jinja",
        )
    return facts


def check_template(tokenizer: Any) -> None:
    """Make sure that `tokenizer` may be trained with: append-only, thoughts kept, marked.

    Raises:
        EnvironmentFault: it may not; one line with the reason.
    """
    facts = inspect_template(tokenizer)
    if facts.reason:
        raise EnvironmentFault(
            f"the chat template is not fit for training: {facts.reason}",
            where=_name(tokenizer),
            expected="a template that only appends and keeps the history",
            mend="install the project's own template: mimesim.models.templates.install(tokenizer)",
        )


def strict_messages(messages: Sequence[ChatMessage], *, system: bool = True) -> list[ChatMessage]:
    """Return the strictest shape of a message list, which every template takes.

    Empty messages are dropped, neighbours of one role joined by a blank line, and system texts
    after the first message join it. With `system=False` the system text opens the first user
    message instead.
    """
    rules = [m.content for m in messages if m.role == "system" and m.content.strip()]
    talk = [m for m in messages if m.role != "system" and m.content.strip()]
    if rules and not system and (not talk or talk[0].role != "user"):
        talk = [ChatMessage("user", rules.pop(0)), *talk]
    merged = [
        ChatMessage(role, "\n\n".join(m.content for m in group))
        for role, group in itertools.groupby(talk, key=lambda m: m.role)
    ]
    if not rules:
        return merged
    text = "\n\n".join(rules)
    if system:
        return [ChatMessage("system", text), *merged]
    return [ChatMessage("user", f"{text}\n\n{merged[0].content}"), *merged[1:]]


def _pair(message: Message) -> tuple[str, str]:
    if isinstance(message, ChatMessage):
        return message.role, message.content
    return message["role"], message["content"]


def _special(tokenizer: Any) -> list[str]:
    added = tokenizer.added_tokens_decoder.values()
    return [t.content for t in added if t.special and len(t.content.strip()) > 1]


def _name(tokenizer: Any) -> str:
    return f"tokenizer {tokenizer.name_or_path or type(tokenizer).__name__}"


def _render(
    tokenizer: Any,
    messages: Sequence[Message],
    *,
    prompt: bool = False,
    marks: bool = False,
    variables: Mapping[str, Any] | None = None,
) -> _Rendered:
    """Call the template once, with the character spans of the generations if `marks`."""
    plain = [
        {"role": role, "content": neutralize(tokenizer, content)}
        for role, content in map(_pair, messages)
    ]
    template = tokenizer.chat_template
    if not template:
        raise EnvironmentFault(
            "the tokenizer has no chat template",
            where=_name(tokenizer),
            mend="mimesim.models.templates.install(tokenizer)",
        )
    if marks and not _MARK.search(template):
        raise _no_marks(tokenizer)
    try:
        texts, spans = render_jinja_template(
            [plain],
            chat_template=template,
            return_assistant_tokens_mask=marks,
            add_generation_prompt=prompt,
            **{**tokenizer.special_tokens_map, **(variables or {})},
        )
    except (TemplateError, TypeError, ValueError) as error:
        raise EnvironmentFault(
            f"the chat template refuses a conversation: {error}",
            where=_name(tokenizer),
            expected="a template that takes system, user and assistant messages",
        ) from error
    return _Rendered(texts[0], spans[0] if marks else [])


def _label(
    ids: list[int],
    offsets: Sequence[tuple[int, int]],
    spans: Sequence[tuple[int, int]],
    tokenizer: Any,
) -> list[int]:
    labels = [IGNORED] * len(ids)
    position = 0
    for start, end in spans:
        while position < len(ids) and offsets[position][1] <= start:
            position += 1
        while position < len(ids) and offsets[position][0] < end:
            if offsets[position][0] < start or offsets[position][1] > end:
                raise EnvironmentFault(
                    "a token straddles the border of a turn, so training would not match serving",
                    where=_name(tokenizer),
                    expected="contents without outer white space",
                    mend="strip the messages before rows are made",
                )
            labels[position] = ids[position]
            position += 1
    return labels


def _probe() -> list[dict[str, str]]:
    """A fixed dialogue with thoughts."""
    first = thinking.join(Thought("t1"), "a1")
    second = thinking.join(Thought("t2"), "a2")
    return [
        {"role": "system", "content": "sys7"},
        {"role": "user", "content": "u1"},
        {"role": "assistant", "content": first},
        {"role": "user", "content": "u2"},
        {"role": "assistant", "content": second},
        {"role": "user", "content": "u3"},
    ]


def _trouble(tokenizer: Any, talk: Sequence[Message]) -> str:
    """Return why a plain conversation does not get through whole; thoughts may be left out."""
    try:
        whole = render(tokenizer, talk)
    except EnvironmentFault as fault:
        return f"it fails on a plain conversation ({fault.what})"
    lost = [word for word in ("u1", "a1", "u2", "a2", "u3") if word not in whole]
    return "it drops earlier turns of a plain conversation" if lost else ""


def _contains(tokenizer: Any, messages: Sequence[Message], word: str) -> bool:
    try:
        return word in render(tokenizer, messages)
    except EnvironmentFault:
        return False


def _append_only(tokenizer: Any, talk: Sequence[Message]) -> bool:
    """Check that each shorter conversation, and each prompt, starts the longer one."""
    try:
        for k in range(len(talk)):
            if _pair(talk[k])[0] == "system":
                continue
            longer = render(tokenizer, talk[: k + 1])
            prompting = _pair(talk[k])[0] == "assistant"
            if k and not longer.startswith(
                render(tokenizer, talk[:k], add_generation_prompt=prompting)
            ):
                return False
        whole = render(tokenizer, talk)
    except EnvironmentFault:
        return False
    return all(word in whole for word in ("u1", "t1", "a1", "u2", "t2", "a2", "u3"))


def _marks(tokenizer: Any, talk: Sequence[Message]) -> bool:
    if not _MARK.search(tokenizer.chat_template):
        return False
    text, spans = _render(tokenizer, talk, marks=True)
    wanted = [content for role, content in map(_pair, talk) if role == "assistant"]
    if len(spans) != len(wanted):
        return False
    special = _special(tokenizer)
    return all(
        text[start:end].startswith(content) and text[start:end][len(content) :] in special
        for (start, end), content in zip(spans, wanted, strict=True)
    )


def _no_marks(tokenizer: Any) -> EnvironmentFault:
    return EnvironmentFault(
        "the chat template does not mark what the assistant generates, so no loss mask can be made",
        where=_name(tokenizer),
        expected="{% generation %} marks",
        mend="install the project's own template: mimesim.models.templates.install(tokenizer)",
    )


def _not_append_only(tokenizer: Any) -> EnvironmentFault:
    return EnvironmentFault(
        "the chat template rewrites earlier turns once a user message follows",
        where=_name(tokenizer),
        expected="a template that only appends",
        mend="install the project's own template: mimesim.models.templates.install(tokenizer)",
    )
