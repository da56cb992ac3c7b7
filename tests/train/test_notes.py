"""The notes of a batch: leaks, counts, which turns, placebos, and asking for many at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.types import CoachNote, PublicMessage, Role
from mimesim.errors import ConfigError, EnvironmentFault, InfraError
from mimesim.models.base import ChatMessage
from mimesim.models.codec import TemplateCodec
from mimesim.rollout.tokens import TokenRecord
from mimesim.train.coach import CoachConfig, CoachTurn, RuleCoach
from mimesim.train.notes import (
    NoteConfig,
    NoteCounts,
    NoteTaker,
    PlaceboRing,
    Talk,
    check_notes,
    chosen_turns,
    coach_seed,
    leaks,
    write_note,
)
from mimesim.train.teacher import NotedTurn
from tests import tiny
from tests.support.coaching import Says, turn

# -- the leak check -------------------------------------------------------------------------

PUBLIC = "Hello, this is Tom. I bought 3 clocks on 2026-03-01."
SECRET = (
    "I am Ida from Selby, my order is 4172, I paid $85.50 on 2026-02-11, write to "
    "ida@brook.test, ticket ZX81Q. I only care about the green one with a bell. Tom must not know."
)


@pytest.mark.parametrize(
    ("note", "found"),
    [
        ("The order is 4172.", ["4172"]),
        ("Ask about order #4172, please", ["4172"]),
        ("She paid $85.50 for it", ["85.50"]),
        ("It was on 2026-02-11.", ["2026-02-11"]),
        ("An answer goes to ida@brook.test.", ["ida@brook.test"]),
        ("The ticket is ZX81Q.", ["ZX81Q"]),
        ("This person lives in Selby", ["Selby"]),
        ("the person is Ida, not someone else", ["Ida"]),
        ("They only care about the green thing", ["only care about the green"]),
    ],
)
def test_private_specifics_are_leaks(note: str, found: list[str]) -> None:
    assert leaks(note, SECRET, PUBLIC) == found


@pytest.mark.parametrize(
    "note",
    [
        "The person bought 3 clocks on 2026-03-01.",  # public numbers
        "The person said they are Tom.",
        "Ask which order it is, and where they live.",
        "There are 17 things to ask.",  # a number of the coach's own
        "Only ask what is needed. Paid or not does not matter.",  # sentence openers
        "They care about one thing.",
        "",
    ],
)
def test_public_words_are_none(note: str) -> None:
    assert leaks(note, SECRET, PUBLIC) == []


def test_a_value_that_the_reply_guessed_is_still_private() -> None:
    """Else a note could tell that the guess was right."""
    note = noted("The order 4172 is the right one.", reply="Is it order 4172?")
    shown = NoteCounts(1, leaked=1, leaked_specifics=1, with_thought=1, with_reaction=1)
    assert note == (None, shown)


def noted(
    answer: str | Exception | None, *, leak_check: bool = True, **changed: Any
) -> tuple[CoachNote | None, NoteCounts]:
    counts = NoteCounts()
    note = asyncio.run(
        write_note(Says(answer), turn(**changed), counts, seed=0, leak_check=leak_check)
    )
    return note, counts


def test_everything_is_counted() -> None:
    both = {"with_thought": 1, "with_reaction": 1}
    good = "Ask where to find the number."
    assert noted(good) == (CoachNote(good, "says"), NoteCounts(1, written=1, **both))
    assert noted(None) == (None, NoteCounts(1, none=1, **both))
    assert noted(InfraError("away")) == (None, NoteCounts(1, failed=1, **both))
    leaky = "Their order is 4172."
    assert noted(leaky) == (None, NoteCounts(1, leaked=1, leaked_specifics=1, **both))
    copied = "I think i will give in now and say so."
    assert noted(copied)[1] == NoteCounts(1, leaked=1, leaked_copies=3, **both)
    assert noted(leaky, leak_check=False)[1] == NoteCounts(1, written=1, **both)
    bare = {"thought_before": None, "thought_after": None, "next_utterance": ""}
    assert noted(good, **bare)[1] == NoteCounts(1, written=1)


def test_a_bug_of_a_coach_is_not_a_failed_note() -> None:
    with pytest.raises(KeyError):
        noted(KeyError("bug"))


# -- placebo notes --------------------------------------------------------------------------


def test_the_ring_is_silent_below_eight_notes() -> None:
    ring = PlaceboRing(1)
    for n in range(7):
        ring.add(f"e{n}", f"note {n}")
        assert ring.draw("other", "x") is None
    ring.add("e7", "note 7")
    assert ring.draw("other", "x") is not None


def test_placebos_are_of_other_episodes_and_of_other_text() -> None:
    ring = PlaceboRing(1)
    for n in range(6):
        ring.add("mine", f"mine {n}")
    for text in ("same", "same", "other"):
        ring.add("yours", text)
    assert {ring.draw("mine", "same") for _ in range(40)} == {"other"}
    drawn = {ring.draw("theirs", "other") for _ in range(200)}
    assert drawn == {"same", *(f"mine {n}" for n in range(6))}
    for _ in range(2):
        assert ring.draw("yours", "x") in {f"mine {n}" for n in range(6)}


def test_nothing_fitting_is_no_placebo() -> None:
    ring = PlaceboRing(1)
    for _ in range(9):
        ring.add("yours", "same")
    assert ring.draw("mine", "same") is None
    assert ring.draw("yours", "x") is None


def test_the_oldest_note_falls_out() -> None:
    ring = PlaceboRing(1, size=10)
    for n in range(30):
        ring.add(f"e{n}", f"note {n}")
    assert {ring.draw("x", "x") for _ in range(400)} == {f"note {n}" for n in range(20, 30)}


def test_the_ring_goes_on_where_it_was() -> None:
    def draws(ring: PlaceboRing, count: int) -> list[str | None]:
        return [ring.draw("x", "x") for _ in range(count)]

    ring = PlaceboRing(5)
    for n in range(20):
        ring.add(f"e{n}", f"note {n}")
    draws(ring, 7)
    state = jsonio.loads(jsonio.dumps(ring.state()))
    twin = PlaceboRing(5)
    twin.restore(state)
    assert draws(ring, 12) == draws(twin, 12)
    twin.add("new", "new")
    assert len(ring.state()["notes"]) == 20
    assert draws(PlaceboRing(5), 1) == [None]


def test_draws_depend_on_the_seed_and_no_global_generator() -> None:
    def drawn(seed: int) -> list[str | None]:
        ring = PlaceboRing(seed)
        for n in range(20):
            ring.add(f"e{n}", f"note {n}")
        return [ring.draw("x", "x") for _ in range(10)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


# -- which turns are noted ------------------------------------------------------------------


def test_few_turns_are_all_noted() -> None:
    assert chosen_turns(4, 16, [False] * 4, seed=0) == [0, 1, 2, 3]
    assert chosen_turns(0, 16, [], seed=0) == []


def test_turns_after_a_thought_come_first_then_any_uniformly() -> None:
    thought = [False, True, False, True, True, False]
    for seed in range(30):
        assert chosen_turns(6, 3, thought, seed) == [1, 3, 4]
        two = chosen_turns(6, 2, thought, seed)
        assert len(two) == 2
        assert set(two) < {1, 3, 4}
        five = chosen_turns(6, 5, thought, seed)
        assert {1, 3, 4} < set(five)
        assert five == sorted(five)
    picked = [t for seed in range(300) for t in chosen_turns(6, 4, thought, seed)]
    for t in (0, 2, 5):
        assert picked.count(t) / 300 == pytest.approx(1 / 3, abs=0.1)


def test_coach_seeds_are_the_calls_own() -> None:
    seeds = {coach_seed(1, f"{b}/{e}", t) for b in range(2) for e in "ab" for t in range(3)}
    assert len(seeds) == 12
    assert coach_seed(1, "0/a", 0) == coach_seed(1, "0/a", 0) != coach_seed(2, "0/a", 0)


# -- one note, asked for ---------------------------------------------------------------------


class Slow:
    """A coach that takes its time: `delays[n]` seconds for the note of the n-th call."""

    name = "slow"

    def __init__(self, *delays: float) -> None:
        self.delays = delays
        self.calls = self.busy = self.most = 0
        self.shown: list[CoachTurn] = []

    async def note(self, turn: CoachTurn, *, seed: int) -> CoachNote | None:
        self.shown.append(turn)
        number, self.calls = self.calls, self.calls + 1
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            await asyncio.sleep(self.delays[number % len(self.delays)])
        finally:
            self.busy -= 1
        return CoachNote(f"note on {turn.history[-1].content}", self.name)

    async def aclose(self) -> None:
        """Release nothing."""


def test_a_coach_that_takes_too_long_has_failed() -> None:
    counts = NoteCounts()
    asking = CoachConfig(timeout_s=0.01)
    note = asyncio.run(write_note(Slow(30.0), turn(), counts, seed=0, asking=asking))
    assert note is None
    assert (counts.failed, counts.timed_out, counts.written) == (1, 1, 0)


def test_any_coach_is_shown_what_it_may_see_and_no_more() -> None:
    """Also one that does not know of the setting; the leak check knows the whole all the same."""
    coach, counts = Slow(0.0), NoteCounts()
    for asking in (
        CoachConfig(privileged=False),
        CoachConfig(channels="thought"),
        CoachConfig(style="corrective", thought="both"),
    ):
        asyncio.run(write_note(coach, turn(), counts, seed=0, asking=asking))
    bare, thought, whole = coach.shown
    assert (bare.thought_after, bare.thought_before, bare.next_utterance) == (None, None, "")
    assert (bare.reply, thought.reply) == ("", "")
    assert (thought.thought_before, thought.next_utterance) == (None, "")
    assert thought.thought_after == turn().thought_after
    assert whole == turn()
    assert (counts.with_thought, counts.with_reaction) == (2, 1)
    leaky = Says("Their order is 4172.")
    asking = CoachConfig(privileged=False)
    assert asyncio.run(write_note(leaky, turn(), counts, seed=0, asking=asking)) is None
    assert counts.leaked == 1


def test_counts_of_the_curve_have_all_fields() -> None:
    numbers = NoteCounts(asked=3, leaked_copies=2).numbers()
    assert numbers["notes/asked"] == 3
    assert numbers["notes/leaked_copies"] == 2
    assert len(numbers) == 12


# -- the notes of a batch --------------------------------------------------------------------

CODEC = TemplateCodec(tiny.tokenizer())


def talk(name: str, turns: int, *, cut: tuple[int, ...] = (), silent: tuple[int, ...] = ()) -> Talk:
    """An episode of short replies; those in `cut` have no end, after those in `silent` nobody spoke."""
    first = CODEC.prompt_ids([ChatMessage("user", "hello")])
    record = TokenRecord(tuple(first), CODEC.header)
    seen = []
    for index in range(turns):
        if index:
            closing = [CODEC.end_id] if index - 1 in cut else []
            record.add_context([*closing, *CODEC.suffix_ids(f"so {index}")], CODEC.header)
        ids = tiny.tokenizer()("where is it")["input_ids"]
        record.add_reply([*ids, *([] if index in cut else [CODEC.end_id])], None)
        seen.append(
            turn(
                history=(PublicMessage(Role.USER, f"{name} {index}"),),
                next_utterance="" if index in silent else "well",
            )
        )
    return Talk(name, record.finish(), seen)


def taker(
    coach: Any, *, asking: CoachConfig | None = None, context: int = 0, **how: Any
) -> NoteTaker:
    return NoteTaker(
        coach, asking, NoteConfig(**how), 4, NoteCounts(), PlaceboRing(5, active_from=3), context
    )


def take(made: NoteTaker, *talks: Talk) -> list[tuple[NotedTurn, ...]]:
    return asyncio.run(made.take(talks, CODEC))


def texts(noted: Any) -> list[list[str]]:
    return [[CODEC.decode(t.note_ids).strip() for t in turns] for turns in noted]


def test_notes_are_asked_for_at_once_but_not_too_many() -> None:
    coach = Slow(0.005)
    made = taker(coach, concurrency=3)
    noted = take(made, *(talk(f"e{n}", 3) for n in range(4)))
    assert coach.calls == made.counts.written == sum(map(len, noted)) == 12
    assert coach.most == 3
    one = Slow(0.001)
    take(taker(one, concurrency=1), talk("e", 4))
    assert one.most == 1


def test_who_answers_first_does_not_matter() -> None:
    """The same notes, placebos and ring, whatever the order of the answers."""
    talks = [talk(f"e{n}", 3) for n in range(4)]
    slow, quick = taker(Slow(0.03, 0.0, 0.02, 0.01, 0.0)), taker(Slow(0.0))
    assert take(slow, *talks) == take(quick, *talks)
    assert slow.ring.state() == quick.ring.state()
    found = take(taker(Slow(0.0)), *talks)
    assert "note on e2 1" in texts(found)[2][1]
    placebos = [t.placebo_ids for turns in found for t in turns]
    assert placebos[:3] == [None] * 3
    assert all(placebos[3:])


@pytest.mark.parametrize(
    ("coach", "left"),
    [(Says(None), "none"), (Says(InfraError("away")), "failed"), (Says("It is 4172."), "leaked")],
)
def test_a_coach_of_no_use_is_counted_and_costs_nothing_else(coach: Says, left: str) -> None:
    made = taker(coach)
    assert take(made, talk("a", 3), talk("b", 2)) == [(), ()]
    assert made.counts.asked == vars_of(made.counts)[left] == 5
    assert made.counts.written == 0


def vars_of(counts: NoteCounts) -> dict[str, float]:
    return {key.removeprefix("notes/"): value for key, value in counts.numbers().items()}


def test_the_rule_coach_without_privilege_writes_nothing() -> None:
    asking = CoachConfig("rule", privileged=False)
    made = taker(RuleCoach(asking), asking=asking)
    assert take(made, talk("a", 3)) == [()]
    assert (made.counts.none, made.counts.with_thought) == (3, 0)


def test_a_wrong_key_stops_the_run_and_a_bug_is_not_hidden() -> None:
    for error in (EnvironmentFault("wrong key"), KeyError("bug")):
        with pytest.raises(type(error)):
            take(taker(Says(error)), talk("a", 3))


def test_cut_replies_take_nobodys_place() -> None:
    made = taker(Slow(0.0), max_noted=2)
    (noted,) = take(made, talk("a", 4, cut=(0, 2)))
    spans = talk("a", 4, cut=(0, 2)).record.spans
    assert [t.start for t in noted] == [spans[1].start, spans[3].start]
    assert (made.counts.cut, made.counts.asked) == (2, 2)


def test_a_reaction_can_be_required() -> None:
    (usual,) = take(taker(Slow(0.0)), talk("a", 3, silent=(2,)))
    (heard,) = take(taker(Slow(0.0), require_reaction=True), talk("a", 3, silent=(2,)))
    assert (len(usual), len(heard)) == (3, 2)
    assert heard == usual[:2]


def test_rows_longer_than_the_context_are_left_out_and_counted() -> None:
    one = talk("a", 3)
    (noted,) = take(taker(Slow(0.0)), one)
    size = len(one.record.prompt_ids) + noted[1].end + len(noted[1].note_ids)
    made = taker(Slow(0.0), context=size)
    assert take(made, one) == [noted[:2]]
    assert made.counts.skipped == 1
    assert take(taker(Slow(0.0), context=size - 1), one) == [noted[:1]]


def test_the_leak_check_can_be_turned_off() -> None:
    made = taker(Says("It is 4172."), leak_check=False)
    take(made, talk("a", 2))
    assert made.counts.written == 2


def test_an_inline_note_stands_inside_the_last_message() -> None:
    """What the teacher reads is the student's prefix with more words in its last user message."""
    one = talk("a", 2)
    (noted,) = take(taker(Slow(0.0), place="inline"), one)
    ids = [*one.record.prompt_ids, *one.record.completion_ids]
    second = noted[1]
    before = ids[: len(one.record.prompt_ids) + second.start]
    cut = len(before) - second.header
    row = [*before[:cut], *second.note_ids, *before[cut:]]
    text = str(tiny.tokenizer().decode(row))
    assert text.endswith("<|im_start|>user\nso 1\n\nnote on a 1<|im_end|>\n<|im_start|>assistant\n")
    assert text.count("<|im_start|>user") == str(tiny.tokenizer().decode(before)).count(
        "<|im_start|>user"
    )


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"arm": "nothing"}, "'notes.arm' cannot be 'nothing'"),
        ({"place": "beside"}, "'notes.place' cannot be 'beside'"),
        ({"concurrency": 0}, "'notes.concurrency' cannot be 0"),
        ({"max_noted": -1}, "'notes.max_noted' cannot be -1"),
    ],
)
def test_settings_of_notes_that_cannot_be(how: dict[str, Any], words: str) -> None:
    class Run:
        notes = NoteConfig(**how)

    with pytest.raises(ConfigError, match=words):
        check_notes(Run())
