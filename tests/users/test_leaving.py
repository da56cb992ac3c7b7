"""How a user leaves: one law for the gym without a gym, for sessions and for the server."""

from __future__ import annotations

import pytest

from mimesim.dialogue.stop import LEAVING, StopReason, UserAction
from mimesim.dialogue.types import PublicMessage, Reply, Role
from mimesim.errors import UserError
from mimesim.users.leaving import Presence, check_reply, nobodys_end, presence


@pytest.mark.parametrize("action", LEAVING)
def test_grace_decides_over_words_and_never_over_a_bare_end(action: UserAction) -> None:
    said = {grace: presence(action, "bye", grace) for grace in ("none", "one_turn", "ask_user")}
    assert said == {
        "none": Presence.GONE,
        "one_turn": Presence.ONE_TURN,
        "ask_user": Presence.STAYS,
    }
    assert {presence(action, "", grace) for grace in said} == {Presence.GONE}
    assert presence(UserAction.SAY, "bye", "none") is Presence.STAYS


def test_a_reply_that_nobody_could_answer_is_refused() -> None:
    for action, words in ((UserAction.TOOL, "x"), (UserAction.SAY, " ")):
        with pytest.raises(UserError):
            check_reply(Reply(None, words, action), words)
    check_reply(Reply(None, "", UserAction.END), "")


def test_the_limit_comes_before_the_loop_and_loops_can_be_let_be() -> None:
    same = [PublicMessage(role, "thanks") for _ in range(6) for role in (Role.USER, Role.AGENT)]
    assert nobodys_end(same, 6, 6) is StopReason.MAX_TURNS
    assert nobodys_end(same, 6, 7) is StopReason.LOOP_DETECTED
    assert nobodys_end(same, 6, None, loops=False) is None
    assert nobodys_end(same[:1], 1, 2) is None
