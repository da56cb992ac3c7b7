"""OdysSim post-training: three families hold a conversation, every other row is a task."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora.base import HumanTurn, Unfit
from mimesim.corpora.formats import userrl
from mimesim.corpora.formats.osim_post import FORMAT


def row(source: str, **fields: Any) -> dict[str, Any]:
    return {"data_source": source, "extra_info": fields}


TALK = [{"role": "user", "content": "too long"}, {"role": "assistant", "content": "shorter"}]


def test_what_a_person_wrote() -> None:
    messages = [
        {"role": "user", "content": "A post about tea."},
        {"role": "user", "content": "Go."},
    ]
    for prompt in ("A post about tea.\nGo.", messages, jsonio.dumps(messages)):
        value = row("humanual-news", id=3, persona="Kim", prompt=prompt, completion="Tea is fine.")
        (found,) = FORMAT.convert(value, {})
        assert found.turns == (
            HumanTurn("agent", "A post about tea.\nGo."),
            HumanTurn("user", "Tea is fine."),
        )
        assert (found.id, found.context) == ("osim-post/humanual-news/3", "Kim")
    (brackets,) = FORMAT.convert(row("humanual-chat", prompt="[sic] hm", completion="ok"), {})
    assert brackets.turns[0].text == "[sic] hm"


def test_what_a_person_said_to_a_model() -> None:
    mirror = row("mirrorbench", task_description="Wants less.", turns=TALK)
    raw = {"intent": "Wants less.", "human_public_conversation": TALK, "user_profile_text": "terse"}
    work = row("sim_arena_doc", raw=jsonio.dumps(raw))
    for value in (mirror, work):
        (found,) = FORMAT.convert(value, {})
        assert found.turns == (HumanTurn("user", "too long"), HumanTurn("agent", "shorter"))
        assert found.goal == "Wants less."
    assert found.hidden == {"profile": "terse"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (row("fantom", context="x", correct_answer="y"), "no_dialogue"),
        (row("humanual-diary", prompt="x", completion="y"), "no_dialogue"),
        (row("sim_arena_math", raw='{"human_public_conversation": "one text"}'), "no_dialogue"),
        (row("sim_arena_math", raw="{"), "bad_json"),
        (row("mirrorbench", task_description="x"), "missing_keys"),
        (row("humanual-chat", prompt="x", completion=None), "bad_text"),
        ({"data_source": "fantom"}, "missing_keys"),
    ],
)
def test_what_has_no_dialogue(value: Any, reason: str) -> None:
    with pytest.raises(Unfit) as caught:
        list(FORMAT.convert(value, {}))
    assert caught.value.reason == reason


def test_keys_tell() -> None:
    task = {**row("interact_x"), "prompt": [], "reward_model": {"env_name": "TauGym"}}
    assert FORMAT.claims(row("fantom", context="x"))
    assert not FORMAT.claims(row("wildchat", messages=[]))
    assert not FORMAT.claims(task)
    assert userrl.FORMAT.claims(task)
