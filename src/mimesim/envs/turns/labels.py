"""Questions that are answered by Yes, No or Maybe: how they are read, and by whom they are answered.

Whatever a user says, the agent reads one of three words; under compat (`json_parser`) it reads the
reply as it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mimesim.dialogue.types import Reply
from mimesim.envs.base import AgentAction, Choice
from mimesim.envs.turns.compat import Compat
from mimesim.envs.turns.kind import scripted
from mimesim.envs.turns.parts import BadAction
from mimesim.errors import UserError
from mimesim.users.base import Script
from mimesim.users.kinds import read_label
from mimesim.users.scripted.manner import manner

YES, NO, MAYBE = LABELS = ("Yes", "No", "Maybe")
MAX_QUESTION = 1000
"""Longest question, in characters; more is a pasted conversation."""
_TAG = len("[action]")
"""What the originals cut off in front of a question, whether or not it is a tag."""


def as_label(reply: Reply, compat: Compat) -> Reply:
    """Return a reply that says its label and nothing else; under compat as it was given.

    Raises:
        UserError: it opens with no label.
    """
    if compat.json_parser == "python_literal":
        return reply
    label = read_label(reply.utterance, LABELS)
    if label is None:
        raise UserError("the reply opens with neither Yes, No nor Maybe", retryable=True)
    return replace(reply, utterance=label)


def question_in(content: str) -> str:
    """Return the question of an action.

    Raises:
        BadAction: it is too long.
    """
    if len(content) > MAX_QUESTION:
        raise BadAction(f"a question has at most {MAX_QUESTION} characters")
    return content


def scripted_label(label: Callable[[], str], *, first: bool) -> Script:
    """Return how scripted people answer: evasive ones do not commit themselves at first.

    Args:
        label: what is true.
        first: whether nothing was asked before.
    """

    def script(kind: str) -> Reply:
        evades = first and manner(kind).evasive_once
        return scripted(MAYBE if evades else label())

    return script


def original_reading(action: AgentAction) -> tuple[Choice, str]:
    """Return an action as the originals take it: what is no answer is a question.

    The letters of a tag are cut off in front of a question, whether or not it is there.
    """
    if action.choice is Choice.ANSWER:
        return Choice.ANSWER, action.content
    return Choice.ACTION, action.content[_TAG:].strip() if action.raw else action.content
