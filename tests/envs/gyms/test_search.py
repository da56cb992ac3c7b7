"""The gym `search`: rows SE-01 to SE-10 in both modes, its corpus, its tasks, its back ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.stop import Party, StopReason
from mimesim.dialogue.types import Identity
from mimesim.envs.base import AgentAction, Choice, StepResult, Task
from mimesim.envs.gyms.search import GYM
from mimesim.envs.gyms.search.backends import SHOWN, Found, make_backend
from mimesim.envs.gyms.search.gym import MAX_SEARCHES, SearchGym, matches, plain
from mimesim.envs.gyms.search.index import Document, Index, read_documents
from mimesim.envs.gyms.search.tasks import make_tasks
from mimesim.envs.gyms.search.world import the_world
from mimesim.envs.load import check_tasks, make_gym
from mimesim.envs.packs import holds_string
from mimesim.envs.turns.agents import trace_of
from mimesim.errors import (
    ConfigError,
    DataError,
    EnvironmentFault,
    InfraError,
    JudgeError,
    UnknownNameError,
    UsageError,
)
from mimesim.judges.load import make_judge
from mimesim.judges.rule import RuleJudge
from tests.support.stub_server import Fault, StubRequest, StubServer, hang, rate_limited, reset

COMPAT = {"compat": "userrl", "phase": "eval"}
QUICK = {"backoff_s": 0.01, "backoff_max_s": 0.02, "budget_s": 20.0, "timeout_s": 10.0}
TASK = Task(
    gym="search",
    id="golden",
    split="test",
    groups=("bridge:x",),
    public={"question": "Who was the fourth president?"},
    hidden={"answer": "James Madison", "aliases": ["J. Madison"]},
)


class Broken:
    """A back end whose server never answers."""

    mode = "broken"

    async def search(self, query: str) -> list[Found] | None:
        raise InfraError("the server is out of credit", retryable=True)

    async def aclose(self) -> None:
        """Release nothing."""


def broken(rest: str, options: Mapping[str, Any]) -> Broken:
    """Make it; named by path."""
    return Broken()


BROKEN = {"search": f"{__name__}:broken"}


def episode(*moves: tuple[str, str], task: Task = TASK, judge: Any = None, **options: Any) -> Any:
    """Play moves and return the gym and its steps."""
    judge = judge or RuleJudge()
    gym = SearchGym(user=None, judge=judge, options=options)  # type: ignore[arg-type]

    async def play() -> list[StepResult]:
        await gym.reset(task, seed=1)
        try:
            return [await gym.step(AgentAction(Choice(c), text)) for c, text in moves]
        finally:
            await gym.aclose()
            await judge.aclose()

    return gym, asyncio.run(play())


def last(*moves: tuple[str, str], **options: Any) -> StepResult:
    """Play moves and return the last step."""
    return episode(*moves, **options)[1][-1]


def text_of(step: StepResult) -> str:
    """Return what the agent reads."""
    return "\n".join(message.content for message in step.feedback)


def model_judge(server: StubServer) -> Any:
    """Return a judge on a model of the loopback server."""
    url = f"model:openai:stub@{server.url}"
    return make_judge(url, options={"model": {"backoff_s": 0.01, "budget_s": 2.0}})


# ---------------------------------------------------------------------------------- SE rows


@pytest.mark.parametrize("options", [{}, COMPAT], ids=["fixed", "compat"])
@pytest.mark.parametrize("said", ["james madison", "James  Madison!"])
def test_se_01_the_answer_in_any_case_and_spacing(options: dict[str, Any], said: str) -> None:
    step = last(("answer", said), **options)
    assert (step.reward, step.terminated, step.success) == (1.0, True, True)
    assert (step.reason, step.private.judge) == (StopReason.GOAL_REACHED, ())


def test_se_01_only_the_repaired_rule_knows_articles_and_aliases() -> None:
    for said in ("The James Madison", "j. madison"):
        assert last(("answer", said)).reward == 1.0
        step = last(("answer", said), judge=RefusingJudge(), **COMPAT)
        assert step.reward == 0.0


class RefusingJudge:
    """Gives no verdict, as a model that refuses."""

    identity = Identity("rule", "refusing")

    async def judge(self, request: Any) -> Any:
        raise JudgeError("no verdict: refused")

    async def aclose(self) -> None:
        """Release nothing."""


@pytest.mark.parametrize("options", [{}, COMPAT], ids=["fixed", "compat"])
@pytest.mark.parametrize(("verdict", "reward"), [("True", 1.0), ("False", 0.0)])
def test_se_02_the_judge_decides_on_other_wordings(
    options: dict[str, Any], verdict: str, reward: float
) -> None:
    with StubServer([f'{{"correct": {verdict}}}']) as server:
        step = last(("answer", "Madison"), judge=model_judge(server), **options)
        asked = server.generations[0].body["messages"][-1]["content"]
    assert step.reward == reward
    assert [entry["kind"] for entry in step.private.judge] == ["search.equal"]
    assert all(part in asked for part in ("fourth president", "James Madison", "| Madison"))


@pytest.mark.parametrize("options", [{}, COMPAT], ids=["fixed", "compat"])
def test_se_03_the_sixth_search_is_refused_and_costs_the_turn(options: dict[str, Any]) -> None:
    gym, steps = episode(*[("search", "town")] * 6, **options)
    assert all("1. " in text_of(step) for step in steps[:MAX_SEARCHES])
    assert "1. " not in text_of(steps[5])
    assert steps[5].valid
    snapshot = gym.snapshot()
    assert (snapshot["turns"], snapshot["state"]["searches"]) == (6, MAX_SEARCHES)


def test_se_04_an_empty_query_is_no_search() -> None:
    gym, steps = episode(("search", "  "), ("search", "town"))
    assert (steps[0].valid, gym.snapshot()["state"]["searches"]) == (False, 1)


def test_se_04_compat_counts_it() -> None:
    gym, steps = episode(("search", "  "), **COMPAT)
    assert (steps[0].valid, gym.snapshot()["state"]["searches"]) == (True, 1)
    assert text_of(steps[0])


def test_se_05_a_failed_search_is_no_result_and_may_be_tried_again() -> None:
    gym = SearchGym(user=None, judge=RuleJudge(), options=BROKEN)  # type: ignore[arg-type]

    async def play() -> tuple[dict[str, Any], dict[str, Any]]:
        await gym.reset(TASK, seed=1)
        before = gym.snapshot()
        for _ in range(2):
            with pytest.raises(InfraError):
                await gym.step(AgentAction(Choice.SEARCH, "president"))
        return before, gym.snapshot()

    before, after = asyncio.run(play())
    assert {**before, "failures": 2} == after  # only the count that gives the next try its seed


def test_se_05_compat_tells_the_error_and_counts_it() -> None:
    gym, steps = episode(("search", "president"), **COMPAT, **BROKEN)
    assert "out of credit" in text_of(steps[0])
    assert (steps[0].reward, gym.snapshot()["state"]["searches"]) == (0.0, 1)


def test_se_06_actions_are_no_choice() -> None:
    step = last(("action", "hello"))
    assert (step.valid, step.reward) == (False, 0.0)
    assert "search, answer" in text_of(step)


def test_se_06_compat_answers_them_as_a_format_error() -> None:
    step = last(("action", "hello"), **COMPAT)
    assert (step.valid, step.reward, step.done) == (True, 0.0, False)
    assert "searches and answers" in text_of(step)


def test_se_07_a_judge_that_does_not_decide_spoils_the_episode() -> None:
    with StubServer(["Error"]) as server, pytest.raises(JudgeError):
        last(("answer", "Madison"), judge=model_judge(server))


def test_se_07_compat_scores_it_0() -> None:
    with StubServer(["Error"]) as server:
        step = last(("answer", "Madison"), judge=model_judge(server), **COMPAT)
    assert (step.reward, step.done, text_of(step)) == (0.0, False, "Incorrect.")


def test_se_08_giving_up_tells_nothing() -> None:
    step = last(("finish", "done"), expose_finish=True)
    assert (step.terminated, step.reward, step.reason) == (True, 0.0, StopReason.AGENT_STOP)
    assert "Madison" not in text_of(step)
    assert "James Madison" in str(dict(step.private.grading))


def test_se_08_compat_prints_the_answer() -> None:
    step = last(("finish", "done"), **COMPAT)
    assert "James Madison" in text_of(step)
    assert step.terminated


@pytest.mark.parametrize("options", [{}, COMPAT], ids=["fixed", "compat"])
def test_se_09_wrong_answers_cost_turns_only(options: dict[str, Any]) -> None:
    _, steps = episode(*[("answer", "Adams")] * 3, ("answer", "James Madison"), **options)
    assert [step.reward for step in steps] == [0.0, 0.0, 0.0, 1.0]
    assert steps[-1].success


@pytest.mark.parametrize("compat", ["", "userrl"], ids=["fixed", "compat"])
def test_se_10_import_and_making_need_neither_key_nor_network(compat: str) -> None:
    """The original fails on import without a key; nobody needs that again, so compat works too."""
    code = (
        "import sys\n"
        "from mimesim.envs.load import make_gym\n"
        "from mimesim.judges.rule import RuleJudge\n"
        "options = {'search': 'http:http://search.invalid/find', 'compat': sys.argv[1],\n"
        "           'search_options': {'api_key_env': 'SOME_KEY'}}\n"
        "gym = make_gym('search', user=None, judge=RuleJudge(), options=options)\n"
        "assert 'openai' not in sys.modules or 'httpx2' in sys.modules\n"
        "print(gym.spec.name)\n"
    )
    environment = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", code, compat], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stdout.strip()) == (0, "search"), done.stderr


# ------------------------------------------------------------------------------- what is hidden


def test_the_answer_is_a_secret_until_a_result_shows_it() -> None:
    task = make_tasks("test", 1, 1)[0]
    trace = trace_of(task)
    gym, _ = episode(task=task)
    assert gym.forbidden() == [task.hidden["answer"], *task.hidden["aliases"]]
    gym, _ = episode(*trace[:2], task=task)
    assert gym.forbidden() == []


def test_the_judges_reading_never_reaches_the_agent() -> None:
    with StubServer(['{"correct": false, "note": "canary"}']) as server:
        step = last(("answer", "Madison"), judge=model_judge(server))
    assert text_of(step) == "Incorrect."


@pytest.mark.parametrize("said", ["?!", "..."])
def test_an_answer_without_letters_is_no_answer(said: str) -> None:
    assert not last(("answer", said)).valid


def test_the_last_turn_can_still_be_won() -> None:
    _, steps = episode(*[("answer", "Adams")] * 15, ("answer", "James Madison"))
    assert (steps[-1].terminated, steps[-1].truncated, steps[-1].reward) == (True, False, 1.0)
    gym, _ = episode(compat="userrl", phase="train")
    assert gym.spec.max_steps == 15


def test_sixteen_wrong_turns_are_truncated() -> None:
    _, steps = episode(*[("answer", "Adams")] * 16)
    end = steps[-1]
    assert (end.truncated, end.terminated, end.by) == (True, False, Party.RUNNER)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The River Aldrin", "river aldrin", True),
        ("a", "A", True),
        ("the", "The", True),
        ("Ａda", "ada", True),
        ("An Ant", "ant", True),
        ("theory", "ory", False),
        ("1412", "1413", False),
    ],
)
def test_answers_are_compared_by_letters_and_digits(one: str, other: str, same: bool) -> None:
    assert (plain(one) == plain(other)) is same
    assert matches({"answer": one, "gold": "x", "aliases": [other]}) is same


def test_a_state_can_be_restored() -> None:
    gym, _ = episode(("search", "town"), ("answer", "Adams"))
    state = jsonio.loads(jsonio.dumps(gym.snapshot()))
    again, _ = episode()
    again.restore(state)
    assert again.snapshot() == gym.snapshot()


@pytest.mark.parametrize(
    ("public", "hidden"),
    [
        ({"question": "Who?"}, {}),
        ({"question": "Who?"}, {"answer": " ."}),
        ({"question": "Who?"}, {"answer": 7}),
        ({"question": "Who?"}, {"answer": "x", "aliases": "y"}),
        ({"question": "Who?"}, {"answer": "x", "aliases": [1]}),
        ({}, {"answer": "x"}),
        ({"question": " "}, {"answer": "x"}),
    ],
)
def test_a_damaged_task_is_told(public: dict[str, Any], hidden: dict[str, Any]) -> None:
    task = Task("search", "bad", "test", ("g",), public, hidden)
    with pytest.raises(DataError, match="bad"):
        GYM.secrets(task)
    with pytest.raises(DataError, match="bad"):
        episode(task=task)


# --------------------------------------------------------------------------- corpus and tasks


def test_the_corpus_and_its_questions_are_large_enough() -> None:
    world = the_world()
    assert len(world.documents) >= 300
    assert len(world.questions) >= 60
    assert len({one.id for one in world.documents}) == len(world.documents)
    assert len({one.title for one in world.documents}) == len(world.documents)


def test_every_question_can_be_answered_with_two_searches() -> None:
    """The first result holds what to look for next, the second the answer: BM25 finds both."""
    world = the_world()
    index = Index(world.documents)
    for asked in world.questions:
        first = index.search(asked.start, SHOWN)
        assert asked.support[0] in [one.id for one in first], asked
        assert any(
            holds_string(one.text, asked.bridge) for one in first if one.id == asked.support[0]
        )
        second = index.search(asked.bridge, SHOWN)
        assert any(
            holds_string(one.text, asked.answer) for one in second if one.id == asked.support[1]
        )


def test_no_question_can_be_answered_by_its_first_document_alone() -> None:
    documents = {one.id: one.text for one in the_world().documents}
    told = [q for q in the_world().questions if holds_string(documents[q.support[0]], q.answer)]
    assert len(told) <= len(the_world().questions) // 50


def test_tasks_are_sound_and_split_by_their_bridge() -> None:
    tasks = [
        task for split in ("train", "validation", "test") for task in make_tasks(split, 1, 9999)
    ]
    assert check_tasks(tasks) == []
    assert len(tasks) == len(the_world().questions)
    by_split = {split: [t for t in tasks if t.split == split] for split in ("train", "test")}
    assert len(by_split["train"]) >= 45
    assert len(by_split["test"]) >= 15
    assert len({jsonio.canonical(task.public) for task in tasks}) == len(tasks)


def test_no_test_question_is_nearly_a_training_question() -> None:
    words = {
        split: [frozenset(t.public["question"].lower().split()) for t in make_tasks(split, 1, 9999)]
        for split in ("train", "test")
    }
    for mine in words["test"]:
        for other in words["train"]:
            shared = len(mine & other)
            assert shared <= 0.8 * (len(mine) + len(other) - shared), (mine, other)


def test_equal_arguments_give_equal_tasks_and_seeds_other_orders() -> None:
    assert make_tasks("train", 3, 20) == make_tasks("train", 3, 20)
    ids = [[t.id for t in make_tasks("train", seed, 20)] for seed in (3, 4)]
    assert ids[0] != ids[1]
    assert [t.id for t in make_tasks("train", 3, 10)] == ids[0][:10]


def test_the_oracle_wins_everything_and_shows_where_it_read_it() -> None:
    for task in make_tasks("test", 2, 40):
        _, steps = episode(*trace_of(task), task=task)
        assert holds_string(text_of(steps[0]), trace_of(task)[1][1])
        assert holds_string(text_of(steps[1]), task.hidden["answer"])
        assert sum(step.reward for step in steps) == 1.0 == GYM.attainable(task)


def test_results_are_numbered_and_few() -> None:
    lines = text_of(last(("search", "town founded year born in"))).splitlines()
    assert [line.split(".")[0] for line in lines] == ["1", "2", "3", "4", "5"]


# ----------------------------------------------------------------------------------- back ends


def test_the_mode_is_written_into_every_result() -> None:
    for name, mode in (("closed", "closed"), ("static", "static"), (BROKEN["search"], "broken")):
        gym, steps = episode(("answer", "Adams"), search=name)
        assert gym.opening_private.grading == {"search": mode}
        assert steps[0].private.grading["search"] == mode


def test_closed_book_answers_searches_with_a_notice_and_counts_them() -> None:
    gym, steps = episode(("search", "president"), ("search", "town"), search="closed")
    assert text_of(steps[0]) == text_of(steps[1])
    assert "1." not in text_of(steps[0])
    assert gym.snapshot()["state"]["searches"] == 2


def test_an_own_corpus_is_searched(tmp_path: Path) -> None:
    lines = [{"id": "a", "title": "Presidents", "text": "James Madison was the fourth."}]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(jsonio.dumps(line) + "\n" for line in lines), "utf-8")
    step = last(("search", "fourth president"), search_options={"corpus": str(path)})
    assert text_of(step) == "1. Presidents: James Madison was the fourth."
    path.write_text('{"id": 3, "title": "x", "text": "y"}\n', "utf-8")
    with pytest.raises(DataError, match=":1"):
        read_documents(path)


@pytest.mark.parametrize("query", ['"', "a AND", "NEAR(", "title:x", "*", "'; DROP", "ß ﬀ", "-x"])
def test_a_query_is_words_and_no_language(query: str) -> None:
    index = Index([Document("a", "x", "and near title x")])
    assert len(index.search(query, 5)) <= 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"search": "closd"}, UnknownNameError),
        ({"search": "closed:x"}, UsageError),
        ({"search": "http"}, UsageError),
        ({"search": "http:ftp://x"}, UsageError),
        ({"search": "static", "search_options": {"corpse": "x"}}, ConfigError),
        ({"search": "static", "search_options": {"corpus": 3}}, ConfigError),
        ({"search": "http:http://x/y", "search_options": {"method": "PUT"}}, ConfigError),
        ({"search": "http:http://x/y", "search_options": {"api_key": "k"}}, ConfigError),
        ({"search": "http:http://x/y", "search_options": {"title": 3}}, ConfigError),
        ({"search": "http:http://x/y", "search_options": {"key_header": 3}}, ConfigError),
        ({"search": 3}, ConfigError),
        ({"search_option": {}}, ConfigError),
    ],
)
def test_wrong_back_ends_are_told_when_the_gym_is_made(
    options: dict[str, Any], error: type[UsageError]
) -> None:
    with pytest.raises(error):
        make_gym("search", user=None, judge=RuleJudge(), options=options)  # type: ignore[arg-type]


def results(*pairs: tuple[str, str], key: str = "results") -> Fault:
    """Return a server's answer with these titles and texts."""
    listed = [{"title": title, "snippet": text, "url": "x"} for title, text in pairs]
    return Fault(200, {key: listed})


def looked_up(server: StubServer, words: str = "fourth president", **options: Any) -> str:
    """Search once at a server and return what the agent reads."""
    name = f"http:{server.url}/search"
    return text_of(last(("search", words), search=name, search_options={**QUICK, **options}))


def test_http_asks_the_server_and_shows_five_results() -> None:
    pairs = [(f"T{n}", f"text\n{n}") for n in range(9)]
    with StubServer([results(*pairs)]) as server:
        told = looked_up(server, "James & Co?")
        request = server.requests[0]
    assert told.splitlines() == [f"{n + 1}. T{n}: text {n}" for n in range(5)]
    assert (request.method, request.path) == ("GET", "/v1/search?q=James+%26+Co%3F&count=5")
    assert "authorization" not in request.headers


def test_http_speaks_other_dialects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_KEY", "secret-key-1234")
    answer = Fault(200, {"web": {"hits": [{"name": "T", "body": "b"}]}})
    terms: dict[str, Any] = {
        "method": "POST",
        "query": "question",
        "count": "",
        "results": "web.hits",
        "title": "name",
        "text": "body",
        "extra_body": {"lang": "en"},
        "api_key_env": "SEARCH_KEY",
    }
    with StubServer([answer]) as server:
        assert looked_up(server, "who", **terms) == "1. T: b"
        looked_up(server, "who", **terms, key_header="X-API-KEY")
        first, second = server.requests
    assert (first.method, first.body) == ("POST", {"lang": "en", "question": "who"})
    assert first.headers["authorization"] == "Bearer secret-key-1234"
    assert second.headers["x-api-key"] == "secret-key-1234"
    assert "authorization" not in second.headers


def test_http_that_finds_nothing_says_so() -> None:
    with StubServer([results()]) as server:
        assert looked_up(server) == "Nothing was found."


@pytest.mark.parametrize(
    "trouble",
    [
        rate_limited(),
        rate_limited(60),
        hang(1.0),
        reset(),
        Fault(503),
        Fault(402, {"message": "out of credit"}),
        Fault(400),
        Fault(301, headers={"location": "/elsewhere"}),
        Fault(200, {"error": {"message": "out of credit"}}),
        Fault(200, {"answer": []}),
        Fault(200, {"results": None}),
        Fault(200, {"results": ["x"]}),
        Fault(200, {"results": [{"title": "x"}]}),
        Fault(200, "<html>busy</html>"),
    ],
    ids=lambda fault: str(fault.body)[:30],
)
def test_http_trouble_is_infra_and_never_an_empty_list(trouble: Fault) -> None:
    with StubServer([trouble]) as server, pytest.raises(InfraError):
        looked_up(server, budget_s=0.6, timeout_s=0.3)


def test_http_is_asked_again_after_a_429() -> None:
    with StubServer([rate_limited(0.05), results(("T", "x"))]) as server:
        assert looked_up(server) == "1. T: x"
        assert len(server.requests) == 2


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_address_stops_the_run(status: int) -> None:
    with StubServer([Fault(status)]) as server, pytest.raises(EnvironmentFault) as caught:
        looked_up(server)
    assert caught.value.exit_code == 2


def test_a_missing_key_is_told_before_anything_is_sent() -> None:
    name = "http:https://search.invalid/find"
    with pytest.raises(EnvironmentFault, match="NO_SUCH_KEY"):
        last(("search", "x"), search=name, search_options={**QUICK, "api_key_env": "NO_SUCH_KEY"})


def test_a_key_never_stands_in_an_error_or_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_KEY", "secret-key-1234")
    echo = Fault(400, {"error": {"message": "bad key secret-key-1234"}})
    quoted = results(("T", "secret-key-1234"))
    for answer in (echo, quoted):
        with StubServer([answer]) as server, pytest.raises(InfraError) as caught:
            looked_up(server, api_key_env="SEARCH_KEY")
        assert "secret-key" not in str(caught.value)


def test_compat_tells_an_http_failure_and_counts_it() -> None:
    with StubServer([Fault(402)]) as server:
        name = f"http:{server.url}/search"
        gym, steps = episode(("search", "x"), search=name, search_options=QUICK, **COMPAT)
    assert "402" in text_of(steps[0])
    assert gym.snapshot()["state"]["searches"] == 1


def test_many_searches_share_one_connection_pool_and_do_not_mix() -> None:
    def answer(request: StubRequest) -> Fault:
        return results((request.path.split("q=")[1].split("&")[0], "x"))

    async def ask(server: StubServer) -> list[Any]:
        backend = make_backend(f"http:{server.url}/find", QUICK)
        found = await asyncio.gather(*(backend.search(f"w{n}") for n in range(20)))
        await backend.aclose()
        await backend.aclose()
        return found

    with StubServer(answer) as server:
        found = asyncio.run(ask(server))
    assert [one[0].title for one in found] == [f"w{n}" for n in range(20)]
