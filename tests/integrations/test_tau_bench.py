"""tau-bench: the contract on a stand-in, a whole episode where `MIMESIM_TAU_BENCH_PATH` names a checkout."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = os.environ.get("MIMESIM_TAU_BENCH_PATH", "")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
sys.path.insert(0, CHECKOUT) if CHECKOUT else sys.path.append(
    str(Path(__file__).parent / "stand_ins")
)
pytestmark = pytest.mark.filterwarnings("ignore")
warnings.simplefilter("ignore")  # while it is collected; the library warns on import

from tau_bench.envs import base  # noqa: E402
from tau_bench.envs.user import BaseUserSimulationEnv, load_user  # noqa: E402

from mimesim.dialogue.stop import END_MARKER  # noqa: E402
from mimesim.errors import InfraError, UsageError, UserError  # noqa: E402
from mimesim.integrations.tau_bench import MimesimUser, install  # noqa: E402
from mimesim.integrations.visits import Visits  # noqa: E402
from tests.support.dropins import ANSWERS, PERSON, SECRET, WORDS, breaking, thinker  # noqa: E402


def ours(source: Any = None) -> MimesimUser:
    return MimesimUser(Visits(source or thinker()), people=lambda instruction: PERSON)


def test_the_signatures_are_those_of_the_base_class() -> None:
    for name in ("reset", "step", "get_total_cost"):
        theirs = inspect.signature(vars(BaseUserSimulationEnv)[name]).parameters
        assert list(theirs) == list(inspect.signature(vars(MimesimUser)[name]).parameters)
    assert list(inspect.signature(load_user).parameters) == ["user_strategy", "model", "provider"]
    assert isinstance(ours(), BaseUserSimulationEnv)


def test_words_come_first_and_the_bare_marker_when_asked_again() -> None:
    user = ours()
    said = [user.reset("buy"), *[user.step(text) for text in ANSWERS]]
    assert said == [*WORDS, END_MARKER]
    assert SECRET not in str(said)
    assert len(user.thoughts) == 3
    assert user.get_total_cost() == 0.0


def test_a_reset_is_a_new_person_and_nothing_is_said_without_one() -> None:
    user = ours()
    with pytest.raises(UsageError):
        user.step("hello?")
    with pytest.raises(UsageError):
        user.reset()
    assert [user.reset("buy"), user.step(ANSWERS[0]), user.reset("buy")] == [
        WORDS[0], WORDS[1], WORDS[0],
    ]  # fmt: skip


def test_a_failure_is_raised_and_a_marker_in_prose_never_delivered() -> None:
    with pytest.raises(InfraError):
        [ours(breaking(after=0)).reset("buy")]
    quoting = thinker(["<think>a</think>what does ###STOP### mean?"] * 9, guards="off")
    with pytest.raises(UserError):
        ours(quoting).reset("buy")


def test_install_replaces_the_name_that_environments_use_and_puts_it_back() -> None:
    stock = base.load_user
    with install(thinker()) as visits:
        assert isinstance(base.load_user("llm", "gpt-4o", None), MimesimUser)
    assert base.load_user is stock
    with pytest.raises(Exception, match="closed"):
        visits.visit(PERSON)


@pytest.mark.skipif(bool(CHECKOUT), reason="the stand-in's environment; the real one runs instead")
def test_an_environment_ends_by_the_marker() -> None:
    with install(thinker(), people=lambda instruction: PERSON):
        env = base.Env("human", "", "return a teapot")  # type: ignore[call-arg, arg-type]
        seen = [(env.reset(), False), *[env.step(text) for text in ANSWERS]]  # type: ignore[arg-type, list-item]
    assert [done for _, done in seen] == [False, False, False, True]


@pytest.mark.skipif(not CHECKOUT, reason="MIMESIM_TAU_BENCH_PATH names no checkout")
@pytest.mark.parametrize("domain", ["retail", "airline"])
@pytest.mark.parametrize("number", range(10))
def test_a_real_environment_is_played_to_its_reward(domain: str, number: int) -> None:
    """The gold actions, with a scripted user: the reward is theirs, and 1 where no output is asked."""
    from tau_bench.envs import get_env
    from tau_bench.types import Action

    with install("scripted:neutral", seed=1):
        env = get_env(
            domain, user_strategy="human", user_model="", task_split="test", task_index=number
        )
        first = env.reset(task_index=number)
        assert first.observation
        for action in env.task.actions:
            env.step(Action(name=action.name, kwargs=action.kwargs))
        outputs = " ".join(env.task.outputs)
        told = ["What is your name?", f"That is done: {outputs} {END_MARKER}", "Bye!", "Goodbye."]
        done, steps, words = False, 0, []
        while not done and steps < 12:
            text = told[min(steps, 3)]
            answer = env.step(Action(name="respond", kwargs={"content": text}))
            done, steps = answer.done, steps + 1
            words.append(answer.observation)
        assert done
        assert words[-1] == END_MARKER
        assert all(END_MARKER not in text for text in words[:-1])
        assert answer.reward == 1.0
        assert answer.info.user_cost == 0.0
