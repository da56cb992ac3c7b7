"""The trained user beside the role-play user: the same situations, the same counts, and people.

Two settings. On the support desk both users talk to the same scripted agent; in held-out human
chats both write the next message of a conversation that people had. The counts are deterministic,
so no judge stands between the texts and the numbers. What generated texts are shown has passed the
corpus' word filter (design ruling 22).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import stats
from mimesim.corpora.base import HumanDialogue, is_held_out
from mimesim.corpora.filters import problem
from mimesim.corpora.load import open_corpus
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.envs.actions import get_format
from mimesim.envs.agents.load import make_agent
from mimesim.envs.base import GymEnv, Task
from mimesim.envs.load import load_tasks, make_gym
from mimesim.errors import CallerError, EnvironmentFault, EpisodeError
from mimesim.results import Estimate, MetricRow, SampleReply, UserSample
from mimesim.rollout.engine import Cast, EngineConfig, Job, run_episodes
from mimesim.rollout.limits import Limits
from mimesim.seeds import derive, file_fingerprint
from mimesim.users.base import UserRequest, UserSource
from mimesim.users.load import make_user

TRAINED, ROLEPLAY, HUMAN = "trained user", "role-play user", "human"
_OPTIONS = {
    # Flag, not enforce: both users' faults are counted alike, none is redrawn away.
    "guards": "flag",
    "max_tokens": 40,
    "temperature": 0.8,
    "model_options": {"threads": 1, "batch_size": 16},
}
_CHAT_GOAL = "Have a friendly chat with somebody you do not know."


@dataclass(frozen=True, slots=True)
class Spoken:
    """One message of a user: which conversation, its place, its text, guards that fired."""

    conversation: str
    turn: int
    text: str
    guards: tuple[str, ...] = ()


def talk(folder: Path, settings: Mapping[str, Any], report: Any) -> dict[str, Any]:
    """Let both users talk and count; `settings`: user, talks, turns, seed.

    Returns:
        JSON values: metrics (`results.MetricRow`), samples (`results.UserSample`), and how many
        conversations of each user were counted.
    """
    return asyncio.run(_talk(folder, settings, report))


async def _talk(folder: Path, settings: Mapping[str, Any], report: Any) -> dict[str, Any]:
    seed, count = int(settings["seed"]), int(settings["talks"])
    users = {
        TRAINED: make_user(f"trained:{settings['user']}", options=_OPTIONS),
        ROLEPLAY: make_user("roleplay:embedded", options=_OPTIONS),
    }
    weights = Path(str(settings["user"])) / "model.safetensors"
    before = file_fingerprint(weights)
    people = _people(count)
    desk: dict[str, list[Spoken]] = {}
    chat: dict[str, list[Spoken]] = {}
    counted: dict[str, dict[str, int]] = {}
    try:
        for index, (name, user) in enumerate(users.items()):
            report.say(index / 2, f"{name} on the support desk")
            episodes = await _desk(user, settings)
            desk[name] = _spoken(episodes)
            valid = sum(e.outcome.status.counted for e in episodes)
            counted[name] = {"all": len(episodes), "counted": valid}
            report.say(index / 2 + 0.3, f"{name} in human chats")
            chat[name] = await _continue(user, people, seed)
    finally:
        for user in users.values():
            await user.aclose()
    if file_fingerprint(weights) != before:
        raise EnvironmentFault("the frozen user's weights changed on disk", where=str(weights))
    metrics = [
        *score(desk, "support desk"),
        *score({**chat, HUMAN: _human(people)}, "human chats"),
    ]
    return {
        "metrics": [plain(row) for row in metrics],
        "samples": sample_situations(people, chat, desk),
        "counted": counted,
        "weights": before,
    }


def plain(row: MetricRow) -> dict[str, Any]:
    """Return a metric as JSON values; `read_metrics` is the inverse."""
    estimate = row.value
    return {
        "metric": row.metric,
        "subject": row.subject,
        "value": [estimate.value, estimate.low, estimate.high, estimate.n, estimate.method],
        "unit": row.unit,
        "direction": row.direction,
        "note": row.note,
    }


async def _desk(user: UserSource, settings: Mapping[str, Any]) -> list[Episode]:
    tasks = load_tasks(
        "support-desk",
        profile="full",
        split="test",
        seed=int(settings["seed"]),
        count=int(settings["talks"]),
    )

    def gym_of(task: Task, person: Any) -> GymEnv:
        if person is None:
            raise CallerError("the desk needs a user")
        return make_gym("support-desk", profile="full", user=person)

    agent = make_agent("scripted:patient", action_format="tool-call")
    cast = Cast(agent, gym_of, get_format("tool-call"), user)
    config = EngineConfig(
        seed=int(settings["seed"]),
        run_id="talk",
        concurrency=len(tasks),
        retries=0,
        limits=Limits(max_turns=int(settings["turns"]), seconds=None, step_seconds=None),
    )
    summary = await run_episodes([Job(task) for task in tasks], cast, config)
    return list(summary.episodes)


def _spoken(episodes: Sequence[Episode]) -> list[Spoken]:
    found = []
    for episode in episodes:
        fired: dict[int, list[str]] = {}
        for guard in episode.guards:
            fired.setdefault(int(guard["turn"]), []).append(str(guard["guard"]))
        said = [turn for turn in episode.turns if turn.role is Role.USER]
        for place, turn in enumerate(said):
            found.append(Spoken(episode.task.id, place, turn.content, tuple(fired.get(turn.i, ()))))
    return found


# -- held-out human chats ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cut:
    """A human conversation up to a message of the learnt side, and that message."""

    dialogue: HumanDialogue
    history: tuple[PublicMessage, ...]
    answer: str


def _people(count: int) -> list[Cut]:
    cuts: list[Cut] = []
    for dialogue in open_corpus("chitchat", limit=700).dialogues:
        if len(cuts) == count:
            break
        if not is_held_out(dialogue.id, 0.1):
            continue
        places = [i for i, t in enumerate(dialogue.turns) if t.role == "user" and i >= 3]
        if not places:
            continue
        place = places[0]
        history = tuple(
            PublicMessage(Role.USER if t.role == "user" else Role.AGENT, t.text)
            for t in dialogue.turns[:place]
        )
        cuts.append(Cut(dialogue, history, dialogue.turns[place].text))
    return cuts


async def _continue(user: UserSource, cuts: Sequence[Cut], seed: int) -> list[Spoken]:
    async def one(cut: Cut) -> Spoken | None:
        scenario = {"id": cut.dialogue.id, "goal": cut.dialogue.topic or _CHAT_GOAL}
        person = user.start(scenario, seed=derive(seed, cut.dialogue.id))
        request = UserRequest(
            "chat", cut.history, cut.history[-1].content, derive(seed, "chat", cut.dialogue.id)
        )
        try:
            reply = await person.respond(request)
        except EpisodeError:
            return None  # a user failure is counted by its absence
        guards = tuple(event.guard for event in reply.guards)
        return Spoken(cut.dialogue.id, 1, reply.utterance, guards)

    answers = await asyncio.gather(*(one(cut) for cut in cuts))
    return [answer for answer in answers if answer is not None]


def _human(cuts: Sequence[Cut]) -> list[Spoken]:
    return [Spoken(cut.dialogue.id, 1, cut.answer) for cut in cuts]


# -- counts --------------------------------------------------------------------------------


def score(spoken: Mapping[str, Sequence[Spoken]], setting: str) -> list[MetricRow]:
    """Count what each user said; intervals are clustered by conversation."""
    rows = []
    for subject, said in spoken.items():
        if not said:
            continue
        groups = [s.conversation for s in said]
        words = [float(len(stats.words(s.text))) for s in said]
        asks = [float("?" in s.text) for s in said]
        faults = [float(bool(s.guards)) for s in said]
        for metric, values, unit in (
            ("words per message", words, "words"),
            ("messages with a question", asks, "%"),
            ("messages with a fault", faults, "%"),
        ):
            if metric == "messages with a fault" and subject == HUMAN:
                continue
            estimate = Estimate.of(stats.mean_ci(values, groups))
            rows.append(MetricRow(f"{metric} ({setting})", subject, estimate, unit))
        profile = stats.text_profile([s.text for s in said])
        different = Estimate(profile.distinct_2, n=profile.n, method=profile.method)
        rows.append(MetricRow(f"distinct word pairs ({setting})", subject, different, "%"))
    return rows


def sample_situations(
    cuts: Sequence[Cut],
    chat: Mapping[str, Sequence[Spoken]],
    desk: Mapping[str, Sequence[Spoken]],
) -> list[dict[str, Any]]:
    """Return situations with what each user says, only texts that pass the word filter."""
    found = []
    openers = {
        name: {s.conversation: s.text for s in said if s.turn == 0} for name, said in desk.items()
    }
    for conversation in list(openers[TRAINED])[:3]:
        replies = {name: texts.get(conversation, "") for name, texts in openers.items()}
        found.append(_sample("First message to the support desk", [], replies))
    said = {name: {s.conversation: s.text for s in spoken} for name, spoken in chat.items()}
    for cut in cuts:
        lines = [(m.role.value, m.content) for m in cut.history[-3:]]
        replies = {name: texts.get(cut.dialogue.id, "") for name, texts in said.items()}
        replies[HUMAN] = cut.answer
        found.append(_sample("A held-out chat between two people", lines, replies))
    return [sample for sample in found if sample is not None][:8]


def _sample(
    situation: str, context: list[tuple[str, str]], replies: Mapping[str, str]
) -> dict[str, Any] | None:
    texts = [*replies.values(), *(text for _, text in context)]
    if any(problem(text) for text in texts) or not all(replies.values()):
        return None
    return {"situation": situation, "context": context, "replies": list(replies.items())}


def read_samples(result: Mapping[str, Any]) -> tuple[UserSample, ...]:
    """Read the samples of a finished stage."""
    return tuple(
        UserSample(
            tuple((who, text) for who, text in sample["context"]),
            tuple(SampleReply(user, text) for user, text in sample["replies"]),
            sample["situation"],
        )
        for sample in result["samples"]
    )


def read_metrics(result: Mapping[str, Any]) -> tuple[MetricRow, ...]:
    """Read the metrics of a finished stage."""
    return tuple(
        MetricRow(
            row["metric"],
            row["subject"],
            Estimate(*row["value"]),
            row["unit"],
            row["direction"],
            row["note"],
        )
        for row in result["metrics"]
    )
