"""Conversations with private thoughts to training rows: the thought is learnt with the message.

One row per conversation: the system text that serving renders too, the fixed greeting of the
assistant, then the person's turns as `assistant`, each behind a block with the thought of that
turn, empty where nobody wrote one down. The blocks are plain text of the content and stay in the
history, in training as in serving. Paper: thought-augmented SFT, stage one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mimesim.corpora.base import HumanDialogue, HumanTurn
from mimesim.dialogue import thinking
from mimesim.dialogue.types import Thought
from mimesim.dialogue.views import GREETING
from mimesim.models.base import ChatMessage
from mimesim.scenarios.types import Scenario
from mimesim.train.rows import Laid, Rows, make_rows
from mimesim.users import briefing

SYSTEM_TEMPLATE = "user/thinking"
"""The system text of thought rows."""

SERVING_TEMPLATE = SYSTEM_TEMPLATE
"""What a checkpoint's `mimesim.json` names for serving: the very same template."""

_PROFILE = {
    "age": "age",
    "gender": "gender",
    "education": "education",
    "occupation": "occupation",
    "frequency": "how often you use AI",
    "purposes": "what you use it for",
}
"""Key of `hidden["profile"]` -> how the person's description names it, in this order."""
_EXPECTATION = "what you expect of the assistant"


def person(dialogue: HumanDialogue) -> Scenario:
    """Return who writes in a conversation, as the scenario that serving would be given.

    `hidden` holds `expectation` (text) and `profile` (a map with the keys age, gender, education,
    occupation, frequency, purposes); what is missing or empty is left out.
    """
    profile = dialogue.hidden.get("profile")
    told = profile if isinstance(profile, dict) else {}
    known = {_EXPECTATION: _said(dialogue.hidden.get("expectation"))}
    known |= {name: _said(told.get(key)) for key, name in _PROFILE.items()}
    return Scenario(
        id=dialogue.id,
        goal=dialogue.goal or dialogue.topic,
        persona={name: value for name, value in known.items() if value},
    )


def thought_messages(dialogue: HumanDialogue, *, reactions: bool = False) -> list[ChatMessage]:
    """Return a conversation as the person's own model sees it: system text, greeting, turns.

    What the assistant says last is left out, for nothing learnt follows it.

    Args:
        dialogue: sides alternate and the person opens.
        reactions: put what the person thought on reading a reply in front of the thought of the
            answer to it.
    """
    system = briefing.system_prompt(person(dialogue), SYSTEM_TEMPLATE, thinking=True)
    rows = [ChatMessage("system", system), ChatMessage("user", GREETING)]
    reaction: Thought | None = None
    for turn in dialogue.turns:
        if turn.role == "agent":
            rows.append(ChatMessage("user", turn.text))
            reaction = turn.reaction if reactions else None
        else:
            rows.append(
                ChatMessage("assistant", thinking.join(_joined(reaction, turn.thought), turn.text))
            )
    return rows[:-1] if len(rows) > 2 and rows[-1].role == "user" else rows


def thought_rows(
    tokenizer: Any,
    dialogues: Iterable[HumanDialogue],
    max_length: int,
    *,
    reactions: bool = False,
) -> Rows:
    """Tokenize dialogues, one row each, at most `max_length` tokens; the oldest turns go first.

    A conversation is dropped when the sides do not alternate from the person on
    (`not_alternating`), when a text looks like a block of thoughts itself (`unclear_thoughts`), or
    when not even its last turn fits (`fully_masked`).

    Raises:
        EnvironmentFault: the tokenizer's template is not fit for training.
        DataError: not one dialogue has a token to learn.
    """

    def lay(dialogue: HumanDialogue) -> Laid | str:
        reason = _unfit(dialogue)
        if reason:
            return reason
        messages = thought_messages(dialogue, reactions=reactions)
        return Laid(messages[:2], messages[2:])

    return make_rows(tokenizer, dialogues, max_length, lay, stride=2, tell=_told)


def _told(dialogue: HumanDialogue, dropped: int) -> dict[str, int]:
    kept = [turn for turn in dialogue.turns[dropped:] if turn.role == "user"]
    return {
        "rows_cut": int(dropped > 0),
        "turns_learnt": len(kept),
        "thoughts": sum(bool(turn.thought) for turn in kept),
    }


def _unfit(dialogue: HumanDialogue) -> str:
    sides = [turn.role for turn in dialogue.turns]
    if sides != [("user", "agent")[k % 2] for k in range(len(sides))] or not sides:
        return "not_alternating"
    return "unclear_thoughts" if any(map(_has_tags, dialogue.turns)) else ""


def _has_tags(turn: HumanTurn) -> bool:
    """Tell whether a person's turn could not be taken apart again: it writes about such tags."""
    thoughts = [thought.reveal() for thought in (turn.thought, turn.reaction) if thought]
    own = [turn.text] if turn.role == "user" else []
    return any(thinking.has_tag(text) for text in [*own, *thoughts])


def _joined(*thoughts: Thought | None) -> Thought | None:
    words = [thought.reveal().strip() for thought in thoughts if thought]
    return Thought("\n\n".join(words)) if words else None


def _said(value: Any) -> str:
    return "" if value is None or isinstance(value, dict | list) else str(value).strip()
