"""A tokenizer's chat template as a `ChatCodec`: prompt, suffix and note ids, cut once.

Every id comes from rendering the template; nothing is assembled by hand (design ruling 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from mimesim.models import templates
from mimesim.models.base import ChatMessage

_DUMMY = ChatMessage("user", "a")


class TemplateCodec:
    """The codec of one tokenizer.

    Raises:
        EnvironmentFault: the template is not fit for token-level roll-outs.
    """

    def __init__(self, tokenizer: Any) -> None:
        templates.check_template(tokenizer)
        self._tokenizer = tokenizer
        self.end_id = templates.end_of_turn_id(tokenizer)
        bare = templates.render_ids(tokenizer, [_DUMMY])
        headed = templates.render_ids(tokenizer, [_DUMMY], add_generation_prompt=True)
        self.header = len(headed) - len(bare)
        self._before_note = len(bare)
        self._suffix = lru_cache(maxsize=4096)(self._render_suffix)
        self._note = lru_cache(maxsize=4096)(self._render_note)

    def prompt_ids(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Return the ids of the messages with the assistant header at the end."""
        return templates.render_ids(self._tokenizer, messages, add_generation_prompt=True)

    def suffix_ids(self, text: str) -> list[int]:
        """Return separator, user message and header, as they follow a closed assistant turn."""
        return list(self._suffix(text))

    def note_ids(self, text: str) -> list[int]:
        """Return one more user message, cut from a rendered dummy dialogue; "" gives no ids."""
        return list(self._note(text)) if text else []

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of sampled ids without special tokens."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def _render_suffix(self, text: str) -> tuple[int, ...]:
        return tuple(templates.user_suffix_ids(self._tokenizer, text))

    def _render_note(self, text: str) -> tuple[int, ...]:
        noted = templates.render_ids(self._tokenizer, [_DUMMY, ChatMessage("user", text)])
        return tuple(noted[self._before_note :])
