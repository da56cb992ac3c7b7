"""A tokenizer's chat template as a `ChatCodec`: prompt, suffix and note ids, cut once.

Every id comes from rendering the template; nothing is assembled by hand (design ruling 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from mimesim.dialogue.stop import MARKERS
from mimesim.errors import EnvironmentFault
from mimesim.models import templates
from mimesim.models.base import ChatMessage

_DUMMY = ChatMessage("user", "a")


def kept_tokens(tokenizer: Any, *markers: str) -> dict[int, str]:
    """Return the special tokens that mean something to us: end markers, known and named here."""
    wanted = {*MARKERS, *markers}
    return {
        number: token.content
        for number, token in tokenizer.added_tokens_decoder.items()
        if token.content.strip() in wanted
    }


def visible(tokenizer: Any, ids: Sequence[int], kept: Mapping[int, str]) -> str:
    """Return the text of `ids` without special tokens, save the `kept` ones.

    A marker that is one token needs no blank before it, so it gets a line of its own here: as text
    it must stand apart (`dialogue.stop`).
    """
    text, run = "", []
    for number in (*ids, None):
        if number is not None and number not in kept:
            run.append(number)
            continue
        text += _plain(tokenizer, run)
        run = []
        if number is not None:
            text = f"{text}\n{kept[number].strip()}" if text else kept[number].strip()
    return text


def _plain(tokenizer: Any, ids: Sequence[int]) -> str:
    return str(
        tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
    )


class TemplateCodec:
    """The codec of one tokenizer.

    Attributes:
        size: of the vocabulary.
        opening: the special token that begins a message; None = no single token does.

    Raises:
        EnvironmentFault: the template is not fit for token-level roll-outs.
    """

    def __init__(self, tokenizer: Any) -> None:
        templates.check_rollouts(tokenizer)
        self._tokenizer = tokenizer
        self._kept = kept_tokens(tokenizer)
        self.end_id = templates.end_of_turn_id(tokenizer)
        bare = templates.render_ids(tokenizer, [_DUMMY])
        headed = templates.render_ids(tokenizer, [_DUMMY], add_generation_prompt=True)
        self.header = len(headed) - len(bare)
        self._bare = bare
        self.size = len(tokenizer)
        first = headed[len(bare)] if self.header > 0 else None
        self.opening = first if first in tokenizer.all_special_ids else None
        self.closing = bare[::-1].index(self.end_id) + 1 if self.end_id in bare else 0
        self._suffix = lru_cache(maxsize=4096)(self._render_suffix)
        self._note = lru_cache(maxsize=4096)(self._render_note)
        self._inline = lru_cache(maxsize=4096)(self._render_inline)

    def prompt_ids(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Return the ids of the messages with the assistant header at the end."""
        return templates.render_ids(self._tokenizer, messages, add_generation_prompt=True)

    def suffix_ids(self, text: str) -> list[int]:
        """Return separator, user message and header, as they follow a closed assistant turn."""
        return list(self._suffix(text))

    def note_ids(self, text: str) -> list[int]:
        """Return one more user message, cut from a rendered dummy dialogue; "" gives no ids."""
        return list(self._note(text)) if text else []

    def inline_ids(self, text: str) -> list[int]:
        """Return `text` as a further paragraph of a user message; "" gives no ids.

        Raises:
            EnvironmentFault: the template does not close a user message with its end token, or the
                tokenizer joins the paragraph with the words before it.
        """
        return list(self._inline(text)) if text else []

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of sampled ids without special tokens, end markers kept."""
        return visible(self._tokenizer, ids, self._kept)

    def _render_suffix(self, text: str) -> tuple[int, ...]:
        return tuple(templates.user_suffix_ids(self._tokenizer, text))

    def _render_note(self, text: str) -> tuple[int, ...]:
        noted = templates.render_ids(self._tokenizer, [_DUMMY, ChatMessage("user", text)])
        return tuple(noted[len(self._bare) :])

    def _render_inline(self, text: str) -> tuple[int, ...]:
        longer = ChatMessage("user", f"{_DUMMY.content}\n\n{text}")
        ids = templates.render_ids(self._tokenizer, [longer])
        cut = len(self._bare) - self.closing
        opened, closed = self._bare[:cut], self._bare[cut:]
        if not closed or ids[:cut] != opened or ids[-len(closed) :] != closed:
            raise EnvironmentFault(
                "this chat template does not let a note stand inside the last message",
                expected="a user message that ends with the end-of-turn token",
                mend="set notes.place = 'message'",
            )
        return tuple(ids[cut : -len(closed)])
