"""What a chat template can do, found out once per tokenizer, and the shape it takes.

Fixed conversations are rendered. Some findings only decide the shape: a system text that is refused
opens the first user message, neighbors of one role are joined. Others make a template unfit for
training: it drops earlier thoughts, rewrites contents, or puts text in front of a reply that nobody
generates.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mimesim.dialogue import thinking
from mimesim.dialogue.types import Thought
from mimesim.errors import DataError, EnvironmentFault
from mimesim.models.base import ChatMessage
from mimesim.models.templates.masks import Laid, lay_out, mask_rows
from mimesim.models.templates.rendering import install, name, render, speaks_chatml

_Talk = Sequence[ChatMessage]

_NO_SYSTEM = "takes no system message (its text opens the first user message)"
_NO_OPENING = "takes no opening by the assistant (the system text becomes the user's opening)"
_NO_NEIGHBORS = "takes no two user messages in a row (neighbors are joined)"
_TRIMS = "trims outer white space of contents"
_INSTALL = (
    "install the project's own template, as `mimesim train user` does by itself: "
    "mimesim.models.templates.install(tokenizer)"
)
_OTHER_MODEL = "take a model whose vocabulary has ChatML tokens, or mend chat_template.jinja"


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """What a template can do.

    Attributes:
        system: a system message is rendered.
        assistant_first: the assistant may open, nobody having said anything before.
        two_users: two user messages in a row are rendered.
        append_only: a longer conversation starts with the text of a shorter one, thoughts kept.
        trims: outer white space of contents is lost.
        end: the special token that closes an assistant turn; empty = none.
        chatml: the project's own template can take its place.
        trouble: why no conversation can be held with it; empty = one can.
        reason: why it cannot be trained with; empty = it can.
    """

    system: bool = False
    assistant_first: bool = False
    two_users: bool = False
    append_only: bool = False
    trims: bool = False
    end: str = ""
    chatml: bool = False
    trouble: str = ""
    reason: str = ""

    @property
    def limits(self) -> tuple[str, ...]:
        """Return in words what it takes only in another shape."""
        found = (
            (self.system, _NO_SYSTEM),
            (self.assistant_first, _NO_OPENING),
            (self.two_users, _NO_NEIGHBORS),
            (not self.trims, _TRIMS),
        )
        return tuple(text for fine, text in found if not fine)

    @property
    def mend(self) -> str:
        """Return what to do when it cannot be trained with."""
        return _INSTALL if self.chatml else _OTHER_MODEL

    def shape(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return a conversation in the strictest shape, as this template takes it.

        Training and serving both go through here: a shorter conversation of the same opening
        has the same beginning.
        """
        return strict_messages(messages, system=self.system, assistant_first=self.assistant_first)


def prepare(tokenizer: Any) -> TemplateFacts:
    """Give `tokenizer` the template it is trained with, and return what that takes.

    Where the vocabulary has ChatML tokens that is the project's own; else its own one is kept if
    it is fit for training.

    Raises:
        EnvironmentFault: it is not; one line with the reason.
    """
    if speaks_chatml(tokenizer):
        install(tokenizer)
    facts = check_template(tokenizer)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = facts.end  # masks are made from lengths, never from the pad id
    return facts


def check_serving(tokenizer: Any) -> TemplateFacts:
    """Make sure that a conversation can be held with `tokenizer`: nothing said gets lost.

    Raises:
        EnvironmentFault: it cannot; one line with the reason.
    """
    facts = inspect_template(tokenizer)
    if facts.trouble:
        raise EnvironmentFault(
            f"the chat template is not fit for conversations: {facts.trouble}",
            where=name(tokenizer),
            expected="a template that keeps every message",
            mend="take a model with a chat template of its own, or mend chat_template.jinja",
        )
    return facts


def check_template(tokenizer: Any) -> TemplateFacts:
    """Make sure that `tokenizer` may be trained with: append-only, contents and thoughts kept.

    Raises:
        EnvironmentFault: it may not; one line with the reason.
    """
    facts = inspect_template(tokenizer)
    if facts.reason:
        raise _unfit(tokenizer, facts, facts.reason)
    return facts


def check_rollouts(tokenizer: Any) -> TemplateFacts:
    """Make sure that token records can be made: fit for training, a note may follow a message.

    Raises:
        EnvironmentFault: they cannot; one line with the reason.
    """
    facts = check_template(tokenizer)
    if not facts.two_users:
        raise _unfit(tokenizer, facts, "it refuses two user messages in a row, so no note fits in")
    return facts


def inspect_template(tokenizer: Any) -> TemplateFacts:
    """Render fixed conversations and tell what the template of `tokenizer` can do."""
    chatml = speaks_chatml(tokenizer)
    if not tokenizer.chat_template:
        return TemplateFacts(chatml=chatml, trouble="it has none", reason="it has none")
    opened = [ChatMessage("system", "sys7")]
    system = _contains(tokenizer, [*opened, *_talk("")[:1]], "sys7", "u1")
    opened = opened if system else []
    spoken, thinking_aloud = [*opened, *_talk("")], [*opened, *_talk("t")]
    trouble = _trouble(tokenizer, spoken)
    laid = None if trouble else _laid(tokenizer, spoken)
    rewriting = _rewriting(tokenizer, thinking_aloud)
    return TemplateFacts(
        system=system,
        assistant_first=_assistant_first(tokenizer, opened),
        two_users=_contains(tokenizer, [*spoken, ChatMessage("user", "again9")], "again9"),
        append_only=not rewriting,
        trims=" u7 " not in _attempt(tokenizer, [ChatMessage("user", " u7 ")]),
        end=_end(laid) if isinstance(laid, Laid) else "",
        chatml=chatml,
        trouble=trouble,
        reason=trouble
        or rewriting
        or _unfitness(tokenizer, spoken, laid)
        or _unfitness(tokenizer, thinking_aloud, _laid(tokenizer, thinking_aloud)),
    )


def strict_messages(
    messages: Sequence[ChatMessage], *, system: bool = True, assistant_first: bool = True
) -> list[ChatMessage]:
    """Return the strictest shape of a message list, which every template takes.

    Empty messages are dropped, neighbors of one role joined by a blank line, and system texts
    after the first message join it. With `system=False` the system text opens the first user
    message instead. With `assistant_first=False` it becomes a user message of its own where the
    assistant would open.
    """
    rules = [m.content for m in messages if m.role == "system" and m.content.strip()]
    talk = [m for m in messages if m.role != "system" and m.content.strip()]
    opens = not talk or talk[0].role != "user"
    folded = not system or (opens and not assistant_first)
    if rules and folded and opens:
        talk = [ChatMessage("user", rules.pop(0)), *talk]
    merged = [
        ChatMessage(role, "\n\n".join(m.content for m in group))
        for role, group in itertools.groupby(talk, key=lambda m: m.role)
    ]
    if not rules:
        return merged
    text = "\n\n".join(rules)
    if not folded:
        return [ChatMessage("system", text), *merged]
    return [ChatMessage("user", f"{text}\n\n{merged[0].content}"), *merged[1:]]


def _talk(thought: str) -> list[ChatMessage]:
    """Return a fixed dialogue; `thought` begins the thoughts of the assistant, empty = none."""
    replies = [
        thinking.join(Thought(f"{thought}{k}"), f"a{k}") if thought else f"a{k}" for k in (1, 2)
    ]
    return [
        ChatMessage("user", "u1"),
        ChatMessage("assistant", replies[0]),
        ChatMessage("user", "u2"),
        ChatMessage("assistant", replies[1]),
        ChatMessage("user", "u3"),
    ]


def _attempt(tokenizer: Any, talk: _Talk, *, prompt: bool = False) -> str:
    """Return the rendered text, empty where the template refuses."""
    try:
        return render(tokenizer, talk, add_generation_prompt=prompt)
    except EnvironmentFault:
        return ""


def _contains(tokenizer: Any, talk: _Talk, *words: str) -> bool:
    text = _attempt(tokenizer, talk)
    return all(word in text for word in words)


def _trouble(tokenizer: Any, talk: _Talk) -> str:
    """Return why a plain conversation does not get through whole."""
    try:
        whole = render(tokenizer, talk)
    except EnvironmentFault as fault:
        return f"it fails on a plain conversation ({fault.what})"
    lost = [message for message in talk if message.content not in whole]
    return "it drops earlier turns of a plain conversation" if lost else ""


def _assistant_first(tokenizer: Any, opened: _Talk) -> bool:
    """Check that the assistant can open, both when it is asked to and when it did."""
    told = [*opened, ChatMessage("assistant", "a5"), ChatMessage("user", "u5")]
    if opened and "sys7" not in _attempt(tokenizer, opened, prompt=True):
        return False
    return all(_contains(tokenizer, told[: len(opened) + k], "a5") for k in (1, 2))


def _rewriting(tokenizer: Any, talk: _Talk) -> str:
    """Return why a shorter conversation does not start the longer one, or what is lost."""
    first = next(k for k, message in enumerate(talk) if message.role == "user") + 1
    texts = [_attempt(tokenizer, talk[:k]) for k in range(first, len(talk) + 1)]
    if not all(word in texts[-1] for word in ("u1", "t1", "a1", "u2", "t2", "a2", "u3")):
        return "it drops earlier turns, or the thoughts in them, once another message follows"
    if all(a and b.startswith(a) for a, b in itertools.pairwise(texts)):
        return ""
    return "it rewrites the end of a conversation once another message follows"


def _laid(tokenizer: Any, talk: _Talk) -> Laid | str:
    """Return the laid-out conversation, or why there is none."""
    try:
        return lay_out(tokenizer, talk)
    except EnvironmentFault as fault:
        return fault.what.replace("the chat template", "it")
    except DataError:
        thoughts = thinking.OPENER in talk[-2].content
        return "it rewrites " + ("replies that hold thoughts" if thoughts else "what is said")


def _end(laid: Laid) -> str:
    return next(laid.text[t.end : t.closed] for t in laid.turns if t.role == "assistant")


def _unfitness(tokenizer: Any, talk: _Talk, laid: Laid | str | None) -> str:
    """Return why masks of this conversation would not match what is generated."""
    if not isinstance(laid, Laid):
        return laid or ""
    if not _end(laid):
        return "it closes the assistant's turns with no special token"
    for k, turn in enumerate(laid.turns):
        if turn.role == "assistant":
            asked = _attempt(tokenizer, talk[:k], prompt=True)
            if asked != laid.text[: turn.start]:
                return "what precedes a reply is not what the model is asked to go on from"
    try:
        mask_rows(tokenizer, talk)
    except DataError:  # the words are plain, so it is the tokenizer's doing
        return "one token holds both the header and the beginning of a reply"
    return ""


def _unfit(tokenizer: Any, facts: TemplateFacts, reason: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"the chat template is not fit for training: {reason}",
        where=name(tokenizer),
        expected="a template that only appends and keeps the history",
        mend=facts.mend,
    )
