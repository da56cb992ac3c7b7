"""A task whose answer is one letter."""

from __future__ import annotations

from typing import ClassVar

from mimesim.envs.base import Task
from mimesim.envs.tasks import answers
from mimesim.envs.tasks.base import AnswerTask, S, Score, right_or_wrong


class LetterTask(AnswerTask[S]):
    """Letter equality with `gold` of the hidden side."""

    form = "one letter, A, B, C or D"
    letters: ClassVar[str] = "ABCD"
    """What may be answered."""
    either_case: ClassVar[bool] = True

    def grade(self, task: Task, said: str, mode: str) -> Score:
        """Compare letters."""
        return same_letter(task, answers.letter(said, self.letters, either_case=self.either_case))

    def right(self, task: Task) -> str:
        """Return the right letter."""
        return str(task.hidden["gold"])


def same_letter(task: Task, chosen: str | None) -> Score:
    """Score a letter that was read; None = there was none."""
    return right_or_wrong(chosen == task.hidden["gold"], answer=chosen)
