"""Tokens of a conversation as the trainer sees them: student, teacher rows, packed teacher.

Prompt P, T turns, reply n, user message u with its template tokens, note h, wrapper w; the last
reply ends the row. See `docs/plan.md` for the table that these formulas give.
"""

from __future__ import annotations

from dataclasses import dataclass

WRAPPER = 5
"""ChatML tokens around a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation of equal turns, in tokens.

    Attributes:
        prompt: before the first reply.
        turns: replies of the policy; fractions are means.
        reply: of the policy. message: of the user, template included.
        note: of the coach.
    """

    prompt: float
    turns: float
    reply: float
    message: float
    note: float = 0.0

    @property
    def generated(self) -> float:
        """Tokens that the policy samples."""
        return self.turns * self.reply

    @property
    def student(self) -> float:
        """Length of the row S = P + T n + (T - 1) u."""
        return self.prompt + self.generated + max(0.0, self.turns - 1) * self.message

    def _branches(self, noted: float) -> float:
        return noted * (self.note + WRAPPER + self.reply)

    def teacher_rows(self, noted: float | None = None) -> float:
        """Return R: one row per noted turn, each with its whole history; None = every turn."""
        turns = self.turns
        share = 1.0 if noted is None else min(1.0, noted / turns)
        histories = turns * self.prompt + (self.reply + self.message) * turns * (turns - 1) / 2
        return share * (histories + self._branches(turns))

    def teacher_packed(self, noted: float | None = None) -> float:
        """Return the tokens of one packed row: the conversation once, a branch per noted turn."""
        turns = self.turns if noted is None else min(self.turns, noted)
        return self.student + self._branches(turns)
