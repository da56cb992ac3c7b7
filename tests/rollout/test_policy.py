"""A token-level policy in the real driver: what it is fed, what is recorded, how rows end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Party, Status, StopReason
from mimesim.dialogue.types import Identity, Reply, Role, Thought
from mimesim.envs.actions import get_format
from mimesim.envs.agents.load import make_agent
from mimesim.envs.base import Task
from mimesim.envs.load import load_tasks, make_gym
from mimesim.errors import ConfigError, EnvironmentFault, UserError
from mimesim.models import templates
from mimesim.models.base import ChatMessage
from mimesim.models.codec import TemplateCodec
from mimesim.models.tiny import TinyConfig, token_model
from mimesim.rollout.engine import Cast, EngineConfig, Job, run_episodes
from mimesim.rollout.limits import Limits
from mimesim.rollout.policy import PolicyConfig, PolicySource
from mimesim.rollout.tokens import TokenRollout
from mimesim.users.base import User, UserRequest, UserSource
from mimesim.users.load import make_user
from tests.support import policies

TOKENS = policies.tokenizer()
CODEC = TemplateCodec(TOKENS)
CAP = 6
LIMITS = Limits(detect_loops=False, empty_retries=0)


@pytest.fixture(scope="module")
def model() -> Any:
    return policies.talkative(TOKENS, 3, end=1.5, sharpness=6.0)


def tasks(count: int) -> list[Task]:
    return load_tasks("support-desk", profile="compact", split="test", seed=2, count=count)


Played = list[tuple[Episode, TokenRollout | None]]


def play(
    model: Any,
    count: int = 12,
    *,
    concurrency: int = 12,
    user: UserSource | None = None,
    config: PolicyConfig | None = None,
) -> Played:
    """Run episodes and return each with its token record."""
    people = user or make_user("scripted:realistic")
    source = PolicySource(
        token_model(model, TOKENS, name="policy:test"), config or PolicyConfig(1.0, CAP)
    )

    def gym(task: Task, person: User | None) -> Any:
        assert person is not None
        return make_gym("support-desk", profile="compact", user=person)

    async def run() -> Played:
        cast = Cast(source, gym, get_format("line"), people)
        engine = EngineConfig(seed=4, run_id="r", concurrency=concurrency, limits=LIMITS)
        summary = await run_episodes([Job(t) for t in tasks(count)], cast, engine)
        return [(episode, source.take(episode.id)) for episode in summary.episodes]

    return asyncio.run(run())


@pytest.fixture(scope="module")
def played(model: Any) -> Played:
    return play(model)


def test_log_probs_equal_the_trainers_view_of_the_row(model: Any, played: Played) -> None:
    """Ruling 5: sampler against one full unpadded forward of the record, <= 1e-5."""
    turns, lengths = set(), set()
    for _, record in played:
        assert record is not None
        naive = policies.naive_logprobs(model, record.prompt_ids, record.completion_ids)
        sampled = torch.tensor(record.logprobs)
        mask = torch.tensor(record.env_mask).bool()
        assert (sampled - naive)[mask].abs().max() <= 1e-5
        assert sampled[~mask].eq(0).all()
        turns.add(len(record.spans))
        lengths.add(len(record.completion_ids))
    assert max(turns) > 3
    assert len(turns) > 2
    assert len(lengths) > 5


def test_neighbors_do_not_matter(model: Any, played: Played) -> None:
    for concurrency in (1, 5):
        alone = play(model, concurrency=concurrency)
        for (one, short), (two, long) in zip(alone, played, strict=True):
            assert short is not None
            assert long is not None
            assert short.completion_ids == long.completion_ids
            assert short.logprobs == pytest.approx(long.logprobs, abs=1e-5)
            assert [t.content for t in one.turns] == [t.content for t in two.turns]


def test_the_record_is_what_the_template_would_have_written(model: Any, played: Played) -> None:
    """Appending ids equals rendering the whole conversation; cut replies are closed alike."""
    for episode, record in played:
        assert record is not None
        messages = [ChatMessage("system", episode.system)]
        spans = iter(record.spans)
        for said in spoken(episode, len(record.spans)):
            if said.role == "assistant":
                span = next(spans)
                text = CODEC.decode(record.completion_ids[span.start : span.end])
                messages.append(ChatMessage("assistant", text))
            else:
                messages.append(said)
        assert next(spans, None) is None
        whole = templates.render_ids(TOKENS, messages)
        ids = [*record.prompt_ids, *record.completion_ids]
        assert whole[: len(ids)] == ids
        last = record.spans[-1]
        closed = record.completion_ids[last.end - 1] == CODEC.end_id
        assert len(whole) - len(ids) == len(templates.encode(TOKENS, "\n")) + (not closed)


def spoken(episode: Episode, replies: int) -> list[ChatMessage]:
    """Return the public talk up to the policy's last reply, feedback of a step joined."""
    found: list[ChatMessage] = []
    for message in episode.turns:
        if message.role is Role.AGENT:
            if sum(m.role == "assistant" for m in found) == replies:
                break
            found.append(ChatMessage("assistant", ""))
        elif found and found[-1].role == "user":
            joined = f"{found[-1].content}\n\n{message.content}"
            found[-1] = ChatMessage("user", joined)
        else:
            found.append(ChatMessage("user", message.content))
    if sum(m.role == "assistant" for m in found) < replies:
        found.append(ChatMessage("assistant", ""))  # an empty reply stands in no transcript
    while found[-1].role == "user":
        found.pop()
    return found


def test_a_cut_reply_is_closed_by_a_masked_end_token(played: Played) -> None:
    cut = ended = 0
    for _, record in played:
        assert record is not None
        for span, following in zip(record.spans, record.spans[1:], strict=False):
            gap = record.completion_ids[span.end : following.start]
            closed = record.completion_ids[span.end - 1] == CODEC.end_id
            assert (gap[0] == CODEC.end_id) is (not closed)
            assert gap.count(CODEC.end_id) == (1 if closed else 2)
            assert record.env_mask[span.end] == 0
            assert list(gap[-CODEC.header :]) == CODEC.suffix_ids("")[-CODEC.header :]
            cut += not closed
            ended += closed
    assert cut > 3
    assert ended > 3


def test_records_end_on_the_policys_last_token(played: Played) -> None:
    for _, record in played:
        assert record is not None
        assert record.env_mask[-1] == 1
        assert record.spans[-1].end == len(record.completion_ids)
        assert all(span.header == CODEC.header for span in record.spans)
        assert all(size <= CAP for size in record.turn_tokens())


def test_no_thought_is_ever_fed(played: Played) -> None:
    for episode, record in played:
        assert record is not None
        assert episode.private is not None
        thoughts = [thought["text"] for thought in episode.private["thoughts"]]
        assert thoughts
        fed = CODEC.decode([*record.prompt_ids, *record.completion_ids])
        assert not [thought for thought in thoughts if thought in fed]


def test_a_record_is_handed_out_once(model: Any) -> None:
    source = PolicySource(token_model(model, TOKENS, name="policy:test"))
    task = tasks(1)[0]
    agent = source.start(task=task, seed=1, key="e")
    assert source.take("e") is None  # it never spoke
    assert source.take("e") is None
    assert source.take("unknown") is None
    asyncio.run(agent.aclose())
    assert source.identity.sampling == {"temperature": 1.0, "max_tokens": 16}


def test_greedy_play_is_reproducible_and_ignores_the_seed(model: Any) -> None:
    one, two = (play(model, 3, config=PolicyConfig(0.0, CAP)) for _ in range(2))
    assert [r for _, r in one] == [r for _, r in two]


def test_a_full_context_is_the_agents_own_truncation() -> None:
    """Rows that still fit go on; the full one keeps its record (ruling 7)."""
    narrow = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=96)
    model = policies.talkative(TOKENS, 3, end=-60.0, config=narrow)
    found = play(model, 12)
    full = [(e, r) for e, r in found if e.stop.reason is StopReason.CONTEXT_EXCEEDED]
    assert full
    for episode, record in full:
        assert episode.outcome.status is Status.TRUNCATED
        if record is not None:
            assert len(record.prompt_ids) + len(record.completion_ids) <= 96
    assert any(r is not None and len(r.spans) > 1 for _, r in full)


class Fickle:
    """Customers of whom each fails once, at the opening or at the second answer."""

    def __init__(self, at: int) -> None:
        self.identity = Identity("scripted", "fickle")
        self.at = at
        self.started: dict[str, int] = {}

    def start(self, scenario: Mapping[str, Any], *, seed: int) -> User:
        name = str(scenario["id"])
        self.started[name] = self.started.get(name, 0) + 1
        return FicklePerson(self.at if self.started[name] == 1 else 99)

    async def aclose(self) -> None:
        """Release nothing."""


class FicklePerson:
    def __init__(self, at: int) -> None:
        self.at = at
        self.turn = 0

    async def respond(self, request: UserRequest) -> Reply:
        await asyncio.sleep(0.001)
        if self.turn == self.at:
            raise UserError("broken")
        self.turn += 1
        return Reply(Thought("hidden"), "i want help")

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Keep nothing."""


@pytest.mark.parametrize("at", [0, 1])
def test_a_retried_episode_leaves_one_whole_record(model: Any, at: int) -> None:
    """Sessions of failed attempts are closed: nobody waits for them, nothing of them remains."""
    found = play(model, 6, user=Fickle(at), concurrency=6)
    for episode, record in found:
        assert episode.outcome.status.counted
        assert record is not None
        assert len(record.spans) == len(episode.steps) + (episode.stop.by is Party.AGENT)
        naive = policies.naive_logprobs(model, record.prompt_ids, record.completion_ids)
        mask = torch.tensor(record.env_mask).bool()
        assert (torch.tensor(record.logprobs) - naive)[mask].abs().max() <= 1e-5


def test_the_door_name_of_a_saved_policy(tmp_path: Path) -> None:
    policies.random_policy(TOKENS, 2).save_pretrained(tmp_path)
    TOKENS.save_pretrained(tmp_path)
    agent = make_agent(
        f"policy:{tmp_path}", action_format="line", options={"temperature": 0.0, "max_tokens": 5}
    )
    assert agent.identity.name == f"policy:{tmp_path}"
    assert agent.identity.sampling == {"temperature": 0.0, "max_tokens": 5}
    with pytest.raises(ConfigError, match="heat"):
        make_agent(f"policy:{tmp_path}", action_format="line", options={"heat": 1})
    with pytest.raises(EnvironmentFault, match="no such model folder"):
        make_agent(f"policy:{tmp_path / 'nowhere'}", action_format="line")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"temperature": "hot"}, "'temperature' cannot be 'hot'"),
        ({"temperature": -1}, "'temperature' cannot be -1"),
        ({"temperature": float("nan")}, "'temperature' cannot be nan"),
        ({"max_tokens": 0}, "'max_tokens' cannot be 0"),
        ({"max_tokens": "x"}, "'max_tokens' cannot be 'x'"),
    ],
)
def test_options_that_cannot_be_sampled_with_are_refused(
    tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make_agent(f"policy:{tmp_path}", action_format="line", options=options)
    assert told in str(caught.value)


def test_a_policy_that_breaks_scores_nothing(model: Any) -> None:
    class Broken(torch.nn.Module):
        config = model.config

        def forward(self, **_: Any) -> None:
            raise RuntimeError("out of memory")

    for episode, _ in play(Broken(), 2):
        assert (episode.outcome.status, episode.outcome.reward) == (Status.INFRA_FAILURE, None)
        assert "the policy broke: RuntimeError: out of memory" in episode.stop.detail


# -- a policy that writes the user's next line ----------------------------------------------


def forger() -> Any:
    """Return a policy that soon begins a message of the user instead of ending its own."""
    made = policies.talkative(TOKENS, 3, end=-2.0, sharpness=6.0)
    made.bias[CODEC.opening] = 3.0
    return made


def test_a_reply_ends_where_the_user_would_begin() -> None:
    """The forged turn is neither heard nor sampled further; what was sampled stays in the row."""
    model = forger()
    forged = 0
    for episode, record in play(model):
        assert record is not None
        assert episode.counted
        for place, span in enumerate(record.spans):
            reply = record.completion_ids[span.start : span.end]
            assert CODEC.opening not in reply[:-1]
            if reply[-1] == CODEC.opening:
                forged += 1
                after = record.completion_ids[span.end : span.end + 1]
                assert after in ((), (CODEC.end_id,)), "closed by a masked end token"
                assert place + 1 == len(record.spans) or record.env_mask[span.end] == 0
    assert forged > 10


def test_a_forged_turn_may_be_kept_on_purpose() -> None:
    kept = PolicyConfig(1.0, CAP, one_turn=False)
    inside = [
        CODEC.opening in record.completion_ids[span.start : span.end - 1]
        for _, record in play(forger(), config=kept)
        if record is not None
        for span in record.spans
    ]
    assert any(inside)
