"""Read a place with a format, as a build does, and count what its dialogues hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mimesim import jsonio
from mimesim.corpora import places
from mimesim.corpora.base import Format, HumanDialogue, Unfit


class Read(NamedTuple):
    """The dialogues of a place, and (where, reason) of what was left out."""

    dialogues: list[HumanDialogue]
    rejects: list[tuple[str, str]]

    @property
    def reasons(self) -> Counter[str]:
        """How often each reason was given."""
        return Counter(reason for _, reason in self.rejects)

    def turns(self, role: str) -> int:
        """Return how many turns of a side there are, before anything is tidied."""
        return sum(turn.role == role for d in self.dialogues for turn in d.turns)

    def words(self) -> float:
        """Return the mean number of words of the learnt side's turns."""
        texts = [t.text for d in self.dialogues for t in d.turns if t.role == "user"]
        return sum(len(text.split()) for text in texts) / len(texts)


def read(form: Format, place: Path | str, options: Mapping[str, Any] | None = None) -> Read:
    """Return all that a format makes of a place."""
    found = Read([], [])

    def refuse(where: str, reason: str, detail: str) -> None:
        found.rejects.append((where, reason))

    records = places.records(
        str(place), files=form.files, splits_lists=form.splits_lists, on_reject=refuse
    )
    for record in form.gather(records) if form.gather else records:
        try:
            found.dialogues.extend(form.convert(record.value, options or {}))
        except Unfit as unfit:
            refuse(record.where, unfit.reason, unfit.detail)
    return found


def write(path: Path, value: Any) -> Path:
    """Write a JSON document and return its path, folders made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    jsonio.write_json(path, value)
    return path


def spoken(dialogue: HumanDialogue) -> list[tuple[str, str]]:
    """Return (role, text) of every turn."""
    return [(turn.role, turn.text) for turn in dialogue.turns]
