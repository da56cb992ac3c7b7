"""One reply of a user's model: taken apart, read as its part wants it, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mimesim.dialogue.stop import MarkedText, UserAction, read_marker
from mimesim.dialogue.thinking import has_tag, is_blank, split
from mimesim.dialogue.types import GuardEvent, Thought
from mimesim.models.base import Completion
from mimesim.users import guards
from mimesim.users.guards import Fault, Mode
from mimesim.users.kinds import Part, read_label
from mimesim.users.settings import Settings

CUT = ("empty", "incomplete", "refused")
"""Faults after which the next draw gets twice the tokens."""
_UNUSABLE = (*CUT, "label")
"""Faults that leave nothing to deliver, whatever the mode."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One reply, taken apart and checked; `held_back` is the fault for which it is not delivered."""

    thought: Thought | None
    text: str
    action: UserAction
    completion: Completion
    faults: tuple[Fault, ...]
    held_back: Fault | None

    def events(self, attempt: int, *, final: bool) -> list[GuardEvent]:
        """Return the guards that fired, for the record."""
        held = self.held_back is not None
        hard = ("fail" if final else "redraw") if held else "mark"
        return [
            GuardEvent(fault.guard, attempt, hard if fault.hard else "record", fault.detail)
            for fault in self.faults
        ]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads replies of one user; `markers` are what ends its conversation."""

    settings: Settings
    markers: Mapping[str, UserAction]

    def read(self, completion: Completion, part: Part) -> Drawn:
        """Split private from public, then read the end marker, then look for faults."""
        settings = self.settings
        parts = split(
            completion.text,
            thinking=settings.thinking,
            finish_reason=completion.finish_reason,
            reasoning=completion.reasoning,
            prefilled=settings.prefilled,
        )
        text, replaced = guards.clean(parts.text)
        marked = read_marker(text, self.markers)
        words = marked.text
        action = marked.action if part.may_end else UserAction.SAY
        silent_start = part.scene.opening and not part.scene.agent_text
        faults: list[Fault] = []
        if completion.finish_reason == "content_filter":  # the provider's words, not the person's
            faults.append(Fault("refused", hard=True))
        elif not parts.complete:
            faults.append(Fault("incomplete", hard=True))
        elif is_blank(words) and (action is UserAction.SAY or silent_start):
            faults.append(Fault("empty", hard=True))
        elif part.as_is:
            faults += [Fault("leftover_tag", hard=True)] if has_tag(completion.text) else []
        elif part.labels:
            label = read_label(words, part.labels)
            words = words if label is None else label
            faults += [Fault("label", hard=True)] if label is None else []
        elif settings.guards is not Mode.OFF:
            faults += _of_words(marked, part)
            faults += [Fault("surrogate", hard=False)] if replaced else []
        held = _held_back(faults, Mode.ENFORCE if part.as_is else settings.guards)
        return Drawn(parts.thought, words, action, completion, tuple(faults), held)


def _of_words(marked: MarkedText, part: Part) -> list[Fault]:
    """Return what the guards find in the public words and in the marker around them."""
    unheard = marked.action is not UserAction.SAY and not part.may_end
    faults = [Fault("marker", hard=marked.fault)] if marked.fault or unheard else []
    return faults + list(guards.check(marked.text, part.scene) if not is_blank(marked.text) else ())


def _held_back(faults: list[Fault], mode: Mode) -> Fault | None:
    """Return the first fault that forbids delivery in this mode."""
    hard = next((fault for fault in faults if fault.hard), None)
    if hard is None or (mode is Mode.FLAG and hard.guard not in _UNUSABLE):
        return None
    return hard
