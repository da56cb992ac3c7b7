"""What a trained user writes beside what people wrote: length and variety in the same situations.

Two situations of held-out conversations: the first message, where a person opens, and a later one
after real turns. Base model and trained model write one message each; the statistics are the
counts of `stats.texts`, so no judge stands between the texts and the numbers. No text is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mimesim import seeds, stats
from mimesim.corpora.base import HumanDialogue
from mimesim.models import templates
from mimesim.models.base import ChatMessage
from mimesim.models.sampler import RowDraw, generate
from mimesim.train.rows import reverse

_LATER = 2
"""From this turn on a message is a later one: something was said by both sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleConfig:
    """How messages are drawn.

    Attributes:
        count: conversations of each corpus, at most.
        max_tokens: cap of a message.
        batch_size: messages drawn together.
    """

    count: int
    max_tokens: int
    seed: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    batch_size: int = 16


@dataclass(frozen=True, slots=True)
class Situation:
    """What was said before a message, and what the person wrote."""

    dialogue: str
    source: str
    prompt: tuple[ChatMessage, ...]
    answer: str


def sample_profiles(
    models: Mapping[str, Any],
    tokenizer: Any,
    dialogues: Sequence[HumanDialogue],
    cfg: SampleConfig,
) -> dict[str, Any]:
    """Let `models` write in held-out situations and count, people beside them.

    Returns:
        {"sampling": …, "first": {who: figures}, "later": {who: figures}} with who = human and the
        names of `models`. Figures: those of `stats.text_profile`, `ci95` of the mean words,
        `different` (distinct texts over texts), `ended` (messages that the model ended itself)
        and `words_by_source`.
    """
    found: dict[str, Any] = {"sampling": asdict(cfg)}
    for kind in ("first", "later"):
        places = list(situations(dialogues, kind, cfg.count))
        if not places:
            continue
        found[kind] = {"human": _figures(places, [place.answer for place in places], cfg)}
        for name, model in models.items():
            drawn = _drawn(model, tokenizer, places, kind, cfg)
            ended = sum(row.finish_reason == "stop" for row in drawn) / len(drawn)
            texts = [row.text.strip() for row in drawn]
            found[kind][name] = {**_figures(places, texts, cfg), "ended": ended}
    return found


def situations(dialogues: Sequence[HumanDialogue], kind: str, count: int) -> Iterator[Situation]:
    """Yield up to `count` situations of each corpus, `kind` being first or later."""
    taken: dict[str, int] = {}
    for dialogue in dialogues:
        sides = [turn.role for turn in dialogue.turns]
        if kind == "first":
            place = 0 if sides[0] == "user" else None
        else:
            later = (i for i, side in enumerate(sides) if side == "user" and i >= _LATER)
            place = next(later, None)
        if place is None or taken.get(dialogue.source, 0) >= count:
            continue
        taken[dialogue.source] = taken.get(dialogue.source, 0) + 1
        *prompt, answer = reverse(replace(dialogue, turns=dialogue.turns[: place + 1]))
        yield Situation(dialogue.id, dialogue.source, tuple(prompt), answer.content)


def _drawn(
    model: Any, tokenizer: Any, places: Sequence[Situation], kind: str, cfg: SampleConfig
) -> list[RowDraw]:
    model.eval()
    shape = templates.inspect_template(tokenizer).shape
    rows = [
        RowDraw(
            prompt_ids=templates.render_ids(
                tokenizer, shape(place.prompt), add_generation_prompt=True
            ),
            room=cfg.max_tokens,
            temperature=cfg.temperature,
            top_p=cfg.top_p,
            top_k=0,
            stop=(),
            random=seeds.generator(cfg.seed, "samples", kind, place.dialogue),
        )
        for place in places
    ]
    by_length = sorted(rows, key=lambda row: len(row.prompt_ids))
    for start in range(0, len(by_length), cfg.batch_size):
        generate(model, tokenizer, by_length[start : start + cfg.batch_size])
    return rows


def _figures(
    places: Sequence[Situation], texts: Sequence[str], cfg: SampleConfig
) -> dict[str, Any]:
    sizes = [float(len(stats.words(text))) for text in texts]
    interval = stats.mean_ci(sizes, seed=cfg.seed)
    by_source: dict[str, list[float]] = {}
    for place, size in zip(places, sizes, strict=True):
        by_source.setdefault(place.source, []).append(size)
    return {
        **asdict(stats.text_profile(texts)),
        "ci95": [interval.low, interval.high],
        "different": len({" ".join(stats.words(text)) for text in texts}) / len(texts),
        "words_by_source": {name: sum(v) / len(v) for name, v in sorted(by_source.items())},
    }
