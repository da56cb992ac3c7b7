"""Chat templates: the only code that turns messages into token ids, masks and user suffixes.

One plain ChatML template serves supervised training, reinforcement learning and serving, and
travels with every checkpoint inside its tokenizer (`rendering`). Loss masks are made for any
template from what it puts around the contents, with two calls per conversation (`masks`). What a
foreign template can do, and in which shape it takes a conversation, is found out once per
tokenizer (`facts`). All of it works with any fast tokenizer, whatever its vocabulary.
"""

from __future__ import annotations

from mimesim.models.templates.facts import (
    TemplateFacts,
    check_rollouts,
    check_serving,
    check_template,
    inspect_template,
    prepare,
    strict_messages,
)
from mimesim.models.templates.masks import (
    IGNORED,
    MaskedRow,
    end_of_turn_id,
    mask_rows,
    untold,
)
from mimesim.models.templates.rendering import (
    CHATML,
    Message,
    encode,
    install,
    neutralize,
    render,
    render_ids,
    speaks_chatml,
    user_suffix_ids,
)

__all__ = [
    "CHATML",
    "IGNORED",
    "MaskedRow",
    "Message",
    "TemplateFacts",
    "check_rollouts",
    "check_serving",
    "check_template",
    "encode",
    "end_of_turn_id",
    "inspect_template",
    "install",
    "mask_rows",
    "neutralize",
    "prepare",
    "render",
    "render_ids",
    "speaks_chatml",
    "strict_messages",
    "untold",
    "user_suffix_ids",
]
