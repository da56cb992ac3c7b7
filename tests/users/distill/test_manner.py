"""Style and endings in words."""

from __future__ import annotations

from mimesim.corpora.base import HumanTurn
from mimesim.users.distill.manner import style_of
from mimesim.users.distill.outcomes import ending_of


def test_how_somebody_types() -> None:
    style = style_of(["hi i need help with my order", "thx u are great", "im done"])
    assert style["casing"] == "all small letters"
    assert style["punctuation"] == "mostly no sign at the end"
    assert style["typing"] == "chat shorthand, leaves out apostrophes"
    assert style["length"] == "about 4 words a message, 7 at most"
    assert "language" not in style


def test_an_ordinary_writer() -> None:
    style = style_of(["I need help with my order.", "It's number 12.", "Thank you."])
    assert (style["casing"], style["punctuation"]) == ("as usual", "as usual")
    assert "typing" not in style


def test_shouting_and_other_languages() -> None:
    assert style_of(["WHERE IS IT", "NOW!"])["casing"] == "all capitals"
    assert style_of(["mein paket"], "de")["language"] == "de"
    assert style_of(["你好，我的包裹丢了"])["casing"] == "as usual"


def ending(*texts: str) -> tuple[str, str]:
    turns = [HumanTurn("agent" if i % 2 else "user", text) for i, text in enumerate(texts)]
    found = ending_of(turns)
    return found.kind, found.said.quote if found.said else ""


def test_endings() -> None:
    assert ending("help", "ok", "It works. Thanks a lot!") == ("thanked", "Thanks a lot!")
    assert ending("help", "no", "This is useless") == ("complained", "This is useless")
    assert ending("help", "no", "thanks but it still doesn't work")[0] == "complained"
    assert ending("help", "Which one?", "the red one") == ("open", "")
    assert ending("thanks in advance, where is it?") == ("open", "")
